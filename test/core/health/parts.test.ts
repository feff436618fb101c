import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { expect, test } from 'vitest'
import { healthDocumentSchema } from '../../../scripts/reference/health-schema.ts'
import type { Settings } from '../../../src/core/env/settings.ts'
import {
  analyticsProbe,
  datastoreProbe,
  errortrackProbe,
  heartbeatProbe,
  mailProbe,
  neighbourProbe,
  paymentsProbe,
  sharedStoreProbe,
  storeProbe,
} from '../../../src/core/health/engine-probes.ts'
import type {
  HealthReport,
  ProbeDefinition,
  ProbeParts,
  ProbeResult,
  StoreProbe,
} from '../../../src/core/health/probe.ts'
import { fold, httpStatus, toHealthJson } from '../../../src/core/health/probe.ts'
import { reachable, serviceState } from '../../../src/core/health/reach.ts'
import { readReport } from '../../../src/core/health/remote-report.ts'
import type { HeartbeatRecord } from '../../../src/core/heartbeats.ts'
import { systemClock, systemRandom } from '../../../src/core/host.ts'
import { MailFault } from '../../../src/core/mail/outcome.ts'
import { serve } from '../../support/servers.ts'

const NOW = Date.UTC(2026, 10, 22, 9, 30)
const signal = new AbortController().signal
const store = (kind: 'memory' | 'sqlite', ping: StoreProbe['ping'] = async () => {}): StoreProbe => ({
  kind: async () => kind,
  ping,
})

/** The result of a probe in a process with these parts. */
function look(
  { open }: ProbeDefinition,
  {
    settings = {},
    deep = true,
    ...parts
  }: Omit<Partial<ProbeParts>, 'settings'> & { settings?: object; deep?: boolean },
  on = signal,
): Promise<ProbeResult> {
  return open({
    // A probe reads its own group only.
    settings: {
      groups: new Map(),
      addresses: new Map(),
      lacking: new Set(),
      health: {},
      ...settings,
    } as unknown as Settings,
    random: systemRandom,
    clock: { ...systemClock, now: () => NOW },
    counting: () => 'local',
    store: store('sqlite'),
    jobStore: store('sqlite'),
    pingAnalytics: async () => {},
    verifyMail: async () => {},
    hasPackage: () => true,
    ...parts,
  })({ deep, signal: on })
}
const said = ({ state, checked, reason }: ProbeResult) =>
  `${state}, ${checked ? 'checked' : 'not checked'}${reason === undefined ? '' : `: ${reason}`}`
const told = async (...of: Parameters<typeof look>) => said(await look(...of))
const fails = () => Promise.reject(new Error('a host of ours'))
const half = (group: string) => ({ settings: { groups: new Map([[group, 'half-configured']]) } })

test.each([
  ['mail', mailProbe],
  ['errortrack', errortrackProbe],
  ['analytics', analyticsProbe],
  ['datastore', datastoreProbe],
  ['payments', paymentsProbe],
  ['sharedstore', sharedStoreProbe],
] as const)(
  '%s is skipped where it is not configured, and degraded where it is by half',
  async (group, probe) => {
    expect(await told(probe, {})).toBe('skipped, not checked: not configured')
    expect(await told(probe, half(group))).toBe('degraded, not checked: half-configured, so it is off')
    expect([probe.name, probe.group, probe.service]).toEqual([group, group, 'web'])
  },
)

