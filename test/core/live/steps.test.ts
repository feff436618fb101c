import { describe, expect, test } from 'vitest'
import { LIVE_FINDINGS } from '../../../src/core/env/explanations.ts'
import { type Environment, readSettings } from '../../../src/core/env/settings.ts'
import { codeError } from '../../../src/core/errors.ts'
import {
  certificateStep,
  encryptionStep,
  endpointSteps,
  keyStep,
  type LiveDependencies,
} from '../../../src/core/live/endpoint.ts'
import { type LiveResult, liveFindings, outcomeOfFault, type Step } from '../../../src/core/live/live.ts'
import type { LiveNetwork } from '../../../src/core/live/network.ts'
import { readDmarc, readSpf, readTags } from '../../../src/core/live/sender.ts'
import { liveTargets } from '../../../src/core/live/targets.ts'
import { CAUSES, type CauseCode } from '../../../src/core/network/causes.ts'
import { learning } from '../../../src/presets/learning/platform.ts'

const NOW = Date.UTC(2026, 10, 22)
const DAY = 24 * 60 * 60 * 1000
const { signal } = new AbortController()

type Asked = Parameters<LiveNetwork['get']>[0] | URL

/** An outside that answers so, and notes what it was asked. */
function outside(answers: Partial<Record<keyof LiveNetwork, unknown>> = {}) {
  const asked: Asked[] = []
  const give = (name: keyof LiveNetwork, fallback: unknown) => async () => {
    const answer = name in answers ? answers[name] : fallback
    if (answer instanceof Error) throw answer
    return answer as never
  }
  const network: LiveNetwork = {
    addresses: give('addresses', 1),
    txt: give('txt', []),
    certificate: async (input) => {
      asked.push(input)
      return give('certificate', { fault: undefined, validFrom: NOW - 60 * DAY, validTo: NOW + 30 * DAY })()
    },
    get: async (input) => {
      asked.push(input)
      return give('get', { status: 200, body: '' })()
    },
    health: give('health', { reached: true, report: { state: 'ok' } }),
    probe: give('probe', { state: 'ok', checked: true }),
    connect: give('connect', undefined),
  }
  return { network, asked }
}

const told = async (step: Step | undefined) => {
  const outcome = await step?.run(signal)
  return outcome && `${outcome.state}${'id' in outcome ? ` ${outcome.id}` : ''}: ${outcome.detail}`
}

describe('an address', () => {
  const at = (url: string, answers = {}, plainHttp: 'allowed' | 'never' = 'allowed') => {
    const { network, asked } = outside(answers)
    return { asked, steps: endpointSteps({ network, now: NOW }, url, 'API_URL', plainHttp) }
  }

  test('is looked up, asked without a key, and its certificate read', async () => {
    const { steps, asked } = at('https://api.example:8443/base')
    expect(await Promise.all(steps.map(told))).toEqual([
      'passed: 1 address',
      'passed: answers (200)',
      'passed: 30 days left',
    ])
    expect(asked).toEqual([
      { url: 'https://api.example:8443/base', anyCertificate: true },
      new URL('https://api.example:8443/base'),
    ])
    expect(steps.map(({ check, place, variables }) => [check, place, ...variables])).toEqual([
      ['name resolution', 'api.example', 'API_URL'],
      ['reachability', 'https://api.example:8443', 'API_URL'],
      ['certificate', 'api.example:8443', 'API_URL'],
    ])
    expect(at('https://api.example').steps[2].place).toBe('api.example:443')
    expect(await told(at('https://api.example', { addresses: 2 }).steps[0])).toBe('passed: 2 addresses')
    expect(await told(at('https://192.0.2.1').steps[0])).toBe('skipped: an address needs none')
    expect(await told(at('https://[::1]').steps[0])).toBe('skipped: an address needs none')
  })

  test('answers with anything but an error of its own', async () => {
    expect(await told(at('https://api.example', { get: { status: 499 } }).steps[1])).toBe(
      'passed: answers (499)',
    )
    expect(await told(at('https://api.example', { get: { status: 500 } }).steps[1])).toBe(
      'failed live-unhealthy: answers with an error (500)',
    )
  })

  test('of plain http has no certificate, which fails only where it must be encrypted', async () => {
    expect(await told(at('http://api.example').steps[2])).toBe('skipped: http:// has none')
    expect(await told(at('http://api.example', {}, 'never').steps[2])).toBe(
      'failed live-plain-text: is absent: http:// is not encrypted, and DEPLOY_ENVIRONMENT is production',
    )
  })
})

