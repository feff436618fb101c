import { PATHS } from '../core/paths.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import { type ServiceDefinition, WEB } from '../core/service.ts'
import type { MakeRoute, RouteRow } from './http/route.ts'

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
const lessons = () => import('./routes/lesson.ts')

const from =
  <Name extends string>(file: () => Promise<Readonly<Record<Name, MakeRoute>>>, name: Name): Load =>
  async () => ({ route: (await file())[name] })

/** What the router must know of web's routes before it loads their files: schemas cost more than all else in a start. */
export const ROUTES = {
  status: get('/', () => import('./routes/status.ts'), { forReaders: true }),
  statusJson: get('/status.json', from(views, 'statusJsonRoute')),
  statusFeed: get('/status.atom', from(views, 'feedRoute')),
  calendar: get('/status.ics', from(views, 'calendarRoute')),
  incident: get('/incidents/:page', from(views, 'incidentRoute'), { forReaders: true }),
  metrics: get('/metrics', () => import('./routes/metrics.ts'), { limits: [], everywhere: true }),
  badge: get('/badge.svg', from(views, 'badgeRoute')),
  picture: get(PATHS.picture, from(views, 'pictureRoute')),
  lesson: get(PATHS.lesson, lessons, { list: 'courses', forReaders: true }),
  lessons: get('/lessons', from(lessons, 'indexRoute'), { list: 'courses', forReaders: true }),
  subscribe: post(PATHS.subscribe, () => import('./routes/subscribe.ts'), {
    group: 'mail',
    forReaders: true,
    limits: ['subscribe', 'confirmations'],
  }),
  confirm: both(PATHS.confirm, from(links, 'confirmRoute'), { group: 'mail', forReaders: true }),
  unsubscribe: both(PATHS.unsubscribe, from(links, 'unsubscribeRoute'), {
    group: 'mail',
    forReaders: true,
    limits: ['unsubscribe'],
  }),
  email: post('/api/email', () => import('./routes/email.ts'), { group: 'mail' }),
  checkout: post('/api/checkout', from(payments, 'checkoutRoute'), { group: 'payments' }),
  paymentsWebhook: post(PATHS.paymentsWebhook, from(payments, 'webhookRoute'), { group: 'payments' }),
  feedback: post(PATHS.feedback, () => import('./routes/feedback.ts'), {
    group: 'feedback',
    limits: ['feedback'],
  }),
  dispatch: post(PATHS.dispatch, () => import('./routes/dispatch.ts'), { group: 'mail' }),
  heartbeat: post(PATHS.heartbeat, from(jobs, 'heartbeatRoute'), { list: 'heartbeats' }),
  silence: post(PATHS.silence, from(jobs, 'silenceRoute'), { group: 'alerts' }),
  insights: get('/insights', () => import('./routes/insights.ts'), { forReaders: true }),
  analytics: post(PATHS.analytics, () => import('./routes/analytics.ts'), { group: 'analytics' }),
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