const MAIL = { settings: { mail: {}, health: { deepToken: ['a-token'] } } }
test('mail is asked with deep alone, and says why it fails, that courses are paused, and that a budget is used up', async () => {
  expect(await told(mailProbe, { ...MAIL, verifyMail: fails, deep: false })).toBe('ok, not checked')
  expect(await told(mailProbe, MAIL)).toBe('ok, checked')
  expect(await told(mailProbe, { ...MAIL, verifyMail: fails })).toBe(
    'failing, checked: its server cannot be reached, or refuses',
  )
  const verifyMail = () => Promise.reject(new MailFault('the mail server refused the credentials (535)'))
  expect(await told(mailProbe, { ...MAIL, verifyMail })).toBe(
    'failing, checked: the mail server refused the credentials (535)',
  )
  expect(await told(mailProbe, { ...MAIL, verifyMail: fails }, AbortSignal.abort())).toBe(
    'failing, checked: its server did not answer in time',
  )
  const paused = {
    mailHolds: async () => [{ stream: 'course', at: 0, reason: 'many bounced' } as const],
    confirmationsExhausted: () => true,
  }
  expect(await told(mailProbe, { ...MAIL, ...paused })).toBe(
    'degraded, checked: courses are paused: many bounced',
  )
  const alike = { at: 1, reason: 'new pager' }
  const mailHolds = async () => (['alert', 'mail'] as const).map((stream) => ({ stream, ...alike }))
  expect(await told(mailProbe, { ...MAIL, mailHolds })).toBe(
    'degraded, checked: mail is paused (alert, mail): new pager',
  )
  // The operator's words are for operators: for no shallow request, and for no deep one that needs no token.
  const open = { ...MAIL, settings: { mail: {}, health: {} } }
  for (const one of [
    { ...MAIL, deep: false },
    { ...open, deep: true },
  ])
    expect((await look(mailProbe, { ...one, ...paused })).reason).toBe('courses are paused')
  const mailRefused = async () => true
  expect(await told(mailProbe, { ...MAIL, mailRefused, deep: false })).toBe(
    'degraded, not checked: its provider refuses the mail of this platform',
  )
  expect((await look(mailProbe, { ...MAIL, ...paused, verifyMail: fails })).state).toBe('failing')
  expect(
    said(await look(mailProbe, { ...MAIL, mailHolds: fails, confirmationsExhausted: () => true })),
  ).toMatch(/^degraded, checked: .*used up/)
  expect((await look(mailProbe, { confirmationsExhausted: () => true })).state).toBe('skipped')
})

test('the store is written with deep alone, and says that it is in memory, and nothing of why it fails', async () => {
  const pinged: unknown[] = []
  const ping: StoreProbe['ping'] = async (options) => void pinged.push(options)
  expect(await told(storeProbe, { store: store('sqlite', ping), deep: false })).toBe('ok, not checked')
  expect(pinged).toEqual([])
  expect(await told(storeProbe, { store: store('sqlite', ping) })).toBe('ok, checked')
  expect(pinged).toEqual([{ pages: true }])
  for (const deep of [true, false])
    expect(await told(storeProbe, { store: store('memory'), deep })).toBe(
      `degraded, ${deep ? 'checked' : 'not checked'}: in memory: subscriptions end with the process`,
    )
  const failed = await look(storeProbe, { store: store('sqlite', fails) })
  expect([failed.state, failed.checked]).toEqual(['failing', true])
  expect(failed.reason).not.toContain('a host of ours')
})

test('error reporting needs its package, and the shared store and a proxy are known and never asked', async () => {
  const sdk = { settings: { errortrack: {} } }
  expect(await told(errortrackProbe, sdk)).toBe('ok, not checked')
  expect(await told(errortrackProbe, { ...sdk, hasPackage: (name) => name !== '@sentry/node' })).toBe(
    'degraded, not checked: its SDK is not installed',
  )
  expect((await look(errortrackProbe, { hasPackage: () => false })).state).toBe('skipped')
  const shared = { settings: { sharedStore: {} } }
  expect(await told(sharedStoreProbe, { ...shared, counting: () => 'shared' })).toBe('ok, not checked')
  expect(
    said(await look(sharedStoreProbe, { ...shared, counting: () => 'fallback', untrustedProxy: () => true })),
  ).toMatch(/^degraded, checked: .*does not answer/)
  expect(await told(sharedStoreProbe, { untrustedProxy: () => true })).toMatch(
    /^degraded, checked: .*TRUST_PROXY/,
  )
})

const ANALYTICS = { settings: { groups: new Map([['analytics', 'configured']]) } }
test('analytics is never failing: what cannot be read, and what is full, is degraded', async () => {
  expect(await told(analyticsProbe, ANALYTICS)).toBe('ok, checked')
  expect(await told(analyticsProbe, { ...ANALYTICS, pingAnalytics: fails })).toBe(
    'degraded, checked: its store cannot be read',
  )
  const full = { ...ANALYTICS, analyticsFull: () => 'full' }
  expect(await told(analyticsProbe, full)).toBe('degraded, checked: full')
  expect(await told(analyticsProbe, { ...full, deep: false })).toBe('degraded, not checked: full')
  expect((await look(analyticsProbe, { ...full, pingAnalytics: fails })).reason).toBe(
    'its store cannot be read',
  )
  expect((await look(analyticsProbe, { analyticsFull: () => 'full' })).state).toBe('skipped')
})

