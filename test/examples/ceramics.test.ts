import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packTarball } from '../pack/tarball.ts'

const EXAMPLE = fileURLToPath(new URL('../../examples/ceramics', import.meta.url))
const INSTALL_MS = 180_000

/** The learning platform's trade, its services, its texts and its names. */
const ELSEWHERE =
  /qubit|quantum|circuit|hardware|qpu|hadamard|tutor|model_[abc]|cloudb|cloudmodel|exam\b|\bagent\b|course-day|organisation|lesson\.viewed|one-qubit|seven|sieben\b(?! Tage)/i
/** Words that almost any English text has, and no German one. */
const ENGLISH = /\b(?:the|and|of|you|your|this|not|with|from|for|to|is|are|has|page|lesson|days?)\b/i

interface Sent {
  readonly subject: string
  readonly html: string
  readonly text: string
}

let folder: string
let mails: Server
let spring: Server
let springHealth = { status: 200, body: '{"status":"UP"}' }
const sent: Sent[] = []

const listen = async (server: Server) => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

let env: Record<string, string>

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'platformctl-ceramics-'))
  await cp(EXAMPLE, folder, { recursive: true, filter: (source) => !source.includes('node_modules') })
  const file = path.join(folder, 'package.json')
  const manifest = JSON.parse(await readFile(file, 'utf8')) as { dependencies: Record<string, string> }
  manifest.dependencies.platformctl = `file:${(await packTarball(folder)).file}`
  await writeFile(file, JSON.stringify(manifest))
  const args = ['install', '--no-audit', '--no-fund', '--no-package-lock', '--prefer-offline']
  await execa('npm', args, { cwd: folder, timeout: INSTALL_MS })
  mails = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    if (body !== '') sent.push(JSON.parse(body) as Sent)
    response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"id":"mail-1"}')
  })
  spring = createServer((_, response) => {
    response.writeHead(springHealth.status, { 'Content-Type': 'application/json' }).end(springHealth.body)
  })
  env = {
    PATH: process.env.PATH ?? '',
    MAILER_API_KEY: 'key-of-the-mail-provider',
    MAILER_API_URL: await listen(mails),
    MAILER_FROM: 'Lehmgrube <post@lehmgrube.example>',
    EMAIL_DISPATCH_SECRET: 'a-long-secret-of-the-ceramics-school-4711',
    BOOKINGS_URL: await listen(spring),
    GLAZE_STOCK: '40',
  }
}, 2 * INSTALL_MS)
afterAll(async () => {
  for (const server of [mails, spring]) server?.close()
  await rm(folder, { recursive: true, force: true, maxRetries: 3 })
})

const program = () => path.join(folder, 'node_modules/platformctl/bin/platformctl.js')
const run = (args: readonly string[], more: Record<string, string> = {}) =>
  execa(process.execPath, ['--', program(), ...args], {
    cwd: folder,
    env: { ...env, ...more },
    extendEnv: false,
    reject: false,
    timeout: 60_000,
  })

test('the definition and what reads its environment compile', async () => {
  await execa('npx', ['tsc'], { cwd: folder })
}, 60_000)

test('a wrong name in the definition does not compile', async () => {
  const text = await readFile(path.join(folder, 'platform.config.ts'), 'utf8')
  const wrong = [
    ["allOrNone: ['KILN_API_KEY'", "allOrNone: ['KILN_API_KEI'"],
    ["address: 'BOOKINGS_URL'", "address: 'BOOKING_URL'"],
    ["slots: { kiln: 'Großer", "slots: { ofen: 'Großer"],
    ["group: 'glaze'", "group: 'glase'"],
  ] as const
  for (const [index, [right, mistake]] of wrong.entries()) {
    expect(text).toContain(right)
    await writeFile(path.join(folder, `wrong-${index}.ts`), text.replace(right, mistake))
  }
  const { stdout } = await execa('npx', ['tsc'], { cwd: folder, reject: false })
  for (const index of wrong.keys()) {
    expect(stdout).toContain(`wrong-${index}.ts`)
    await rm(path.join(folder, `wrong-${index}.ts`))
  }
  expect(stdout).not.toContain('platform.config.ts')
}, 60_000)

const startDaemon = () =>
  execa(
    process.execPath,
    ['--', program(), 'daemon', '--web-port', '0', '--data', 'data', '--no-schedule', '--grace', '0'],
    { cwd: folder, env, extendEnv: false, reject: false },
  )

