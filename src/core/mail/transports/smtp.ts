import { Readable } from 'node:stream'
import { createTransport } from 'nodemailer'
import MailComposer from 'nodemailer/lib/mail-composer'
import type { Secret } from '../../secret.ts'
import type { Mailbox } from '../address.ts'
import { type SmtpFault, smtpOutcome } from '../outcome.ts'
import type { Message, Transport } from '../transport.ts'

const POOL = 20
const CONNECT_MS = 10_000
const SILENCE_MS = 60_000

/**
 * SMTP by nodemailer's pool. `smtps:` speaks TLS from the start; `smtp:` upgrades when the server offers it, and a
 * certificate that cannot be verified is refused either way. The key is the password when the address names a user
 * without one; an address without a user means no authentication.
 */
export function openSmtp({ url, key }: { readonly url: Secret; readonly key: Secret }): Transport {
  const address = new URL(url.reveal())
  const user = decodeURIComponent(address.username)
  const pool = createTransport({
    pool: true,
    maxConnections: POOL,
    maxMessages: Number.POSITIVE_INFINITY,
    host: address.hostname.replace(/^\[|\]$/g, ''),
    port: Number(address.port) || (address.protocol === 'smtps:' ? 465 : 587),
    secure: address.protocol === 'smtps:',
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    socketTimeout: SILENCE_MS,
    ...(user === '' ? {} : { auth: { user, pass: decodeURIComponent(address.password) || key.reveal() } }),
  })
  return {
    kind: 'smtp',
    async send(message) {
      // Built first, so that the pool only writes bytes; the stream tells whether it began to.
      const bytes = await mimeOf(message)
      let handedOver = false
      const raw = Readable.from(
        (function* () {
          handedOver = true
          yield bytes
        })(),
      )
      try {
        const info = await pool.sendMail({
          envelope: { from: message.from.address, to: [message.to.address] },
          raw,
          messageId: `<${message.messageId}>`,
        })
        return info.rejected.length > 0
          ? smtpOutcome({ code: 550, response: info.response, handedOver, errno: undefined })
          : { kind: 'sent', id: message.messageId }
      } catch (error) {
        return smtpOutcome(faultOf(error, handedOver))
      }
    },
    async verify(signal) {
      signal?.throwIfAborted()
      try {
        await pool.verify()
      } catch (error) {
        throw new Error(smtpOutcome(faultOf(error, false)).reason)
      }
    },
    close: async () => pool.close(),
  }
}

/** The message as it goes over the wire, DKIM aside. */
export async function mimeOf(message: Message): Promise<Buffer> {
  const composer = new MailComposer({
    from: mailbox(message.from),
    to: mailbox(message.to),
    ...(message.replyTo ? { replyTo: mailbox(message.replyTo) } : {}),
    subject: message.subject,
    date: message.date,
    messageId: `<${message.messageId}>`,
    html: message.html,
    text: message.text,
    headers: message.headers,
    // nodemailer draws its boundaries at random: seeded by the key, the same message has the same bytes.
    baseBoundary: message.messageId.slice(0, 32),
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return composer.compile().build()
}

function mailbox({ name, address }: Mailbox): { name: string; address: string } {
  return { name: name ?? '', address }
}

function faultOf(error: unknown, handedOver: boolean): SmtpFault {
  const fault = (error ?? {}) as { responseCode?: number; response?: string; code?: string; command?: string }
  const message = error instanceof Error ? error.message : ''
  const tls = /certificate|self.signed|altname|unable to verify/i.test(message)
  return {
    code: fault.responseCode,
    response: fault.response,
    handedOver,
    errno: tls ? 'ECERT' : fault.code,
  }
}