/** A server whose answer is told, by its path. */
async function server(answers: Record<string, [number, unknown]>) {
  const asked: string[] = []
  const accepted: unknown[] = []
  const url = await serve((request, response) => {
    asked.push(request.url ?? '')
    accepted.push(request.headers.accept)
    const [status, body] = answers[request.url ?? ''] ?? [404, '']
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
  })
  return { asked, accepted, url }
}
const report = (parts: Partial<HealthReport> = {}): HealthReport => ({
  service: 'api',
  state: 'ok',
  build: 'abc',
  startedAt: 's',
  time: 't',
  latencyMs: 5,
  probes: {},
  ...parts,
})
const API = { name: 'api', health: '/healthz' } as const

test('asks a neighbor for a deep check only from web, and passes on its state and build', async () => {
  const { url, asked } = await server({
    '/healthz': [200, report({ build: 'x'.repeat(101) })],
    '/degraded': [200, report({ state: 'degraded', build: null })],
    '/failing': [503, report({ state: 'failing' })],
    '/broken': [200, { service: 'api' }],
  })
  const builds: unknown[] = []
  const at = (path: string, address: string | undefined, { service = 'web', deep = true } = {}) =>
    look(neighbourProbe({ ...API, health: path } as never, { service }), {
      settings: { addresses: new Map(address === undefined ? [] : [['api', address]]) },
      noteBuild: (...told) => void builds.push(told),
      deep,
    })
  expect(said(await at('/healthz', undefined))).toBe('skipped, not checked: its address is not set')
  expect(said(await at('/healthz', url, { deep: false }))).toBe('ok, not checked')
  expect(asked).toEqual([])
  expect(said(await at('/healthz', url))).toBe('ok, checked')
  expect(said(await at('/healthz', url, { service: 'agent', deep: false }))).toBe('ok, checked')
  expect(said(await at('/degraded', url))).toBe('degraded, checked: is degraded')
  expect(said(await at('/failing', url))).toBe('failing, checked: is failing')
  expect(said(await at('/broken', url))).toMatch(/^failing, checked: .*no health to be had: /)
  expect(builds).toEqual([
    ['api', 'x'.repeat(100)],
    ['api', 'x'.repeat(100)],
    ['api', null],
    ['api', 'abc'],
  ])
  const probe = neighbourProbe(API as never)
  expect([probe.name, probe.service, probe.deadlineMs]).toEqual(['api', 'web', 1300])
  // Of web, only a deep request asks others, whatever the probe is called.
  const settings = { addresses: new Map([['api', url]]) }
  for (const isNamesake of [false, true]) {
    const one = neighbourProbe(API as never, { isNamesake })
    expect(said(await look(one, { settings, deep: false }))).toBe('ok, not checked')
  }
})

test('another program has a state and no build of ours, and a server is reachable below 500', async () => {
  const { url } = await server({
    '/healthz': [200, { status: 'warn' }],
    '/499': [499, ''],
    '/500': [500, ''],
  })
  const builds: unknown[] = []
  const options = { url, clock: systemClock, noteBuild: (...told: unknown[]) => void builds.push(told) }
  const foreign = await serviceState({ ...API, format: 'health+json' }, options, { deep: true, signal })
  expect([foreign.state, builds]).toEqual(['degraded', []])
  const at = (path: string, of = url) =>
    reachable({ ...options, url: `${of}${path}` }, { deep: true, signal })
  expect(said(await at('/499'))).toBe('ok, checked')
  expect(said(await at('/500'))).toBe('failing, checked: answers with an error of its own')
  expect(said(await at('/', 'http://127.0.0.1:1'))).toMatch(/^failing, checked: .*cannot be reached: /)
})

test('each format of health is asked for in its own media types', async () => {
  const { url, accepted } = await server({})
  for (const format of ['platformctl', 'health+json', 'spring', 'aspnet', 'status'] as const)
    await serviceState({ ...API, format }, { url, clock: systemClock }, { deep: true, signal })
  expect(accepted).toEqual([
    'application/json',
    'application/health+json, application/json;q=0.9',
    'application/json',
    'application/json, text/plain',
    '*/*',
  ])
})

