import { UNKNOWN_CLIENT } from '../../core/access/client.ts'
import { PlatformError } from '../../core/errors.ts'

/** One request's share of the memory for bodies. */
export interface BodyShare {
  /** Takes bytes that have arrived; throws when this client or all together hold too many. */
  take(bytes: number): void
  /** Gives everything back, once the request is answered. */
  release(): void
}

/** A client's share of the memory: one that floods leaves the rest to others. */
const CLIENT_PART = 8

/**
 * Bounds the bytes of request bodies that are held at once, in all and by one client (docs/limits.md). Counted as they
 * arrive and given back with the answer, because until then the text and what was parsed of it are in memory.
 */
export function bodyMemory(mostBytes: number): (client: string) => BodyShare {
  const held = new Map<string, number>()
  let all = 0
  return (client) => {
    let mine = 0
    const share = client === UNKNOWN_CLIENT ? mostBytes : mostBytes / CLIENT_PART
    return {
      take(bytes) {
        const ofClient = held.get(client) ?? 0
        if (ofClient + bytes > share)
          throw new PlatformError(
            'rate_limited',
            'Too many large requests at once; send them one after the other.',
            { retryAfterSeconds: 1 },
          )
        if (all + bytes > mostBytes)
          throw new PlatformError('unavailable', 'Too many large requests at once; try again in a second.', {
            retryAfterSeconds: 1,
          })
        mine += bytes
        all += bytes
        held.set(client, ofClient + bytes)
      },
      release() {
        all -= mine
        const left = (held.get(client) ?? 0) - mine
        if (left > 0) held.set(client, left)
        else held.delete(client)
        mine = 0
      },
    }
  }
}
