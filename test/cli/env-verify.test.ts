import { rm, utimes, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openFingerprints } from '../../src/core/fingerprints.ts'
import { nodeListener } from '../../src/daemon/node-listener.ts'
import { handlersOf, openPlatform } from '../../src/daemon/platform.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { folderWith } from '../support/folder.ts'
import { run as runIn } from '../support/run.ts'
import { serve } from '../support/servers.ts'

const TOKEN = 'a-deep-token-of-thirty-two-bytes-and'
const NONCE = '00112233445566778899aabbccddeeff'
const FILE = { BUILD_STAMP: 'first', LOG_LEVEL: 'warn' }
const SECRETS = { ...FILE, EMAIL_DISPATCH_SECRET: 'a-dispatch-secret-of-thirty-two-b' }
const ENV = { ...FILE, HEALTH_DEEP_TOKEN: TOKEN }

/** A secret costs both sides a slow fingerprint: the token is as if each daemon made its own. */
const SOURCES: Readonly<Record<string, 'file' | 'default'>> = {
  LOG_LEVEL: 'file',
  API_URL: 'default',
  HEALTH_DEEP_TOKEN: 'default',
}

function opened(env: Record<string, string>, platform = learning, files: string[] = [], sources = SOURCES) {
  const it = openPlatform({
    env,
    platform,
    sources: { replica: 'one', files, sourceOf: (name) => sources[name] ?? 'environment' },
  })
  onTestFinished(() => it.close())
  const { web, api } = handlersOf(it)
  if (!web) throw new Error('the platform has no web service')
  return {
    web,
    api,
    ask: async (token: string | undefined, query = `?nonce=${NONCE}`) => {
      const response = await web.fetch(
        new Request(`http://any.example/api/configuration${query}`, {
          headers: token === undefined ? {} : { Authorization: `Bearer ${token}` },
        }),
      )
      const text = await response.text()
      const { variables } = JSON.parse(text) as {
        variables?: { name: string; source: string; fingerprint?: string }[]
      }
      return { status: response.status, text, response, variables: variables ?? [] }
    },
  }
}

const running = async (
  env: Record<string, string>,
  ...more: [typeof learning?, string[]?, typeof SOURCES?]
) => serve(nodeListener(opened(env, ...more).web))

async function verify(
  file: Record<string, string>,
  args: readonly string[],
  ...more: [typeof learning?, AbortSignal?]
) {
  return run(file, ['env', 'verify', '--env-file', '.env', ...args], ...more)
}

async function run(
  file: Record<string, string>,
  args: readonly string[],
  platform = learning,
  signal = new AbortController().signal,
) {
  const lines = Object.entries(file).map(([name, value]) => `${name}=${value}\n`)
  const cwd = await folderWith({ '.env': lines.join(''), secret: SECRETS.EMAIL_DISPATCH_SECRET })
  return runIn(args, { cwd, platform, signal, env: { HEALTH_DEEP_TOKEN: TOKEN } })
}

test('one variable that differs, is missing or is extra fails, unless it may differ between replicas', async () => {
  const [url, withSecret] = [await running(ENV), await running({ ...ENV, ...SECRETS })]
  for (const [state, file, code, asked = url] of [
    // Agent alone reads the index.
    [
      'same',
      { ...FILE, EMAIL_DISPATCH_SECRET_FILE: 'secret', COURSE_INDEX_PATH: './index.json' },
      0,
      withSecret,
    ],
    ['missing', { ...FILE, RATE_LIMIT_PER_MINUTE: '9' }, 1],
    ['extra', { ...FILE, LOG_LEVEL: '' }, 1],
    ['differs', { ...FILE, BUILD_STAMP: 'second' }, 0],
  ] as const) {
    const found = await verify(file, ['--url', `web=${asked}`, '--format', 'json'])
    expect([state, found.code]).toEqual([state, code])
    const { variables } = JSON.parse(found.stdout).replicas[0]
    expect(variables.map((one: { state: string }) => one.state)).toContain(state)
  }
  // One that was not reached is not the same, and hides no difference of another.
  for (const [file, code] of [
    [FILE, 3],
    [{ ...FILE, LOG_LEVEL: 'error' }, 1],
  ] as const)
    expect((await verify(file, ['--url', `web=${url},http://127.0.0.1:1`])).code).toBe(code)
})

