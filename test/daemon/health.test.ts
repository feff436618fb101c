import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { Socket } from 'node:net'
import path from 'node:path'
import Database from 'better-sqlite3'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { expect, onTestFinished, test, vi } from 'vitest'
import { emptyFolder } from '../support/folder.ts'
import { newStoreUrl, opened } from '../support/opened.ts'
import { healthBody, serve, serveTcp } from '../support/servers.ts'
import { addressOf, openTestStore, postgresServer } from '../support/stores.ts'

const TOKEN = 'a-deep-token-of-thirty-two-bytes-and'
const PATHS = { web: '/api/health', api: '/api/health', agent: '/api/agent/health' } as const
type Service = keyof typeof PATHS

interface Answer {
  readonly status: number
  readonly text: string
  readonly body: {
    readonly state: string
    readonly probes: Record<string, { state: string; checked: boolean; reason?: string }>
  }
}

async function platform(env: Record<string, string>) {
  const { platform, lines, ...it } = opened({ env: { STORE_URL: await newStoreUrl(), ...env } })
  const ask = async (service: Service, query = '', headers: Record<string, string> = {}): Promise<Answer> => {
    const response = await it.ask(`${PATHS[service]}${query}`, { service, headers })
    const text = await response.text()
    return { status: response.status, text, body: JSON.parse(text) as Answer['body'] }
  }
  return { ...it, opened: platform, ask, lines }
}

const bearer = { Authorization: `Bearer ${TOKEN}` }

/** Every address that this process connects to from here on, as host:port. */
function connections(): string[] {
  const targets: string[] = []
  const real = Socket.prototype.connect
  const spy = vi.spyOn(Socket.prototype, 'connect').mockImplementation(function (
    this: Socket,
    ...args: unknown[]
  ) {
    const [first] = (Array.isArray(args[0]) ? args[0] : args) as [
      { host?: string; port?: number } | undefined,
    ]
    targets.push(`${first?.host}:${first?.port}`)
    return Reflect.apply(real, this, args) as Socket
  })
  onTestFinished(() => spy.mockRestore())
  return targets
}

/** The platform's neighbours on loopback; the names of those that were asked are kept. */
async function neighbours() {
  const asked: string[] = []
  const start = (name: string, body = '{}') =>
    serve((_, response) => {
      asked.push(name)
      response.end(body)
    })
  const env = {
    NEXT_PUBLIC_DATASTORE_URL: await start('datastore'),
    NEXT_PUBLIC_DATASTORE_ANON_KEY: 'anon-key-of-the-data-store',
    PAYMENTS_SECRET_KEY: 'sk_test_0123456789abcdef',
    PAYMENTS_WEBHOOK_SECRET: 'whsec_0123456789abcdef',
    PAYMENTS_PRICE_PRO_MONTHLY: 'price_0123456789',
    PAYMENTS_API_URL: await start('payments'),
    API_URL: await start('api', healthBody({ service: 'api' })),
    AGENT_URL: await start('agent', healthBody({ service: 'agent' })),
    CLOUDMODEL_API_ENDPOINT: await start('model'),
    CLOUDMODEL_API_KEY: 'cloud-model-key-0123456789',
    CLOUDMODEL_API_DEPLOYMENT: 'tutor',
    MODEL_A_API_KEY: 'model-key-a-0123456789',
    MODEL_B_API_KEY: 'model-key-b-0123456789',
    MODEL_C_API_KEY: 'model-key-c-0123456789',
    MODEL_A_MODEL: 'large',
  }
  return { env, asked }
}

test('deep asks what is configured once each, and says which were live', async () => {
  const { env, asked } = await neighbours()
  const { ask } = await platform(env)
  const { status, body } = await ask('web', '?deep=1')
  expect(status).toBe(200)
  expect(asked.sort()).toEqual(['agent', 'api', 'datastore', 'payments'])
  const live = Object.entries(body.probes).filter(([, { checked }]) => checked)
  expect(live.map(([name]) => name).sort()).toEqual(['agent', 'api', 'datastore', 'payments', 'store'])
})

test('a thousand requests at once ask each dependency twice at most', async () => {
  const { env, asked } = await neighbours()
  const { opened } = await platform(env)
  const answers = await Promise.all(Array.from({ length: 1000 }, () => opened.health('web', { deep: true })))
  expect(new Set(answers.map(({ state }) => state))).toEqual(new Set(['ok']))
  for (const name of ['datastore', 'payments', 'api', 'agent'])
    expect(asked.filter((one) => one === name).length, name).toBe(2)
})

