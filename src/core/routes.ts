interface RouteDefinition {
  readonly methods: readonly string[]
  readonly path: string
  /** The group of variables it belongs to: a platform without that group does not serve it. */
  readonly group?: string
  /** A platform without a course does not serve it. */
  readonly course?: true
  /** A platform without heartbeats does not serve it. */
  readonly heartbeat?: true
}

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
  lesson: { methods: ['GET'], path: '/lessons/:day', course: true },
  subscribe: { methods: ['POST'], path: '/api/email/subscribe', group: 'mail' },
  confirm: { methods: ['GET', 'POST'], path: '/api/email/confirm', group: 'mail' },
  unsubscribe: { methods: ['GET', 'POST'], path: '/api/email/unsubscribe', group: 'mail' },
  email: { methods: ['POST'], path: '/api/email', group: 'mail' },
  checkout: { methods: ['POST'], path: '/api/checkout', group: 'payments' },
  paymentsWebhook: { methods: ['POST'], path: '/api/payments/webhook', group: 'payments' },
  feedback: { methods: ['POST'], path: '/api/email/feedback/:provider', group: 'feedback' },
  dispatch: { methods: ['POST'], path: '/api/email/dispatch', group: 'mail' },
  heartbeat: { methods: ['POST'], path: '/api/heartbeats/:name', heartbeat: true },
  silence: { methods: ['POST'], path: '/api/alerts/silence', group: 'alerts' },
  insights: { methods: ['GET'], path: '/insights' },
  analytics: { methods: ['POST'], path: '/api/analytics', group: 'analytics' },
  securityTxt: { methods: ['GET'], path: '/.well-known/security.txt' },
  configuration: { methods: ['GET'], path: '/api/configuration', group: 'health' },
  witness: { methods: ['GET'], path: '/api/witness', group: 'heartbeats' },
  openapi: { methods: ['GET'], path: '/openapi.json' },
  webHealth: { methods: ['GET'], path: '/api/health' },
} as const satisfies Record<string, RouteDefinition>

export type WebRoute = keyof typeof ROUTES
/** The other services have one route each: their health, at the path of their definition. */
export type RouteName = WebRoute | 'serviceHealth'

/** The routes of the web service that a platform has any use for. */
export function routesOf({
  contract,
  courses,
  heartbeats,
}: {
  readonly contract: { readonly group: (name: string) => object | undefined }
  readonly courses: readonly unknown[]
  readonly heartbeats: readonly unknown[]
}): readonly WebRoute[] {
  // Its keys are those of the table.
  return (Object.entries(ROUTES) as [WebRoute, RouteDefinition][]).flatMap(
    ([name, { group, course, heartbeat }]) =>
      (group !== undefined && contract.group(group) === undefined) ||
      (course && courses.length === 0) ||
      (heartbeat && heartbeats.length === 0)
        ? []
        : [name],
  )
}