test.each<[left: number, life: number, fault: string | undefined, expected: string]>([
  [14, 90, undefined, 'passed: 14 days left'],
  [1.5, 90, undefined, 'warning live-certificate-expiring: ends in 1 day'],
  [2, 6, undefined, 'passed: 2 days left'],
  [1.99, 6, undefined, 'warning live-certificate-expiring: ends in 1 day'],
  [-0.5, 90, 'CERT_HAS_EXPIRED', 'failed live-certificate: expired 1 day ago'],
  [30, 90, 'CERT_NOT_YET_VALID', 'failed live-certificate: is not valid yet'],
  [30, 90, 'ERR_TLS_CERT_ALTNAME_INVALID', 'failed live-certificate: is made out to another name'],
  [
    30,
    90,
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'failed live-certificate: is signed by nobody that this machine trusts',
  ],
  [
    30,
    90,
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'failed live-certificate: has a chain that leads to nobody this machine trusts',
  ],
  [30, 90, 'CERT_REVOKED', 'failed live-certificate: cannot be verified'],
])('a certificate with %d of %d days left and the fault %s: %#', async (left, life, fault, expected) => {
  const validTo = NOW + left * DAY
  const { network } = outside({ certificate: { fault, validTo, validFrom: validTo - life * DAY } })
  const where = new URL('https://api.example')
  expect(await told(certificateStep({ network, now: NOW }, where, 'API_URL'))).toBe(expected)
})

test.each([
  ['smtp://127.0.0.1', 'skipped: on this machine none is needed'],
  ['smtps://127.0.0.1', 'passed: 30 days left'],
  ['https://127.0.0.1', 'passed: 30 days left'],
  ['smtp://mail.example', 'passed: 30 days left'],
])('of %s the certificate is %s', async (url, expected) => {
  const certificate = { fault: undefined, validTo: NOW + 30 * DAY, validFrom: NOW - 60 * DAY }
  const { network } = outside({ certificate })
  const step = encryptionStep({ network, now: NOW }, new URL(url), 'MAILER_SMTP_URL', 'never')
  expect(await told(step)).toBe(expected)
})

test.each([
  [200, 'passed: is accepted'],
  [300, 'skipped: cannot be told from the answer (300)'],
  [404, 'passed: is accepted'],
  [400, 'skipped: cannot be told from the answer (400)'],
  [401, 'failed live-unauthorised: is refused (401)'],
  [403, 'failed live-unauthorised: is refused (403)'],
  [500, 'failed live-unhealthy: cannot be tried: an error comes back (500)'],
])('a key that gets %i: %s', async (status, expected) => {
  const { network, asked } = outside({ get: { status } })
  const headers = { authorization: 'Bearer x' }
  const step = keyStep(network, 'authorisation', 'KEY', 'https://api.example/me', headers, 404)
  expect(await told(step)).toBe(expected)
  // Never past a certificate that does not hold.
  expect(asked).toEqual([{ url: 'https://api.example/me', headers }])
})

const WHOLE = {
  NEXT_PUBLIC_SITE_URL: 'https://www.example.com',
  NEXT_PUBLIC_DATASTORE_URL: 'https://data.example.com',
  NEXT_PUBLIC_DATASTORE_ANON_KEY: 'anon-key-of-the-store',
  DATASTORE_SERVICE_ROLE_KEY: 'service-role-key',
  DATASTORE_JWKS_URL: 'https://keys.example.com/jwks',
  PAYMENTS_SECRET_KEY: 'sk_test_of-some-length',
  PAYMENTS_WEBHOOK_SECRET: 'whsec_of-some-length',
  PAYMENTS_PRICE_PRO_MONTHLY: 'price_a',
  SHAREDSTORE_REST_URL: 'https://limits.example.com',
  SHAREDSTORE_REST_TOKEN: 'token-of-the-store',
  MAILER_API_KEY: 'mailer-key-value',
  MAILER_FROM: 'course@example.com',
  MAILER_SMTP_URL: 'smtp://mail.example.com',
  API_URL: 'https://api.example.com',
  STORE_URL: 'postgres://u:p@a.example:5432,b.example/platform',
}

