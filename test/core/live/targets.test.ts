import { expect, test } from 'vitest'
import { DAY_MS } from '../../../src/core/durations.ts'
import { readSettings } from '../../../src/core/env/read-settings.ts'
import type { LiveDependencies } from '../../../src/core/live/dependencies.ts'
import { faultOf, NetworkFault, outcomeOfFault } from '../../../src/core/live/fault.ts'
import { isRemoteFault, liveFindings } from '../../../src/core/live/findings.ts'
import type { LiveNetwork } from '../../../src/core/live/network.ts'
import { runLive } from '../../../src/core/live/run.ts'
import { liveTargets } from '../../../src/core/live/targets.ts'
import { StoreOpenError } from '../../../src/core/store/store.ts'
import { learning } from '../../../src/presets/learning/platform.ts'

const NOW = Date.UTC(2026, 10, 22)
const DATASTORE = {
  NEXT_PUBLIC_DATASTORE_URL: 'https://db.example.com',
  NEXT_PUBLIC_DATASTORE_ANON_KEY: 'anon-key-of-thirty-two-characters',
}
const SHARED = {
  SHAREDSTORE_REST_URL: 'https://shared.example.com',
  SHAREDSTORE_REST_TOKEN: 'a-token-of-the-shared-store-32-ch',
}
const MAIL = {
  MAILER_API_KEY: 'key-of-the-mailer',
  MAILER_FROM: 'Us <us@example.com>',
  MAILER_SMTP_URL: 'smtp://mail.example.com',
}

/** An outside where everything is well, but for what is given; and the requests that it met. */
function outside(own: Partial<LiveNetwork> = {}) {
  const requests: { readonly url: string; readonly headers: Readonly<Record<string, string>> }[] = []
  const network: LiveNetwork = {
    addresses: async () => 1,
    txt: async () => [],
    certificate: async () => ({ fault: undefined, validFrom: NOW - DAY_MS, validTo: NOW + 90 * DAY_MS }),
    get: async () => ({ status: 200, body: '' }),
    health: async () => Promise.reject(new NetworkFault('refused')),
    connect: async () => {},
    ...own,
  }
  const get: LiveNetwork['get'] = (input, signal) => {
    requests.push({ url: input.url, headers: input.headers ?? {} })
    return network.get(input, signal)
  }
  return { requests, network: { ...network, get } }
}

async function looks(
  env: Record<string, string>,
  of: string,
  { network = outside().network, ...own }: Partial<LiveDependencies> = {},
) {
  const settings = readSettings(learning, env)
  const targets = liveTargets(
    {
      ...learning,
      settings,
      network,
      now: NOW,
      isSet: (name) => settings.value(name) !== undefined,
      verifyMail: async () => {},
      storeSchema: async () => undefined,
      dkimSelectors: [],
      ...own,
    },
    learning.contract.services,
  ).filter(({ name }) => name === of)
  const results = await runLive({
    targets,
    limitMs: 5000,
    deadlineMs: 5000,
    monotonic: () => 0,
    signal: new AbortController().signal,
  })
  return { results, told: results.map(({ check, state, detail }) => `${check}: ${state}, ${detail}`) }
}

const well = [
  'name resolution: passed, 1 address',
  'reachability: passed, answers (200)',
  'certificate: passed, 90 days left',
]

test('a key goes to its own address alone, and the look whether that answers takes none along', async () => {
  const { requests, network } = outside()
  expect((await looks(SHARED, 'sharedstore', { network })).told).toEqual([
    ...well,
    'authorisation: passed, is accepted',
  ])
  expect(requests).toEqual([
    { url: 'https://shared.example.com', headers: {} },
    {
      url: 'https://shared.example.com/ping',
      headers: { authorization: `Bearer ${SHARED.SHAREDSTORE_REST_TOKEN}` },
    },
  ])
  const both = outside()
  await looks(
    { ...DATASTORE, DATASTORE_SERVICE_ROLE_KEY: 'role-key-of-thirty-two-characters' },
    'datastore',
    both,
  )
  expect(both.requests.slice(1, 3)).toEqual(
    [DATASTORE.NEXT_PUBLIC_DATASTORE_ANON_KEY, 'role-key-of-thirty-two-characters'].map((key) => ({
      url: 'https://db.example.com/auth/v1/settings',
      headers: { apikey: key, authorization: `Bearer ${key}` },
    })),
  )
})

test.each([
  [200, 'passed, is accepted'],
  [299, 'passed, is accepted'],
  [300, 'skipped, cannot be told from the answer (300)'],
  [401, 'failed, is refused (401)'],
  [403, 'failed, is refused (403)'],
  [404, 'skipped, cannot be told from the answer (404)'],
  [499, 'skipped, cannot be told from the answer (499)'],
  [500, 'failed, cannot be tried: an error comes back (500)'],
])('a key that is answered with %i: %s', async (status, said) => {
  const { network } = outside({
    get: async ({ headers }) => ({ status: headers === undefined ? 200 : status, body: '' }),
  })
  expect((await looks(SHARED, 'sharedstore', { network })).told.at(-1)).toBe(`authorisation: ${said}`)
})

