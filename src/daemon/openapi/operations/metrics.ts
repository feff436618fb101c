import type { RouteOperations } from '../operation.ts'

export const METRICS = {
  metrics: {
    GET: {
      tag: 'Operations',
      summary: 'Metrics for Prometheus',
      description:
        'All of them with the health token, or, where none is configured, for the machine itself; for everybody else those that tell nothing about one person.',
      answers: [{ status: 200, description: 'The text format, 0.0.4.', content: { 'text/plain': 'text' } }],
      errors: ['unauthenticated'],
    },
  },
} satisfies Partial<RouteOperations>
