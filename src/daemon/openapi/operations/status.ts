import { EXAMPLE_STATUS, StatusAnswer } from '../../pages/status/answer.ts'
import { ServiceName } from '../../service-schema.ts'
import type { RouteOperations } from '../operation.ts'
import { json, page } from './common.ts'

const RECORDED = {
  description:
    'From what the daemon records each minute, never from live checks. With the health token also reasons and addresses; a browser asks for it as a password on `?details`.',
  security: 'deepToken',
  securityOptional: true,
} as const

export const STATUS = {
  status: {
    GET: {
      tag: 'Pages',
      summary: 'The start page: what works, what is not configured, and what that means',
      ...RECORDED,
      answers: [page('The recorded status of the platform.')],
      errors: ['unauthenticated', 'store_unavailable'],
    },
  },
  statusJson: {
    GET: {
      tag: 'Pages',
      summary: 'The status page for programs',
      ...RECORDED,
      answers: [
        json('The recorded status of the platform.', {
          name: 'Status',
          schema: StatusAnswer,
          examples: { withoutDaemon: EXAMPLE_STATUS },
        }),
      ],
      errors: ['unauthenticated', 'store_unavailable'],
    },
  },
  statusFeed: {
    GET: {
      tag: 'Pages',
      summary: 'The incidents as an Atom feed',
      answers: [
        { status: 200, description: 'The newest incidents.', content: { 'application/atom+xml': 'text' } },
      ],
      errors: ['store_unavailable'],
    },
  },
  badge: {
    GET: {
      tag: 'Pages',
      summary: 'The state as a picture for a README',
      parameters: [
        {
          in: 'query',
          name: 'service',
          schema: ServiceName,
          description: 'Of one service; without it, of the platform.',
          example: 'web',
        },
      ],
      answers: [{ status: 200, description: 'A badge.', content: { 'image/svg+xml': 'text' } }],
      errors: ['bad_request', 'store_unavailable'],
    },
  },
} satisfies Partial<RouteOperations>
