import { generateKeyPairSync } from 'node:crypto'
import { chown, writeFile } from 'node:fs/promises'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import type { LiveResult } from '../../src/core/live/live.ts'
import { openNetwork } from '../../src/core/live/network.ts'
import { openStore } from '../../src/core/store/open.ts'
import { openPlatform } from '../../src/daemon/index.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { emptyFolder, folderWith } from '../support/folder.ts'
import { smtpServer } from '../support/mailers.ts'
import { answers, authority, loopbackLookup, nameServer, serve } from '../support/outside.ts'
import { type Parts, run } from '../support/run.ts'
import { healthBody, serveTcp } from '../support/servers.ts'

const signed = await authority('Trusted for tests')
const KEY = generateKeyPairSync('rsa', { modulusLength: 2048 })
  .publicKey.export({ type: 'spki', format: 'der' })
  .toString('base64')
const RECORDS = {
  'example.com': 'v=spf1 -all',
  's1._domainkey.example.com': `v=DKIM1; p=${KEY}`,
  '_dmarc.example.com': 'v=DMARC1; p=reject',
}

const CONNECTS = ['name resolution', 'reachability', 'certificate']
const passed = (target: string, ...names: string[]) => names.map((name) => `${target}, ${name}: passed`)

const health = (service: string, state = 'ok'): unknown => JSON.parse(healthBody({ service, state }))

type Given = Parts & { readonly args?: readonly string[]; readonly records?: Record<string, string> }

async function preflight({ args = [], records = RECORDS, ...parts }: Given) {
  const nameServers = [await nameServer(records)]
  const network = openNetwork({ lookup: loopbackLookup, ca: signed.ca, nameServers })
  return run(['preflight', '--deep', ...args], { cwd: await emptyFolder(), network, ...parts })
}

async function checks(given: Given) {
  const { code, stdout } = await preflight({ ...given, args: ['--format', 'json', ...(given.args ?? [])] })
  const report = JSON.parse(stdout) as {
    ok: boolean
    live: LiveResult[]
    findings: { id: string; severity: string; cause: string }[]
  }
  expect(report.live.filter((one) => 'place' in one)).toEqual([])
  const told = report.live
    .filter(({ check }) => check !== 'configuration')
    .map(({ target, check, state }) => `${target}, ${check}: ${state}`)
  return { code, report, told }
}

/** Every integration, answering on loopback as a healthy one would. */
async function everything({ refuse = [] as string[] } = {}) {
  const certificate = await signed.issue({})
  const secure = async (paths: Parameters<typeof answers>[0]) =>
    `https://service.example:${(await serve(answers(paths), certificate)).port}`
  const keyed = (name: string): readonly [number, unknown?] => [
    refuse.includes(name) ? 401 : 200,
    { state: 'ok' },
  ]
  const mail = await smtpServer({
    ...certificate,
    authOptional: false,
    logger: false,
    hideSTARTTLS: true,
    allowInsecureAuth: true,
    onAuth: (auth, _, done) =>
      refuse.includes('mail') || auth.password !== 'key-of-the-mailer'
        ? done(new Error('no'))
        : done(null, { user: 'platform' }),
  })
  const datastore = await secure({
    '/auth/v1/settings': keyed('datastore'),
    '/keys': [200, { keys: [{ kty: 'EC' }] }],
  })
  return {
    NEXT_PUBLIC_DATASTORE_URL: datastore,
    NEXT_PUBLIC_DATASTORE_ANON_KEY: 'anon-key-of-the-project',
    DATASTORE_JWKS_URL: `${datastore}/keys`,
    PAYMENTS_SECRET_KEY: 'sk_test_of-this-project',
    PAYMENTS_WEBHOOK_SECRET: 'whsec_of-this-project',
    PAYMENTS_PRICE_PRO_MONTHLY: 'price_pro',
    PAYMENTS_API_URL: await secure({ '/v1/prices/price_pro': keyed('payments') }),
    SHAREDSTORE_REST_URL: await secure({ '/ping': keyed('sharedstore') }),
    SHAREDSTORE_REST_TOKEN: 'token-of-the-shared-store',
    MAILER_API_KEY: 'key-of-the-mailer',
    MAILER_SMTP_URL: `smtp://platform@127.0.0.1:${mail}`,
    MAILER_FROM: 'Course <course@example.com>',
    API_URL: await secure({ '/api/health': [200, health('api')] }),
    AGENT_URL: await secure({ '/api/agent/health': [200, health('agent')] }),
    STORE_URL: 'sqlite:store.sqlite',
    JOB_STORE_URL: 'sqlite:jobs.sqlite',
    NEXT_PUBLIC_ERRORTRACK_DSN: (await secure({})).replace('://', '://key@').concat('/1'),
  }
}

