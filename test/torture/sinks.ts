import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import { SMTPServer } from 'smtp-server'

/** Where a message is on its way: each is a place at which its sender may be killed. */
export type Step = 'arrived' | 'taken' | 'answered'

export interface Delivery {
  /** The idempotency key, or over SMTP the Message-ID: the same for every attempt of one lesson. */
  readonly key: string
  readonly to: string
  readonly subject: string
  /** By the clock of the receiver, in UTC milliseconds. */
  readonly at: number
  /** How many lives of the sender there were before. */
  readonly life: number
}

export interface Sink {
  /** Environment variables with which the sender reaches it. */
  readonly env: Readonly<Record<string, string>>
  /** Every message that was taken, repeats that the provider recognised by their key not counted. */
  readonly deliveries: readonly Delivery[]
  readonly faults: readonly string[]
  /** Called at every step of every message; not of one that the provider recognised by its key. */
  onStep: (step: Step) => void
  /** Given every new message's recipient and text. */
  onMessage?: (to: string, text: string) => void
  /** Awaited between the moment at which a message was taken and its answer. */
  hold?: (() => Promise<void>) | undefined
  life: number
  /** Over SMTP: how many connections are open now. */
  readonly connections?: () => number
  close(): Promise<void>
}

const MAIL = { MAILER_API_KEY: 'key-for-torture-only', MAILER_FROM: 'Course <course@example.com>' }

/** A mail API that honours idempotency keys, and remembers what it was given under each. */
export async function apiSink(): Promise<Sink> {
  const deliveries: Delivery[] = []
  const faults: string[] = []
  const known = new Map<string, string>()
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('error', () => {})
    response.on('error', () => {})
    request.on('end', () => {
      // The daemon's own probe of the provider.
      if (request.method !== 'POST') return void response.writeHead(405).end()
      const body = Buffer.concat(chunks)
      const key = String(request.headers['idempotency-key'])
      const bytes = createHash('sha256').update(body).digest('base64url')
      const before = known.get(key)
      const step = (now: Step) => {
        if (before === undefined) sink.onStep(now)
      }
      step('arrived')
      if (before !== undefined && before !== bytes) faults.push(`${key} came with two payloads`)
      if (before === undefined) {
        known.set(key, bytes)
        const { to, subject, text } = JSON.parse(body.toString()) as Record<'subject' | 'text', string> & {
          to: string[]
        }
        sink.onMessage?.(to[0] ?? '', text)
        deliveries.push({ key, to: to[0] ?? '', subject, at: Date.now(), life: sink.life })
      }
      step('taken')
      void Promise.resolve(sink.hold?.()).then(() => {
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ id: key }))
        step('answered')
      })
    })
  })
  const port = await listen(server)
  const sink: Sink = {
    env: { ...MAIL, MAILER_API_URL: `http://127.0.0.1:${port}/emails` },
    deliveries,
    faults,
    onStep: () => {},
    life: 0,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return sink
}

/** A mail server: it takes everything that comes to its end, as often as it comes. */
export async function smtpSink(): Promise<Sink> {
  const deliveries: Delivery[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['AUTH', 'STARTTLS'],
    logger: false,
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('error', () => done())
      stream.on('end', () => {
        sink.onStep('arrived')
        const text = Buffer.concat(chunks).toString('latin1')
        const key = /^message-id: (.+)$/im.exec(text)?.[1]?.trim() ?? ''
        const subject = /^subject: (.+)$/im.exec(text)?.[1]?.trim() ?? ''
        const to = session.envelope.rcptTo[0]?.address ?? ''
        deliveries.push({ key, to, subject, at: Date.now(), life: sink.life })
        sink.onStep('taken')
        done()
        sink.onStep('answered')
      })
    },
  })
  // A sender that is killed drops its line: its own business.
  server.on('error', () => {})
  const port = await listen(server.server as Server, (ready) => server.listen(0, '127.0.0.1', ready))
  const sink: Sink = {
    env: { ...MAIL, MAILER_SMTP_URL: `smtp://127.0.0.1:${port}` },
    deliveries,
    faults: [],
    onStep: () => {},
    life: 0,
    connections: () => server.connections.size,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
  return sink
}

function listen(
  server: Server,
  start: (ready: () => void) => void = (ready) => server.listen(0, '127.0.0.1', ready),
): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    start(() => resolve((server.address() as AddressInfo).port))
  })
}
