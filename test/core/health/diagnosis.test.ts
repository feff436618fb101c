import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { HealthReport, ProbeState } from '../../../src/core/health/probe.ts'
import type { RemoteHealth } from '../../../src/core/health/prober.ts'
import { dependenciesOf, diagnose, type Expectations, verdictOf } from '../../../src/core/health/verdict.ts'
import { CAUSES, type CauseCode } from '../../../src/core/network/causes.ts'
import type { Service } from '../../../src/core/service.ts'
import { ASKS, SERVICES } from '../../support/learning.ts'

const HOSTS = {
  web: 'https://www.example.com',
  api: 'https://api.example.com',
  agent: 'https://agent.example.com',
}

/** A service's result: a cause code, or its probes by state; `build` is its stamp. */
type Seen = CauseCode | (Partial<Record<string, ProbeState>> & { readonly build?: string })

function seen(service: Service, what: Seen, url = HOSTS[service as keyof typeof HOSTS]): RemoteHealth {
  const common = { service, url, phases: { total: 1 } }
  if (typeof what === 'string') {
    const { meaning, fix } = CAUSES[what]
    return { ...common, reached: false, cause: what, reason: meaning, fix }
  }
  const { build = null, ...states } = what as Record<string, string>
  const probes = Object.fromEntries(
    Object.entries(states).map(([name, state]) => [
      name,
      { state: state as ProbeState, checked: true, reason: `${name} is ${state}` },
    ]),
  )
  const all = Object.values(states)
  const state = all.includes('failing') ? 'failing' : all.includes('degraded') ? 'degraded' : 'ok'
  const report: HealthReport = { service, state, build, startedAt: '', time: '', latencyMs: 1, probes }
  return { ...common, reached: true, report }
}

const LOOSE: Expectations = { strict: false, expectBuild: undefined, asks: ASKS }
function verdict(what: Partial<Record<Service, Seen>>, expectations = LOOSE) {
  return verdictOf(
    SERVICES.flatMap((service) => {
      const of = what[service]
      return of === undefined ? [] : [seen(service, of)]
    }),
    expectations,
  )
}

function summary(what: Partial<Record<Service, Seen>>) {
  const { diagnosis } = verdict(what)
  return {
    roots: diagnosis.rootCauses.map(
      ({ services, probe }) => `${services.join('+')}${probe === undefined ? '' : `.${probe}`}`,
    ),
    followers: Object.fromEntries(diagnosis.followers),
  }
}

test.each([
  ['nothing is wrong', { web: { api: 'ok' }, api: {}, agent: { api: 'ok' } }, [], {}],
  [
    'the API does not answer, and both others say so',
    { web: { api: 'failing', agent: 'failing' }, api: 'connect_refused', agent: { api: 'failing' } },
    ['api'],
    { web: ['api'], agent: ['api'] },
  ],
  [
    'the API’s job store fails, the agent fails because of it, and web because of both',
    {
      web: { api: 'failing', agent: 'failing', store: 'ok' },
      api: { job_store: 'failing' },
      agent: { api: 'failing' },
    },
    ['api.job_store'],
    { web: ['api'], agent: ['api'] },
  ],
  [
    'the API and the agent are both in trouble, and web because of both',
    {
      web: { api: 'failing', agent: 'failing' },
      api: { job_store: 'failing' },
      agent: { api: 'failing', course_index: 'failing' },
    },
    ['api.job_store', 'agent.course_index'],
    { web: ['api', 'agent'] },
  ],
  [
    'web has a trouble of its own beside',
    { web: { api: 'failing', store: 'failing' }, api: { circuit: 'failing' } },
    ['web.store', 'api.circuit'],
    {},
  ],
  ['web cannot reach an API that answers from here', { web: { api: 'failing' }, api: {} }, ['web.api'], {}],
  ['web is asked alone', { web: { api: 'failing' } }, ['web.api'], {}],
  [
    'a degraded API degrades its followers',
    { web: { api: 'degraded' }, api: { limiter: 'degraded' }, agent: { api: 'degraded' } },
    ['api.limiter'],
    { web: ['api'], agent: ['api'] },
  ],
  [
    'a degraded API is not why a service fails',
    { api: { limiter: 'degraded' }, agent: { api: 'failing' } },
    ['api.limiter', 'agent.api'],
    {},
  ],
] as const)('%s', (_, what, roots, followers) => {
  expect(summary(what as Partial<Record<Service, Seen>>)).toEqual({ roots, followers })
})

/** Loans need the dome and the store, the dome the API; oven and kiln need each other, which a definition cannot say. */
const NEEDS = new Map(
  Object.entries({ loans: ['dome', 'store', 'api'], dome: ['api'], oven: ['kiln'], kiln: ['oven'] }).map(
    ([name, on]) => [name, new Set(on)],
  ),
)

test.each([
  ['it depends on another', { dome: 'failing', loans: 'failing' }, ['dome'], [['loans', 'dome']]],
  [
    'it depends on two others',
    { dome: 'failing', store: 'failing', loans: 'failing' },
    ['dome', 'store'],
    [['loans', 'dome,store']],
  ],
  ['it depends on one that is only degraded', { dome: 'degraded', loans: 'failing' }, ['loans'], []],
  ['it depends on one that is well', { dome: 'ok', loans: 'failing' }, ['loans'], []],
  ['each depends on the other', { oven: 'failing', kiln: 'failing' }, ['oven', 'kiln'], []],
  [
    'all depend on a service that fails',
    { api: 'failing', dome: 'failing', loans: 'failing' },
    [undefined],
    [
      ['dome', 'api'],
      ['loans', 'api'],
    ],
  ],
] as const)('of failing probes of a service, of which %s: %j', (_, states, roots, origins) => {
  const web = seen('web', states)
  const results = 'api' in states ? [web, seen('api', 'connect_refused')] : [web]
  const { rootCauses, followers, origins: found } = diagnose(results, ASKS, NEEDS)
  const probes = Object.entries(web.reached ? web.report.probes : {})
  expect(rootCauses.map(({ probe }) => probe)).toEqual(roots)
  expect(probes.flatMap(([name, one]) => (found.has(one) ? [[name, found.get(one)?.join()]] : []))).toEqual(
    origins,
  )
  expect([...followers.keys()]).toEqual('api' in states ? ['web'] : [])
})

