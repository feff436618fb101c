import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packTarball } from '../pack/tarball.ts'

const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url))
const INSTALL_MS = 180_000

let scratch: string
let tarball: string

beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), 'platformctl-examples-'))
  tarball = (await packTarball(scratch)).file
}, INSTALL_MS)
afterAll(() => rm(scratch, { recursive: true, force: true, maxRetries: 3 }))

/** An example as its reader has it, but with platformctl from the tarball. */
async function install(name: string): Promise<string> {
  const folder = path.join(scratch, name)
  await cp(path.join(EXAMPLES, name), folder, {
    recursive: true,
    filter: (source) => !/node_modules|\.next$/.test(source),
  })
  const file = path.join(folder, 'package.json')
  const manifest = JSON.parse(await readFile(file, 'utf8')) as { dependencies: Record<string, string> }
  manifest.dependencies.platformctl = `file:${tarball}`
  await writeFile(file, JSON.stringify(manifest))
  await npm(folder, ['install', '--no-audit', '--no-fund', '--no-package-lock', '--prefer-offline'])
  return folder
}

/** Installs and builds with the environment of this machine: a registry may need its proxy and its certificates. */
const npm = (folder: string, args: readonly string[]) =>
  execa('npm', args, { cwd: folder, env: { NEXT_TELEMETRY_DISABLED: '1' }, timeout: INSTALL_MS })

interface Running {
  readonly url: string
  readonly kill: (signal: NodeJS.Signals) => void
  readonly ended: Promise<{
    readonly exitCode: number | undefined
    readonly signal: string | undefined
    readonly output: string
  }>
}

/** Starts an example and waits until it says where it listens. */
async function start(folder: string, name: string, env: Record<string, string> = {}): Promise<Running> {
  const [program, ...args] =
    name === 'next' ? ['node_modules/next/dist/bin/next', 'start', '--port', '0'] : ['server.js']
  const child = execa(process.execPath, [program ?? '', ...args], {
    cwd: folder,
    // This machine's environment must not configure the platform.
    env: { PATH: process.env.PATH ?? '', PORT: '0', NODE_ENV: 'production', ...env },
    extendEnv: false,
    reject: false,
    timeout: 120_000,
    all: true,
  })
  const url = await new Promise<string>((resolve, reject) => {
    let output = ''
    child.all.on('data', (chunk) => {
      output += String(chunk)
      const found = /http:\/\/(?:127\.0\.0\.1|localhost):(\d+)/.exec(output)?.[1]
      if (found !== undefined && (name !== 'next' || /Ready/.test(output)))
        resolve(`http://127.0.0.1:${found}`)
    })
    void child.then(() => reject(new Error(output)))
  })
  return {
    url,
    kill: (signal) => void child.kill(signal),
    ended: child.then(({ exitCode, signal, all }) => ({ exitCode, signal, output: String(all) })),
  }
}

describe.each(['node-http', 'express', 'fastify', 'hono', 'next'])('%s', (name) => {
  let folder: string
  let running: Running

  beforeAll(async () => {
    folder = await install(name)
    if (name === 'next') await npm(folder, ['run', 'build'])
    running = await start(folder, name)
  }, 2 * INSTALL_MS)
  afterAll(async () => {
    running?.kill('SIGKILL')
    await running?.ended
  })

  const ask = (target: string, init: RequestInit = {}) =>
    fetch(`${running.url}${target}`, { redirect: 'manual', ...init })
  const subscribe = (body: string) =>
    ask('/api/email/subscribe', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })

  test('serves what is the host’s own', async () => {
    expect(await (await ask('/hello')).text()).toContain('Hello from the host.')
  })

  test('serves health, with the platform’s headers and its request id', async () => {
    const response = await ask('/api/health', { headers: { 'X-Request-Id': 'from-the-caller' } })
    expect(response.status).toBe(200)
    expect(response.headers.get('x-request-id')).toBe('from-the-caller')
    expect(response.headers.get('cache-control')).toContain('no-store')
    expect(await response.json()).toMatchObject({ service: 'web' })
  })

  test('takes a body, refuses a bad one and one that is too large', async () => {
    const good = await subscribe('{"email":"ada@example.com"}')
    expect(good.status).toBe(202)
    expect(await good.json()).toEqual({ status: 'pending', sent: false, reason: 'mail is not configured' })
    const bad = await subscribe('{"email":5}')
    expect(bad.status).toBe(400)
    expect(await bad.json()).toMatchObject({ code: 'bad_request', issues: [{ path: 'email' }] })
    expect((await subscribe(JSON.stringify({ email: 'a'.repeat(60_000) }))).status).toBe(413)
  })

  test('takes the one-click form of mail programs', async () => {
    const response = await ask('/api/email/unsubscribe?s=x.1&t=x', {
      method: 'POST',
      body: new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }),
    })
    expect(response.status).toBe(200)
    expect(await response.text()).toContain('<h1>Unsubscribed</h1>')
  })

  test('shows pages, and an error page to a person', async () => {
    expect(await (await ask('/lessons/1', { headers: { Accept: 'text/html' } })).text()).toContain('<h1')
    const missing = await ask('/api/nowhere', { headers: { Accept: 'text/html' } })
    expect(missing.status).toBe(404)
    expect(await missing.text()).toContain('There is nothing here')
    const wrong = await ask('/api/health', { method: 'DELETE' })
    expect(wrong.status).toBe(405)
    expect(wrong.headers.get('allow')).toBe('GET, HEAD')
  })

  test('shows the status page, its document for programs, and the badge', async () => {
    const page = await ask(name === 'next' ? '/status' : '/', { headers: { Accept: 'text/html' } })
    expect(page.status).toBe(200)
    expect(await page.text()).toContain('<title>')
    expect(await (await ask('/status.json')).json()).toMatchObject({ recorded: 'none' })
    expect((await ask('/badge.svg')).headers.get('content-type')).toContain('image/svg+xml')
  })

  // The Next example hands platformctl only what is below /api, and lessons: /openapi.json is Next's own 404.
  test.skipIf(name === 'next')('serves its OpenAPI document', async () => {
    const response = await ask('/openapi.json')
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ openapi: '3.1.1' })
  })

  test('says that checkout is not configured', async () => {
    const response = await ask('/api/checkout', { method: 'POST' })
    expect(response.status).toBe(503)
    expect(await response.json()).toMatchObject({ code: 'payments_not_configured' })
  })

  test('answers a hundred at once', async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask('/api/health')))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    await Promise.all(answers.map((answer) => answer.text()))
  })

  test('ends by itself with --exit', async () => {
    running.kill('SIGTERM')
    const { exitCode, signal } = await running.ended
    // Next ends by the signal, or with the code that stands for it.
    expect(exitCode === 0 || signal === 'SIGTERM' || exitCode === 143).toBe(true)
  })

  test('does not start half-configured, and says which variable is missing', async () => {
    const half = { SHAREDSTORE_REST_URL: 'https://limits.example.com' }
    const outcome = await start(folder, name, half).then(
      async ({ url, kill, ended }) => {
        // Next says that it is ready before its instrumentation has run; it must still serve nothing.
        const status = await fetch(`${url}/api/health`).then(
          (response) => response.status,
          () => 0,
        )
        kill('SIGKILL')
        return { status, output: (await ended).output }
      },
      (error: Error) => ({ status: 0, output: error.message }),
    )
    expect(outcome.status === 0 || outcome.status >= 500).toBe(true)
    expect(outcome.output).toContain('sharedstore-pair')
  })
})
