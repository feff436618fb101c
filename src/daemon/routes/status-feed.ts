import { textResponse } from '../http/respond.ts'
import { defineRoute, text } from '../http/route.ts'
import { incidentFeed } from '../pages/status/feed.ts'
import { summaryReader } from './status.ts'

export const route = () =>
  defineRoute({
    tag: 'Pages',
    summary: 'The incidents as an Atom feed',
    answers: [text('application/atom+xml', 'The newest incidents.')],
    errors: ['store_unavailable'],
    handle(site) {
      const read = summaryReader(site)
      const { labels, platform, settings } = site
      return async () =>
        textResponse(
          incidentFeed(await read(), labels, platform.name, settings.site.siteUrl),
          'application/atom+xml; charset=utf-8',
        )
    },
  })