describe('targets', () => {
  const targets = (
    env: Environment,
    answers: Parameters<typeof outside>[0] = {},
    parts: Partial<LiveDependencies> = {},
    asked = learning.contract.services,
  ) => {
    const settings = readSettings(learning, env)
    const { network, asked: requests } = outside(answers)
    const all = liveTargets(
      {
        name: learning.name,
        contract: learning.contract,
        services: learning.services,
        probes: learning.probes,
        settings,
        network,
        now: NOW,
        isSet: (name) => settings.value(name) !== undefined,
        verifyMail: async () => {},
        storeSchema: async () => ({ version: 3, latest: 3 }),
        dkimSelectors: [],
        ...parts,
      },
      asked,
    )
    const find = (name: string) => all.find((one) => one.name === name)
    const run = async (name: string) => {
      const steps = find(name)?.steps ?? []
      const results: string[] = []
      for (const step of typeof steps === 'string' ? [] : steps)
        results.push(`${step.check} ${step.variables} ${await told(step)}`)
      return typeof steps === 'string' ? steps : results
    }
    return { all, find, run, requests }
  }

  test('that are not configured say so and ask nobody', async () => {
    const { all, find } = targets({}, {}, { storeSchema: undefined })
    expect(all.map(({ name, variables }) => `${name} ${variables}`)).toEqual([
      'datastore NEXT_PUBLIC_DATASTORE_URL',
      'payments PAYMENTS_API_URL',
      'sharedstore SHAREDSTORE_REST_URL',
      'mail MAILER_SMTP_URL',
      'sender MAILER_FROM',
      expect.stringMatching(/^api .*API_URL$/),
      expect.stringMatching(/^agent .*AGENT_URL$/),
      'store STORE_URL',
      'jobstore JOB_STORE_URL',
      'errortrack NEXT_PUBLIC_ERRORTRACK_DSN',
      'site NEXT_PUBLIC_SITE_URL',
      'alerts ALERT_WEBHOOK_URL',
      'alert-mail ALERT_EMAIL_TO',
      'escalation ALERT_ESCALATION_URL',
      'heartbeat HEARTBEAT_PING_URL',
    ])
    expect(new Set(all.map(({ steps }) => steps))).toEqual(new Set(['not configured']))
    expect([find('sender')?.order, find('mail')?.order]).toEqual(['fan', 'chain'])
  })

  test('a test message goes over the channel of each variable, by mail only where mail is configured', async () => {
    const sent: string[] = []
    const sendTest = async (channel: string) => {
      sent.push(channel)
      return { kind: 'sent', id: '' } as const
    }
    const alerts = {
      ALERT_WEBHOOK_URL: 'https://ops.example.com/alerts',
      ALERT_EMAIL_TO: 'ops@example.com',
      ALERT_ESCALATION_URL: 'https://pager.example.com/alerts',
    }
    const { run } = targets({ ...WHOLE, ...alerts }, {}, { sendTest })
    for (const name of ['alerts', 'alert-mail', 'escalation'])
      expect((await run(name)).at(-1)).toMatch(/^test message ALERT_\w+ passed: took it$/)
    expect(sent).toEqual(['webhook', 'mail', 'escalation'])
    expect(await targets(alerts, {}, { sendTest }).run('alert-mail')).toBe('not configured')
  })

  test('the data store is asked with each of its keys, and for its published keys', async () => {
    const { run, requests } = targets(WHOLE, { get: { status: 200, body: '{"keys":[{}]}' } })
    expect((await run('datastore')).slice(3)).toEqual([
      'authorisation NEXT_PUBLIC_DATASTORE_ANON_KEY passed: is accepted',
      'service role DATASTORE_SERVICE_ROLE_KEY passed: is accepted',
      'published keys DATASTORE_JWKS_URL passed: 1 key',
    ])
    const settings = 'https://data.example.com/auth/v1/settings'
    const key = (name: string) => ({ apikey: name, authorization: `Bearer ${name}` })
    expect(requests.slice(2)).toEqual([
      { url: settings, headers: key('anon-key-of-the-store') },
      { url: settings, headers: key('service-role-key') },
      { url: 'https://keys.example.com/jwks', wantsBody: true },
    ])
    for (const [status, body, outcome] of [
      [200, '{"keys":[{},{}]}', 'passed: 2 keys'],
      [200, '{"keys":[]}', 'failed live-unhealthy: gives no key set (200)'],
      [200, '{"keys":3}', 'failed live-unhealthy: gives no key set (200)'],
      [200, 'no JSON', 'failed live-unhealthy: gives no key set (200)'],
      [404, '{"keys":[{}]}', 'failed live-unhealthy: gives no key set (404)'],
    ] as const)
      expect((await targets(WHOLE, { get: { status, body } }).run('datastore')).at(-1)).toBe(
        `published keys DATASTORE_JWKS_URL ${outcome}`,
      )
  })

  test('payments and the shared store are asked with their key, which a price that is gone does not refuse', async () => {
    const { run, requests } = targets(WHOLE, { get: { status: 404 } })
    expect((await run('payments')).at(-1)).toBe('authorisation PAYMENTS_SECRET_KEY passed: is accepted')
    expect(requests.at(-1)).toEqual({
      url: 'https://api.stripe.com/v1/prices/price_a',
      headers: { authorization: 'Bearer sk_test_of-some-length' },
    })
    expect((await run('sharedstore')).at(-1)).toBe(
      'authorisation SHAREDSTORE_REST_TOKEN skipped: cannot be told from the answer (404)',
    )
    expect(requests.at(-1)).toEqual({
      url: 'https://limits.example.com/ping',
      headers: { authorization: 'Bearer token-of-the-store' },
    })
  })

  test('in production a key travels over https or on this machine, and this platform may reach a neighbor inside', async () => {
    const certificate = async (name: string, env: Environment) =>
      ((await targets({ DEPLOY_ENVIRONMENT: 'production', ...env }).run(name)) as string[])[2]
    const shared = (url: string, more: Environment = {}) =>
      certificate('sharedstore', { ...WHOLE, SHAREDSTORE_REST_URL: url, ...more })
    expect(await shared('http://limits.internal')).toContain(' failed live-plain-text:')
    expect(await shared('http://limits.internal', { DEPLOY_ENVIRONMENT: 'staging' })).toContain(' skipped:')
    for (const here of ['http://localhost:1', 'http://127.0.0.2:1', 'http://[::1]:1'])
      expect(await shared(here)).toContain(' skipped:')
    for (const elsewhere of ['http://128.0.0.1', 'http://127.example.com'])
      expect(await shared(elsewhere)).toContain(' failed ')
    expect(
      await certificate('api', { API_URL: 'http://api.example.com' }),
      'inside, a neighbor may be plain',
    ).toMatch(/API_URL skipped/)
  })

  test('an address of payments belongs to the variable that says it, and the site to its port', async () => {
    expect((await targets(WHOLE).run('payments'))[0]).toMatch(/^name resolution PAYMENTS_SECRET_KEY /)
    const own = targets({ ...WHOLE, PAYMENTS_API_URL: 'https://payments.example.com' })
    expect((await own.run('payments'))[0]).toMatch(/^name resolution PAYMENTS_API_URL /)
    const place = (url: string) => {
      const steps = targets({ NEXT_PUBLIC_SITE_URL: url }).find('site')?.steps
      return typeof steps === 'string' ? steps : steps?.[1]?.place
    }
    expect(place('https://www.example.com')).toBe('www.example.com:443')
    expect(place('https://www.example.com:8443')).toBe('www.example.com:8443')
  })

  test('mail over SMTP is connected to on its port, and its key tried', async () => {
    const mail = async (env: Environment, verifyMail = async () => {}) => {
      const { run, requests } = targets({ ...WHOLE, ...env }, {}, { verifyMail })
      return { results: await run('mail'), certificate: requests.at(-1) }
    }
    const plain = await mail({})
    expect(plain.results).toEqual([
      'name resolution MAILER_SMTP_URL passed: 1 address',
      'reachability MAILER_SMTP_URL passed: accepts connections',
      'certificate MAILER_SMTP_URL passed: 30 days left',
      'authorisation MAILER_SMTP_URL passed: asks for no user',
    ])
    expect(plain.certificate).toEqual(new URL('smtp://mail.example.com'))
    const user = await mail({ MAILER_SMTP_URL: 'smtps://user@mail.example.com' })
    expect(user.results.at(-1)).toBe('authorisation MAILER_API_KEY passed: is accepted')
    expect(user.certificate).toEqual(new URL('smtps://user@mail.example.com'))
    expect((await mail({ MAILER_SMTP_URL: 'smtps://mail.example.com:2465' })).certificate).toMatchObject({
      port: '2465',
    })
    const fails = (message: string) => () => Promise.reject(new Error(message))
    for (const [message, outcome] of [
      ['the mail server refused the credentials (535)', 'failed live-unauthorised: is refused'],
      ['the mail provider refused the key (401)', 'failed live-unauthorised: is refused'],
      [
        'the mail server could not be reached',
        'failed live-unreachable: cannot be tried: the mail conversation breaks',
      ],
    ] as const)
      expect((await mail({}, fails(message))).results.at(-1)).toBe(`authorisation MAILER_SMTP_URL ${outcome}`)
    const { MAILER_SMTP_URL: _, ...rest } = WHOLE
    const api = targets({ ...rest, MAILER_API_URL: 'https://mail.example.com/emails' })
    expect((await api.run('mail')).at(-1)).toBe('authorisation MAILER_API_KEY passed: is accepted')
  })

  test.each([
    [{ reached: true, report: { state: 'ok' } }, 'passed: is ok'],
    [{ reached: true, report: { state: 'degraded' } }, 'warning live-unhealthy: is degraded'],
    [{ reached: true, report: { state: 'failing' } }, 'failed live-unhealthy: is failing'],
    [{ reached: false, reason: 'it is away' }, 'failed live-unhealthy: gives no health: it is away'],
  ])('a service that says %j: %s', async (health, outcome) => {
    const { run, find } = targets(WHOLE, { health })
    expect((await run('api')).at(-1)).toBe(`health API_URL ${outcome}`)
    expect(find('api')?.services).toEqual(['web', 'agent'])
  })

  test.each<[unknown, string]>([
    [{ version: 3, latest: 3 }, 'passed: schema 3, nothing to migrate'],
    [{ version: 3, latest: 3, owner: learning.name }, 'passed: schema 3, nothing to migrate'],
    ...[
      ['refused the connection', 'live-unreachable'],
      ['did not answer within 5 s', 'live-unreachable'],
      ['broke the connection', 'live-unreachable'],
      ['has a host name that does not resolve', 'live-unreachable'],
      ['has no connection left', 'live-unreachable'],
      ['refused the user or the password', 'live-unauthorised'],
      ['has no such database', 'live-store'],
    ].map(([said, id]): [unknown, string] => [
      Object.assign(new Error(`The PostgreSQL of STORE_URL ${said}: canary`), { name: 'StoreOpenError' }),
      `failed ${id}: ${said}`,
    ]),
    [
      Object.assign(new Error('/srv/canary is no store'), { name: 'StoreOpenError' }),
      'failed live-store: cannot be opened',
    ],
  ])('a store %#: %s', async (schema, outcome) => {
    const storeSchema = (async () => {
      if (schema instanceof Error) throw schema
      return schema
    }) as LiveDependencies['storeSchema']
    const results = await targets(WHOLE, {}, { storeSchema }).run('store')
    expect(results).toEqual([
      'name resolution STORE_URL passed: 1 address',
      'name resolution STORE_URL passed: 1 address',
      `migrations STORE_URL ${outcome}`,
    ])
    expect(await targets({ STORE_URL: 'sqlite:./a.sqlite' }, {}, { storeSchema }).run('store')).toHaveLength(
      1,
    )
    const jobs = targets({ JOB_STORE_URL: 'sqlite:./jobs.sqlite' }, {}, { jobSchema: storeSchema })
    expect(await jobs.run('jobstore')).toEqual([`migrations JOB_STORE_URL ${outcome}`])
  })

  test('a store that fails otherwise is a fault of the check', async () => {
    const storeSchema = () => Promise.reject(new TypeError('canary'))
    await expect(targets(WHOLE, {}, { storeSchema }).run('store')).rejects.toThrow(TypeError)
  })

  test.each<[CauseCode, string]>([
    ['connect_refused', 'warning live-unreachable: cannot be read: the connection is refused'],
    ['answer_timeout', 'warning live-unreachable: gives no answer in time'],
    ['dns_not_found', 'failed live-name: does not resolve'],
    ['tls_expired', 'failed live-certificate: cannot be trusted: the certificate is not valid'],
  ])('a site that does not answer (%s): %s', async (cause, outcome) => {
    const results = await targets(WHOLE, { certificate: codeError(cause) }).run('site')
    expect(results).toEqual([
      'name resolution NEXT_PUBLIC_SITE_URL passed: 1 address',
      `certificate NEXT_PUBLIC_SITE_URL ${outcome}`,
    ])
  })

  test.each([
    [{ status: 405, body: '{"code":"method_not_allowed"}' }, 'passed: is ours'],
    [
      { status: 405, body: 'Method Not Allowed' },
      'failed live-unhealthy: does not lead to this platform: /api/email/feedback/postmark answers with 405',
    ],
    // Before the first deployment nothing answers.
    [codeError('connect_refused'), 'warning live-unreachable: cannot be read: the connection is refused'],
  ])('the webhook of the mail provider, where the site answers %#: %s', async (get, outcome) => {
    const env = {
      MAILER_FEEDBACK_PROVIDER: 'postmark',
      MAILER_FEEDBACK_SECRET: 'of-the-webhook-and-long-enough',
    }
    const { run, requests } = targets({ NEXT_PUBLIC_SITE_URL: 'http://www.example.com', ...env }, { get })
    expect((await run('site'))[2]).toBe(`webhook NEXT_PUBLIC_SITE_URL ${outcome}`)
    expect(requests).toEqual([
      { url: 'http://www.example.com/api/email/feedback/postmark', wantsBody: true, anyCertificate: true },
    ])
  })
})