test('each service answers for the variables that it reads, also below a path', async () => {
  const { web, api = web, ask } = opened({ ...ENV, HARDWARE_A_INSTANCE: 'hub/a/b' })
  expect((await ask(TOKEN)).text).not.toContain('HARDWARE')
  const answer = nodeListener(api)
  const url = await serve((request, response) => {
    const [, rest] = /^\/base(\/.*)/.exec(request.url ?? '') ?? []
    request.url = rest ?? '/elsewhere'
    answer(request, response)
  })
  const file = { ...FILE, HARDWARE_A_INSTANCE: 'hub/a/c' }
  expect(await verify(file, ['--url', `api=${url}/base/`])).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^ {2}differs {2}HARDWARE_A_INSTANCE /m),
  })
  expect(await verify(file, ['--url', `web=${url}/base`])).toMatchObject({
    code: 3,
    stdout: expect.stringContaining('another service of the platform answers there'),
  })
})

test('a service that runs the file is the same, and each kind of difference is named without a value', async () => {
  const url = `web=${await running({ ...ENV, ...SECRETS, MAILER_RATE: '5' })}`
  // A variable that only another service reads is nothing that web lacks.
  const whole = { ...SECRETS, MAILER_RATE: '5', COURSE_INDEX_PATH: './index.json' }
  expect(await verify(whole, ['--url', url])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^same {2}web {2}http:\S+ {2}(\d+) of \1 variables the same {2}running since \S+Z {2}build first\n$/,
    ),
    stderr: '',
  })
  const far = ['--url', 'web=https://host.invalid,http://host.invalid', '--url', 'api=http://host.invalid']
  expect(await verify(SECRETS, [...far, '--timeout', '1ms'])).toMatchObject({
    code: 3,
    stderr: expect.stringMatching(/unencrypted to web: .+\n.+unencrypted to api: /),
  })
  const file = {
    ...SECRETS,
    LOG_LEVEL: 'error',
    RATE_LIMIT_PER_MINUTE: '987654',
    BUILD_STAMP: 'second',
    OTHERS: 'x',
    BLANK: '',
  }
  const shown = (format: string) => verify(file, ['--url', url, '--format', format])
  const [json, text, github, sarif] = await Promise.all([
    shown('json'),
    shown('text'),
    shown('github'),
    shown('sarif'),
  ])
  expect(json.code).toBe(1)
  expect(JSON.parse(json.stdout)).toMatchObject({
    same: false,
    notCompared: 1,
    replicas: [
      {
        service: 'web',
        state: 'differs',
        build: 'first',
        definition: 'same',
        variables: expect.arrayContaining([
          { name: 'EMAIL_DISPATCH_SECRET', state: 'same', source: 'environment', perReplica: false },
          { name: 'LOG_LEVEL', state: 'differs', source: 'file', perReplica: false },
          { name: 'RATE_LIMIT_PER_MINUTE', state: 'missing', source: 'unset', perReplica: false },
          { name: 'MAILER_RATE', state: 'extra', source: 'environment', perReplica: false },
          { name: 'BUILD_STAMP', state: 'differs', source: 'environment', perReplica: true },
        ]),
      },
    ],
  })
  expect(text.stdout).toMatch(/^ {2}differs {2}LOG_LEVEL .*\n(?:.*\n)* {2}missing {2}RATE_LIMIT_PER_MINUTE /m)
  expect(github.stdout).toMatch(/::error file=.env,line=2,col=1,title=configuration-differs::LOG_LEVEL: /)
  expect(github.stdout).toMatch(/::warning .*BUILD_STAMP/)
  expect(JSON.parse(sarif.stdout)).toMatchObject({ runs: [{ results: { length: 4 } }] })
  for (const { stdout, stderr } of [json, text, github, sarif])
    for (const value of ['warn', 'second', '987654', SECRETS.EMAIL_DISPATCH_SECRET, TOKEN])
      expect(`${stdout.replaceAll('::warning', '').replaceAll('"warning"', '')}${stderr}`).not.toContain(
        value,
      )
})