test.each([
  [499, ['reachability: passed, answers (499)', 'certificate: passed, 90 days left']],
  [
    500,
    [
      'reachability: failed, answers with an error (500)',
      'certificate: skipped, not tried, as reachability failed',
    ],
  ],
])('an address that answers with %i', async (status, said) => {
  const { network } = outside({ get: async () => ({ status, body: '' }) })
  expect((await looks(SHARED, 'sharedstore', { network })).told.slice(1, 3)).toEqual(said)
})

test('an address in the configuration needs no name server, and is skipped, not passed', async () => {
  const { told } = await looks({ ...SHARED, SHAREDSTORE_REST_URL: 'https://192.0.2.1' }, 'sharedstore')
  expect(told[0]).toBe('name resolution: skipped, an address needs none')
  const { network } = outside({ addresses: async () => 2 })
  expect((await looks(SHARED, 'sharedstore', { network })).told[0]).toBe(
    'name resolution: passed, 2 addresses',
  )
})

test.each([
  [
    'http://shared.example.com',
    'production',
    'failed, is absent: http:// is not encrypted, and DEPLOY_ENVIRONMENT is production',
  ],
  ['http://shared.example.com', 'development', 'skipped, http:// has none'],
  ['http://127.0.0.1:8079', 'production', 'skipped, http:// has none'],
  ['http://localhost:8079', 'production', 'skipped, http:// has none'],
  ['http://[::1]:8079', 'production', 'skipped, http:// has none'],
  [
    'http://127.example.com',
    'production',
    'failed, is absent: http:// is not encrypted, and DEPLOY_ENVIRONMENT is production',
  ],
])('a key that goes to %s in %s: %s', async (url, environment, said) => {
  const { told } = await looks(
    { ...SHARED, SHAREDSTORE_REST_URL: url, DEPLOY_ENVIRONMENT: environment },
    'sharedstore',
  )
  expect(told[2]).toBe(`certificate: ${said}`)
  expect(told).toHaveLength(4)
})

test.each([
  ['CERT_HAS_EXPIRED', -1, 'failed, expired 1 day ago'],
  ['CERT_HAS_EXPIRED', -2, 'failed, expired 2 days ago'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 90, 'failed, is signed by nobody that this machine trusts'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 90, 'failed, has a chain that leads to nobody this machine trusts'],
  ['anything else', 90, 'failed, cannot be verified'],
  [undefined, 14, 'passed, 14 days left'],
  [undefined, 13, 'warning, ends in 13 days'],
  [undefined, 1, 'warning, ends in 1 day'],
])('a certificate with the fault %s and %i days: %s', async (fault, days, said) => {
  const { network } = outside({
    certificate: async () => ({ fault, validFrom: NOW - 365 * DAY_MS, validTo: NOW + days * DAY_MS }),
  })
  expect((await looks(SHARED, 'sharedstore', { network })).told[2]).toBe(`certificate: ${said}`)
})

test.each([
  ['smtp://mail.example.com', { host: 'mail.example.com', port: 587, startTls: true }],
  ['smtps://mail.example.com', { host: 'mail.example.com', port: 465, startTls: false }],
  ['smtp://mail.example.com:2525', { host: 'mail.example.com', port: 2525, startTls: true }],
])('%s is connected to at its port, and asked for its certificate as its scheme says', async (url, at) => {
  const seen: unknown[] = []
  const { network } = outside({
    connect: async (host, port) => void seen.push([host, port]),
    certificate: async (input) => {
      seen.push(input)
      return { fault: undefined, validFrom: NOW, validTo: NOW + 90 * DAY_MS }
    },
  })
  const { told, results } = await looks({ ...MAIL, MAILER_SMTP_URL: url }, 'mail', { network })
  expect(seen).toEqual([[at.host, at.port], at])
  expect(told).toEqual([
    'name resolution: passed, 1 address',
    'reachability: passed, accepts connections',
    'certificate: passed, 90 days left',
    'authorisation: passed, asks for no user',
  ])
  expect(results.at(-1)?.variables).toEqual(['MAILER_SMTP_URL'])
})

test.each([
  ['the mail server refused the credentials (535)', 'failed, is refused'],
  ['the mail provider refused the key (401)', 'failed, is refused'],
  ['the mail server refused the message (554)', 'failed, cannot be tried: the mail conversation breaks'],
])('mail whose transport says that %s: %s', async (reason, said) => {
  const verifyMail = () => Promise.reject(new Error(reason))
  expect((await looks(MAIL, 'mail', { verifyMail })).told.at(-1)).toBe(`authorisation: ${said}`)
})

