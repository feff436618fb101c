import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import { isNearby, type Peer, untrustedClient } from './client.ts'

/** How long a proxy counts as seen. */
const MEMORY_MS = 60 * 60 * 1000

/**
 * Notices a proxy that TRUST_PROXY does not name: a machine nearby that forwards for more than one client.
 * All its visitors then count as one client, which nobody would notice otherwise.
 */
export function createProxyWatch({
  trustProxy,
  clock,
  log,
}: {
  readonly trustProxy: readonly string[]
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Log
}): { note(peer: Peer): void; seen(): boolean } {
  const clientOf = untrustedClient(trustProxy)
  let first: string | undefined
  let lastSeen = Number.NEGATIVE_INFINITY
  const seen = () => clock.monotonic() - lastSeen < MEMORY_MS
  return {
    note(peer) {
      const client = clientOf(peer)
      if (client === undefined || peer.socket === undefined || !isNearby(peer.socket)) return
      first ??= client
      if (client === first) return
      if (!seen())
        log.warn(
          'proxy_not_trusted',
          'a proxy that TRUST_PROXY does not name forwards requests: all its visitors count as one client',
        )
      lastSeen = clock.monotonic()
    },
    seen,
  }
}