test('two fingerprints cannot be compared: of two names, of a secret and another value, or of two calls', async () => {
  const fingerprint = await openFingerprints(TOKEN, NONCE)
  const made = [true, false].flatMap((secret) => ['A', 'B'].map((name) => fingerprint({ name, secret }, 'x')))
  expect(new Set(await Promise.all([...made, fingerprint({ name: 'A', secret: true }, 'y')])).size).toBe(5)
  const underAnother = await openFingerprints(TOKEN.toUpperCase(), NONCE)
  expect(await made[2]).not.toBe(await underAnother({ name: 'A', secret: false }, 'x'))
  const asked = new Set<string | undefined>()
  const url = await serve(({ url }, response) => {
    asked.add(url)
    response.writeHead(404).end()
  })
  for (let times = 0; times < 2; times += 1) expect((await verify(FILE, ['--url', url])).code).toBe(3)
  expect([...asked].join(' ')).toMatch(/nonce=[0-9a-f]{32} .*nonce=[0-9a-f]{32}$/)
})

test('a build stamp and what the definition marks may differ on each replica', async () => {
  const variables = { POD: { kind: 'text', perReplica: true }, REGION: { kind: 'text' } }
  const group = { unlocks: 'a', absent: 'b', variables }
  const platform = resolvePlatform({ preset: 'base', groups: { pods: group } }, { folder: '/' })
  const url = async (env: Record<string, string>) => running({ ...ENV, ...env }, platform)
  const [first, second] = [
    await url({ POD: 'a', REGION: 'eu' }),
    await url({ POD: 'b', REGION: 'eu', BUILD_STAMP: 'next' }),
  ]
  const file = { ...FILE, POD: 'c', REGION: 'eu' }
  expect(await verify(file, ['--url', `web=${first},${second}`], platform)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/differs {2}BUILD_STAMP .*, as it may on each replica\n/),
  })
  const bare = await verify(
    { ...FILE, REGION: 'eu' },
    ['--url', `web=${first}`, '--format', 'github'],
    platform,
  )
  expect(bare).toMatchObject({ code: 0, stdout: expect.stringMatching(/^::warning .*POD/m) })
  expect(bare.stdout).not.toContain('::error')
  // An older build does not know it yet.
  const older = resolvePlatform({ preset: 'base' }, { folder: '/' })
  const before = `web=${await running(ENV, older)}`
  expect(await verify({ ...FILE, POD: 'c' }, ['--url', before], platform)).toMatchObject({ code: 0 })
  const third = await url({ POD: 'a', REGION: 'us' })
  // It is not the first two that differ.
  const { code, stdout } = await verify(file, ['--url', `web=${first},${second},${third}`], platform)
  expect(code).toBe(1)
  expect(stdout).toMatch(
    /^same {2}web.*\n(?:.*\n)*differs {2}web.*\n(?:.*\n)*Replicas disagree on REGION\.$/m,
  )
  const urls = ['--url', `web=${first},${third}`, '--format']
  for (const format of ['github', 'sarif'])
    expect((await verify(file, [...urls, format], platform)).stdout).toContain('replicas run with different')
})