test.each([
  [undefined, 'skipped, there is no store yet; it is made at the first start'],
  [{ version: 7, latest: 7 }, 'passed, schema 7, nothing to migrate'],
  [{ version: 6, latest: 7 }, 'warning, has schema 6, and this build brings 7'],
  [{ version: 8, latest: 7 }, 'warning, has schema 8, and this build knows 7'],
])('a store whose schema is %j: %s', async (schema, said) => {
  const { told } = await looks({ STORE_URL: 'sqlite:store.sqlite' }, 'store', {
    storeSchema: async () => schema,
  })
  expect(told).toEqual([`migrations: ${said}`])
})

test('a store that cannot be opened is told in its own words, which hold no value, and any other fault without its text', async () => {
  const url = 'postgres://user:hunter2@db.example.com/x'
  const said = async (error: Error) =>
    (await looks({ STORE_URL: url }, 'store', { storeSchema: () => Promise.reject(error) })).told
  expect(
    await said(new StoreOpenError('The PostgreSQL of STORE_URL refused the connection: start it.')),
  ).toEqual(['name resolution: passed, 1 address', 'migrations: failed, refused the connection'])
  expect((await said(new StoreOpenError('/secret/place is damaged')))[1]).toBe(
    'migrations: failed, cannot be opened',
  )
  expect((await said(new TypeError('hunter2')))[1]).toBe('migrations: failed, could not be checked')
})

test.each([
  ['refused', 'warning'],
  ['no route', 'warning'],
  ['timeout', 'warning'],
  ['broken', 'warning'],
  ['tls', 'failed'],
  ['no such name', 'failed'],
] as const)('a site whose certificate cannot be read because of %s: %s', async (kind, state) => {
  const { network } = outside({ certificate: () => Promise.reject(new NetworkFault(kind)) })
  const { results } = await looks({ NEXT_PUBLIC_SITE_URL: 'https://www.example.com' }, 'site', { network })
  expect(results.at(-1)).toMatchObject({ check: 'certificate', state })
  expect(results.at(-1)?.detail).not.toContain('reached')
})

test('what is not configured, or only half, is skipped with that as the reason', async () => {
  expect((await looks({}, 'sharedstore')).told).toEqual(['configuration: skipped, not configured'])
  expect((await looks({ SHAREDSTORE_REST_URL: 'https://x.example' }, 'sharedstore')).told).toEqual([
    'configuration: skipped, half-configured, so it is off',
  ])
  expect((await looks({}, 'store')).told).toEqual(['configuration: skipped, not configured'])
})

test.each([
  ['dns_timeout', 'name server'],
  ['connect_timeout', 'timeout'],
  ['body_timeout', 'timeout'],
  ['tls_expired', 'tls'],
  ['tls_failed', 'broken'],
  ['connection_closed', 'broken'],
  ['bad_http', 'unreadable'],
] as const)('a request that came to no answer because of %s is the fault: %s', (cause, kind) => {
  expect(faultOf(cause).kind).toBe(kind)
  expect(outcomeOfFault(faultOf(cause)).state).toBe('failed')
  expect(outcomeOfFault(new NetworkFault('no tls')).state).toBe('warning')
})

test('faults at one place are one finding that names all variables, and what passed or was skipped is none', async () => {
  const network = outside({ addresses: () => Promise.reject(new NetworkFault('no such name')) }).network
  const same = { ...SHARED, ...DATASTORE, NEXT_PUBLIC_DATASTORE_URL: SHARED.SHAREDSTORE_REST_URL }
  const results = [
    ...(await looks(same, 'sharedstore', { network })).results,
    ...(await looks(same, 'datastore', { network })).results,
    ...(await looks(MAIL, 'mail', { network })).results,
  ]
  const place = { location: { file: '.env', line: 7, column: 1 }, excerpt: 'NEXT_PUBLIC_DATASTORE_URL=…' }
  const findings = liveFindings(results, (name) => (name === 'NEXT_PUBLIC_DATASTORE_URL' ? place : undefined))
  expect(findings.map(({ id, severity, present, cause }) => [id, severity, present, cause])).toEqual([
    [
      'live-name',
      'error',
      ['SHAREDSTORE_REST_URL', 'NEXT_PUBLIC_DATASTORE_URL'],
      'The host of SHAREDSTORE_REST_URL, NEXT_PUBLIC_DATASTORE_URL does not resolve.',
    ],
    ['live-name', 'error', ['MAILER_SMTP_URL'], 'The host of MAILER_SMTP_URL does not resolve.'],
  ])
  expect(findings[0]).toMatchObject({ ...place, group: 'sharedstore' })
  expect(findings.map(({ id }) => isRemoteFault(id))).toEqual([true, true])
  expect(
    ['live-unreachable', 'live-unauthorised', 'live-unhealthy', 'live-certificate'].map(isRemoteFault),
  ).toEqual([true, true, false, false])
  const silent = outside({ addresses: () => Promise.reject(new NetworkFault('name server')) }).network
  const quiet = [
    ...(await looks(SHARED, 'sharedstore', { network: silent })).results,
    ...(await looks(MAIL, 'mail', { network: silent })).results,
  ]
  // A silent name server is one cause, whatever was looked up.
  expect(liveFindings(quiet, () => undefined)).toHaveLength(1)
})
