import * as z from 'zod'
import { isLanguage, isTimeZone } from '../../core/course/definition.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { parseWith } from '../http/body.ts'
import { answerToPrefetch, needsButton, PREFETCHED } from '../http/links.ts'
import { htmlResponse } from '../http/respond.ts'
import { defineRoute, jsonOrPage, query } from '../http/route.ts'
import {
  type Choice,
  preferredPage,
  resubscribedPage,
  unsubscribedPage,
  unsubscribePage,
} from '../pages/pages.ts'

const UnsubscribeRequest = z.looseObject({
  'List-Unsubscribe': z.string().optional(),
  undo: z.string().optional(),
  preferences: z.string().optional(),
  language: z.string().optional(),
  timeZone: z.string().optional(),
})
const Preferences = z.object({
  language: z.literal('').or(z.string().refine(isLanguage, 'not a language tag, as de')).optional(),
  timeZone: z
    .literal('')
    .or(z.string().refine(isTimeZone, 'not an IANA time zone, as Europe/Berlin'))
    .optional(),
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

/**
 * The link that ends a subscription. A person's browser unsubscribes by opening it, and a mail program by POST
 * (RFC 8058); a scanner, and with `button` everybody who opens it, gets a page with a button.
 */
export const route = (platform: ResolvedPlatform) =>
  defineRoute({
    tag: 'Course',
    summary: 'Ends a subscription by the link in a lesson',
    description: `${SAME_PAGE} The page offers to undo. HEAD, prefetches and mail scanners change nothing, and scanners get a page whose button unsubscribes; where the platform unsubscribes by a button, so does any other GET.`,
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
    handle: ({ course }) => {
      const choice = choiceOf(platform)
      return async (c) => {
        const nothing = answerToPrefetch(c)
        if (nothing) return nothing
        const { frame } = c
        const id = c.query('course')
        const page = { action: `${c.url.pathname}${c.url.search}`, course: id, choice }
        if (needsButton(c, platform.unsubscription ?? 'link'))
          return c.wantsJson ? { status: 'unchanged' as const } : htmlResponse(unsubscribePage(frame, page))
        const link = { s: c.query('s') ?? '', t: c.query('t') ?? '' }
        const fields = c.request.method === 'POST' ? await c.form() : {}
        const opened = await course()
        if (fields.preferences === '1') {
          const { language, timeZone } = parseWith(Preferences, fields)
          await opened.preferByLink(link, {
            language: language || undefined,
            timeZone: timeZone || undefined,
          })
          if (fields.undo !== '1') return htmlResponse(preferredPage(frame))
        }
        if (fields.undo === '1') {
          // The link's token authorizes the undo: a forged form on another site cannot know it.
          await opened.undoUnsubscribe(link)
          return htmlResponse(resubscribedPage(frame, id))
        }
        await opened.unsubscribe(link)
        return c.wantsJson ? { status: 'unsubscribed' as const } : htmlResponse(unsubscribedPage(frame, page))
      }
    },
  })