test('every cause of a request has its finding', () => {
  const refused = 'failed live-unreachable cannot be reached: the connection is refused'
  const silent = 'failed live-name-server cannot be looked up: no name server answers'
  const late = 'failed live-unreachable gives no answer in time'
  const untrusted = 'failed live-certificate cannot be trusted: the certificate is not valid'
  const unreadable = 'failed live-unhealthy gives an answer that cannot be read'
  const outcomes: Partial<Record<CauseCode | 'no_starttls', string>> = {
    dns_not_found: 'failed live-name does not resolve',
    dns_unavailable: silent,
    dns_timeout: silent,
    connect_refused: refused,
    connect_unreachable: 'failed live-unreachable cannot be reached: no route leads there',
    proxy_refused: refused,
    connect_timeout: late,
    tls_timeout: late,
    answer_timeout: late,
    body_timeout: late,
    tls_expired: untrusted,
    tls_not_yet_valid: untrusted,
    tls_wrong_name: untrusted,
    tls_untrusted: untrusted,
    bad_http: unreadable,
    headers_too_large: unreadable,
    encoded: unreadable,
    too_large: unreadable,
    no_starttls: 'warning live-plain-text is absent: the server offers no encryption',
  }
  // Every code there is.
  for (const code of [...(Object.keys(CAUSES) as CauseCode[]), 'no_starttls' as const]) {
    const found = outcomeOfFault(codeError(code))
    expect('id' in found && `${found.state} ${found.id} ${found.detail}`).toBe(
      outcomes[code] ?? 'failed live-unreachable cannot be reached: the connection breaks',
    )
  }
  expect(outcomeOfFault(new Error('canary'))).toEqual({
    state: 'failed',
    id: 'live-unreachable',
    detail: 'could not be checked',
  })
})

