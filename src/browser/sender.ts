import { MOST_EVENTS } from '../core/analytics/events.ts'
import { type Buffer, isAcknowledged, parse, write } from './device.ts'

export const BATCH_KEY = 'platform.batch'
/** Bodies that outlive their page share 64 KiB (Fetch §4.6, keepalive). */
const MOST_KEPT_ALIVE = 65_536
/** The largest batch. The rest of the 64 KiB is for the page's other keepalive requests. */
const MOST_BYTES = 60_000
const QUIET_MS = 5000
const FIRST_WAIT_MS = 10_000
const LONGEST_WAIT_MS = 3_600_000
/** A browser's timer that is set to more than 24 days fires at once. */
const LONGEST_TOLD_MS = 86_400_000
const PATIENCE_MS = 30_000

/**
 * Sends the buffer in batches of at most 500. A batch is written down with its id before it is sent and forgotten when
 * it is acknowledged: after a lost answer, a closed page or a crash it goes out under the same id, and is stored once.
 */
export function createSender(
  buffer: Buffer,
  storage: Storage,
  endpoint: string,
  /** Of the page that asks: this file is a chunk, and would have a consent of its own. */
  isAllowed: () => boolean,
) {
  let waitMs = 0
  let _timer: unknown
  let running: AbortController | undefined

  const soon = () => {
    _timer ??= setTimeout(() => {
      _timer = undefined
      alone(send, soon)
    }, QUIET_MS + waitMs)
  }

  const send = () => attempt().catch(() => {})
  const attempt = async (): Promise<void> => {
    const batch = running || !isAllowed() ? undefined : openBatch()
    if (!batch) return
    running = new AbortController()
    const patience = setTimeout(() => running?.abort(), PATIENCE_MS)
    let answer: Response | undefined
    try {
      answer = await fetch(endpoint, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: batch.body,
        credentials: 'omit',
        referrerPolicy: 'no-referrer',
        keepalive: batch.body.size < MOST_KEPT_ALIVE,
        signal: running.signal,
      })
      // Read the body: until then the request counts toward the keepalive limit, and the next one would be refused.
      await answer.text()
    } catch {
      // Offline, refused or aborted: the batch is still written down.
    }
    clearTimeout(patience)
    running = undefined
    // Drop a batch that ingest refuses as malformed: it would be refused again.
    if (answer?.ok || answer?.status === 400 || answer?.status === 413) {
      buffer.acknowledge(batch.keys)
      storage.removeItem(BATCH_KEY)
      waitMs = 0
    } else {
      const told = Number(answer?.headers.get('retry-after')) * 1000 || 0
      waitMs = Math.max(
        Math.min(told, LONGEST_TOLD_MS),
        Math.min(LONGEST_WAIT_MS, (waitMs || FIRST_WAIT_MS) * (1.5 + Math.random())),
      )
    }
    soon()
  }

  /** The batch that was written down, or a new one; undefined when nothing waits. */
  const openBatch = (): { keys: string[]; body: Blob } | undefined => {
    let [id, keys = []] = parse<[string?, string[]?]>(storage.getItem(BATCH_KEY))
    if (!keys.some(buffer.read)) {
      let room = MOST_BYTES
      keys = buffer
        .keys()
        .filter((key) => !isAcknowledged(buffer.read(key)))
        .slice(0, MOST_EVENTS)
        // The size of the item, plus room for the field names.
        .filter((key) => {
          room -= new Blob([`${buffer.read(key)}`]).size + 40
          return room > 0
        })
      if (!keys.length) return undefined
      id = Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('')
      // In a full storage it is not: if the answer is lost, the batch is sent under a new id and counted twice.
      write(storage, BATCH_KEY, JSON.stringify([id, keys]))
    }
    return { keys, body: new Blob([JSON.stringify({ batch: id, events: buffer.events(keys) })]) }
  }

  const stop = () => running?.abort()

  addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'hidden') send()
  })
  // An objection in another tab.
  addEventListener('storage', () => isAllowed() || stop())
  soon()
  return { soon, stop }
}

/** One tab sends at a time, where the browser can tell (Web Locks); elsewhere ingest knows a batch by its id. */
function alone(work: () => Promise<void>, busy: () => void): void {
  if (navigator.locks)
    navigator.locks
      .request('platform.send', { ifAvailable: true }, (lock) => (lock ? work() : busy()))
      .catch(() => {})
  else work()
}
