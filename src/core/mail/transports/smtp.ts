import { isIP } from 'node:net'
import { asciiAddress } from '../../address.ts'
import type { Secret } from '../../secret.ts'
import type { BounceAddresses } from '../feedback/bounce-address.ts'
import { mimeOf } from '../mime/mime.ts'
import { type SmtpFault, smtpOutcome } from '../outcome.ts'
import { LINES, PATIENCE_MS, type Transport } from '../transport.ts'
import type { DkimSigner } from './dkim.ts'
import { smtpPool } from './smtp-pool.ts'

const CONNECT_MS = 10_000
/** For every reply but the last. */
const SILENCE_MS = 2 * 60_000
/** A server may take this long for its last reply (RFC 5321 §4.5.3.2.6): giving up earlier would repeat accepted messages. */
const FINAL_REPLY_MS = 10 * 60_000

/**
 * SMTP over a pool of lines. `smtps:` speaks TLS from the start; `smtp:` upgrades when the server offers it, and a
 * certificate that cannot be verified is refused either way. The key is the password when the address names a user
 * without one; an address without a user means no authentication. Credentials never leave the machine unencrypted.
 */
export function openSmtp({
  url,
  key,
  bounceAddresses,
  dkim,
  silenceMs = SILENCE_MS,
  finalReplyMs = FINAL_REPLY_MS,
}: {
  readonly url: Secret
  readonly key: Secret
  readonly bounceAddresses?: BounceAddresses | undefined
  readonly dkim?: DkimSigner | undefined
  readonly silenceMs?: number
  readonly finalReplyMs?: number
}): Transport {
  const address = new URL(url.reveal())
  const user = decodeURIComponent(address.username)
  const host = address.hostname.replace(/^\[|\]$/g, '')
  const auth = user === '' ? undefined : { user, pass: decodeURIComponent(address.password) || key.reveal() }
  const pool = smtpPool(
    {
      host,
      port: Number(address.port) || (address.protocol === 'smtps:' ? 465 : 587),
      secure: address.protocol === 'smtps:',
      requireTLS: address.protocol === 'smtp:' && auth !== undefined && !isLoopback(host),
      connectionTimeout: CONNECT_MS,
      greetingTimeout: CONNECT_MS,
      // The session's own limits end a line earlier.
      socketTimeout: silenceMs + finalReplyMs,
      silenceMs,
      finalReplyMs,
      auth,
    },
    LINES.smtp,
  )
  return {
    kind: 'smtp',
    patienceMs: PATIENCE_MS.smtp,
    async send(message, signal, recorded) {
      const plain = mimeOf(message)
      const bytes = dkim === undefined ? plain : await dkim.sign(plain)
      const fault = await pool.send(
        {
          from: bounceAddresses?.senderFor(message.to.address) ?? asciiAddress(message.from.address),
          to: asciiAddress(message.to.address),
          bytes,
        },
        signal,
        recorded,
      )
      return fault === undefined ? { kind: 'sent', id: message.messageId } : smtpOutcome(fault)
    },
    verify: (signal) =>
      pool.verify(signal).catch((fault: SmtpFault) => {
        throw new Error(smtpOutcome(fault).reason)
      }),
    close: async () => pool.close(),
  }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}
