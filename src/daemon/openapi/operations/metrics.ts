import type { Operations } from '../operation.ts'

export const METRICS = {
  metrics: {
    GET: {
      tag: 'Operations',
      summary: 'Metrics for Prometheus; always 200',
      answers: [{ status: 200, description: 'The text format, 0.0.4.', content: { 'text/plain': 'text' } }],
      errors: [],
    },
  },
} satisfies Partial<Operations>
