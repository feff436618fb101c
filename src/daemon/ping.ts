import type { Host } from '../core/host.ts'
import { proxiedFetch } from '../core/network/proxy.ts'
import type { Secret } from '../core/secret.ts'

const ANSWER_MS = 10_000
const PAUSES_MS = [5000, 30_000]

/** Pings an external dead man's switch, which alerts people when the pings stop. */
export function createPing({ clock, log }: Pick<Host, 'clock' | 'log'>, url: Secret, send = proxiedFetch) {
  const stopping = new AbortController()
  let pinging: Promise<void> | undefined

  async function ping(): Promise<void> {
    let reason = ''
    for (const pause of [...PAUSES_MS, undefined]) {
      try {
        const answer = await send(url.reveal(), {
          redirect: 'follow',
          signal: AbortSignal.any([stopping.signal, AbortSignal.timeout(ANSWER_MS)]),
        })
        await answer.body?.cancel()
        if (answer.ok) return
        reason = `it answered ${answer.status}`
      } catch {
        // The fault's own text could quote the address, which is a secret.
        reason = 'it did not answer'
      }
      if (stopping.signal.aborted) return
      if (pause !== undefined) await clock.sleep(pause, stopping.signal).catch(() => {})
    }
    log.warn('heartbeat_ping_failed', 'the address in HEARTBEAT_PING_URL could not be called', { reason })
  }
  return {
    ping(): void {
      pinging ??= ping().finally(() => {
        pinging = undefined
      })
    },
    async stop(): Promise<void> {
      stopping.abort(new Error('the daemon stops'))
      await pinging
    },
  }
}