describe('findings', () => {
  const result = (parts: Partial<LiveResult>): LiveResult =>
    ({
      target: 'datastore',
      check: 'reachability',
      state: 'failed',
      id: 'live-unreachable',
      detail: 'gives no answer in time',
      services: ['web'],
      variables: ['A_URL'],
      ...parts,
    }) as LiveResult
  const origin = (name: string) =>
    name === 'B_URL' ? { location: { file: '.env', line: 2, column: 1 }, excerpt: 'B_URL=' } : undefined
  const of = (...results: LiveResult[]) => liveFindings(results, origin)

  test('are what failed or is doubtful, with the fix of their id', () => {
    expect(of(result({}))).toEqual([
      {
        id: 'live-unreachable',
        severity: 'error',
        services: ['web'],
        group: 'datastore',
        present: ['A_URL'],
        missing: [],
        cause: 'A_URL gives no answer in time.',
        fix: LIVE_FINDINGS['live-unreachable'].fix,
      },
    ])
    expect(of(result({ state: 'warning' } as never))[0]?.severity).toBe('warning')
    const { id: _, ...passed } = { ...result({}), state: 'passed' } as never as LiveResult & { id: string }
    expect(of(passed as LiveResult)).toEqual([])
  })

  test('of one fault at one place are one, of the variables and services of all', () => {
    const place = 'https://a.example'
    const two = [
      result({ place }),
      result({ place, variables: ['B_URL'], services: ['api', 'web'] }),
    ] as const
    expect(of(...two)).toMatchObject([
      {
        present: ['A_URL', 'B_URL'],
        services: ['web', 'api'],
        cause: 'A_URL, B_URL gives no answer in time.',
        location: { line: 2 },
      },
    ])
    expect(of(result({}), result({}))).toHaveLength(2)
    expect(of(result({ place }), result({ place: 'https://b.example' }))).toHaveLength(2)
    expect(of(result({ place }), result({ place, detail: 'is refused' }))).toHaveLength(2)
    const silent = { id: 'live-name-server', detail: 'cannot be looked up' } as const
    expect(of(result({ ...silent, place } as never), result(silent as never))).toHaveLength(1)
  })

  test.each([
    ['name resolution', 'The host of A_URL'],
    ['certificate', 'The certificate behind A_URL'],
    ['health', 'The service behind A_URL'],
    ['SPF', 'The domain of A_URL'],
    ['migrations', 'The store of A_URL'],
    ['authorisation', 'A_URL'],
  ] as const)('of the check %s are about %s', (check, subject) => {
    expect(of(result({ check }))[0]?.cause).toBe(`${subject} gives no answer in time.`)
  })

  test('of payments without an address are about their provider', () => {
    const payments = { target: 'payments', variables: ['PAYMENTS_SECRET_KEY'] }
    expect(of(result(payments))[0]?.cause).toBe('The payments provider gives no answer in time.')
    expect(of(result({ ...payments, check: 'certificate' }))[0]?.cause).toBe(
      'The certificate behind the payments provider gives no answer in time.',
    )
    expect(of(result({ ...payments, check: 'authorisation' }))[0]?.cause).toMatch(/^PAYMENTS_SECRET_KEY /)
  })
})