const record = (parts: Partial<HeartbeatRecord> = {}): HeartbeatRecord => ({
  name: 'backup',
  since: NOW - 1000,
  beatAt: undefined,
  failedAt: undefined,
  exitCode: undefined,
  ...parts,
})
test('a heartbeat is late from the millisecond after its grace, and says since when, or that it failed', async () => {
  const beat = (parts: Partial<HeartbeatRecord>, deep = true) => {
    const probe = heartbeatProbe({ name: 'backup', everyMs: 900, graceMs: 100 })
    return look(probe, { heartbeat: async () => record(parts), deep })
  }
  expect(said(await beat({}))).toBe('ok, checked')
  expect(said(await beat({ since: NOW - 1001 }))).toBe(
    'failing, checked: it has never reported, and is expected since 2026-11-22 09:29 UTC',
  )
  expect((await beat({ since: NOW - 5000, beatAt: NOW - 1000 })).state).toBe('ok')
  expect(said(await beat({ since: NOW - 9000, beatAt: NOW - 1001 }))).toBe(
    'failing, checked: it last reported at 2026-11-22 09:29 UTC',
  )
  expect((await beat({ failedAt: NOW, exitCode: 0 })).reason).toBe(
    'it reported a failure (exit code 0) at 2026-11-22 09:30 UTC',
  )
  expect((await beat({ failedAt: NOW })).reason).toBe('it reported a failure at 2026-11-22 09:30 UTC')
  expect(said(await beat({ failedAt: NOW }, false))).toBe('ok, not checked')
  const probe = heartbeatProbe({ name: 'backup', everyMs: 1, graceMs: 1 })
  expect(await told(probe, { heartbeat: fails })).toBe('skipped, not checked: the store cannot be read')
  expect((await look(probe, {})).checked).toBe(false)
  expect([probe.name, probe.label, probe.service]).toEqual(['heartbeat-backup', 'Heartbeat backup', 'web'])
  expect(heartbeatProbe({ name: 'backup', everyMs: 1, graceMs: 1, label: 'Backup' }).label).toBe('Backup')
})

test('mail is well while the store hangs that says whether mail is paused', async () => {
  const hangs = () => new Promise<never>(() => {})
  expect(await look(mailProbe, { ...MAIL, mailHolds: hangs })).toMatchObject({ state: 'ok', checked: true })
})

test('a heartbeat that was late stays late while the store cannot be read', async () => {
  let found = async (): Promise<HeartbeatRecord> => record({ since: NOW - 9000 })
  const probe = heartbeatProbe({ name: 'backup', everyMs: 900, graceMs: 100 })
  const clock = { ...systemClock, now: () => NOW }
  // It is given nothing else.
  const asks = probe.open({ clock, heartbeat: () => found() } as unknown as ProbeParts)
  const check = () => asks({ deep: true, signal })
  const late = await check()
  found = fails
  expect([late.state, await check()]).toEqual(['failing', late])
  found = async () => record({ since: NOW - 9000, beatAt: NOW })
  expect((await check()).state).toBe('ok')
  found = fails
  expect((await check()).state).toBe('skipped')
})

test('a service is as its worst probe, and only failing answers 503', () => {
  const of = (...states: ProbeResult['state'][]) => fold(states.map((one) => ({ state: one, checked: true })))
  expect([of(), of('skipped', 'ok'), of('ok', 'degraded', 'ok'), of('degraded', 'failing', 'ok')]).toEqual([
    'ok',
    'ok',
    'degraded',
    'failing',
  ])
  expect((['ok', 'degraded', 'failing'] as const).map(httpStatus)).toEqual([200, 200, 503])
})

test('health+json has every fact, and an output only where something is wrong', () => {
  const json = toHealthJson(
    report({
      state: 'degraded',
      probes: {
        a: { state: 'skipped', checked: false, reason: 'not configured' },
        b: { state: 'degraded', checked: true, reason: 'slow', latencyMs: 0 },
        c: { state: 'failing', checked: true },
      },
    }),
  )
  const check = (name: string, parts: object) => [
    { componentId: name, componentType: 'component', time: 't', ...parts },
  ]
  expect(json).toEqual({
    status: 'warn',
    releaseId: 'abc',
    serviceId: 'api',
    description: 'health of api',
    startedAt: 's',
    time: 't',
    latencyMs: 5,
    checks: {
      a: check('a', { status: 'pass', state: 'skipped', checked: false, reason: 'not configured' }),
      b: check('b', {
        status: 'warn',
        state: 'degraded',
        checked: true,
        output: 'slow',
        observedValue: 0,
        observedUnit: 'ms',
      }),
      c: check('c', { status: 'fail', state: 'failing', checked: true }),
    },
  })
  expect(toHealthJson(report({ build: null }))).not.toHaveProperty('releaseId')
})

