/** A body of the size and form of a shallow health answer, with its time made anew for each request. */
const probes = Object.fromEntries(
  [
    'datastore',
    'payments',
    'api',
    'agent',
    'models',
    'mail',
    'store',
    'sharedstore',
    'errortrack',
    'analytics',
  ].map((name) => [name, { state: 'skipped', checked: false, reason: 'not configured' }]),
)
const startedAt = new Date().toISOString()

export const health = () => ({
  service: 'web',
  state: 'ok',
  build: null,
  startedAt,
  time: new Date().toISOString(),
  latencyMs: 0.1,
  probes,
})

export const ROUTE = '/api/health'
export const say = (port) => process.stdout.write(`${port}\n`)