test.each([
  [' v = 1 ;p=a=b;', { v: '1', p: 'a=b' }],
  ['a_1=', { a_1: '' }],
  ['k=rsa;\r\n\tp=AB\n CD', { k: 'rsa', p: 'AB\n CD' }],
  ['v=1;;p=2', 'is not a list of tags'],
  ['v=1; 1p=2', 'is not a list of tags'],
])('the tags of %j are %j', (text, expected) => {
  const read = readTags(text)
  expect('fault' in read ? read.fault : Object.fromEntries(read.tags)).toEqual(expected)
})

test.each<[string, string | undefined]>([
  ['v=DMARC1;p=REJECT;', 'reject'],
  [' v=DMARC1; p=none', 'has a DMARC record that does not begin with v=DMARC1;'],
  ['v=dmarc1; p=none', 'has a DMARC record that does not begin with v=DMARC1;'],
  ['v=DMARC10; p=none', 'has a DMARC record that does not begin with v=DMARC1;'],
  ['xv=DMARC1; p=none', undefined],
  ...[
    'p=none; pct=101',
    'p=none; fo=2',
    'p=none; ri=12345678901',
    'p=none; rua=a@b.example',
    'p=none; ruf=mailto:a',
  ].map((tags): [string, string] => [
    `v=DMARC1; ${tags}`,
    `has a DMARC record whose ${/(\w+)=[^;]*$/.exec(tags)?.[1]}= has no valid value`,
  ]),
  [
    'v=DMARC1; p=quarantine; sp=None; np=reject; adkim=S; aspf=r; pct=100; fo=1:d; ri=86400; rua=mailto:a@b.example, MAILTO:c@d.example; ruf=mailto:a@b.example',
    'quarantine',
  ],
])('the DMARC record %j is read as %j', (text, expected) => {
  const read = readDmarc(text)
  expect(read && (read.kind === 'sound' ? read.policy : read.fault)).toBe(expected)
})

