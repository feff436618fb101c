import type { AddressInfo } from 'node:net'
import { type Context, Hono } from 'hono'
import PostalMime from 'postal-mime'
import { SMTPServer } from 'smtp-server'
import { inScheme } from '../local-page.ts'
import { createEvents, type LocalEvents, serveLocally } from '../local-site.ts'
import { contentSecurityPolicy, inboxPage } from './inbox-page.ts'
import type { Live } from './live.ts'

/** One mail as it arrived over SMTP; `source` is the exact message, `html` and `text` its decoded parts. */
export interface ReceivedMail {
  readonly id: number
  readonly from: string
  readonly to: string
  readonly subject: string
  /** ISO 8601, from the Date header: on the demo's clock, so days apart. */
  readonly date: string
  readonly html: string
  readonly text: string
  readonly headers: readonly { readonly name: string; readonly value: string }[]
  readonly source: string
}

/** A real SMTP server on loopback that keeps what arrives in memory, and a page that shows it live. */
export interface Inbox {
  readonly smtpUrl: string
  readonly pageUrl: string
  readonly mails: readonly ReceivedMail[]
  /** Refuses every connection, as a broken mail server does; answers with what ends that. */
  refuse(): () => void
  /** Resolves with the first mail, past or future, that `matches`; rejects when aborted. */
  waitFor(matches: (mail: ReceivedMail) => boolean, signal: AbortSignal): Promise<ReceivedMail>
  close(): Promise<void>
}

const LARGEST_MESSAGE_BYTES = 2_000_000

/** Opens both servers on 127.0.0.1: SMTP on any free port, the page on `pagePort` (0: any), at /inbox beside other pages. */
export async function openInbox({
  pagePort,
  live,
}: {
  readonly pagePort: number
  readonly live?: Pick<Live, 'pages' | 'events'>
}): Promise<Inbox> {
  const mails: ReceivedMail[] = []
  const listeners = new Set<(mail: ReceivedMail) => void>()
  const events = live?.events ?? createEvents()
  let isRefusing = false

  const smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ['AUTH', 'STARTTLS'],
    size: LARGEST_MESSAGE_BYTES,
    onConnect: (_session, done) =>
      done(isRefusing ? Object.assign(new Error('4.3.2 out of order'), { responseCode: 421 }) : undefined),
    onData(stream, _session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('error', done)
      stream.on('end', () => {
        receive(mails.length + 1, Buffer.concat(chunks)).then((mail) => {
          mails.push(mail)
          events.tell(String(mail.id))
          for (const listener of [...listeners]) listener(mail)
          done()
        }, done)
      })
    },
  })
  await new Promise<void>((resolve, reject) => {
    smtp.once('error', reject)
    smtp.listen(0, '127.0.0.1', resolve)
  })
  // Ignore clients that disconnect midway, so that the inbox keeps running.
  smtp.removeAllListeners('error')
  smtp.on('error', () => {})

  const page = await serveLocally(pagePort, pagesOf(mails, events, live?.pages))

  return {
    smtpUrl: `smtp://127.0.0.1:${(smtp.server.address() as AddressInfo).port}`,
    pageUrl: page.url,
    mails,
    refuse() {
      isRefusing = true
      return () => {
        isRefusing = false
      }
    },
    waitFor: (matches, signal) =>
      new Promise((resolve, reject) => {
        const past = mails.find(matches)
        if (past) return resolve(past)
        const settle = (end: () => void) => {
          listeners.delete(look)
          signal.removeEventListener('abort', stop)
          end()
        }
        const look = (mail: ReceivedMail) => matches(mail) && settle(() => resolve(mail))
        const stop = () => settle(() => reject(signal.reason))
        if (signal.aborted) return reject(signal.reason)
        listeners.add(look)
        signal.addEventListener('abort', stop)
      }),
    async close() {
      await Promise.all([new Promise<void>((resolve) => smtp.close(resolve)), page.close()])
    },
  }
}

/** A mail's content is untrusted: no scripts, no network, an origin of its own. */
const MAIL_POLICY =
  "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"

function pagesOf(mails: readonly ReceivedMail[], events: LocalEvents, live: Hono = new Hono()): Hono {
  const nothing = (c: Context) => c.text('Nothing here; the inbox is at /\n', 404)
  const mailOf = (c: Context) => mails[Number(/^\/mails\/(\d+)\./.exec(c.req.path)?.[1]) - 1]
  const inbox = (c: Context) => {
    const { html, nonce } = inboxPage()
    return c.html(html, 200, { 'Content-Security-Policy': contentSecurityPolicy(nonce) })
  }
  return new Hono()
    .route('/', live)
    .get('/', inbox)
    .get('/inbox', inbox)
    .get('/mails.json', (c) => c.json(mails.map(({ source: _, html: __, ...shown }) => shown)))
    .get('/events', () => events.stream())
    .get('/mails/:file{\\d+\\.html}', (c) => {
      const mail = mailOf(c)
      if (mail === undefined) return nothing(c)
      const html = inScheme(mail.html, c.req.query('scheme') ?? null)
      return c.html(html.replace(/<head\b[^<>]*>/i, '$&<base target="_blank">'), 200, {
        'Content-Security-Policy': MAIL_POLICY,
      })
    })
    .get('/mails/:file{\\d+\\.eml}', (c) => {
      const mail = mailOf(c)
      if (mail === undefined) return nothing(c)
      if (c.req.query('download') === undefined) return c.text(mail.source)
      const name = `attachment; filename="mail-${mail.id}.eml"`
      return c.body(mail.source, 200, { 'Content-Type': 'message/rfc822', 'Content-Disposition': name })
    })
    .all('*', nothing)
}

async function receive(id: number, bytes: Buffer): Promise<ReceivedMail> {
  const parsed = await PostalMime.parse(bytes)
  return {
    id,
    from: parsed.from?.address ?? '',
    to: parsed.to?.[0]?.address ?? '',
    subject: parsed.subject ?? '(no subject)',
    date: parsed.date ?? '',
    html: parsed.html ?? '',
    text: parsed.text ?? '',
    headers: parsed.headers.map(({ originalKey, value }) => ({ name: originalKey, value })),
    source: bytes.toString('utf8'),
  }
}