test('a report of a thousand probes is read with all that it says, and one of more is none', () => {
  const read = (value: unknown, status = 200) => readReport({ status, body: JSON.stringify(value) }, 'api')
  const probe = { state: 'ok', checked: true, reason: 'r', latencyMs: 5 }
  const full = report({ probes: { a: probe as ProbeResult } })
  expect(read(full)).toEqual({ report: full })
  expect(read({ service: 'api', state: 'ok', probes: {} })).toEqual({
    report: report({ build: null, startedAt: '', time: '', latencyMs: 0 }),
  })
  const many = (count: number) => ({
    ...report(),
    probes: Object.fromEntries(Array.from({ length: count }, (_, n) => [`p${n}`, { state: 'ok' }])),
  })
  expect(read(many(1000))).toHaveProperty('report')
  expect(read(many(1001))).toEqual({ cause: 'not_health' })
  expect(read(many(1001), 500)).toEqual({ cause: 'server_error' })
  const latency = (latencyMs: unknown) => {
    const found = read({ ...report(), latencyMs, probes: { a: { state: 'ok', latencyMs } } })
    return 'report' in found ? [found.report.latencyMs, found.report.probes.a?.latencyMs] : undefined
  }
  expect([latency(0), latency(-1), latency(1e9 - 1), latency(1e9), latency('5')]).toEqual([
    [0, 0],
    [0, undefined],
    [1e9 - 1, 1e9 - 1],
    [0, undefined],
    [0, undefined],
  ])
})

test('the schema of health asks for a report of what was reached and for a cause of what was not, and takes nothing else', () => {
  const ajv = new Ajv2020({ strict: false })
  ;(addFormats as unknown as (one: Ajv2020) => void)(ajv)
  const isValid = ajv.compile(healthDocumentSchema(['api']))
  const reached = {
    service: 'api',
    state: 'ok',
    because: [],
    url: 'https://a.example/',
    phases: { total: 1 },
    reached: true,
    report: report({ probes: { a: { state: 'skipped', checked: false, reason: 'r', latencyMs: 0 } } }),
  }
  const { report: _, ...rest } = reached
  const unreached = {
    ...rest,
    reached: false,
    state: 'unreached',
    cause: 'connect_refused',
    reason: 'r',
    fix: 'f',
  }
  const document = (service: object, parts: object = {}) => ({
    version: 1,
    passed: true,
    outcome: 'passed',
    sentence: 's',
    time: '2026-11-22T09:30:00.000Z',
    services: [service],
    rootCauses: [{ services: ['api'], state: 'failing', reason: 'r', probe: 'a' }],
    builds: { api: null },
    skew: false,
    warnings: [],
    ...parts,
  })
  for (const good of [
    document(reached),
    document({ ...reached, foreign: true, certificate: { validTo: '2026-11-22T09:30:00Z', daysLeft: 5 } }),
    document(unreached),
    ...(['degraded', 'failing'] as const).map((one) =>
      document({ ...reached, report: report({ state: one, probes: { a: { state: one, checked: true } } }) }),
    ),
    document(reached, { rootCauses: [{ services: ['api'], state: 'unreached', reason: 'r' }] }),
    document(reached, { outcome: 'unreached' }),
  ])
    expect(isValid(good), JSON.stringify(isValid.errors)).toBe(true)
  const { cause: _c, ...causeless } = unreached
  for (const bad of [
    document(rest),
    document({ ...reached, cause: 'connect_refused' }),
    document({ ...unreached, report: report() }),
    document({ ...unreached, cause: 'no such cause' }),
    document(causeless),
    document({ ...reached, foreign: false }),
    document({ ...reached, more: 1 }),
    document({ ...reached, url: 'no address' }),
    document({ ...reached, phases: {} }),
    document({ ...reached, report: { ...report(), state: 'skipped' } }),
    document({ ...reached, certificate: { validTo: '2026-11-22T09:30:00Z', daysLeft: 0.5 } }),
    document(reached, { outcome: 'well' }),
    document(reached, { warnings: [''] }),
    document(reached, { skew: undefined }),
    document(reached, { rootCauses: [{ services: ['api'], state: 'ok', reason: 'r' }] }),
  ])
    expect(isValid(JSON.parse(JSON.stringify(bad))), JSON.stringify(bad)).toBe(false)
})
