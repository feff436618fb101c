import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packTarball } from '../pack/tarball.ts'
import { postgresServer } from '../support/stores.ts'

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

/** What Node runs where it is not `server.js`. */
const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  next: ['node_modules/next/dist/bin/next', 'start', '--port', '0'],
  site: ['site.ts'],
  api: ['api.ts'],
  daemon: ['node_modules/platformctl/bin/platformctl.js', 'daemon', '--web-port', '0', '--grace', '0'],
}

/** Starts an example and waits until it says where it listens. */
async function start(folder: string, name: string, env: Record<string, string> = {}): Promise<Running> {
  const child = execa(process.execPath, PROGRAMS[name] ?? ['server.js'], {
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

describe.each(['node-http', 'express', 'next'])('%s', (name) => {
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

describe('choir', () => {
  const OFFICE = 'Bearer a-long-token-of-the-office-4711'
  const SITE = 'https://choirs.example'
  const mails: { readonly To: string; readonly Subject: string; readonly TextBody: string }[] = []
  const alerts: unknown[] = []
  let folder: string
  let env: Record<string, string>
  const programs: Running[] = []
  let site: string
  let api: string
  const receivers: Server[] = []

  /** Keeps the body of each request; gives where it listens. */
  async function receive(bodies: unknown[], answer: string): Promise<string> {
    const server = createServer(async (request, response) => {
      const body = await text(request)
      // A probe that only asks whether it answers sends none.
      if (body !== '') bodies.push(JSON.parse(body))
      response.setHeader('Content-Type', 'application/json').end(answer)
    })
    receivers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  const platformctl = (...args: readonly string[]) =>
    execa(process.execPath, ['node_modules/platformctl/bin/platformctl.js', ...args], {
      cwd: folder,
      env,
      extendEnv: false,
      reject: false,
      all: true,
    })
  const invoice = (authorization: string) =>
    fetch(`${api}/invoices`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: authorization },
      body: JSON.stringify({ number: '17', email: 'ada@example.com', language: 'de-AT', amount: '120 Euro' }),
    })
  const mailTo = async (address: string) => {
    await expect.poll(() => mails.some(({ To }) => To === address), { timeout: 30_000 }).toBe(true)
    return mails.find(({ To }) => To === address)
  }

  beforeAll(async () => {
    folder = await install('choir')
    const { createDatabase } = await postgresServer()
    env = {
      PATH: process.env.PATH ?? '',
      NEXT_PUBLIC_SITE_URL: SITE,
      STORE_URL: await createDatabase(),
      DATABASE_URL: await createDatabase(),
      API_TOKEN: OFFICE.slice('Bearer '.length),
      EMAIL_DISPATCH_SECRET: 'a-long-secret-of-the-choirs-4711',
      MAILER_PROVIDER: 'postmark',
      MAILER_API_KEY: 'key-of-the-mail-provider',
      MAILER_API_URL: await receive(mails, '{"ErrorCode":0,"MessageID":"0a129aee"}'),
      MAILER_FROM: 'Federation of Choirs <office@choirs.example>',
      ALERT_WEBHOOK_URL: await receive(alerts, '"ok"'),
      ALERT_WEBHOOK_FORMAT: 'slack',
    }
    for (const name of ['api', 'site', 'daemon']) {
      const program = await start(folder, name, env)
      programs.push(program)
      if (name === 'api') env.API_URL = api = program.url
      if (name === 'site') site = program.url
    }
  }, 2 * INSTALL_MS)
  afterAll(async () => {
    for (const { kill } of programs) kill('SIGTERM')
    for (const server of receivers) server.close()
    const ends = await Promise.all(programs.map(({ ended }) => ended))
    expect(ends.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0])
  })

  test('its programs compile, its mails have no warning, and its environment passes', async () => {
    await npm(folder, ['exec', 'tsc'])
    for (const args of [['email', 'lint', '--strict'], ['preflight']]) {
      const { exitCode, all } = await platformctl(...args)
      expect(exitCode, all).toBe(0)
    }
  }, 60_000)

  test('a slot of an invoice that is missing does not compile', async () => {
    const text = await readFile(path.join(folder, 'api.ts'), 'utf8')
    await writeFile(
      path.join(folder, 'wrong.ts'),
      text.replace('slots: { number, amount, ', 'slots: { number, '),
    )
    const { stdout } = await execa('npx', ['tsc'], { cwd: folder, reject: false })
    await rm(path.join(folder, 'wrong.ts'))
    expect(stdout).toMatch(/^wrong\.ts.*error TS\d+/)
    expect(stdout).toContain("'amount' is missing")
  }, 60_000)

  test('the office mails an invoice in the language of the member, once', async () => {
    expect((await invoice('Bearer of bad news')).status).toBe(401)
    const first = await invoice(OFFICE)
    expect(await first.json()).toMatchObject({ sent: true, queued: true })
    expect(first.status).toBe(202)
    expect(await mailTo('ada@example.com')).toMatchObject({
      Subject: 'Rechnung 17',
      TextBody: expect.stringMatching(/Wofür +Betrag\n-+ +-+\nJahresbeitrag +120 Euro/),
    })
    expect((await invoice(OFFICE)).status).toBe(202)
    expect(mails.filter(({ To }) => To === 'ada@example.com')).toHaveLength(1)
  }, 60_000)

  test('a reader subscribes in German and gets lessons on Tuesdays at 18:00 in Vienna', async () => {
    const page = await (await fetch(site, { headers: { 'Accept-Language': 'de-AT, en;q=0.5' } })).text()
    expect(page).toContain('<html lang="de">')
    const form = new URLSearchParams({ language: 'de', email: 'bob@example.com' })
    const answer = await fetch(`${site}/api/email/subscribe`, {
      method: 'POST',
      headers: { Origin: site, Accept: 'text/html' },
      body: form,
    })
    expect(answer.status, await answer.text()).toBe(202)
    const { TextBody = '' } = (await mailTo('bob@example.com')) ?? {}
    expect(TextBody).toContain('Adresse bestätigen')
    const link = /https:\S+\/api\/email\/confirm\S+/.exec(TextBody)?.[0] ?? ''
    const confirmed = await fetch(link.replace(SITE, site), {
      headers: { Accept: 'text/html', 'Accept-Language': 'en' },
    })
    expect(await confirmed.text()).toContain('<html lang="de">')
    const { stdout } = await platformctl('course', 'export', '--format', 'json')
    const { enrolments } = JSON.parse(stdout) as { enrolments: { nextAt: string; lessons: number }[] }
    const inVienna = new Intl.DateTimeFormat('en', {
      ...{ timeZone: 'Europe/Vienna', weekday: 'long', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' },
    })
    expect(enrolments.map(({ nextAt, lessons }) => [inVienna.format(new Date(nextAt)), lessons])).toEqual([
      ['Tuesday 18:00', 3],
    ])
    // The lessons are pages for the link of a mail alone.
    expect((await fetch(`${site}/lessons/1`)).status).toBe(404)
  }, 60_000)

  test('its status page lists both programs, in the language of the reader', async () => {
    const page = async (language: string) =>
      (
        await fetch(`${site}/status`, { headers: { Accept: 'text/html', 'Accept-Language': language } })
      ).text()
    expect(await page('en')).toContain('<html lang="en">')
    expect(await page('de')).toContain('<html lang="de">')
    expect(await page('en')).toMatch(/Website[\s\S]*Members’ API/)
  })

  test('the API takes what the platform reads itself, within its limits', async () => {
    const ask = (email: string) =>
      fetch(`${api}/api/email/subscribe`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ email }),
      })
    expect((await ask('cleo@example.com')).status).toBe(202)
    expect((await ask('a'.repeat(60_000))).status).toBe(413)
    const oneClick = await fetch(`${api}/api/email/unsubscribe?s=x.1&t=x`, {
      method: 'POST',
      body: new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }),
    })
    expect(oneClick.status).toBe(200)
  })

  test('an alert has the shape that Slack reads', async () => {
    const { exitCode, all } = await platformctl('alert', 'test')
    expect(exitCode, all).toBe(0)
    expect(alerts).toContainEqual(
      expect.objectContaining({ text: expect.stringContaining('Federation of Choirs: test alert') }),
    )
  })

  test('neither program starts without what the definition requires', async () => {
    const { API_TOKEN: _, ...rest } = env
    for (const name of ['site', 'api'])
      await expect(start(folder, name, rest)).rejects.toThrow('API_TOKEN is required')
  })
})