test('replicas do not disagree on the addresses that each daemon fills in for itself, nor with another service', async () => {
  const url = (host: string) => running({ ...ENV, API_URL: `http://${host}:8000` })
  const both = `web=${await url('10.0.0.1')},${await url('10.0.0.2')}`
  expect(await verify(FILE, ['--url', both])).toMatchObject({ code: 0 })
  const { api } = opened({ ...ENV, LOG_LEVEL: 'error' })
  const other = await verify(FILE, ['--url', both, `api=${api && (await serve(nodeListener(api)))}`])
  expect([other.code, other.stdout]).toEqual([1, expect.not.stringContaining('disagree')])
})

test('a service that runs without the definition of this folder differs, and has none of its variables', async () => {
  const group = { unlocks: 'a', absent: 'b', variables: { KILN_REGION: { kind: 'text' } } }
  const definition = { file: '/platform.config.ts', fingerprint: () => 'a', lessons: () => 'b', assets: [] }
  const platform = {
    ...resolvePlatform({ preset: 'base', groups: { kiln: group } }, { folder: '/' }),
    name: 'Kiln School',
    definition,
  }
  const { code, stdout } = await verify(
    { ...FILE, KILN_REGION: 'eu' },
    ['--url', await running(ENV)],
    platform,
  )
  expect(code).toBe(1)
  expect(stdout).toContain('runs another definition than this folder has')
  expect(stdout).toMatch(/^ {2}missing {2}KILN_REGION /m)
})

test('a definition, its lessons and env files that changed since the start are named, and on which side they are older', async () => {
  const folder = await folderWith({ 'prod.env': '', 'platform.config.ts': '', 'lessons/de/first.md': '' })
  const at = (name: string) => path.join(folder, name)
  const touch = (name: string, ms: number) => utimes(at(name), new Date(ms), new Date(ms))
  const settle = () =>
    Promise.all(
      ['prod.env', 'platform.config.ts', 'lessons', 'lessons/de', 'lessons/de/first.md'].map((one) =>
        touch(one, 0),
      ),
    )
  const written = (fingerprint: string, lessons = fingerprint) => ({
    ...learning,
    definition: {
      file: at('platform.config.ts'),
      fingerprint: () => fingerprint,
      lessons: () => lessons,
      assets: [at('lessons'), at('gone')],
    },
  })
  const url = ['--url', `web=${await running(ENV, written('a'), [at('prod.env')])}`]
  const later = Date.now() + 60_000
  await settle()
  expect((await verify(FILE, url, written('a'))).stdout).not.toContain('was changed')
  await touch('prod.env', later)
  const changed = { code: 0, stdout: expect.stringContaining(`started before ${at('prod.env')} was changed`) }
  expect(await verify(FILE, url, written('a'))).toMatchObject(changed)
  // One that is gone was changed as well.
  await rm(at('prod.env'))
  expect(await verify(FILE, url, written('a'))).toMatchObject(changed)
  await writeFile(at('prod.env'), '')
  for (const [fingerprint, lessons, newer, says] of [
    ['b', 'a', [], 'runs another definition than this folder has'],
    ['b', 'b', [], 'runs other mails or lessons than this folder has'],
    ['b', 'b', ['platform.config.ts'], 'runs older mails or lessons than this folder has'],
    ['b', 'b', ['lessons/de/first.md'], 'runs older mails or lessons than this folder has'],
  ] as const) {
    await settle()
    for (const one of newer) await touch(one, later)
    expect(await verify(FILE, url, written(fingerprint, lessons))).toMatchObject({
      code: 1,
      stdout: expect.stringContaining(says),
    })
  }
  const shown = await verify(FILE, [...url, '--format', 'github'], written('b'))
  expect(shown.stdout).toMatch(/^::error [^\n]*title=configuration-definition::/m)
  // Where there is no definition to compare it with, unless none is wanted.
  const lines = Object.entries(FILE).map(([name, value]) => `${name}=${value}\n`)
  const cwd = await folderWith({ '.env': lines.join('') })
  const without = (searched: object) =>
    runIn(['env', 'verify', '-e', '.env', ...url], { cwd, env: { HEALTH_DEEP_TOKEN: TOKEN }, ...searched })
  expect(await without({ searched: [cwd] })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('whose definition was not found here, so the two were not compared'),
  })
  expect((await without({})).code).toBe(1)
})