test('without anything configured nothing is asked, and nothing is said to have passed', async () => {
  const { code, stdout, stderr } = await preflight({})
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(/○ skipped \(not configured\): datastore, payments,/)
  expect(stdout).toMatch(/^Live checks {2}0 passed, 15 skipped$/m)
})

test('everything configured and well: every check passes, or says why it was skipped', async () => {
  const cwd = await emptyFolder()
  for (const name of ['store.sqlite', 'jobs.sqlite'])
    await (await openStore({ kind: 'sqlite', file: path.join(cwd, name) })).close()
  const { code, told, report } = await checks({ env: await everything(), cwd })
  expect(told).toEqual([
    ...passed('datastore', ...CONNECTS, 'authorisation', 'published keys'),
    ...passed('payments', ...CONNECTS, 'authorisation'),
    ...passed('sharedstore', ...CONNECTS, 'authorisation'),
    'mail, name resolution: skipped',
    'mail, reachability: passed',
    'mail, certificate: skipped',
    'mail, authorisation: passed',
    ...passed('sender', 'domain', 'SPF', 'DKIM', 'DMARC'),
    ...passed('api', ...CONNECTS, 'health'),
    ...passed('agent', ...CONNECTS, 'health'),
    'store, migrations: passed',
    'jobstore, migrations: passed',
    ...passed('errortrack', ...CONNECTS),
  ])
  expect(report.findings.filter(({ severity }) => severity === 'warning').map(({ id }) => id)).toEqual([
    'token-claims-unchecked',
  ])
  expect(code).toBe(0)
})

test('a refused key is an error that names the variable, and the exit code says that the other side refused', async () => {
  const { code, told, report } = await checks({
    env: await everything({ refuse: ['datastore', 'payments', 'sharedstore', 'mail'] }),
    args: ['--dkim-selector', 's1', '--dkim-selector', 's9'],
  })
  // The selector that was named is the one that is looked for.
  expect(told).toContain('sender, DKIM: warning')
  expect(told.filter((line) => line.endsWith('failed'))).toEqual([
    'datastore, authorisation: failed',
    'payments, authorisation: failed',
    'sharedstore, authorisation: failed',
    'mail, authorisation: failed',
  ])
  const errors = report.findings.filter(({ severity }) => severity === 'error')
  expect(errors.map(({ id, cause }) => `${id}: ${cause}`)).toEqual([
    'live-unauthorised: NEXT_PUBLIC_DATASTORE_ANON_KEY is refused (401).',
    'live-unauthorised: PAYMENTS_SECRET_KEY is refused (401).',
    'live-unauthorised: SHAREDSTORE_REST_TOKEN is refused (401).',
    'live-unauthorised: MAILER_API_KEY is refused.',
  ])
  expect(code).toBe(3)
})

test('the channels for alerts are connected to, and only --send-test sends something', async () => {
  const [hook, second, ping] = await Promise.all([
    serve((_, response) => void response.end()),
    serve((_, response) => void response.writeHead(404).end()),
    serve((_, response) => void response.end()),
  ])
  const env = {
    ALERT_WEBHOOK_URL: `http://127.0.0.1:${hook.port}/canary-path`,
    ALERT_ESCALATION_URL: `http://127.0.0.1:${second.port}/canary-path`,
    HEARTBEAT_PING_URL: `http://127.0.0.1:${ping.port}/canary-path`,
  }
  const quiet = await checks({ env })
  expect(quiet.told).toEqual(
    ['alerts', 'escalation', 'heartbeat'].flatMap((target) => [
      `${target}, name resolution: skipped`,
      `${target}, reachability: passed`,
      `${target}, certificate: skipped`,
      ...(target === 'heartbeat' ? [] : [`${target}, test message: skipped`]),
    ]),
  )
  expect([hook, second, ping].map(({ requests }) => requests.length)).toEqual([0, 0, 0])

  const { code, told, report } = await checks({ env, args: ['--send-test'] })
  expect(told.filter((line) => line.includes('test message'))).toEqual([
    'alerts, test message: passed',
    'escalation, test message: failed',
  ])
  expect(report.findings.find(({ severity }) => severity === 'error')).toMatchObject({
    id: 'live-unhealthy',
    cause: 'The receiver of ALERT_ESCALATION_URL did not take the test message: the webhook answered 404.',
  })
  expect([hook, second, ping].map(({ requests }) => requests.length)).toEqual([1, 1, 0])
  expect(JSON.stringify(report)).not.toContain('canary')
  expect(code).toBe(1)
})

