/**
 * Every route of the web service. It mounts exactly these, and the links of the mails lead to
 * exactly these: a mail cannot point at a page that does not exist.
 */
export const ROUTES = {
  status: { methods: ['GET'], path: '/' },
  statusJson: { methods: ['GET'], path: '/status.json' },
  statusFeed: { methods: ['GET'], path: '/status.atom' },
  metrics: { methods: ['GET'], path: '/metrics' },
  badge: { methods: ['GET'], path: '/badge.svg' },
  lesson: { methods: ['GET'], path: '/lessons/:day' },
  subscribe: { methods: ['POST'], path: '/api/email/subscribe' },
  confirm: { methods: ['GET', 'POST'], path: '/api/email/confirm' },
  unsubscribe: { methods: ['GET', 'POST'], path: '/api/email/unsubscribe' },
  email: { methods: ['POST'], path: '/api/email' },
  checkout: { methods: ['POST'], path: '/api/checkout' },
  paymentsWebhook: { methods: ['POST'], path: '/api/payments/webhook' },
  feedback: { methods: ['POST'], path: '/api/email/feedback/:provider' },
  dispatch: { methods: ['POST'], path: '/api/email/dispatch' },
  insights: { methods: ['GET'], path: '/insights' },
  analytics: { methods: ['POST'], path: '/api/analytics' },
  openapi: { methods: ['GET'], path: '/openapi.json' },
  webHealth: { methods: ['GET'], path: '/api/health' },
} as const satisfies Record<string, { methods: readonly string[]; path: string }>

export type WebRoute = keyof typeof ROUTES
/** The other services have one route each: their health, at the path of their definition. */
export type RouteName = WebRoute | 'serviceHealth'