test('preflight says what a restart with the files would change on running services, and passes', async () => {
  const url = await running({ ...ENV, MAILER_RATE: '5' }, learning, [], {})
  const file = { ...FILE, LOG_LEVEL: 'error', RATE_LIMIT_PER_MINUTE: '71' }
  const against = async (values: Record<string, string>, word: string, ...more: string[]) =>
    run(values, ['preflight', '--env-file', '.env', '--against', word, ...more])
  const { code, stdout } = await against(file, url)
  expect(code).toBe(0)
  expect(stdout).toMatch(/LOG_LEVEL: web at .* runs with another value\.\n/)
  expect(stdout).toContain('RATE_LIMIT_PER_MINUTE: web at')
  expect(stdout).toContain('MAILER_RATE: web at')
  expect(stdout).not.toContain('group-absent')
  const json = await against(file, `web=${url}`, '--strict', '--format', 'json')
  expect(JSON.parse(json.stdout)).toMatchObject({
    ok: true,
    findings: expect.arrayContaining([
      expect.objectContaining({
        id: 'configuration-missing',
        severity: 'notice',
        present: ['RATE_LIMIT_PER_MINUTE'],
      }),
    ]),
  })
  const github = await against(file, url, '--format', 'github')
  expect(github.stdout).toMatch(/::notice file=.env,line=2,col=1,title=configuration-differs::LOG_LEVEL: /)
  expect((await against({ ...FILE, MAILER_RATE: '5' }, url)).stdout).toContain(
    'runs with these values and this definition',
  )
  expect(await against(file, 'http://127.0.0.1:1')).toMatchObject({
    code: 3,
    stdout: expect.stringMatching(/was not compared: .*nothing\s+listens/),
  })
  const half = { ...file, SHAREDSTORE_REST_URL: 'https://x.example' }
  expect((await against(half, 'http://127.0.0.1:1')).code).toBe(1)
  for (const [code, ...token] of [
    [3, '--token-env', 'ASKED'],
    [2, '--token-file', '.env'],
  ] as const) {
    const asking = { ...FILE, ASKED: 'another-token-of-thirty-two-bytes' }
    expect(await against(asking, url, ...token)).toMatchObject({ code })
    expect(await verify(asking, ['--url', url, ...token])).toMatchObject({ code })
  }
  expect(await against(file, 'shop')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--against takes'),
  })
})

test.each<[why: string, start: () => Promise<string>, says: string]>([
  ['nothing listens', async () => 'http://127.0.0.1:1', 'nothing listens there'],
  ['no token is set there', () => running({ LOG_LEVEL: 'warn' }), 'set HEALTH_DEEP_TOKEN there'],
  ['its token is another', () => running({ HEALTH_DEEP_TOKEN: `${TOKEN}x` }), 'refuses the token'],
  [
    'a cache answers',
    async () => {
      const { text } = await opened(ENV).ask(TOKEN)
      return serve((_, response) => response.end(text))
    },
    'something caches it',
  ],
  ['another program answers', () => serve((_, response) => response.end('[]')), 'not with its configuration'],
])('a service that cannot be verified, because %s, is exit code 3', async (_, start, says) => {
  const { code, stdout } = await verify(FILE, ['--url', `web=${await start()}`])
  expect({ code, stdout }).toEqual({ code: 3, stdout: expect.stringContaining(says) })
})

test('Ctrl-C or --timeout ends the wait for a service that hangs', async () => {
  // Its 404, which would ask for HEALTH_DEEP_TOKEN there, comes after the time that it is given.
  const late = await serve((_, response) => void setTimeout(() => response.writeHead(404).end(), 200))
  expect(await verify(FILE, ['--url', `web=${late}`, '--timeout', '1ms'])).toMatchObject({
    code: 3,
    stdout: expect.not.stringContaining('set HEALTH_DEEP_TOKEN there'),
  })
  const stop = new AbortController()
  const url = await serve(() => stop.abort())
  const args = ['--url', `web=${url}`, '--timeout', '1h']
  expect(await verify(FILE, args, learning, stop.signal)).toMatchObject({ code: 3 })
})