test('one cause gives one error at the line of its variable: what depends on it is skipped, and says on what', async () => {
  const cwd = await folderWith({ 'a.env': '# addresses\nAPI_URL=https://nowhere.invalid\n' })
  const given = { cwd, args: ['--service', 'agent', '--env-file', 'a.env'] }
  const { code, report } = await checks(given)
  expect(report.live.filter(({ target }) => target === 'api')).toMatchObject([
    { check: 'name resolution', state: 'failed', detail: 'does not resolve' },
    ...['reachability', 'certificate', 'health'].map((check) => ({
      check,
      state: 'skipped',
      detail: 'not tried, as name resolution failed',
    })),
  ])
  expect(report).toMatchObject({ ok: false })
  expect(report.findings.filter(({ severity }) => severity === 'error')).toMatchObject([{ id: 'live-name' }])
  expect(code).toBe(3)
  expect((await preflight(given)).stdout).toMatch(/live-name {2}a\.env:2:1/)
})

test('half-configuration is exit code 1 also when something outside fails, and that group is not asked', async () => {
  const { code, report } = await checks({
    env: { API_URL: 'http://nowhere.invalid', SHAREDSTORE_REST_URL: 'https://limits.example' },
  })
  expect(code).toBe(1)
  expect(report.live.find(({ target }) => target === 'sharedstore')).toMatchObject({
    state: 'skipped',
    detail: 'half-configured, so it is off',
  })
})

test('only what the named services reach out to is asked', async () => {
  const { report } = await checks({ args: ['--service', 'agent'] })
  expect(report.live.map(({ target }) => target)).toEqual([
    'api',
    'store',
    'errortrack',
    'alerts',
    'alert-mail',
    'escalation',
  ])
  // A result names only services that were asked about, too.
  expect(new Set(report.live.flatMap(({ services }) => services))).toEqual(new Set(['agent']))
})

test.each([
  ['older than this build', 1, /has schema 1, and this build brings/],
  ['newer than this build', 900, /has schema 900, and this build knows/],
])('reports a store %s without migrating it', async (_, version, detail) => {
  const cwd = await emptyFolder()
  const file = path.join(cwd, 'store.sqlite')
  await (await openStore({ kind: 'sqlite', file })).close()
  const database = new Database(file)
  onTestFinished(() => void database.close())
  database.pragma(`user_version = ${version}`)
  const { code, report } = await checks({ env: { STORE_URL: 'sqlite:store.sqlite' }, cwd })
  expect(report.live.find(({ check }) => check === 'migrations')).toMatchObject({
    state: 'warning',
    detail: expect.stringMatching(detail),
  })
  expect(code).toBe(0)
  expect(database.pragma('user_version', { simple: true })).toBe(version)
})

test('a missing store is skipped and not created; a file of another kind is an error', async () => {
  const cwd = await emptyFolder()
  const env = { STORE_URL: 'sqlite:store.sqlite' }
  expect((await checks({ env, cwd })).told).toEqual(['store, migrations: skipped'])
  const text = 'not a database, but long enough to be taken for one'.repeat(30)
  expect(await checks({ env, cwd: await folderWith({ 'store.sqlite': text }) })).toMatchObject({
    code: 1,
    told: ['store, migrations: failed'],
  })
})

