import * as z from 'zod'

/** Schemas that several documents share. */

export const count = z.int().min(0)
export const countsByName = z.record(z.string(), count)
export const list = z.array
/** A list of objects that have these members and no others. */
export const listOf = <Shape extends z.ZodRawShape>(shape: Shape) => list(z.strictObject(shape))
export const text = z.string()
export const milliseconds = z.number().describe('UTC milliseconds since the epoch.')
export const time = z.iso.datetime().describe('ISO 8601, in UTC.')

/** An object with `version: 1`, and nothing but the members that are named. */
export const versioned = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.strictObject({ version: z.literal(1), ...shape })

/** Why a kind of mail is not sent until an operator resumes it. */
export const pause = z.strictObject({ at: milliseconds, reason: text })

export const subscriptionState = z.enum(['unconfirmed', 'confirmed', 'unsubscribed'])

const countsByState = z.record(subscriptionState, count)

export const courseCounts = z.strictObject({
  byCourse: z.record(z.string(), countsByState),
  byState: countsByState,
  byLessons: list(count).describe('Confirmed subscriptions by the number of lessons sent, from 0.'),
  dueNow: count,
  dueByHour: list(count).describe('Due in each of the next 24 hours, beyond what is due now.'),
  parked: count,
  unknown: count,
  waiting: count.describe('Due, and waiting for the next attempt because one failed.'),
  nextTryAt: milliseconds.optional(),
  oldestDueAt: milliseconds.optional(),
})
