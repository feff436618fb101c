import * as z from 'zod'

export const count = z.int().min(0)
export const countsByName = z.record(z.string(), count)
export const list = z.array
/** A list of objects that have these members and no others. */
export const listOf = <Shape extends z.ZodRawShape>(shape: Shape) => list(z.strictObject(shape))
export const text = z.string()
export const milliseconds = z.number().describe('UTC milliseconds since the epoch.')
export const time = z.iso.datetime().describe('ISO 8601, in UTC.')

export const optional = <Form extends z.ZodType>(form: Form, about: string) => form.optional().describe(about)

export const members = <Form extends z.ZodType, Name extends string>(form: Form, ...names: readonly Name[]) =>
  Object.fromEntries(names.map((name) => [name, form])) as Record<Name, Form>

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
  ...members(count, 'parked', 'unknown'),
  waiting: count.describe('Due, and waiting for the next attempt because one failed.'),
  ...members(milliseconds.optional(), 'nextTryAt', 'oldestDueAt'),
})