test.skipIf(process.getuid?.() !== 0)(
  'without STORE_URL the store of the data folder is looked at, as the daemon would open it',
  async () => {
    const cwd = await emptyFolder()
    const file = path.join(cwd, 'data', 'platform.sqlite')
    await (await openStore({ kind: 'sqlite', file })).close()
    const given = { cwd, args: ['--data', 'data'] }
    expect(await checks(given)).toMatchObject({ code: 0, told: ['store, migrations: passed'] })
    const journal = path.join(cwd, 'data', 'platform-journal.jsonl')
    await writeFile(journal, '')
    await chown(journal, 65534, 65534)
    const { code, report } = await checks(given)
    expect(report.findings[0]).toMatchObject({
      id: 'live-store',
      present: [],
      cause:
        'The store cannot be used: its journal cannot be written, so a restore would forget who leaves now.',
    })
    expect(code).toBe(1)
  },
)

test('a store that another platform has used fails, as the daemon would refuse it', async () => {
  const cwd = await emptyFolder()
  const file = path.join(cwd, 'data', 'platform.sqlite')
  const store = await openStore({ kind: 'sqlite', file })
  await store.owner.claim('Kiln School')
  await store.close()
  const database = new Database(file)
  onTestFinished(() => void database.close())
  for (const schema of ['', 'PRAGMA user_version = 20']) {
    database.exec(schema)
    const { code, report } = await checks({ cwd, args: ['--data', 'data'] })
    expect(report.findings[0]).toMatchObject({
      id: 'store-of-another',
      cause: expect.stringContaining('belongs to the platform "Kiln School"'),
    })
    expect(code).toBe(1)
  }
})

test('the webhook of the mail provider passes where the daemon serves it, and nowhere else', async () => {
  const platform = openPlatform({ env: {} })
  onTestFinished(() => platform.close())
  const ours = await serve(async (request, response) => {
    const answer = await platform.web.fetch(new Request(new URL(request.url ?? '', 'http://localhost')))
    response.writeHead(answer.status).end(await answer.text())
  })
  const others = await serve(answers({}))
  const env = {
    MAILER_FEEDBACK_PROVIDER: 'postmark',
    MAILER_FEEDBACK_SECRET: 'of-the-webhook-and-long-enough',
  }
  const at = async ({ port }: { readonly port: number }) =>
    (await checks({ env: { ...env, NEXT_PUBLIC_SITE_URL: `http://127.0.0.1:${port}` } })).told
  expect(await at(ours)).toContain('site, webhook: passed')
  expect(await at(others)).toContain('site, webhook: failed')
})

test('a server that never answers uses up its own time limit and delays no other result', async () => {
  const silent = await serve(() => {})
  const well = await serve(answers({ '/api/agent/health': [200, health('agent', 'degraded')] }))
  const { code, told } = await checks({
    env: { API_URL: `http://127.0.0.1:${silent.port}`, AGENT_URL: `http://127.0.0.1:${well.port}` },
    args: ['--timeout', '300ms'],
  })
  expect(told).toEqual([
    'api, name resolution: skipped',
    'api, reachability: failed',
    'api, certificate: skipped',
    'api, health: skipped',
    'agent, name resolution: skipped',
    'agent, reachability: passed',
    'agent, certificate: skipped',
    'agent, health: warning',
  ])
  expect(code).toBe(3)
})

test('another program’s health is read in its own format', async () => {
  const platform = resolvePlatform(
    {
      preset: 'base',
      services: { web: {}, bookings: { address: 'BOOKINGS_URL', health: '/healthz', format: 'spring' } },
      groups: {
        bookings: { unlocks: 'bookings', absent: 'none', variables: { BOOKINGS_URL: { kind: 'url' } } },
      },
    },
    { folder: '/' },
  )
  const states = await Promise.all(
    ['UP', 'UNKNOWN', 'DOWN'].map(async (status) => {
      const { port } = await serve(answers({ '/healthz': [status === 'DOWN' ? 503 : 200, { status }] }))
      const { told } = await checks({ platform, env: { BOOKINGS_URL: `http://127.0.0.1:${port}` } })
      return told.at(-1)
    }),
  )
  expect(states).toEqual(['passed', 'warning', 'failed'].map((state) => `bookings, health: ${state}`))
})