test.each([
  ['p', 'Quarantine'],
  ['sp', 'None'],
  ['np', 'Reject'],
  ['adkim', 'R'],
  ['aspf', 'S'],
  ['pct', '100'],
  ['fo', '0:D'],
  ['ri', '1234567890'],
  ['rua', 'MAILTO:a@b.example , mailto:c@d.example'],
  ['ruf', 'MAILTO:a@b.example , mailto:c@d.example'],
])('the DMARC tag %s may be %s, and nothing may stand around it', (tag, value) => {
  const kind = (text: string) => readDmarc(`v=DMARC1; ${tag === 'p' ? '' : 'p=none; '}${tag}=${text}`)?.kind
  expect([value, `x ${value}`, `${value} x`].map(kind)).toEqual(['sound', 'broken', 'broken'])
})

test('an SPF record may need ten look-ups and not eleven, and its networks have the width of their family', async () => {
  const read = (record: string) => readSpf(async () => [], [record])
  const many = (count: number) => `v=spf1 ${'a '.repeat(count)}-all`
  expect(await read(many(10))).toEqual({ kind: 'sound', lookups: 10, openToAll: false })
  expect((await read(many(11))).kind).toBe('broken')
  for (const [term, kind] of [
    ['ip4:192.0.2.0/32', 'sound'],
    ['ip4:192.0.2.0/0', 'sound'],
    ['ip4:192.0.2.0/', 'broken'],
    ['ip6:2001:db8::/128', 'sound'],
    ['ip6:2001:db8::/129', 'broken'],
    ['ip6:192.0.2.0', 'broken'],
    ['exists:a/b', 'broken'],
    ['a:/24', 'broken'],
    ['a//64', 'sound'],
    ['ptr:x.example', 'sound'],
    ['?mx', 'sound'],
    ['xmx', 'broken'],
    ['A', 'sound'],
  ] as const)
    expect((await read(`v=spf1 ${term} -all`)).kind, term).toBe(kind)
  for (const [record, openToAll] of [
    ['v=spf1 all', true],
    ['V=SPF1 +ALL', true],
    ['v=spf1 ?all', false],
    ['v=spf1 a:overall', false],
  ] as const)
    expect(await read(record)).toMatchObject({ kind: 'sound', openToAll })
  expect((await readSpf(async () => [], ['v=spf10 -all', 'xv=spf1 -all'])).kind).toBe('absent')
})