describe('running', () => {
  let daemon: ReturnType<typeof startDaemon>
  let web: string

  beforeAll(async () => {
    daemon = startDaemon()
    web = await new Promise<string>((resolve, reject) => {
      let output = ''
      daemon.stdout?.on('data', (chunk) => {
        output += String(chunk)
        const found = /"web":"(http:[^"]+)"/.exec(output)?.[1]
        if (found) resolve(found)
      })
      void daemon.then((ended) => reject(new Error(String(ended.stderr))))
    })
  }, 60_000)
  afterAll(async () => {
    daemon?.kill('SIGTERM')
    await daemon
  })

  const page = async (target: string, init: RequestInit = {}) => {
    const response = await fetch(new URL(target, web), { headers: { Accept: 'text/html' }, ...init })
    return { status: response.status, html: await response.text() }
  }
  const json = (target: string, body: unknown) =>
    fetch(new URL(target, web), {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${env.EMAIL_DISPATCH_SECRET}` },
      body: JSON.stringify(body),
    })
  const own = (html: string) => {
    const seen = html
      .replace(/<(style|script)[\s\S]*?<\/\1>/g, ' ')
      .replace(/<[^>]*>/g, ' ')
      .replaceAll('platformctl daemon', '')
    expect(seen.match(ELSEWHERE)).toBeNull()
    expect(seen.match(ENGLISH)).toBeNull()
    expect(html).toContain('<html lang="de">')
    expect(html).toContain('Töpferschule Lehmgrube')
    expect(html).toContain('data:image/svg+xml;base64,')
    expect(html).toContain('--accent:#9a3412')
  }

  test('every page is the school’s: its name, logo and color, in German', async () => {
    for (const target of [
      '/',
      '/insights',
      ...[1, 2, 3, 4, 5].map((number) => `/lessons/${number}`),
      '/lessons',
      '/lessons/6',
      '/nowhere',
      '/api/email/confirm?token=wrong',
      '/api/email/unsubscribe?s=x.1&t=x',
      '/api/email/subscribe',
      '/?details',
    ]) {
      const { html } = await page(target)
      own(html)
    }
    expect((await page('/lessons/6')).html).toContain('<a href="/lessons">alle Lektionen</a>')
    expect((await page('/')).html).toContain('Buchungen')
    expect((await page('/insights')).html).toMatch(/Gebuchte Brände[\s\S]*Brände/)
  })

  test('routes that the definition leaves out are not served', async () => {
    expect((await json('/api/checkout', {})).status).toBe(404)
    const document = await (await fetch(new URL('/openapi.json', web))).text()
    expect(Object.keys((JSON.parse(document) as { paths: object }).paths).join(' ')).not.toMatch(
      /checkout|payments/,
    )
    expect(document.match(ELSEWHERE)).toBeNull()
    expect(JSON.parse(document)).toMatchObject({ info: { title: 'Töpferschule Lehmgrube' } })
  })

  test('a reader subscribes, confirms, gets a lesson and ends the course, all in German', async () => {
    expect((await json('/api/email/subscribe', { email: 'ada@example.com' })).status).toBe(202)
    await expect.poll(() => sent.length).toBe(1)
    const link = /http[^"\s]*\/api\/email\/confirm\?token=[\w.-]+/.exec(sent[0]?.text ?? '')?.[0] ?? ''
    const confirmed = await page(new URL(link).pathname + new URL(link).search)
    expect(confirmed.html).toContain('Im Abstand von 2 Tagen kommt eine Lektion')
    own(confirmed.html)
    expect(await (await json('/api/email/dispatch', {})).json()).toMatchObject({ sent: 1 })
    expect(sent[1]?.subject).toBe('Lektion 1: der richtige Ton')
    const end = /http[^"\s]*\/api\/email\/unsubscribe[^"\s]*/.exec(sent[1]?.text ?? '')?.[0] ?? ''
    const target = new URL(end).pathname + new URL(end).search
    const ended = await page(target)
    expect(ended.html).toContain('Abgemeldet')
    own(ended.html)
    own((await page(target, { method: 'POST', body: new URLSearchParams({ undo: '1' }) })).html)
    for (const { subject, html, text } of sent) {
      for (const part of [
        subject,
        text,
        html.replace(/<style[\s\S]*?<\/style>/g, '').replace(/<[^>]*>/g, ' '),
      ]) {
        expect(part.match(ELSEWHERE)).toBeNull()
        expect(part.match(ENGLISH)).toBeNull()
      }
      expect(html).toMatch(/<html lang="de" dir="ltr"/)
      expect(html).toContain('Töpferschule Lehmgrube')
      expect(html).toContain('#9a3412')
    }
  })

  test('health reads the Spring program, and its fault is the school’s', async () => {
    const health = async () =>
      (await (await fetch(new URL('/api/health?deep=1', web))).json()) as {
        state: string
        probes: Record<string, { state: string; reason?: string }>
      }
    const up = await health()
    expect(Object.keys(up.probes).toSorted()).toEqual([
      'analytics',
      'bookings',
      'datastore',
      'errortrack',
      'glaze',
      'kiln',
      'mail',
      'sharedstore',
      'store',
    ])
    expect(up.probes).toMatchObject({
      bookings: { state: 'ok' },
      glaze: { state: 'ok' },
      kiln: { state: 'skipped' },
    })
    springHealth = { status: 503, body: '{"status":"DOWN"}' }
    expect((await health()).probes).toMatchObject({ bookings: { state: 'failing' } })
    springHealth = { status: 200, body: '{"status":"UP"}' }
    const { stdout } = await run(['health', '--url', `web=${web}`, '--url', `bookings=${env.BOOKINGS_URL}`])
    expect(stdout).toMatch(/bookings\s/)
    expect(stdout.match(ELSEWHERE)).toBeNull()
  })

  test('metrics have its own kinds and services', async () => {
    const text = await (await fetch(new URL('/metrics', web))).text()
    expect(text.match(ELSEWHERE)).toBeNull()
    expect(text).toContain('service="web"')
  })

  test('no output of any command shows another platform', async () => {
    const lessons = (await readdir(path.join(folder, 'courses/erster-brand'))).map((file) =>
      file.slice(0, -3),
    )
    for (const args of [
      [],
      ['--help'],
      ...[
        'preflight',
        'env',
        'health',
        'email',
        'dispatch',
        'course',
        'daemon',
        'db',
        'analytics',
        'demo',
      ].map((name) => [name, '--help']),
      ...['env list', 'env example', 'env schema', 'env types', 'env check .env.example', 'env dialects'].map(
        (line) => line.split(' '),
      ),
      ['env', 'explain', 'KILN_REGION'],
      ['env', 'explain', 'kiln-all-or-none'],
      ...['text', 'json', 'github', 'sarif', 'junit'].map((format) => ['preflight', '--format', format]),
      ...['text', 'json', 'junit', 'prom'].map((format) => [
        'health',
        '--url',
        `web=${web}`,
        '--url',
        `bookings=${env.BOOKINGS_URL}`,
        '--format',
        format,
      ]),
      ['email', 'list'],
      ['email', 'lint', '--strict'],
      ['email', 'build'],
      ...lessons.map((lesson) => ['email', 'render', `erster-brand-${lesson}`, '--format', 'eml']),
      ...['welcome', 'magic-link', 'subscription-confirmation', 'booking-confirmed'].flatMap((name) =>
        ['html', 'text'].map((part) => ['email', 'render', name, '--format', part]),
      ),
      ['course', 'status', '--data', 'data'],
      ['db', 'status', '--data', 'data'],
      ['status', '--data', 'data'],
      ['analytics', 'summary', '--data', 'data'],
      ['dispatch', '--url', web, '--dry-run'],
    ]) {
      const { stdout, stderr } = await run(args)
      expect([args.join(' '), (stdout + stderr).match(ELSEWHERE)?.[0]]).toEqual([args.join(' '), undefined])
    }
  }, 120_000)

  test('prints the example file that is in its folder', async () => {
    const { stdout } = await run(['env', 'example'])
    expect(`${stdout}\n`).toBe(await readFile(path.join(EXAMPLE, '.env.example'), 'utf8'))
  })

  test('refuses an environment that breaks its rules, by its own names', async () => {
    const { exitCode, stdout } = await run(['preflight'], { KILN_API_KEY: 'x'.repeat(24) })
    expect(exitCode).toBe(1)
    expect(stdout).toContain('KILN_API_SECRET')
  })
})