test('a thousand requests in one turn write and read the store twice at most', async () => {
  const store = await openTestStore(await addressOf('sqlite'))
  let pings = 0
  const ping = () => {
    pings += 1
    return store.ping()
  }
  const it = opened({ store: { ...store, ping } })
  // A callback each, as a server reads its sockets: what one of them does without waiting is over before the next.
  const ask = () =>
    new Promise<Response>((resolve) => setImmediate(() => resolve(it.ask('/api/health', { service: 'api' }))))
  const answers = await Promise.all(Array.from({ length: 1000 }, ask))
  expect(answers.every(({ status }) => status === 200)).toBe(true)
  expect(pings).toBeLessThanOrEqual(2)
  const before = pings
  await ask()
  expect(pings, 'a later request has a run of its own').toBe(before + 1)
})

test('deep without the token is 401, whatever is given in its place, and nothing live is run', async () => {
  const { env, asked } = await neighbours()
  const { ask } = await platform({ ...env, HEALTH_DEEP_TOKEN: TOKEN })
  const targets = connections()
  const wrong: Record<string, string>[] = [
    {},
    { Authorization: `Bearer ${TOKEN.replace('a', 'b')}` },
    { Authorization: `Bearer ${TOKEN.slice(0, -1)}` },
    { Authorization: `Bearer ${TOKEN}x` },
    { Authorization: `Basic ${TOKEN}` },
    { 'X-Health-Token': TOKEN },
  ]
  for (const headers of wrong)
    expect(await ask('web', '?deep=1', headers)).toMatchObject({
      status: 401,
      body: { code: 'unauthenticated' },
    })
  expect((await ask('web', '?deep=0')).status, 'shallow, and so open to all').toBe(200)
  expect({ asked, targets }).toEqual({ asked: [], targets: [] })
  expect((await ask('web', '?deep=1', bearer)).status).toBe(200)
  expect(asked).toHaveLength(4)
})

test('health of any service and depth never calls a model, whatever is configured', async () => {
  const { env, asked } = await neighbours()
  const { ask, opened } = await platform(env)
  const targets = connections()
  for (const service of ['web', 'api', 'agent'] as const)
    for (const query of ['', '?deep=1']) {
      const { body } = await ask(service, query)
      const models = Object.entries(body.probes).filter(([name]) => name.includes('model'))
      for (const [name, probe] of models) expect(probe, name).toEqual({ state: 'ok', checked: false })
      await opened.health(service, { deep: query !== '' })
    }
  expect(asked).not.toContain('model')
  const known = ['NEXT_PUBLIC_DATASTORE_URL', 'PAYMENTS_API_URL', 'API_URL', 'AGENT_URL'] as const
  expect(targets.length).toBeGreaterThan(0)
  expect(targets.filter((target) => !known.some((name) => env[name].endsWith(target)))).toEqual([])
})

