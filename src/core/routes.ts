import type { Service } from './service.ts'

/**
 * Every route the platform serves. Services mount exactly these, and the links of the mails lead to
 * exactly these: a mail cannot point at a page that does not exist.
 */
export const ROUTES = {
  status: { service: 'web', methods: ['GET'], path: '/' },
  statusJson: { service: 'web', methods: ['GET'], path: '/status.json' },
  metrics: { service: 'web', methods: ['GET'], path: '/metrics' },
  badge: { service: 'web', methods: ['GET'], path: '/badge.svg' },
  lesson: { service: 'web', methods: ['GET'], path: '/lessons/:day' },
  subscribe: { service: 'web', methods: ['POST'], path: '/api/email/subscribe' },
  confirm: { service: 'web', methods: ['GET'], path: '/api/email/confirm' },
  unsubscribe: { service: 'web', methods: ['GET', 'POST'], path: '/api/email/unsubscribe' },
  email: { service: 'web', methods: ['POST'], path: '/api/email' },
  checkout: { service: 'web', methods: ['POST'], path: '/api/checkout' },
  paymentsWebhook: { service: 'web', methods: ['POST'], path: '/api/payments/webhook' },
  dispatch: { service: 'web', methods: ['POST'], path: '/api/email/dispatch' },
  insights: { service: 'web', methods: ['GET'], path: '/insights' },
  analytics: { service: 'web', methods: ['POST'], path: '/api/analytics' },
  openapi: { service: 'web', methods: ['GET'], path: '/openapi.json' },
  webHealth: { service: 'web', methods: ['GET'], path: '/api/health' },
  apiHealth: { service: 'api', methods: ['GET'], path: '/api/health' },
  agentHealth: { service: 'agent', methods: ['GET'], path: '/api/agent/health' },
} as const satisfies Record<string, { service: Service; methods: readonly string[]; path: string }>

export type RouteName = keyof typeof ROUTES
