import { asciiAddress } from '../../address.ts'
import { percentDecoded } from '../../is-record.ts'
import { hostOf, isHere } from '../../network/connect.ts'
import type { Secret } from '../../secret.ts'
import type { BounceAddresses } from '../feedback/bounce-address.ts'
import { LINES, PATIENCE_MS, type Transport } from '../mailer.ts'
import { MailFault, type SmtpFault, smtpOutcome } from '../outcome.ts'
import { mimeOf, type SignMessage } from './mime.ts'
import { NO_REPLY, openSession, type SessionOptions, type SmtpSession } from './smtp-session.ts'

const LIMITED_MS = 5 * 60_000

/** Opens up to `size` connections as they are needed, or as many as the server takes, and keeps them. Further messages wait. */
export function smtpPool(options: SessionOptions, size: number) {
  const idle: SmtpSession[] = []
  const waiting: (() => void)[] = []
  let open = 0
  let closed = false
  /** What the server takes at once, for a while after it refused one more. */
  let limit = { most: size, until: 0 }

  const ended = () => {
    open -= 1
    waiting.shift()?.()
  }
  /** A server that takes no further connection goes on with those that it has. */
  function noFurther(fault: SmtpFault): undefined {
    if (fault.code !== 421 || open === 0) throw fault
    limit = { most: open, until: performance.now() + LIMITED_MS }
  }

  async function take(signal: AbortSignal | undefined): Promise<SmtpSession> {
    for (;;) {
      if (closed || signal?.aborted) throw NO_REPLY
      const kept = idle.pop()
      if (kept?.alive) return kept
      if (kept) continue
      if (open >= (performance.now() < limit.until ? limit.most : size)) {
        await new Promise<void>((resolve) => waiting.push(resolve))
        // This caller gave up while it waited: pass the free connection on to the next one.
        if (signal?.aborted) waiting.shift()?.()
        continue
      }
      open += 1
      const session = await openSession(options, ended, signal).catch(noFurther)
      if (session) return session
    }
  }

  function giveBack(session: SmtpSession): void {
    if (!session.alive) return
    if (closed) session.quit()
    else {
      idle.push(session)
      waiting.shift()?.()
    }
  }

  return {
    /** Undefined: the server has taken the message. Never rejects. */
    async send(...[message, signal, recorded]: Parameters<SmtpSession['send']>) {
      try {
        for (;;) {
          const session = await take(signal)
          const kept = session.sent > 0
          const fault = await session.send(message, signal, recorded)
          giveBack(session)
          const ended = kept && !session.alive
          // The server may have ended a kept connection (idle, or too many messages on it) without our knowing. As
          // long as nothing was handed over, try the next one, until a fresh one.
          const stale = ended && fault !== undefined && !fault.handedOver && (fault.code ?? 421) === 421
          const ours = fault?.command === 'local' || fault?.command === 'record'
          if (!stale || ours || signal?.aborted) return fault
        }
      } catch (fault) {
        // Only opening a connection throws here, and it throws SmtpFaults.
        return fault as SmtpFault
      }
    },
    /** Rejects with an SmtpFault. */
    async verify(signal: AbortSignal | undefined): Promise<void> {
      if (signal?.aborted) throw NO_REPLY
      const session = await openSession(options, () => {}, signal).catch(noFurther)
      session?.quit()
    },
    close(): void {
      closed = true
      for (const session of idle.splice(0)) session.quit()
      for (const wake of waiting.splice(0)) wake()
    },
  }
}

const CONNECT_MS = 10_000
/** For every reply but the last. */
const SILENCE_MS = 2 * 60_000
/** A server may take this long for its last reply (RFC 5321 §4.5.3.2.6): giving up earlier would repeat accepted messages. */
const FINAL_REPLY_MS = 10 * 60_000

/**
 * SMTP over a pool of lines. `smtps:` speaks TLS from the start; `smtp:` upgrades when the server offers it, and a
 * certificate that cannot be verified is refused. The key is the password of a user without one; without a user there
 * is no authentication. Credentials never leave the machine unencrypted.
 */
export function openSmtp(input: {
  readonly url: Secret
  readonly key?: Secret | undefined
  readonly bounceAddresses?: BounceAddresses | undefined
  readonly dkim?: SignMessage | undefined
  readonly silenceMs?: number
  readonly finalReplyMs?: number
}): Transport {
  const { url, key, bounceAddresses, dkim } = input
  const { silenceMs = SILENCE_MS, finalReplyMs = FINAL_REPLY_MS } = input
  const address = new URL(url.reveal())
  const user = percentDecoded(address.username)
  const auth =
    user === '' ? undefined : { user, pass: percentDecoded(address.password) || (key?.reveal() ?? '') }
  const pool = smtpPool(
    {
      host: hostOf(address),
      port: Number(address.port) || (address.protocol === 'smtps:' ? 465 : 587),
      secure: address.protocol === 'smtps:',
      requireTLS: address.protocol === 'smtp:' && auth !== undefined && !isHere(address),
      // A mail server's package gives it a certificate that nobody signed; here it needs none.
      ...(address.protocol === 'smtp:' && isHere(address) && { tls: { rejectUnauthorized: false } }),
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
      const bytes = dkim === undefined ? plain : await dkim(plain)
      const { address } = message.to
      const from = bounceAddresses?.senderFor(address) ?? asciiAddress(message.from.address)
      const fault = await pool.send({ from, to: asciiAddress(address), bytes }, signal, recorded)
      return fault === undefined ? { kind: 'sent', id: message.messageId } : smtpOutcome(fault)
    },
    verify: (signal) =>
      pool.verify(signal).catch((fault: SmtpFault) => {
        throw new MailFault(smtpOutcome(fault).reason)
      }),
    close: async () => pool.close(),
  }
}