test('no answer and no log line shows a host, an address, a credential or an internal text', async () => {
  const silent = await serveTcp((socket) => socket.resetAndDestroy())
  const folder = await emptyFolder()
  mkdirSync(path.join(folder, 'canary-jobs.sqlite'))
  writeFileSync(path.join(folder, 'canary-index.json'), '{ "canary"')
  const { ask, page, lines } = await platform({
    NEXT_PUBLIC_DATASTORE_URL: 'https://canary-data.invalid',
    NEXT_PUBLIC_DATASTORE_ANON_KEY: 'canary-anon-key',
    PAYMENTS_SECRET_KEY: 'sk_test_canary0123456789',
    PAYMENTS_WEBHOOK_SECRET: 'whsec_canary0123456789',
    PAYMENTS_PRICE_PRO_MONTHLY: 'price_canary0123456789',
    PAYMENTS_API_URL: silent,
    API_URL: 'http://127.0.0.1:1',
    AGENT_URL: await serve((_, response) => response.writeHead(500).end('canary: stack trace of the agent')),
    JOB_STORE_URL: `sqlite:${path.join(folder, 'canary-jobs.sqlite')}`,
    COURSE_INDEX_PATH: path.join(folder, 'canary-index.json'),
    MAILER_API_KEY: 'canary-mail-key',
    MAILER_SMTP_URL: 'smtp://canary@127.0.0.1:1',
    MAILER_FROM: 'Canary <canary@canary.example>',
    CLOUDB_ACCESS_KEY_ID: 'canaryaccess',
    CLOUDB_SECRET_ACCESS_KEY: 'canary-secret',
    CLOUDB_REGION: 'canary-1',
    HEALTH_DEEP_TOKEN: TOKEN,
  })
  const texts = [
    await ask('web', '?deep=1', bearer),
    await ask('web', '?deep=1', { ...bearer, Accept: 'application/health+json' }),
    await ask('api'),
    await ask('agent'),
    await ask('web', '?deep=1', { Authorization: 'Bearer canary' }),
  ].map(({ text }) => text)
  const failing = [...texts.join().matchAll(/"(\w+)":\{"state":"failing"/g)].map(([, name]) => name)
  expect(failing.sort().join()).toBe('agent,api,api,course_index,datastore,job_store,mail,payments')
  const pages = await Promise.all(['/', '/metrics', '/api/status'].map((target) => page(target)))
  const all = [...texts, ...pages, JSON.stringify(lines)].join('\n')
  expect(all).not.toMatch(/canary|127\.0\.0\.1|\.invalid|sqlite_|\.sqlite|getaddrinfo|node:|\/tmp\//i)
  expect(all).not.toMatch(/\bE[A-Z]{5,}\b/)
  expect(all).not.toContain(TOKEN)
})

test('writes and reads the job store, separate from the main store if configured', async () => {
  const file = path.join(await emptyFolder(), 'jobs.sqlite')
  const { ask } = await platform({ JOB_STORE_URL: `sqlite:${file}` })
  expect((await ask('api')).body.probes.job_store).toMatchObject({ state: 'ok', checked: true })
  const database = new Database(file)
  onTestFinished(() => void database.close())
  const mark = () => database.prepare(`SELECT value FROM meta WHERE name = 'ping'`).pluck().get()
  const before = mark()
  await ask('api')
  expect(mark()).not.toBe(before)
  database.exec('DROP TABLE meta')
  expect(await ask('api')).toMatchObject({
    status: 503,
    body: { probes: { job_store: { state: 'failing', checked: true } } },
  })
})

test('a job store in PostgreSQL is written and read, beside a store in a file', async () => {
  const { createDatabase, query } = await postgresServer()
  const JOB_STORE_URL = await createDatabase()
  const { ask } = await platform({ JOB_STORE_URL })
  const state = async () => (await ask('api')).body.probes.job_store
  const mark = async () => {
    await expect.poll(state, { timeout: 10_000 }).toMatchObject({ state: 'ok', checked: true })
    return (await query(JOB_STORE_URL, `SELECT value FROM platformctl.meta WHERE name = 'ping'`)).rows[0]
      ?.value
  }
  const before = await mark()
  expect([typeof before, (await mark()) === before]).toEqual(['string', false])
})

test('a job store that cannot be opened fails, and is retried', async () => {
  const folder = await emptyFolder()
  writeFileSync(path.join(folder, 'in-the-way'), '')
  const { ask } = await platform({
    JOB_STORE_URL: `sqlite:${path.join(folder, 'in-the-way', 'jobs.sqlite')}`,
  })
  const { body } = await ask('api')
  expect(body.probes.job_store).toMatchObject({
    state: 'failing',
    reason: 'its file cannot be written',
  })
  expect((await ask('api')).status).toBe(503)
})

const CLOUDB = {
  CLOUDB_ACCESS_KEY_ID: 'AKIA0123456789ABCDEF',
  CLOUDB_SECRET_ACCESS_KEY: 'secret-0123456789',
  CLOUDB_REGION: 'eu-west-1',
}
const skipped = { state: 'skipped', checked: false, reason: 'not configured' }
const half = { state: 'degraded', checked: false, reason: 'half-configured, so it is off' }

test.each<[env: Record<string, string>, probes: object]>([
  [{}, { hardware_a: skipped, cloudb: skipped, cloudqpu: skipped }],
  [{ HARDWARE_A_TOKEN: 'token-0123456789' }, { hardware_a: half, cloudb: skipped }],
  [CLOUDB, { cloudb: { ...half, reason: 'its SDK is not installed' }, hardware_a: skipped }],
  [
    { CLOUDB_REGION: 'eu-west-1', HARDWARE_A_TOKEN: 't', HARDWARE_A_INSTANCE: 'i' },
    { cloudb: half, hardware_a: { state: 'ok', checked: false } },
  ],
  [{ CLOUDQPU_LOCATION: 'westeurope' }, { cloudqpu: half, cloudb: skipped }],
])('readiness of the providers with %j comes from configuration alone', async (env, probes) => {
  const { ask } = await platform(env)
  const targets = connections()
  expect((await ask('api')).body.probes).toMatchObject(probes)
  expect(targets).toEqual([])
})

test('a model with a missing key is half-configured, without affecting the others', async () => {
  const { ask } = await platform({ MODEL_A_MODEL: 'large', MODEL_B_API_KEY: 'model-key-b-0123456789' })
  expect((await ask('agent')).body.probes).toMatchObject({
    model_a: half,
    model_b: { state: 'ok' },
    model_c: skipped,
    cloudmodel: skipped,
  })
  const key = 'model-key-b-0123456789'
  const cloud = { CLOUDMODEL_API_ENDPOINT: 'https://models.example.com', CLOUDMODEL_API_DEPLOYMENT: 'tutor' }
  for (const env of [{ MODEL_B_API_KEY: key }, { ...cloud, CLOUDMODEL_API_KEY: key }]) {
    const one = await platform(env)
    expect((await one.ask('web')).body.probes.models).toEqual({ state: 'ok', checked: false })
  }
})

const INDEX = '{"version":1,"lessons":[{"day":1,"title":"A","topics":[]}]}'

test('a course index is read for each question: one that is lost, broken or mended is noticed', async () => {
  const file = path.join(await emptyFolder(), 'index.json')
  const { ask } = await platform({ COURSE_INDEX_PATH: file })
  const none = '{"version":1,"lessons":[]}'
  const half = INDEX.replace('}]', '},{"day":2,"title":"B"}]')
  const [cut, newer] = ['{"version":1,', INDEX.replace('1', '2')]
  for (const text of [undefined, INDEX, cut, INDEX, newer, none, half, undefined]) {
    rmSync(file, { force: true })
    if (text !== undefined) writeFileSync(file, text)
    const state = text === INDEX ? 'ok' : 'failing'
    expect((await ask('agent')).body.probes.course_index, text).toMatchObject({ state, checked: true })
  }
})

test.skipIf(process.platform === 'win32')(
  'a course index whose reading hangs holds one thread, however often health is asked, and is read again afterwards',
  async () => {
    const file = path.join(await emptyFolder(), 'index.json')
    // Opening a pipe that nobody writes hangs as a file system does whose server is gone.
    execFileSync('mkfifo', [file])
    const { ask } = await platform({ COURSE_INDEX_PATH: file })
    const { body } = await ask('agent')
    expect(body.probes.course_index).toMatchObject({ state: 'failing', reason: 'no answer in time' })
    const silent = 'the configured index cannot be read: its file system does not answer'
    for (let polls = 0; polls < 5; polls += 1)
      expect((await ask('agent')).body.probes.course_index).toMatchObject({
        state: 'failing',
        reason: silent,
      })
    // Every thread but one is free: more reads than the pool has threads come through.
    await Promise.all(Array.from({ length: 8 }, () => readFile(new URL(import.meta.url))))
    await writeFile(file, INDEX)
    rmSync(file)
    writeFileSync(file, INDEX)
    await expect
      .poll(async () => (await ask('agent')).body.probes.course_index)
      .toMatchObject({ state: 'ok' })
  },
)

test('names the step at which a dependency hangs, and keeps the other results', async () => {
  const { env } = await neighbours()
  const { ask } = await platform({ ...env, API_URL: await serveTcp(() => {}) })
  const { status, body } = await ask('web', '?deep=1')
  expect(status).toBe(503)
  expect(body.probes.api).toMatchObject({
    state: 'failing',
    reason: 'no health to be had: it accepted the connection and did not answer in time',
  })
  expect(body.probes).toMatchObject({
    agent: { state: 'ok' },
    datastore: { state: 'ok' },
    payments: { state: 'ok' },
  })
})

test('a service whose address is not set is not probed, so one service alone is a healthy platform', async () => {
  const { ask } = await platform({})
  const { status, body } = await ask('web', '?deep=1')
  expect([status, body.state]).toEqual([200, 'ok'])
  for (const neighbour of ['api', 'agent'])
    expect(body.probes[neighbour]).toMatchObject({
      state: 'skipped',
      checked: false,
      reason: 'its address is not set',
    })
})

test('keys of tokens that cannot be had degrade the data store and are logged once, until a token finds them again', async () => {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  let answer = '<h1>Sign in to this network</h1>'
  const keys = await serve((_request, response) => void response.end(answer))
  const { post, ask, lines } = await platform({
    NEXT_PUBLIC_DATASTORE_URL: 'https://data.example.com',
    NEXT_PUBLIC_DATASTORE_ANON_KEY: 'anon-key-of-the-datastore',
    DATASTORE_JWKS_URL: keys,
  })
  const token = await new SignJWT({ sub: 'ada', email: 'ada@example.com' })
    .setProtectedHeader({ alg: 'ES256', kid: 'k' })
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(privateKey)
  const mail = { template: 'magic-link', inputs: { loginRequestId: 'l' } }
  const send = async () => (await post('/api/email', mail, { Authorization: `Bearer ${token}` })).status
  const datastore = async () => (await ask('web')).body.probes.datastore
  const said = () => lines.flatMap(({ event }) => (event.startsWith('identity_') ? event : []))
  expect(await datastore()).toMatchObject({ state: 'ok' })
  expect([await send(), await send()]).toEqual([503, 503])
  expect(await datastore()).toMatchObject({
    state: 'degraded',
    reason: 'the keys that tokens are verified with cannot be had',
  })
  expect(said()).toEqual(['identity_keys_missing'])
  answer = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'k', alg: 'ES256', use: 'sig' }] })
  expect(await send()).not.toBe(503)
  expect(await datastore()).toMatchObject({ state: 'ok' })
  expect(said()).toEqual(['identity_keys_missing', 'identity_keys_back'])
})
