import { PATHS } from '../core/paths.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import { type ServiceDefinition, WEB } from '../core/service.ts'
import type { RouteRow } from './http/route.ts'

type Load = RouteRow['load']
type More = Partial<Omit<RouteRow, 'path' | 'methods' | 'load'>>

const row =
  (...methods: RouteRow['methods']) =>
  (path: string, load: Load, more: More = {}): RouteRow => ({
    path,
    methods,
    limits: ['default'],
    load,
    ...more,
  })
const get = row('GET')
const post = row('POST')
const both = row('GET', 'POST')

/**
 * Every route of the web service: what the router must know before the first request loads the route's file. A start
 * loads none of these files, because their schemas cost more than everything else in it.
 */
export const ROUTES = {
  status: get('/', () => import('./routes/status.ts'), { forReaders: true }),
  statusJson: get('/status.json', () => import('./routes/status-json.ts')),
  statusFeed: get('/status.atom', () => import('./routes/status-feed.ts')),
  calendar: get('/status.ics', () => import('./routes/calendar.ts')),
  incident: get('/incidents/:page', () => import('./routes/incident.ts'), { forReaders: true }),
  metrics: get('/metrics', () => import('./routes/metrics.ts'), { limits: [], everywhere: true }),
  badge: get('/badge.svg', () => import('./routes/badge.ts')),
  picture: get(PATHS.picture, () => import('./routes/picture.ts')),
  lesson: get(PATHS.lesson, () => import('./routes/lesson.ts'), { list: 'courses', forReaders: true }),
  subscribe: post(PATHS.subscribe, () => import('./routes/subscribe.ts'), {
    group: 'mail',
    forReaders: true,
    limits: ['subscribe', 'confirmations'],
  }),
  confirm: both(PATHS.confirm, () => import('./routes/confirm.ts'), { group: 'mail', forReaders: true }),
  unsubscribe: both(PATHS.unsubscribe, () => import('./routes/unsubscribe.ts'), {
    group: 'mail',
    forReaders: true,
    limits: ['unsubscribe'],
  }),
  email: post('/api/email', () => import('./routes/email.ts'), { group: 'mail' }),
  checkout: post('/api/checkout', () => import('./routes/checkout.ts'), { group: 'payments' }),
  paymentsWebhook: post(PATHS.paymentsWebhook, () => import('./routes/payments-webhook.ts'), {
    group: 'payments',
  }),
  feedback: post('/api/email/feedback/:provider', () => import('./routes/feedback.ts'), {
    group: 'feedback',
    limits: ['feedback'],
  }),
  dispatch: post(PATHS.dispatch, () => import('./routes/dispatch.ts'), { group: 'mail' }),
  heartbeat: post(PATHS.heartbeat, () => import('./routes/heartbeat.ts'), { list: 'heartbeats' }),
  silence: post(PATHS.silence, () => import('./routes/silence.ts'), { group: 'alerts' }),
  insights: get('/insights', () => import('./routes/insights.ts'), { forReaders: true }),
  analytics: post('/api/analytics', () => import('./routes/analytics.ts'), { group: 'analytics' }),
  securityTxt: get('/.well-known/security.txt', () => import('./routes/security-txt.ts')),
  configuration: get('/api/configuration', () => import('./routes/configuration.ts'), {
    group: 'health',
    everywhere: true,
  }),
  witness: get('/api/witness', () => import('./routes/witness.ts'), { group: 'heartbeats' }),
  openapi: get('/openapi.json', () => import('./routes/openapi.ts')),
  health: get('/api/health', () => import('./routes/health.ts'), { limits: [], everywhere: true }),
} satisfies Record<string, RouteRow>

/** The paths that a link can lead to. */
export const PAGES = Object.values(ROUTES).flatMap(({ path, methods }) =>
  methods.includes('GET') ? path : [],
)

/** The routes that a service of this platform has any use for; web's when left out. */
export function routesOf(
  platform: Pick<ResolvedPlatform, 'contract' | 'courses' | 'heartbeats'>,
  service?: Pick<ServiceDefinition, 'name' | 'health'>,
) {
  return Object.entries<RouteRow>(ROUTES).flatMap(([name, row]) => {
    const { group, list, everywhere } = row
    if (group !== undefined && platform.contract.group(group) === undefined) return []
    if (list !== undefined && platform[list].length === 0) return []
    if (service !== undefined && service.name !== WEB && !everywhere) return []
    return { ...row, name, ...(name === 'health' && service && { path: service.health }) }
  })
}