test('a probe that looks where a variable says is asked too', async () => {
  const { port } = new URL(await serveTcp((socket) => socket.once('data', () => socket.end('S'))))
  const names = ['REPAIRS_URL', 'STOCK_URL', 'SPARE_URL', 'UNSET_URL']
  const probe = (postgres: string, optional = false) => ({ service: 'web', postgres, optional })
  const platform = resolvePlatform(
    {
      preset: 'base',
      without: ['payments'],
      groups: {
        shop: {
          ...{ unlocks: 'the shop', absent: 'none' },
          variables: Object.fromEntries(names.map((name) => [name, { kind: 'postgres-url' }])),
        },
      },
      probes: {
        repairs: probe('REPAIRS_URL'),
        stock: probe('STOCK_URL'),
        spare: probe('SPARE_URL', true),
        unset: probe('UNSET_URL'),
        // Their addresses stand in the definition.
        kiln: { service: 'web', tcp: '127.0.0.1:1' },
        door: { service: 'web', tcp: `127.0.0.1:${port}` },
        gate: { service: 'web', group: 'shop', tcp: '127.0.0.1:1' },
      },
    },
    { folder: '/' },
  )
  const [there, gone] = [`postgres://shop@127.0.0.1:${port}/shop`, 'postgres://shop:hunter2@127.0.0.1:1/shop']
  const env = { REPAIRS_URL: there, STOCK_URL: gone, SPARE_URL: gone }
  const { code, report, told } = await checks({ platform, env })
  expect(told.filter((line) => /^(?:repairs|stock|spare|kiln|door|gate)/.test(line))).toEqual([
    'repairs, reachability: passed',
    'stock, reachability: failed',
    'spare, reachability: warning',
    'kiln, reachability: failed',
    'door, reachability: passed',
    'gate, reachability: failed',
  ])
  expect(report.live.map(({ target }) => target)).toContain('unset')
  expect(report.live.map(({ target }) => target)).not.toContain('payments')
  expect(report.findings.filter(({ severity }) => severity !== 'notice')).toMatchObject([
    { severity: 'error', cause: 'STOCK_URL cannot be reached: the connection is refused.' },
    { cause: 'The probe kiln cannot be reached: the connection is refused.', present: [] },
    { cause: 'The probe gate cannot be reached: the connection is refused.' },
    { severity: 'warning', cause: 'SPARE_URL cannot be reached: the connection is refused.' },
  ])
  expect(JSON.stringify(report)).not.toContain('hunter2')
  expect(code).toBe(3)
})

test('one silent name server is one error with the name of all that it keeps, also beside what is optional', async () => {
  const probes = {
    spare: { service: 'web', dns: 'spare.example', optional: true },
    kiln: { service: 'web', tcp: 'kiln.example:5000' },
  }
  const platform = resolvePlatform({ preset: 'base', probes }, { folder: '/' })
  const lookup = () => Promise.reject(Object.assign(new Error(), { code: 'EAI_AGAIN' }))
  const network = openNetwork({ lookup, ca: signed.ca, nameServers: [await nameServer({})] })
  const { code, report } = await checks({ platform, env: {}, network })
  expect(report.findings.filter(({ severity }) => severity !== 'notice')).toMatchObject([
    {
      severity: 'error',
      cause: 'The probe spare, the probe kiln cannot be looked up: no name server answers.',
    },
  ])
  expect(code).toBe(3)
})

test('every format for people and CI tells what passed, failed and was skipped apart, and SARIF has what failed', async () => {
  const env = {
    API_URL: 'http://nowhere.invalid',
    MAILER_API_KEY: 'key-of-the-mailer',
    MAILER_FROM: 'a@example.com',
    MAILER_SMTP_URL: 'smtp://127.0.0.1:1',
  }
  const out = async (format: string) => (await preflight({ env, args: ['--format', format] })).stdout
  expect(await out('github')).toMatch(
    /::error title=live-name::.*\n[\s\S]*::notice title=live checks::4 passed, 2 failed, \d+ skipped\n$/,
  )
  const junit = await out('junit')
  expect(junit).toMatch(
    /<testcase classname="preflight\.live\.sender" name="SPF" time="0\.\d{4}"><\/testcase>/,
  )
  expect(junit).toMatch(
    /<testcase classname="preflight\.live\.api" name="health" time="0\.0000"><skipped>not tried/,
  )
  expect(junit.match(/<skipped>/g)).toHaveLength(Number(/<testsuite .*skipped="(\d+)"/.exec(junit)?.[1]))
  // Code scanning would show what passed as an alert.
  const { runs } = JSON.parse(await out('sarif')) as { runs: { results: { ruleId: string }[] }[] }
  const ids = runs[0]?.results.map(({ ruleId }) => ruleId)
  expect(ids).toContain('live-name')
  expect(ids?.filter((id) => !id.startsWith('live-'))).toEqual([])
})

