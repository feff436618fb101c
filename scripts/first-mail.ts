import { EventEmitter, once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { execa } from 'execa'
import { packTarball } from '../test/pack/tarball.ts'
import { optionsOf } from './options.ts'

const USAGE = `npm run first-mail
  The way of a newcomer, timed step by step: from an empty folder and the packed tarball to the first mail of a course of
  one's own in German. The machine's time only: a person reads and writes besides. Exit 1 when a step fails, or all
  take over 15 minutes.`
optionsOf(USAGE, { options: {} })
const LIMIT_SECONDS = 15 * 60
const MINUTE_MS = 60_000
const LISTENING = /"web":"(http:[^"]+)"/
const SHOWING = /(http:\/\/127\.0\.0\.1:\d+\S*)/

interface Mail {
  readonly subject: string
  readonly html: string
  readonly text: string
}

const scratch = await mkdtemp(path.join(tmpdir(), 'platformctl-first-mail-'))
const folder = path.join(scratch, 'schule')
const mails: Mail[] = []
const inbox = new EventEmitter()
const provider = createServer(async (request, response) => {
  const body: Uint8Array[] = []
  for await (const chunk of request) body.push(chunk)
  // Health only asks whether it answers, without a body.
  if (body.length > 0) mails.push(JSON.parse(Buffer.concat(body).toString()) as Mail)
  response.writeHead(200, { 'Content-Type': 'application/json' }).end(`{"id":"mail-${mails.length}"}`)
  inbox.emit('mail')
}).listen(0, '127.0.0.1')
await once(provider, 'listening')

const at = { cwd: folder, timeout: 5 * MINUTE_MS } as const
const clean = { ...at, extendEnv: false, env: { PATH: process.env.PATH, HOME: process.env.HOME } } as const
const bin = path.join(folder, 'node_modules/.bin/platformctl')
const platformctl = (...args: readonly string[]) => execa(bin, args, clean)

/** A command that goes on, once it has printed its address; stopped with `stop`. */
async function started(args: readonly string[], address: RegExp) {
  const running = execa(bin, args, { ...clean, reject: false, all: true })
  const url = await new Promise<string>((resolve, reject) => {
    let said = ''
    running.all.on('data', (chunk) => {
      said += String(chunk)
      const found = address.exec(said)?.[1]
      if (found !== undefined) resolve(found)
    })
    void running.then(() => reject(new Error(`platformctl ${args.join(' ')} ended: ${said}`)))
  })
  return {
    url,
    async stop() {
      running.kill('SIGTERM')
      await running
    },
  }
}

let total = 0
async function step<T>(name: string, work: () => Promise<T>): Promise<T> {
  const began = performance.now()
  const result = await work()
  const seconds = (performance.now() - began) / 1000
  total += seconds
  console.log(`${seconds.toFixed(1).padStart(5)} s  ${name}`)
  return result
}

/** The first mail of which `text` holds what is asked for; waits until it is there. */
async function arrived(text: RegExp): Promise<Mail> {
  for (;;) {
    const mail = mails.find((one) => text.test(one.text))
    if (mail !== undefined) return mail
    await once(inbox, 'mail', { signal: AbortSignal.timeout(MINUTE_MS) })
  }
}

try {
  const tarball = await packTarball(scratch)
  await mkdir(folder)
  await step('install the package into an empty folder', async () => {
    await execa('npm', ['init', '--yes', '--init-type=module'], at)
    await execa('npm', ['install', '--no-audit', '--no-fund', tarball.file], at)
  })
  await step('init: a definition and a first lesson in German', () =>
    platformctl('init', '--course', 'first-firing', '--language', 'de'),
  )
  await step('edit: two lessons and the environment', async () => {
    const lessons = path.join(folder, 'courses/first-firing')
    await writeFile(path.join(lessons, '1-welcome.md'), '---\nsubject: Der Ton\n---\n# Der Ton\n\nKneten.\n')
    await writeFile(path.join(lessons, '2-firing.md'), '---\nsubject: Der Brand\n---\n# Der Brand\n')
    const { port } = provider.address() as AddressInfo
    const lines = [
      'NEXT_PUBLIC_SITE_URL=http://127.0.0.1:3000',
      'MAILER_API_KEY=key-of-the-mail-provider',
      `MAILER_API_URL=http://127.0.0.1:${port}`,
      'MAILER_FROM=Toepferei <post@toepferei.example>',
      'EMAIL_DISPATCH_SECRET=a-long-secret-of-the-school-4711',
    ]
    await writeFile(path.join(folder, '.env'), `${lines.join('\n')}\n`)
  })
  await step('check: email lint and preflight', async () => {
    await platformctl('email', 'lint')
    await platformctl('preflight', '--env-file', '.env')
  })
  await step('preview: the lesson is shown', async () => {
    const preview = await started(['email', 'preview', '--port', '0'], SHOWING)
    const shown = await (await fetch(new URL('/mails.json', preview.url))).text()
    await preview.stop()
    if (!shown.includes('Der Ton')) throw new Error('the preview does not show the lesson')
  })
  const daemon = await step('daemon: it answers', () =>
    started(['daemon', '--env-file', '.env', '--web-port', '0', '--no-schedule'], LISTENING),
  )
  await step('subscribe, confirm, dispatch: the first mail of the course is there', async () => {
    const answer = await fetch(new URL('/api/email/subscribe', daemon.url), {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"email":"you@example.com"}',
    })
    const said = await answer.text()
    if (!said.includes('"sent":true')) throw new Error(`subscribing answered ${answer.status}: ${said}`)
    const link = /https?:\/\/\S+\/confirm\S*/
    const { pathname, search } = new URL(link.exec((await arrived(link)).text)?.[0] ?? '')
    await fetch(new URL(`${pathname}${search}`, daemon.url), { method: 'POST' })
    await platformctl('dispatch', '--env-file', '.env', '--url', daemon.url)
    const { subject, html } = await arrived(/Kneten\./)
    if (subject !== 'Der Ton' || !html.includes('lang="de"')) throw new Error(`not as written: ${subject}`)
  })
  await daemon.stop()
  console.log(`${total.toFixed(1)} s from an empty folder to the first mail of a course of one's own`)
  if (total > LIMIT_SECONDS) process.exitCode = 1
} finally {
  provider.close()
  await rm(scratch, { recursive: true, force: true, maxRetries: 3 })
}
