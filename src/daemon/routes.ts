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

const views = () => import('./routes/status-views.ts')
const links = () => import('./routes/mail-links.ts')
const payments = () => import('./routes/payments.ts')
const jobs = () => import('./routes/jobs.ts')

/** What the router must know of web's routes before it loads their files: schemas cost more than all else in a start. */
export const ROUTES = {
  status: get('/', () => import('./routes/status.ts'), { forReaders: true }),
  statusJson: get('/status.json', async () => ({ route: (await views()).statusJsonRoute })),
  statusFeed: get('/status.atom', async () => ({ route: (await views()).feedRoute })),
  calendar: get('/status.ics', async () => ({ route: (await views()).calendarRoute })),
  incident: get('/incidents/:page', async () => ({ route: (await views()).incidentRoute }), {
    forReaders: true,
  }),
  metrics: get('/metrics', () => import('./routes/metrics.ts'), { limits: [], everywhere: true }),
  badge: get('/badge.svg', async () => ({ route: (await views()).badgeRoute })),
  picture: get(PATHS.picture, async () => ({ route: (await views()).pictureRoute })),
  lesson: get(PATHS.lesson, () => import('./routes/lesson.ts'), { list: 'courses', forReaders: true }),
  lessons: get('/lessons', async () => ({ route: (await import('./routes/lesson.ts')).indexRoute }), {
    list: 'courses',
    forReaders: true,
  }),
  subscribe: post(PATHS.subscribe, () => import('./routes/subscribe.ts'), {
    group: 'mail',
    forReaders: true,
    limits: ['subscribe', 'confirmations'],
  }),
  confirm: both(PATHS.confirm, async () => ({ route: (await links()).confirmRoute }), {
    group: 'mail',
    forReaders: true,
  }),
  unsubscribe: both(PATHS.unsubscribe, async () => ({ route: (await links()).unsubscribeRoute }), {
    group: 'mail',
    forReaders: true,
    limits: ['unsubscribe'],
  }),
  email: post('/api/email', () => import('./routes/email.ts'), { group: 'mail' }),
  checkout: post('/api/checkout', async () => ({ route: (await payments()).checkoutRoute }), {
    group: 'payments',
  }),
  paymentsWebhook: post(PATHS.paymentsWebhook, async () => ({ route: (await payments()).webhookRoute }), {
    group: 'payments',
  }),
  feedback: post(PATHS.feedback, () => import('./routes/feedback.ts'), {
    group: 'feedback',
    limits: ['feedback'],
  }),
  dispatch: post(PATHS.dispatch, () => import('./routes/dispatch.ts'), { group: 'mail' }),
  heartbeat: post(PATHS.heartbeat, async () => ({ route: (await jobs()).heartbeatRoute }), {
    list: 'heartbeats',
  }),
  silence: post(PATHS.silence, async () => ({ route: (await jobs()).silenceRoute }), { group: 'alerts' }),
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
