import * as z from 'zod'
import { PlatformError } from '../../core/errors.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { incidentOf } from '../../core/status/words.ts'
import { parseWith } from '../http/body.ts'
import { htmlResponse, pictureResponse, textResponse } from '../http/respond.ts'
import { defineRoute, inPath, json, query, text } from '../http/route.ts'
import { EXAMPLE_STATUS, statusAnswer, statusJson } from '../pages/status/answer.ts'
import { announcementCalendar, incidentFeed } from '../pages/status/feed.ts'
import { incidentPage, incidentsPage } from '../pages/status/page.ts'
import { badge as drawBadge, statusPicture } from '../pages/status/pictures.ts'
import { answerStatus, inputOf, RECORDED, statusScript, summaryReader } from './status.ts'

export const statusJsonRoute = ({ services }: ResolvedPlatform) =>
  defineRoute({
    ...RECORDED,
    summary: 'The status page for programs',
    answers: [
      json('The recorded status of the platform.', 'Status', statusAnswer(services.map(({ name }) => name)), {
        withoutDaemon: EXAMPLE_STATUS,
      }),
    ],
    handle: (site) => answerStatus(site, statusJson),
  })

/** A text that is made from the record alone. */
const textRoute = (summary: string, type: string, description: string, write: typeof incidentFeed) => () =>
  defineRoute({
    tag: 'Pages',
    summary,
    answers: [text(type, description)],
    errors: ['store_unavailable'],
    handle(site) {
      const read = summaryReader(site)
      const { labels, platform } = site
      const { siteUrl } = site.settings.site
      return async () =>
        textResponse(write(await read(), labels, platform.name, siteUrl), `${type}; charset=utf-8`)
    },
  })

export const feedRoute = textRoute(
  'The incidents as an Atom feed',
  'application/atom+xml',
  'The newest incidents.',
  incidentFeed,
)

export const calendarRoute = textRoute(
  'The announcements as a calendar',
  'text/calendar',
  'What is planned or current, as iCalendar (RFC 5545).',
  announcementCalendar,
)

export const incidentRoute = () =>
  defineRoute({
    tag: 'Pages',
    summary: 'The page of an incident',
    parameters: [
      inPath(
        'page',
        'As the status page links to it; `index.html` lists all incidents.',
        'index.html',
        z.string().regex(/^(?:index|.+-\d+(?:\.\d+)?)\.html$/),
      ),
    ],
    answers: [text('text/html', 'Who felt the incident, its timeline, and what came of it.')],
    errors: ['not_found', 'store_unavailable'],
    handle(site) {
      const read = summaryReader(site)
      return async ({ params: { page = '' }, frame }) => {
        const input = { ...inputOf(site, await read(), frame), script: await statusScript() }
        if (page === 'index.html') return htmlResponse(incidentsPage(input))
        const found = incidentOf(page.replace(/\.html$/, ''), input.summary.incidents)
        if (found === undefined)
          throw new PlatformError('not_found', 'There is no such incident, or it is no longer kept.')
        return htmlResponse(incidentPage(input, found))
      }
    },
  })

export const badgeRoute = ({ contract: { services: names } }: ResolvedPlatform) =>
  defineRoute({
    tag: 'Pages',
    summary: 'The state as a picture for a README',
    parameters: [query('service', 'Of one service; without it, of the platform.', 'web', z.enum(names))],
    answers: [text('image/svg+xml', 'A badge.')],
    errors: ['bad_request', 'store_unavailable'],
    handle(site) {
      const read = summaryReader(site)
      const { labels } = site
      const asked = z.object({ service: z.enum(names).optional() })
      return async (c) => {
        const { service } = parseWith(asked, { service: c.query('service') })
        const summary = await read()
        const own = summary.services.find((one) => one.service === service)?.whole.state ?? 'unknown'
        const [name, state] =
          service === undefined ? [service, summary.state] : [labels.service(service), own]
        return pictureResponse(drawBadge(labels.messages, name, state), 'image/svg+xml; charset=utf-8')
      }
    },
  })

export const pictureRoute = () =>
  defineRoute({
    tag: 'Pages',
    summary: 'The state as a picture, for links that are shared',
    answers: [text('image/png', 'A picture of 1200 by 630 pixels.')],
    errors: ['store_unavailable'],
    handle(site) {
      const read = summaryReader(site)
      let drawn: { readonly of: string; readonly picture: Uint8Array<ArrayBuffer> } | undefined
      return async () => {
        const { state, services } = await read()
        const of = JSON.stringify([state, services.map(({ whole }) => whole.days)])
        if (drawn?.of !== of) drawn = { of, picture: statusPicture({ state, services }) }
        return pictureResponse(drawn.picture, 'image/png')
      }
    },
  })
