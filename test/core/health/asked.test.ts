import { beforeEach, expect, test } from 'vitest'
import type { Settings } from '../../../src/core/env/settings.ts'
import {
  datastoreProbe,
  neighbourProbe,
  paymentsProbe,
  sharedStoreProbe,
} from '../../../src/core/health/engine-probes.ts'
import type { ProbeDefinition, ProbeParts } from '../../../src/core/health/probe.ts'
import { probeRemote, type RemoteProbeInput } from '../../../src/core/health/prober.ts'
import { readHealth, readReport } from '../../../src/core/health/remote-report.ts'
import { verdictOf } from '../../../src/core/health/verdict.ts'
import { systemClock } from '../../../src/core/host.ts'
import { healthBody as body, serve } from '../../support/servers.ts'

let asked: string[] = []
let answer = { status: 200, body: '' }
let url = ''
beforeEach(async () => {
  asked = []
  url = await serve((request, response) => {
    asked.push(`${request.url} ${request.headers.authorization}`)
    response.writeHead(answer.status).end(answer.body)
  })
  answer = { status: 200, body: body() }
})
const probe = (input: Partial<RemoteProbeInput>) =>
  probeRemote({
    service: 'web',
    url,
    health: '/api/health',
    deep: false,
    token: undefined,
    timeoutMs: 10_000,
    clock: systemClock,
    ...input,
  })

test.each<[address: string, input: Partial<RemoteProbeInput>, request: string]>([
  ['', {}, '/api/health undefined'],
  ['/', {}, '/api/health undefined'],
  ['/base', {}, '/base/api/health undefined'],
  ['/base?a=b#c', {}, '/base/api/health undefined'],
  ['', { deep: true }, '/api/health?deep=1 undefined'],
  ['', { deep: true, token: 'canary' }, '/api/health?deep=1 Bearer canary'],
  ['', { token: 'canary' }, '/api/health undefined'],
  ['', { service: 'api', deep: true, token: 'canary' }, '/api/health undefined'],
])('the root %j with %j is asked for %s', async (address, input, request) => {
  await probe({ url: `${url}${address}`, ...input })
  expect(asked).toEqual([request])
})

test.each<[number, Partial<RemoteProbeInput>, string]>([
  [401, { deep: true }, 'token_missing'],
  [401, { deep: true, token: 'wrong' }, 'unauthorised'],
  [401, {}, 'unauthorised'],
  [401, { deep: true, service: 'api' }, 'unauthorised'],
  [403, { deep: true }, 'forbidden'],
])('an answer %i to %j is %s', async (status, input, cause) => {
  answer = { status, body: '' }
  expect(await probe(input)).toMatchObject({ reached: false, cause })
})

test('a status is asked for without its body, and an answer of ours with it', async () => {
  answer = { status: 200, body: 'x'.repeat(600 * 1024) }
  expect(await probe({ format: 'status' })).toMatchObject({ reached: true, report: { state: 'ok' } })
  expect(await probe({})).toMatchObject({ reached: false, cause: 'too_large' })
})

const look = (definition: ProbeDefinition, settings: object, deep: boolean) =>
  definition.open({
    // A probe reads its own group only.
    settings: { groups: new Map(), addresses: new Map(), ...settings } as unknown as Settings,
    clock: systemClock,
  } as unknown as ProbeParts)({ deep, signal: new AbortController().signal })

test.each([
  ['datastore', datastoreProbe, () => ({ datastore: { url: `${url}/data` } }), '/data undefined'],
  ['payments', paymentsProbe, () => ({ payments: { apiUrl: `${url}/pay` } }), '/pay undefined'],
] as const)(
  '%s is asked with deep alone, at its own address and without its key',
  async (_, definition, settings, request) => {
    answer.status = 401
    expect(await look(definition, settings(), false)).toEqual({ state: 'ok', checked: false })
    expect(asked).toEqual([])
    expect(await look(definition, settings(), true)).toEqual({ state: 'ok', checked: true })
    expect(asked).toEqual([request])
    answer.status = 500
    expect(await look(definition, settings(), true)).toMatchObject({ state: 'failing' })
  },
)

test('the probes of the engine say which address they ask', () => {
  const settings = {
    datastore: { url: 'https://data.example' },
    payments: { apiUrl: 'https://pay.example' },
    sharedStore: { url: 'https://limits.example' },
    addresses: new Map([['agent', 'https://agent.example']]),
  } as unknown as Settings
  const targets = [
    datastoreProbe,
    paymentsProbe,
    sharedStoreProbe,
    neighbourProbe({ name: 'agent', health: '/' } as never),
  ]
  expect(targets.map(({ target }) => target?.(settings))).toEqual([
    'https://data.example',
    'https://pay.example',
    'https://limits.example',
    'https://agent.example',
  ])
})

