import { textResponse } from '../http/respond.ts'
import { defineRoute, text } from '../http/route.ts'
import { announcementCalendar } from '../pages/status/feed.ts'
import { summaryReader } from './status.ts'

export const route = () =>
  defineRoute({
    tag: 'Pages',
    summary: 'The announcements as a calendar',
    answers: [text('text/calendar', 'What is planned or current, as iCalendar (RFC 5545).')],
    errors: ['store_unavailable'],
    handle(site) {
      const read = summaryReader(site)
      const { labels, platform, settings } = site
      return async () =>
        textResponse(
          announcementCalendar(await read(), labels, platform.name, settings.site.siteUrl),
          'text/calendar; charset=utf-8',
        )
    },
  })
