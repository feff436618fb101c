import type { SmtpFault } from '../outcome.ts'
import type { WaitUntilRecorded } from '../transport.ts'
import { openSession, type SessionOptions, type SmtpMessage, type SmtpSession } from './smtp-session.ts'

export interface SmtpPool {
  /** Undefined: the server has taken the message. Never rejects. */
  send(
    message: SmtpMessage,
    signal: AbortSignal | undefined,
    recorded?: WaitUntilRecorded,
  ): Promise<SmtpFault | undefined>
  /** Rejects with an SmtpFault. */
  verify(signal: AbortSignal | undefined): Promise<void>
  close(): void
}

const CLOSED: SmtpFault = { code: undefined, enhanced: undefined, command: 'connect', handedOver: false }

/**
 * Opens up to `size` connections as they are needed and keeps them while they live. Further messages wait in
 * turn.
 */
export function smtpPool(options: SessionOptions, size: number): SmtpPool {
  const idle: SmtpSession[] = []
  const waiting: (() => void)[] = []
  let open = 0
  let closed = false

  const ended = () => {
    open -= 1
    waiting.shift()?.()
  }

  async function take(signal: AbortSignal | undefined): Promise<SmtpSession> {
    for (;;) {
      if (closed || signal?.aborted) throw CLOSED
      const kept = idle.pop()
      if (kept?.alive) return kept
      if (kept) continue
      if (open < size) {
        open += 1
        return openSession(options, ended, signal)
      }
      await new Promise<void>((resolve) => waiting.push(resolve))
      // This caller gave up while it waited: pass the free connection on to the next one.
      if (signal?.aborted) waiting.shift()?.()
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

  async function attempt(
    message: SmtpMessage,
    signal: AbortSignal | undefined,
    recorded?: WaitUntilRecorded,
  ) {
    const session = await take(signal)
    const kept = session.sent > 0
    const fault = await session.send(message, signal, recorded)
    giveBack(session)
    return { fault, ended: kept && !session.alive }
  }

  return {
    async send(message, signal, recorded) {
      try {
        for (;;) {
          const { fault, ended } = await attempt(message, signal, recorded)
          // The server may have ended a kept connection (idle, or too many messages on it) without our
          // knowing. As long as nothing was handed over, that says nothing about the server: try the next
          // connection, until a fresh one.
          const stale = ended && fault !== undefined && !fault.handedOver && (fault.code ?? 421) === 421
          const ours = fault?.command === 'local' || fault?.command === 'record'
          if (!stale || ours || signal?.aborted) return fault
        }
      } catch (fault) {
        // Only opening a connection throws here, and it throws SmtpFaults.
        return fault as SmtpFault
      }
    },
    async verify(signal) {
      if (signal?.aborted) throw CLOSED
      const session = await openSession(options, () => {}, signal)
      session.quit()
    },
    close() {
      closed = true
      for (const session of idle.splice(0)) session.quit()
      for (const wake of waiting.splice(0)) wake()
    },
  }
}
