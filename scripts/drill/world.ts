import { type ChildProcess, spawn } from 'node:child_process'
import { chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { connect, createServer, type Server, type Socket } from 'node:net'
import path from 'node:path'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { createServer as createTlsServer, type SecureContextOptions } from 'node:tls'
import { fileURLToPath } from 'node:url'
import dns2 from 'dns2'
import PostalMime from 'postal-mime'
import { authority } from '../../test/support/outside.ts'
import { type PostgresServer, startPostgres } from '../../test/support/postgres.ts'

/**
 * The machine of one cell: names, servers, disks and people of its own, in namespaces that end with the process. What
 * the platform runs as is not the superuser.
 */

const root = fileURLToPath(new URL('../..', import.meta.url))
export const DATA = '/var/lib/platformctl'
export const HOME = '/srv/platform'
export const ENV_FILE = `${HOME}/.env`
/** `nobody`, who owns the platform's files. */
const SERVICE = 65_534
/** Not loopback, whose servers a proxy and a clock leave out. */
export const OUTSIDE = '192.0.2.10'
const COMMAND_MS = 240_000

export interface Ran {
  readonly command: string
  /** Null: a signal ended it. */
  readonly code: number | null
  readonly output: string
  readonly ms: number
}

export interface Running {
  readonly child: ChildProcess
  readonly pid: number
  readonly output: () => string
  readonly ended: Promise<Ran>
  readonly isOver: () => boolean
}

export interface Told {
  readonly at: number
  readonly by: 'webhook' | 'mail'
  readonly type: string
  readonly incident: string
  readonly text: string
}

/** A relay in front of a server: lets through, answers nothing, comes late, or is not there. */
export type RelayMode = 'pass' | 'refuse' | 'stall' | { readonly lateMs: number }

export interface Relay {
  mode(next: RelayMode): Promise<void>
}

export async function relay(port: number, to: number, hosts = ['127.0.0.1']): Promise<Relay> {
  let mode: RelayMode = 'pass'
  const sockets = new Set<Socket>()
  const forward = (from: Socket, into: Socket) =>
    from.on('data', (chunk) => {
      if (mode === 'pass') into.write(chunk)
      else if (typeof mode === 'object') setTimeout(() => into.destroyed || into.write(chunk), mode.lateMs)
    })
  const take = (near: Socket) => {
    const far = connect(to, '127.0.0.1')
    forward(near, far)
    forward(far, near)
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one)
      one.on('error', () => {})
      one.on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
    }
  }
  let servers: readonly Server[] = []
  const listen = async () => {
    servers = hosts.map(() => createServer(take))
    await Promise.all(servers.map((server, index) => listening(server, port, hosts[index])))
  }
  await listen()
  return {
    async mode(next) {
      mode = next
      if (next === 'refuse') {
        for (const socket of sockets) socket.resetAndDestroy()
        await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
        servers = []
      } else if (servers.length === 0) await listen()
    },
  }
}

/** What a mail server answers to a command; undefined as usual, null nothing, and `cut` drops the connection. */
export type MailReply = (word: string) => string | undefined | null | 'cut'

export type World = Awaited<ReturnType<typeof openWorld>>

