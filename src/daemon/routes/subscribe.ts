import * as z from 'zod'
import type { Challenge } from '../../core/access/identity.ts'
import { parseAddress } from '../../core/address.ts'
import { isLanguage, isTimeZone, NOTICES } from '../../core/course/definition.ts'
import { PlatformError } from '../../core/errors.ts'
import { answerInTime } from '../../core/own-code.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { isOwnForm, parseWith, readJson } from '../http/body.ts'
import { htmlResponse } from '../http/respond.ts'
import { defineRoute, jsonBody, jsonOrPage } from '../http/route.ts'
import { subscribedPage, subscribeRefusedPage } from '../pages/pages.ts'

const MOST_BYTES = 8 * 1024

const requestOf = (courses: readonly string[]) =>
  z.strictObject({
    email: z
      .string()
      .meta({ format: 'email', maxLength: 254 })
      .transform((text, context) => {
        const parsed = parseAddress(text)
        if (parsed.ok) return { spelling: parsed.mailbox.address, identity: parsed.identity }
        context.addIssue({ code: 'custom', message: parsed.reason })
        return z.NEVER
      }),
    course: z.enum(courses).optional().meta({
      description:
        'One of the platform’s courses, its first when left out; or `status`, for mails about incidents.',
    }),
    timeZone: z
      .string()
      .max(64)
      .refine(isTimeZone, 'not an IANA time zone, as Europe/Berlin')
      .optional()
      .meta({
        description: 'IANA name, for courses at the subscriber’s local hour.',
        examples: ['Europe/Berlin'],
      }),
    language: z
      .string()
      .max(35)
      .refine(isLanguage, 'not a language tag, as de')
      .optional()
      .meta({ description: 'A language tag; that of the platform when left out.', examples: ['de'] }),
    challenge: z.string().max(4096).optional(),
  })

const SubscribeAnswer = z.strictObject({
  status: z.literal('pending'),
  sent: z.boolean(),
  reason: z.string().exactOptional(),
})

export const route = ({ courses: defined }: ResolvedPlatform) => {
  const ids = defined.map(({ id }) => id)
  return defineRoute({
    tag: 'Course',
    summary: 'Subscribes an address to the course',
    description:
      'The answer has the same body, status and time whether or not the address is known. A confirmation is mailed at most once an hour for a course and three times a day to an address. The form on the pages of the course posts here too, and a browser that sent it gets a page; forms on other sites are refused. Scripts of the origins in CORS_ALLOWED_ORIGINS may post JSON.',
    body: jsonBody(
      MOST_BYTES,
      'SubscribeRequest',
      requestOf([...ids, NOTICES]),
      { address: { email: 'ada@example.com' } },
      { also: 'application/x-www-form-urlencoded' },
    ),
    answers: [
      jsonOrPage(
        'Taken. `sent` is false only where mail is not configured, or once the platform has mailed its confirmations for the day.',
        'SubscribeAnswer',
        SubscribeAnswer,
        {
          mailed: { status: 'pending', sent: true },
          withoutMail: { status: 'pending', sent: false, reason: 'mail is not configured' },
        },
        202,
      ),
    ],
    errors: ['challenge_failed', 'unavailable', 'store_unavailable'],
    handle: ({ course, challenge, status, settings: { value }, log }) => {
      // Incidents only if this process watches for them.
      const courses = status.recorded === 'none' ? ids : [...ids, NOTICES]
      const request = requestOf(courses)
      const passes = (asked: Omit<Parameters<Challenge>[0], 'value'>) =>
        answerInTime(() => challenge?.({ ...asked, value }) ?? true, {
          log,
          event: 'challenge_fault',
          sentence: 'The challenge cannot be checked now; try again in a minute.',
        })
      return async (c) => {
        if (courses.length === 0)
          throw new PlatformError('not_found', 'There is nothing to subscribe to here.')
        const fields = isOwnForm(c.request, c.frame.siteUrl) ? await c.form() : undefined
        if (fields !== undefined && c.wantsHtml && !request.shape.email.safeParse(fields.email).success) {
          // The first course needs no name.
          const course = courses.find((id, at) => id === fields.course && (at > 0 || id === NOTICES))
          return htmlResponse(subscribeRefusedPage(c.frame, { ...fields, course }), 400)
        }
        const asked = fields ? parseWith(request, fields) : await readJson(c, request, MOST_BYTES)
        const { email, challenge: response, ...wanted } = asked
        if (!(await passes({ response, email: email.spelling, client: c.client })))
          throw new PlatformError('challenge_failed', 'The challenge of this form was not passed; try again.')
        const to = wanted.course ?? ids[0]
        if (to === undefined) throw new PlatformError('not_found', 'There is no course to subscribe to here.')
        const answer = await (await course()).subscribe({ ...email, ...wanted, course: to })
        return fields !== undefined && c.wantsHtml
          ? htmlResponse(subscribedPage(c.frame, answer.sent, to), 202)
          : answer
      }
    },
  })
}
