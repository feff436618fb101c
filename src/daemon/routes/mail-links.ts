import * as z from 'zod'
import { localLimiter, policiesOf, secondsOf } from '../../core/access/limit/limiter.ts'
import { isLanguage, isTimeZone } from '../../core/course/definition.ts'
import { PlatformError } from '../../core/errors.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { parseWith } from '../http/body.ts'
import type { RouteContext } from '../http/context.ts'
import { emptyResponse, htmlResponse } from '../http/respond.ts'
import { type Answer, defineRoute, jsonOrPage, query } from '../http/route.ts'
import {
  type Choice,
  confirmedPage,
  confirmPage,
  preferredPage,
  resubscribedPage,
  unsubscribedPage,
  unsubscribePage,
} from '../pages/pages.ts'

const ConfirmAnswer = z.strictObject({ status: z.enum(['confirmed', 'unconfirmed']) })

/** A person's browser confirms by opening the link; a scanner, and with `button` everybody, gets a page with a button. */
export const confirmRoute = () =>
  defineRoute({
    tag: 'Course',
    summary: 'Confirms a subscription by the link in its mail',
    description:
      'HTML for a browser (`Accept: text/html`), JSON on request. A second click answers as the first. HEAD, prefetches (`Sec-Purpose`) and mail scanners change nothing; where the platform confirms by a button, neither does any other GET.',
    post: {
      summary: 'Confirms a subscription by the button on the page of its link',
      description: 'The body is ignored.',
    },
    parameters: [query('token', 'From the link.', 'Zm9yIGV4YW1wbGUgb25seQ')],
    answers: [
      jsonOrPage('Confirmed, or a page whose button confirms.', 'ConfirmAnswer', ConfirmAnswer, {
        confirmed: { status: 'confirmed' },
      }),
      PREFETCHED,
    ],
    errors: ['token_invalid', 'token_expired', 'conflict', 'store_unavailable'],
    errorTexts: ({ linkInvalid, linkExpired, courseClosed, notConfirmedYet }) => ({
      token_invalid: linkInvalid,
      token_expired: linkExpired,
      conflict: courseClosed,
      store_unavailable: notConfirmedYet,
    }),
    handle:
      ({ course, confirmation, platform: { courses } }) =>
      async (c) => {
        const nothing = answerToPrefetch(c)
        if (nothing) return nothing
        const token = c.query('token') ?? ''
        const id = c.query('course')
        const opened = await course()
        const outcome = needsButton(c, confirmation)
          ? await opened.checkToken(token)
          : await opened.confirm(token)
        if (outcome === 'expired')
          throw new PlatformError('token_expired', 'This link has expired; subscribe again to get a new one.')
        if (outcome === 'invalid')
          throw new PlatformError(
            'token_invalid',
            'This link does not work; use the newest one, or subscribe again.',
          )
        const isConfirmed = outcome !== 'use'
        if (c.wantsJson) return { status: isConfirmed ? ('confirmed' as const) : ('unconfirmed' as const) }
        if (!isConfirmed) return htmlResponse(confirmPage(c.frame, `${c.url.pathname}${c.url.search}`, id))
        const begun = courses.find((one) => one.id === (id ?? courses[0]?.id))
        return htmlResponse(confirmedPage(c.frame, id, begun))
      },
  })

const UnsubscribeRequest = z.looseObject({
  'List-Unsubscribe': z.string().optional(),
  undo: z.string().optional(),
  preferences: z.string().optional(),
  language: z.string().optional(),
  timeZone: z.string().optional(),
})
const Unchanged = z.literal('').transform(() => undefined)
const Preferences = z.object({
  language: Unchanged.or(z.string().refine(isLanguage, 'not a language tag, as de')).optional(),
  timeZone: Unchanged.or(z.string().refine(isTimeZone, 'not an IANA time zone, as Europe/Berlin')).optional(),
})
const UnsubscribeAnswer = z.strictObject({ status: z.enum(['unsubscribed', 'unchanged']) })

/** The languages and time zones that a reader may choose from; undefined: there is nothing to choose. */
function choiceOf({ language, courses, mails: { definitions } }: ResolvedPlatform): Choice | undefined {
  const translated = definitions.flatMap(({ name, translates, lesson }) =>
    lesson && translates !== undefined ? [name.slice(0, -(translates.length + 1))] : [],
  )
  const languages = [...new Set([language.toLowerCase(), ...translated])]
  const choice = {
    languages: languages.length > 1 ? languages : [],
    hasZone: courses.some(({ cadence }) => cadence.kind === 'at' && cadence.zone === undefined),
  }
  return choice.languages.length > 0 || choice.hasZone ? choice : undefined
}

const SAME_PAGE = 'Always the same page, even for a forged or unknown link; JSON on request.'

