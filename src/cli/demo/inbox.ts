import type { Server } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import PostalMime from 'postal-mime'
import { SMTPServer } from 'smtp-server'
import { inScheme } from '../local-page.ts'
import { contentSecurityPolicy, inboxPage } from './inbox-page.ts'

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
  /** Resolves with the first mail, past or future, that `matches`; rejects when aborted. */
  waitFor(matches: (mail: ReceivedMail) => boolean, signal: AbortSignal): Promise<ReceivedMail>
  close(): Promise<void>
}

const isLoopback = (host: string | undefined) => /^(?:127\.0\.0\.1|localhost)(?::\d+)?$/i.test(host ?? '')

const LARGEST_MESSAGE_BYTES = 2_000_000

/** Opens both servers on 127.0.0.1: SMTP on any free port, the page on `pagePort` (0: any). */
export async function openInbox({ pagePort }: { pagePort: number }): Promise<Inbox> {
  const mails: ReceivedMail[] = []
  const listeners = new Set<(mail: ReceivedMail) => void>()

  const smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ['AUTH', 'STARTTLS'],
    size: LARGEST_MESSAGE_BYTES,
    onData(stream, _session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('error', done)
      stream.on('end', () => {
        receive(mails.length + 1, Buffer.concat(chunks)).then((mail) => {
          mails.push(mail)
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

  const page = createServer((request, response) => {
    // Accept loopback hosts only, or a site whose name points at this machine could read the mails (DNS rebinding).
    if (!isLoopback(request.headers.host))
      return respond(421, 'text/plain; charset=utf-8', 'Ask 127.0.0.1.\n')
    // Joined and not resolved: `//` would be another host.
    const path = request.url ?? '/'
    const url = path.startsWith('/') ? URL.parse(`http://inbox${path}`) : null
    if (url === null) return respond(400, 'text/plain; charset=utf-8', 'This is no path.\n')
    const mail = mails[Number(/^\/mails\/(\d+)/.exec(url.pathname)?.[1]) - 1]
    response.setHeader('Cache-Control', 'no-store')
    response.setHeader('X-Content-Type-Options', 'nosniff')
    response.setHeader('Referrer-Policy', 'no-referrer')
    if (url.pathname === '/') {
      const { html, nonce } = inboxPage()
      response.setHeader('Content-Security-Policy', contentSecurityPolicy(nonce))
      respond(200, 'text/html; charset=utf-8', html)
    } else if (url.pathname === '/mails.json') {
      respond(
        200,
        'application/json',
        JSON.stringify(mails.map(({ source: _, html: __, ...shown }) => shown)),
      )
    } else if (url.pathname === '/events') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      response.write(': open\n\n')
      const tell = (arrived: ReceivedMail) => response.write(`data: ${arrived.id}\n\n`)
      listeners.add(tell)
      request.on('close', () => listeners.delete(tell))
    } else if (mail && url.pathname.endsWith('.html')) {
      // A mail's content is untrusted: no scripts, no network, an origin of its own.
      response.setHeader(
        'Content-Security-Policy',
        "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:",
      )
      respond(
        200,
        'text/html; charset=utf-8',
        inScheme(mail.html, url.searchParams.get('scheme')).replace(
          /<head\b[^<>]*>/i,
          '$&<base target="_blank">',
        ),
      )
    } else if (mail && url.pathname.endsWith('.eml')) {
      if (url.searchParams.has('download')) {
        response.setHeader('Content-Disposition', `attachment; filename="mail-${mail.id}.eml"`)
        respond(200, 'message/rfc822', mail.source)
      } else respond(200, 'text/plain; charset=utf-8', mail.source)
    } else {
      respond(404, 'text/plain; charset=utf-8', 'Nothing here; the inbox is at /\n')
    }

    function respond(status: number, type: string, body: string): void {
      response.writeHead(status, { 'Content-Type': type })
      response.end(request.method === 'HEAD' ? undefined : body)
    }
  })
  await listen(page, pagePort)

  return {
    smtpUrl: `smtp://127.0.0.1:${(smtp.server.address() as AddressInfo).port}`,
    pageUrl: `http://127.0.0.1:${(page.address() as AddressInfo).port}`,
    mails,
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
      const closed = Promise.all([
        new Promise<void>((resolve) => smtp.close(resolve)),
        new Promise<void>((resolve) => page.close(() => resolve())),
      ])
      page.closeAllConnections()
      await closed
    },
  }
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

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
}
