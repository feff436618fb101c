import type { RouteOperations } from '../operation.ts'
import { page } from './common.ts'

export const INSIGHTS = {
  insights: {
    GET: {
      tag: 'Analytics',
      summary: 'The dashboards of a visitor',
      description:
        'A page that draws what this browser has recorded, from its own storage. It is the same for everybody, and sends nothing.',
      answers: [page('The page, with its script and style.')],
      errors: ['unavailable'],
    },
  },
} satisfies Partial<RouteOperations>