test('services that fail alike on one host are one root cause', () => {
  const on = (service: Service, cause: CauseCode, url: string) => seen(service, cause, url)
  const { rootCauses } = diagnose(
    [
      on('web', 'connect_refused', 'http://127.0.0.1:3000'),
      on('api', 'connect_refused', 'http://127.0.0.1:8000'),
      on('agent', 'dns_not_found', 'http://agent.example.com'),
      on('docs', 'connect_refused', 'http://docs.example.com'),
      // On the host of the first two, with another fault.
      on('shop', 'tls_expired', 'https://127.0.0.1:8443'),
    ],
    ASKS,
  )
  expect(rootCauses.map(({ services, cause }) => [services, cause])).toEqual([
    [['web', 'api'], 'connect_refused'],
    [['agent'], 'dns_not_found'],
    [['docs'], 'connect_refused'],
    [['shop'], 'tls_expired'],
  ])
})

test.each([
  [{ web: { build: 'a' }, api: { build: 'a' } }, LOOSE, 'passed', 'all 2 services are ok'],
  [{ web: { build: 'a' }, api: { build: 'b' } }, LOOSE, 'passed', 'different builds run: web a, api b'],
  [{ web: { build: 'a' }, api: {} }, LOOSE, 'passed', 'different builds run: web a, api unstamped'],
  [
    { web: { build: 'a' }, api: { build: 'b' } },
    { ...LOOSE, strict: true },
    'failed',
    'different builds run: web a, api b',
  ],
  [
    { web: { build: 'b' }, api: { build: 'a' } },
    { ...LOOSE, expectBuild: 'b' },
    'failed',
    'expected build b, found api a; different builds run: web b, api a',
  ],
  [{ web: { store: 'degraded' } }, LOOSE, 'passed', 'degraded: web'],
  [{ web: { store: 'degraded' } }, { ...LOOSE, strict: true }, 'failed', 'degraded: web'],
  [
    { web: { api: 'failing' }, api: 'dns_not_found', agent: { api: 'failing' } },
    LOOSE,
    'unreached',
    'not reached: api; failing: web (because api), agent (because api)',
  ],
] as const)('%j with %j is %s: %s', (what, expectations, outcome, sentence) => {
  expect(verdict(what as Partial<Record<Service, Seen>>, expectations)).toMatchObject({ outcome, sentence })
})

test('a certificate that ends within 14 days is a warning, and a failure with strict', () => {
  const ending = (daysLeft: number): RemoteHealth => ({
    ...seen('web', {}),
    certificate: { validTo: '', daysLeft },
  })
  expect(verdictOf([ending(14)], { ...LOOSE, strict: true }).outcome).toBe('passed')
  expect(verdictOf([ending(13)], LOOSE)).toMatchObject({
    outcome: 'passed',
    warnings: ['the certificate of web ends in 13 days'],
  })
  expect(verdictOf([ending(13)], { ...LOOSE, strict: true }).outcome).toBe('failed')
})

const anyState = fc.constantFrom<ProbeState>('ok', 'degraded', 'failing', 'skipped')
const anyProbes = fc.dictionary(fc.constantFrom('web', 'api', 'agent', 'store', 'circuit'), anyState, {
  maxKeys: 5,
})
const anySeen = fc.oneof(fc.constantFrom<CauseCode>('connect_refused', 'bad_json'), anyProbes)

test('each failing service is a root cause or follows one, and blame never forms a cycle', () => {
  fc.assert(
    fc.property(fc.subarray([...SERVICES]), anySeen, anySeen, anySeen, (services, ...all) => {
      const results = services.map((service, index) => seen(service, (all[index] ?? {}) as Seen))
      const { diagnosis, outcome } = verdictOf(results, LOOSE)
      const roots = new Set(diagnosis.rootCauses.flatMap((root) => root.services))
      for (const health of results) {
        const troubled = !health.reached || health.report.state !== 'ok'
        expect(roots.has(health.service) || diagnosis.followers.has(health.service)).toBe(troubled)
        for (const leader of diagnosis.followers.get(health.service) ?? [])
          expect(roots.has(leader)).toBe(true)
      }
      expect(outcome === 'passed').toBe(
        results.every((health) => health.reached && health.report.state !== 'failing'),
      )
    }),
    { numRuns: 200 },
  )
})

test('of services that ask each other, one is the root cause', () => {
  const asks = dependenciesOf(
    [
      { service: 'web', name: 'api' },
      { service: 'api', name: 'agent' },
      { service: 'agent', name: 'web' },
      { service: 'agent', name: 'agent' },
    ],
    [{ name: 'web' }, { name: 'api' }, { name: 'agent' }],
  )
  const results = [
    seen('web', { api: 'failing' }),
    seen('api', { agent: 'failing' }),
    seen('agent', { web: 'failing' }),
  ]
  const { rootCauses, followers } = diagnose(results, asks)
  expect(rootCauses.map(({ services, probe }) => [...services, probe])).toEqual([['agent', 'web']])
  expect(Object.fromEntries(followers)).toEqual({ web: ['agent'], api: ['agent'] })
})