test('progress goes to a terminal on standard error and nowhere else', async () => {
  let written = ''
  const chained = Object.fromEntries(
    ['clearLine', 'cursorTo', 'moveCursor', 'on', 'once', 'off', 'removeListener'].map((name) => [
      name,
      () => true,
    ]),
  )
  const write = (text: string) => (written += text)
  const stderr = { isTTY: true, columns: 80, ...chained, write }
  const { stdout } = await preflight({ env: { API_URL: 'http://nowhere.invalid' }, stderr })
  expect(written).toMatch(/live checks/)
  expect(stdout).toMatch(/^Platform/)
})

test('the key goes to the address it belongs to, and to no other', async () => {
  const certificate = await signed.issue({})
  const server = await serve(answers({ '/ping': [200] }), certificate)
  const { stdout, stderr } = await preflight({
    env: {
      SHAREDSTORE_REST_URL: `https://service.example:${server.port}`,
      SHAREDSTORE_REST_TOKEN: 'canary-token',
    },
  })
  expect(server.requests.map(({ url, headers }) => [url, headers.authorization])).toEqual([
    ['/', undefined],
    ['/ping', 'Bearer canary-token'],
  ])
  expect(stdout + stderr).not.toContain('canary')
})

test('an interrupted preflight says that it was, and does not pass', async () => {
  const silent = await serve(() => {})
  const interrupt = new AbortController()
  const env = { API_URL: `http://127.0.0.1:${silent.port}` }
  const ended = preflight({ env, signal: interrupt.signal })
  await expect.poll(() => silent.requests.length).toBe(1)
  interrupt.abort()
  expect(await ended).toEqual({ code: 1, stdout: '', stderr: expect.stringMatching(/interrupted/) })
})

test('the site’s own certificate is looked at; where nothing answers yet, that is a warning', async () => {
  const { port } = await serve(answers({}), await signed.issue({ from: -80, to: -2.5 }))
  const expired = await checks({ env: { NEXT_PUBLIC_SITE_URL: `https://service.example:${port}` } })
  expect(expired.code).toBe(1)
  expect(expired.report.findings[0]).toMatchObject({
    id: 'live-certificate',
    cause: 'The certificate behind NEXT_PUBLIC_SITE_URL expired 3 days ago.',
  })
  const silent = await checks({ env: { NEXT_PUBLIC_SITE_URL: 'https://service.example:1' } })
  expect(silent.told).toEqual(['site, name resolution: passed', 'site, certificate: warning'])
  expect(silent.code).toBe(0)
})

test.each([
  ['NEXT_PUBLIC_SITE_URL', {}],
  ['NEXT_PUBLIC_API_URL', {}],
  ['SHAREDSTORE_REST_URL', { SHAREDSTORE_REST_TOKEN: 'token-of-the-shared-store' }],
  ['MAILER_API_URL', { MAILER_API_KEY: 'key-of-the-mailer', MAILER_FROM: 'course@example.com' }],
])('plain http in %s does not pass in production, and no key is sent there', async (name, more) => {
  const server = await serve(answers({ '/': [200], '/api/health': [200, health('api')] }))
  const env = { [name]: `http://service.example:${server.port}`, ...more }
  const production = await checks({ env: { ...env, DEPLOY_ENVIRONMENT: 'production' } })
  expect(production.code).toBe(1)
  expect(production.report.findings.filter(({ severity }) => severity === 'error')).toMatchObject([
    { id: 'live-plain-text', cause: expect.stringContaining(name) },
  ])
  expect(server.requests.filter(({ headers }) => headers.authorization !== undefined)).toEqual([])
  const staging = await checks({ env: { ...env, DEPLOY_ENVIRONMENT: 'staging' } })
  expect(staging.report.findings.map(({ id }) => id)).not.toContain('live-plain-text')
})