/** As for a confirmation; a mail program unsubscribes by POST (RFC 8058). */
export const unsubscribeRoute = (platform: ResolvedPlatform) =>
  defineRoute({
    tag: 'Course',
    summary: 'Ends a subscription by the link in a lesson',
    description: `${SAME_PAGE} The page offers to undo. HEAD, prefetches and mail scanners change nothing: scanners get a page with an unsubscribe button. Where the platform unsubscribes by a button, everybody gets that page.`,
    post: {
      summary: 'Ends a subscription with one click (RFC 8058), or undoes that',
      description: `${SAME_PAGE} With \`undo=1\`, from the form of that page, the lessons go on; with \`preferences=1\`, language and time zone are changed. The answer is then always a page.`,
    },
    parameters: [
      query('s', 'From the link: subscription and enrolment.', 'Jk3nM0aPq9xT2vLs.1'),
      query('t', 'From the link: its signature.', 'c2lnbmF0dXJl'),
    ],
    body: {
      bytes: 8 * 1024,
      type: 'application/x-www-form-urlencoded',
      name: 'UnsubscribeRequest',
      schema: UnsubscribeRequest,
      optional: true,
      examples: { oneClick: { 'List-Unsubscribe': 'One-Click' }, undo: { undo: '1' } },
    },
    answers: [
      jsonOrPage(
        'Unsubscribed, as far as the link was genuine; or a page whose button unsubscribes.',
        'UnsubscribeAnswer',
        UnsubscribeAnswer,
        { unsubscribed: { status: 'unsubscribed' }, button: { status: 'unchanged' } },
      ),
      PREFETCHED,
    ],
    errors: ['store_unavailable'],
    errorTexts: ({ notUnsubscribedYet }) => ({ store_unavailable: notUnsubscribedYet }),
    handle: ({ course, settings: { limits }, clock }) => {
      const choice = choiceOf(platform)
      const changes = localLimiter(clock)
      const { subscribe } = policiesOf(limits.perMinute)
      return async (c) => {
        const nothing = answerToPrefetch(c)
        if (nothing) return nothing
        const id = c.query('course')
        const page = { action: `${c.url.pathname}${c.url.search}`, course: id, choice }
        if (needsButton(c, platform.unsubscription ?? 'link'))
          return c.wantsJson ? { status: 'unchanged' as const } : htmlResponse(unsubscribePage(c.frame, page))
        const link = { s: c.query('s') ?? '', t: c.query('t') ?? '' }
        const opened = await course()
        // What anybody can ask for raises no alert.
        c.isForged = !opened.isGenuine(link) || undefined
        const fields = c.request.method === 'POST' ? await c.form() : {}
        // Mail providers unsubscribe for many readers; what only readers do is limited as subscribing is.
        const isByReader = fields.undo === '1' || fields.preferences === '1'
        const retryAfterSeconds = isByReader ? secondsOf(changes.take(subscribe, c.client).retry) : 0
        if (retryAfterSeconds > 0) {
          c.isForged = true
          throw new PlatformError('rate_limited', 'Too many changes; try again later.', { retryAfterSeconds })
        }
        if (fields.preferences === '1') {
          await opened.preferByLink(link, parseWith(Preferences, fields))
          if (fields.undo !== '1') return htmlResponse(preferredPage(c.frame))
        }
        if (fields.undo === '1') {
          // The link's token authorizes the undo: a forged form on another site cannot know it.
          await opened.undoUnsubscribe(link)
          return htmlResponse(resubscribedPage(c.frame, id))
        }
        await opened.unsubscribe(link)
        return c.wantsJson
          ? { status: 'unsubscribed' as const }
          : htmlResponse(unsubscribedPage(c.frame, page))
      }
    },
  })

/** Headers by which browsers and proxies mark a prefetch. */
const PURPOSES = ['sec-purpose', 'purpose', 'x-moz', 'x-purpose'] as const
const isPrefetch = (headers: Headers) =>
  PURPOSES.some((name) => /prefetch|preview|prerender/i.test(headers.get(name) ?? ''))

const PREFETCHED: Answer<never> = { status: 204, description: 'A prefetch: nothing is done.', content: {} }

/** The answer to HEAD and prefetches of a mail's link, which must change nothing; undefined for any other request. */
function answerToPrefetch({ request: { method, headers } }: RouteContext): Response | undefined {
  if (method === 'HEAD') return emptyResponse(200)
  return isPrefetch(headers) ? emptyResponse() : undefined
}

function needsButton({ request: { method, headers } }: RouteContext, by: 'link' | 'button'): boolean {
  return method === 'GET' && (by === 'button' || isScanner(headers))
}

/**
 * Did a mail filter, link preview or prefetch fetch this link, and no person follow it? Any browser asks for HTML; curl
 * and the like take whatever comes. `confirmation: 'button'` and `unsubscription: 'button'` are for other scanners.
 */
export function isScanner(headers: Headers): boolean {
  const agent = headers.get('user-agent') ?? ''
  const accept = headers.get('accept') ?? '*/*'
  const takesPage = /\btext\/html\b|\bapplication\/(?:[\w.-]+\+)?json\b/i.test(accept)
  const takesAny = accept.startsWith('*/*') && !/^mozilla\//i.test(agent)
  return !(takesPage || takesAny) || SCANNER.test(agent) || isPrefetch(headers)
}

const SCANNER =
  /bot\b|bot\/|crawl|spider|scanner|preview|prefetch|proofpoint|mimecast|barracuda|safelinks|safe links|urldefense|fireeye|trellix|symantec|sophos|forcepoint|ironport|fortinet|zscaler|virustotal|urlscan|checkpoint|trend ?micro|bitdefender|kaspersky|google-safety|google-read-aloud|googleimageproxy|ggpht|yahoomailproxy|yahoo pipes|microsoft office|ms-office|outlook-|facebookexternalhit|whatsapp|discord|slack|skypeuri|headlesschrome|phantomjs|go-http-client|^java|okhttp|apache-httpclient|libwww|winhttp/i
