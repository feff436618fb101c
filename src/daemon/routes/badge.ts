import * as z from 'zod'
import { PlatformError } from '../../core/errors.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { pictureResponse } from '../http/respond.ts'
import { defineRoute, query, text } from '../http/route.ts'
import { badge } from '../pages/status/badge.ts'
import { summaryReader } from './status.ts'

export const route = ({ services, contract: { services: names } }: ResolvedPlatform) =>
  defineRoute({
    tag: 'Pages',
    summary: 'The state as a picture for a README',
    parameters: [
      query(
        'service',
        'Of one service; without it, of the platform.',
        'web',
        z.enum(services.map(({ name }) => name)),
      ),
    ],
    answers: [text('image/svg+xml', 'A badge.')],
    errors: ['bad_request', 'store_unavailable'],
    handle(site) {
      const read = summaryReader(site)
      const { labels } = site
      return async (c) => {
        const service = c.query('service')
        if (service !== undefined && !labels.isService(service)) {
          const message =
            names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`
          throw new PlatformError('bad_request', 'The request does not have the documented form.', {
            issues: [{ path: 'service', message }],
          })
        }
        const summary = await read()
        const own = summary.services.find((one) => one.service === service)?.whole.state ?? 'unknown'
        return pictureResponse(
          service === undefined
            ? badge(labels.messages, undefined, summary.state)
            : badge(labels.messages, labels.service(service), own),
          'image/svg+xml; charset=utf-8',
        )
      }
    },
  })