test.each([
  ['no address', [], 'url'],
  ['an unknown service', ['--url', 'shop=http://127.0.0.1:1'], "unknown service 'shop'"],
  ['a short token', ['--url', 'web=http://127.0.0.1:1', '--token-env', 'SHORT'], 'at least 24 characters'],
] as const)('%s is wrong usage', async (_, args, says) => {
  const { code, stderr } = await verify({ ...FILE, SHORT: 'twenty-three-characters' }, args)
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(says) })
})

test('no fingerprint is the same under another nonce or another token, and each has one length', async () => {
  const { ask } = opened({ ...SECRETS, HEALTH_DEEP_TOKEN: `${TOKEN},${TOKEN}-next` })
  const other = `?nonce=${'ab'.repeat(16)}`
  const answers = [await ask(TOKEN), await ask(`${TOKEN}-next`), await ask(TOKEN, other)]
  const prints = answers.map(({ variables }) => variables.flatMap((one) => one.fingerprint ?? []))
  expect(prints.map((list) => list.length)).toEqual(prints.map(() => prints[0]?.length))
  expect(prints[0]).toHaveLength(3)
  expect(new Set(prints.flat()).size).toBe(prints.flat().length)
  expect(prints.flat().every((print) => print.length === 43)).toBe(true)
  expect((await ask(TOKEN)).text).toBe(answers[0]?.text)
  for (const value of Object.values(SECRETS).filter((one) => one !== 'first'))
    expect(answers.map(({ text }) => text).join('')).not.toContain(value)
})

test('no fingerprint is given without the token, a nonce, or a token that is long enough', async () => {
  const { ask, api } = opened(ENV)
  expect((await ask(undefined)).status).toBe(401)
  expect((await ask(`${TOKEN}x`)).status).toBe(401)
  for (const query of ['', '?nonce=', '?nonce=0011', `?nonce=${NONCE}00`, `?nonce=${'g'.repeat(32)}`]) {
    const { status, text } = await ask(TOKEN, query)
    expect({ status, text }).toEqual({ status: 400, text: expect.stringContaining('openssl rand -hex 16') })
  }
  // None of them waits in line.
  expect((await ask(TOKEN)).status).toBe(200)
  const short = 'twenty-three-characters'
  expect(await opened({ ...ENV, HEALTH_DEEP_TOKEN: short }).ask(short)).toMatchObject({
    status: 400,
    variables: [],
    text: expect.stringContaining('at least 24 characters'),
  })
  expect((await opened({ LOG_LEVEL: 'warn' }).ask(TOKEN)).status).toBe(404)
  const other = await api?.fetch(new Request('http://any.example/api/configuration'))
  expect(other?.status).toBe(401)
})

test('a wrong token is refused before anything is derived, whatever is configured', async () => {
  const { ask } = opened(ENV)
  const timed = async (token: string) => {
    const began = performance.now()
    await ask(token, `?nonce=${'cd'.repeat(16)}`)
    return performance.now() - began
  }
  const right = await timed(TOKEN)
  const wrong = await Promise.all(Array.from({ length: 9 }, () => timed(`${TOKEN}x`)))
  expect(wrong.toSorted((a, b) => a - b)[4]).toBeLessThan(right / 3)
})

test('requests are answered one after the other, and those beyond a short queue get 429 and Retry-After', async () => {
  const { ask } = opened(ENV)
  const answers = await Promise.all(Array.from({ length: 12 }, () => ask(TOKEN)))
  const refused = answers.filter(({ status }) => status === 429)
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(5)
  expect(refused).toHaveLength(7)
  expect(refused[0]?.response.headers.get('retry-after')).toBe('5')
})
