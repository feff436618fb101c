import * as z from 'zod'
import { NOTICES } from '../../core/course/notices.ts'
import { PlatformError } from '../../core/errors.ts'
import { answerToPrefetch, needsButton, PREFETCHED } from '../http/links.ts'
import { htmlResponse } from '../http/respond.ts'
import { defineRoute, jsonOrPage, query } from '../http/route.ts'
import { confirmedNoticesPage, confirmedPage, confirmPage } from '../pages/pages.ts'

const ConfirmAnswer = z.strictObject({ status: z.enum(['confirmed', 'unconfirmed']) })

/**
 * The link of a confirmation mail. A person's browser confirms by opening it; a scanner, and with `button` everybody,
 * gets a page with a button that confirms by POST.
 */
export const route = () =>
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
    errors: ['token_invalid', 'token_expired', 'store_unavailable'],
    errorTexts: ({ linkInvalid, linkExpired, notConfirmedYet }) => ({
      token_invalid: linkInvalid,
      token_expired: linkExpired,
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
        const { cadence } = courses.find((one) => one.id === id) ?? courses[0] ?? {}
        return htmlResponse(id === NOTICES ? confirmedNoticesPage(c.frame) : confirmedPage(c.frame, cadence))
      },
  })