export async function openWorld() {
  for (const folder of [HOME, '/srv/bin', '/srv/home', '/srv/tmp', DATA, '/var/backups']) {
    mkdirSync(folder, { recursive: true, mode: 0o755 })
    chownSync(folder, SERVICE, SERVICE)
  }
  process.env.TMPDIR = '/srv/tmp'
  writeFileSync(
    '/srv/bin/platformctl',
    `#!/bin/sh\nexec '${process.execPath}' -- '${root}bin/platformctl.js' "$@"\n`,
    { mode: 0o755 },
  )
  /** Settings in the env file, and those of the process. */
  const settings: Record<string, string> = {
    NEXT_PUBLIC_SITE_URL: 'http://localhost:3000',
    EMAIL_DISPATCH_SECRET: 'the-dispatch-secret-of-the-drill',
    ALERT_WEBHOOK_URL: 'http://127.0.0.1:9000/alerts',
    MAILER_SMTP_URL: 'smtp://mail.example.test:2525',
    MAILER_FROM: 'course@example.test',
  }
  const environment: Record<string, string> = {
    PATH: `/srv/bin:${path.dirname(process.execPath)}:${process.env.PATH ?? ''}:/usr/sbin`,
    HOME: '/srv/home',
    LANG: 'C.UTF-8',
    ...(process.env.DRILL_CACHE && { XDG_CACHE_HOME: process.env.DRILL_CACHE }),
  }
  const ran: Ran[] = []
  const alive = new Set<Running>()
  const told: Told[] = []

  function writeSettings(): void {
    writeFileSync(
      ENV_FILE,
      Object.entries(settings)
        .map(([name, value]) => `${name}=${value}\n`)
        .join(''),
      { mode: 0o600 },
    )
    chownSync(ENV_FILE, SERVICE, SERVICE)
  }

  /** Starts a command in the platform's folder as its user. */
  function begin(command: string, more: Record<string, string> = {}): Running {
    writeSettings()
    const started = performance.now()
    const child = spawn('bash', ['-c', command], {
      cwd: HOME,
      env: { ...environment, ...more },
      uid: SERVICE,
      gid: SERVICE,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    let isOver = false
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    const ended = new Promise<Ran>((resolve) =>
      child.on('close', (code, signal) => {
        isOver = true
        // As a shell counts it.
        const shown = signal === 'SIGKILL' ? 137 : signal === 'SIGABRT' ? 134 : code
        const one = { command, code: shown, output, ms: performance.now() - started }
        ran.push(one)
        resolve(one)
      }),
    )
    const running = { child, pid: Number(child.pid), output: () => output, ended, isOver: () => isOver }
    alive.add(running)
    void ended.then(() => alive.delete(running))
    return running
  }

  async function run(command: string, more?: Record<string, string>): Promise<Ran> {
    const running = begin(command, more)
    const timer = setTimeout(() => running.child.kill('SIGKILL'), COMMAND_MS)
    const done = await running.ended
    clearTimeout(timer)
    return done
  }

  /** A step of the preparation. */
  async function must(command: string): Promise<void> {
    const { code, output } = await run(command)
    if (code !== 0) throw new Error(`${command} ended with ${code}: ${output}`)
  }

  /** A daemon, once it listens or has ended. */
  async function daemon(options = '', more: Record<string, string> = {}): Promise<Running> {
    const { PREFIX = '', ...env } = more
    const running = begin(
      `exec ${PREFIX} platformctl daemon --data ${DATA} --env-file ${ENV_FILE} --grace 0 --deadline 5 ${options}`,
      env,
    )
    await until(() => running.isOver() || running.output().includes('"event":"listening"'), 90_000)
    return running
  }

  // The webhook.
  const webhook = { status: 204 }
  const heard = (one: Omit<Told, 'at'>) => told.push({ at: performance.now(), ...one })
  await listening(
    createHttpServer((request, response) => {
      let body = ''
      request.on('data', (chunk) => {
        body += chunk
      })
      request.on('end', () => {
        response.writeHead(webhook.status).end()
        if (webhook.status >= 300) return
        const { type, data } = JSON.parse(body) as { type: string; data: Record<string, string> }
        heard({ by: 'webhook', type, incident: data.incident ?? '', text: `${data.title}\n${data.text}` })
      })
    }),
    9001,
  )
  const toWebhook = await relay(9000, 9001)

  // The mail server, and the same behind TLS.
  const mail = {
    reply: ((_: string) => undefined) as MailReply,
    /** One message a connection, so that each needs a new one. */
    once: false,
    /** Called once a message was taken; until it is done, nothing else is answered. */
    onTaken: undefined as (() => Promise<unknown>) | undefined,
    gate: undefined as Promise<unknown> | undefined,
  }
  const speakSmtp = (socket: Socket) => serveSmtp(socket, mail, heard)
  await listening(createServer(speakSmtp), 2526)
  const toMail = await relay(2525, 2526, ['127.0.0.1', OUTSIDE])

  // The name server.
  const names = {
    answer: ((name: string) => (/(?:^|\.)example\.test$/.test(name) ? OUTSIDE : undefined)) as (
      name: string,
    ) => string | undefined | 'fails',
    lateMs: 0,
    isGone: false,
  }
  const nameServer = dns2.createUDPServer((request, send) => {
    if (names.isGone) return
    const answer = dns2.Packet.createResponseFromRequest(request)
    const [{ name = '', type = 0 } = {}] = request.questions as { name?: string; type?: number }[]
    const found = names.answer(name.toLowerCase())
    if (found === 'fails') answer.header.rcode = 2
    else if (found === undefined) answer.header.rcode = 3
    else if (type === dns2.Packet.TYPE.A)
      answer.answers.push(
        new dns2.Packet.Resource({ name, type, class: dns2.Packet.CLASS.IN, ttl: 1, address: found }),
      )
    // So that nothing else is wrong with the sender.
    else if (type === dns2.Packet.TYPE.TXT && TEXTS[name] !== undefined)
      answer.answers.push(
        new dns2.Packet.Resource({ name, type, class: dns2.Packet.CLASS.IN, ttl: 1, data: TEXTS[name] }),
      )
    setTimeout(() => void send(answer), names.lateMs)
  })
  await new Promise<void>((resolve) => {
    nameServer.on('listening', () => resolve())
    void nameServer.listen(53, '127.0.0.1')
  })

  // Another server that the platform asks: over HTTP, and over TLS, where mail is taken too.
  const answerHttp: RequestListener = (request, response) => {
    request.resume().on('end', async () => {
      if (request.method === 'POST') {
        mail.gate ??= mail.onTaken?.()
        await mail.gate
      }
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":"taken"}')
    })
  }
  await listening(createHttpServer(answerHttp), 7001)
  await listening(createHttpServer(answerHttp), 7000, OUTSIDE)
  const toData = await relay(7002, 7001)
  const ours = await authority('The authority of the drill')
  const good = await ours.issue({ host: 'data.example.test' })
  const goodMail = await ours.issue({ host: 'mail.example.test' })
  writeFileSync('/srv/ca.pem', ours.ca)
  environment.NODE_EXTRA_CA_CERTS = '/srv/ca.pem'
  const secure = createHttpsServer({ ...good, minVersion: 'TLSv1' }, answerHttp)
  await listening(secure, 4430, OUTSIDE)
  const secureMail = createTlsServer({ ...goodMail, minVersion: 'TLSv1' }, speakSmtp)
  await listening(secureMail, 4650, OUTSIDE)
  const present = (to: SecureContextOptions, toMailers: SecureContextOptions) => {
    secure.setSecureContext({ minVersion: 'TLSv1', ...to })
    secureMail.setSecureContext({ minVersion: 'TLSv1', ...toMailers })
  }

  let postgres: Promise<PostgresServer> | undefined
  return {
    settings,
    environment,
    ran,
    /** What has not ended yet. */
    running: () => [...alive],
    told,
    webhook,
    mail,
    names,
    relays: { webhook: toWebhook, mail: toMail, data: toData },
    certificates: { ours, present, heal: () => present(good, goodMail), answerHttp },
    begin,
    run,
    daemon,
    must,
    /** A PostgreSQL that is started when it is first asked for. */
    postgres: () => {
      postgres ??= startPostgres(['max_connections=24', 'fsync=off'])
      return postgres
    },
    /** A store with people to whom a lesson is due. */
    async seed(people = 12, file = `${DATA}/platform.sqlite`) {
      const names = Array.from({ length: people }, (_, index) => `person${index}=due`).join(' ')
      await must(`'${process.execPath}' '${root}scripts/runbooks/seed.ts' ${file} ${names}`)
    },
  }
}

/** Two connections that carry what the other says, and end together. */
export function joined(near: Duplex, far: Duplex): void {
  near.pipe(far).pipe(near)
  for (const one of [near, far])
    one
      .on('error', () => {})
      .on('close', () => {
        near.destroy()
        far.destroy()
      })
}

export async function listening(server: Server, port: number, host = '127.0.0.1'): Promise<void> {
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
  server.on('error', () => {})
}

export async function until(condition: () => boolean | Promise<boolean>, ms: number): Promise<boolean> {
  for (const end = performance.now() + ms; performance.now() < end; await sleep(100))
    if (await condition()) return true
  return condition()
}

const TEXTS: Readonly<Record<string, string>> = {
  'example.test': `v=spf1 ip4:${OUTSIDE} -all`,
  '_dmarc.example.test': 'v=DMARC1; p=none; rua=mailto:ops@example.test',
}
const REPLIES: Readonly<Record<string, string>> = {
  CONNECT: '220 mail.example.test ESMTP',
  EHLO: '250-mail.example.test\r\n250 AUTH PLAIN LOGIN',
  AUTH: '235 2.7.0 welcome',
  DATA: '354 go on',
  QUIT: '221 2.0.0 bye',
}

function serveSmtp(
  socket: Socket,
  mail: {
    reply: MailReply
    once: boolean
    onTaken: (() => Promise<unknown>) | undefined
    gate: Promise<unknown> | undefined
  },
  heard: (one: Omit<Told, 'at'>) => void,
): void {
  socket.on('error', () => {})
  let buffered = ''
  let inData = false
  let content: string[] = []
  const answer = async (word: string): Promise<void> => {
    const said = mail.reply(word)
    if (said === 'cut') return void socket.destroy()
    if (said === null) return
    const text = said ?? REPLIES[word] ?? '250 2.0.0 ok'
    if (word === 'DATA' && text.startsWith('354')) inData = true
    if (word === 'END' && text.startsWith('250')) {
      const read = await PostalMime.parse(Buffer.from(content.join('\r\n'), 'latin1'))
      // As a reader sees it; the commands in it are copied from there.
      const whole = `${read.subject}\n${read.text}`
      if (read.to?.some(({ address }) => address === 'ops@example.test'))
        heard({
          by: 'mail',
          type: /works again|is (?:right|taken) again|ended/.test(whole)
            ? 'incident.closed'
            : 'incident.opened',
          incident: '',
          text: whole,
        })
      mail.gate ??= mail.onTaken?.()
    }
    await mail.gate
    if (socket.destroyed) return
    socket.write(`${text}\r\n`)
    if (word === 'QUIT' || (word === 'END' && mail.once)) socket.end()
  }
  void answer('CONNECT')
  let queue = Promise.resolve<unknown>(undefined)
  socket.on('data', (chunk) => {
    buffered += chunk.toString('latin1')
    for (let end = buffered.indexOf('\n'); end !== -1; end = buffered.indexOf('\n')) {
      const line = buffered.slice(0, end).replace(/\r$/, '')
      buffered = buffered.slice(end + 1)
      if (inData && line !== '.') {
        content.push(line)
        continue
      }
      const word = inData ? 'END' : (line.split(' ')[0] ?? '').toUpperCase()
      inData = false
      if (word === 'MAIL') content = []
      queue = queue.then(() => answer(word))
    }
  })
}