test.each<[status: number, cause: string | undefined]>([
  [300, 'redirect'],
  [399, 'redirect'],
  [400, undefined],
  [401, 'unauthorised'],
  [403, 'forbidden'],
  [404, 'not_found'],
  [405, 'not_found'],
  [410, 'not_found'],
  [429, 'rate_limited'],
  [503, undefined],
])('of a report with the status %i it is %s', (status, cause) => {
  const read = readReport({ status, body: body() }, 'web')
  expect('cause' in read ? read.cause : undefined).toBe(cause)
})

test.each<[status: number, given: string, cause: string]>([
  [499, 'no JSON', 'bad_json'],
  [500, 'no JSON', 'server_error'],
  [200, '[]', 'not_health'],
  [500, '{}', 'server_error'],
  [200, body({ state: 'skipped' }), 'not_health'],
  [200, body({ probes: { Store: { state: 'ok' } } }), 'not_health'],
  [200, body({ probes: { [`a${'b'.repeat(64)}`]: { state: 'ok' } } }), 'not_health'],
  [200, body({ probes: { store: { state: 'well' } } }), 'not_health'],
  [200, body({ service: 'api' }), 'wrong_service'],
])('of an answer %i %s it is %s', (status, given, cause) => {
  expect(readReport({ status, body: given }, 'web')).toEqual({ cause })
})

test('a report of a thousand probes that all say why they fail is read', async () => {
  const why = { state: 'failing', reason: 'r'.repeat(300) }
  const probes = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`partner-school-${n}`, why]))
  answer = { status: 503, body: body({ state: 'failing', probes }) }
  expect(await probe({})).toMatchObject({ reached: true, report: { state: 'failing' } })
})

test('texts of a report are cut at 300 characters', () => {
  const probeOf = (parts: object) => {
    const read = readReport(
      { status: 200, body: body({ probes: { [`a${'b'.repeat(63)}`]: { state: 'ok', ...parts } } }) },
      'web',
    )
    return 'report' in read ? Object.values(read.report.probes)[0] : undefined
  }
  expect(probeOf({ reason: 'x'.repeat(301) })).toEqual({
    state: 'ok',
    checked: false,
    reason: 'x'.repeat(300),
  })
  expect(probeOf({ checked: 'true', reason: '' })).toEqual({ state: 'ok', checked: false })
})

test('reads up to a thousand parts of another program, by valid names only', () => {
  const read = (checks: object) => {
    const found = readHealth(
      { status: 200, body: JSON.stringify({ status: 'pass', checks }) },
      'x',
      'health+json',
    )
    return 'report' in found ? found.report.probes : {}
  }
  const many = Object.fromEntries(Array.from({ length: 1001 }, (_, n) => [`part-${n}`, { status: 'pass' }]))
  expect(Object.keys(read(many))).toHaveLength(1000)
  expect(
    Object.keys(read({ 'diskSpace-1': [], '9 lives': [], '!': [], _x_: [], [`a${'b'.repeat(80)}`]: [] })),
  ).toEqual(['disk_space_1', 'lives', 'x', `a${'b'.repeat(63)}`])
  expect(
    read({
      db: [
        { status: 'pass', output: 'fine' },
        { status: 'fail', output: 'gone' },
        { status: 'warn', output: 'slow' },
      ],
    }),
  ).toEqual({
    db: { state: 'failing', checked: true, reason: 'gone' },
  })
})

test('a verdict says a single day and no service in words', () => {
  const ending = (daysLeft: number) => ({
    service: 'web',
    url,
    phases: { total: 1 },
    certificate: { validTo: '', daysLeft },
    reached: true as const,
    report: JSON.parse(body()),
  })
  const none = { strict: false, expectBuild: undefined, asks: new Map() }
  expect(verdictOf([ending(1)], none).sentence).toBe('the certificate of web ends in 1 day')
  expect(verdictOf([ending(0)], none).sentence).toBe('the certificate of web ends in 0 days')
  expect(verdictOf([ending(-1)], none).sentence).toBe('the certificate of web has expired')
  expect(verdictOf([ending(14)], none).sentence).toBe('web is ok')
  expect(verdictOf([], none).sentence).toBe('nothing is ok')
})
