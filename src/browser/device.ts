import { type AnalyticsEvent, OPT_OUT_KEY } from '../core/analytics/events.ts'
import { attempt, parsedJson } from '../core/is-record.ts'

/** At most this many events are kept on a device; beyond that the oldest are deleted. */
const MOST_BUFFERED = 10_000
/** Counting names costs milliseconds, so it is done once a page and then once in this many events. */
const COUNT_EVERY = 200
/** At most this many events wait in memory while the storage is full. */
const MOST_WAITING = 500

const PREFIX = 'platform.event.'

export type Buffer = ReturnType<typeof openBuffer>

/**
 * The ring buffer of a device, in local storage. Every event is an item of its own, so that tabs never write over each
 * other: there is nothing to read, change and write back. Names sort by time. An acknowledged event stays for the
 * dashboards of /insights and carries a mark.
 */
export function openBuffer(storage: Storage) {
  const waiting = new Map<string, string>()
  let added = 0
  const keys = () =>
    [...Object.keys(storage).filter((key) => key.startsWith(PREFIX)), ...waiting.keys()].sort()
  /** The item as it is stored: JSON of `[kind, at, properties]`, and a fourth element when it was acknowledged. */
  const read = (key: string) => waiting.get(key) ?? storage.getItem(key) ?? undefined
  const remove = (some: readonly string[]) => {
    for (const key of some) {
      waiting.delete(key)
      storage.removeItem(key)
    }
  }

  return {
    keys,
    read,
    /** Events as they are stored, without items that are none. */
    events: (some: readonly string[]) =>
      some.flatMap((key) => {
        const [kind, at, properties] = parse<unknown[]>(read(key))
        return kind ? { kind, at, properties } : []
      }),
    add({ kind, at, properties }: AnalyticsEvent): void {
      if (added++ % COUNT_EVERY === 0) remove(keys().slice(0, COUNT_EVERY - MOST_BUFFERED))
      const key = `${PREFIX}${at.toString(36).padStart(9, '0')}.${Math.random().toString(36).slice(2, 8)}`
      const value = JSON.stringify([kind, at, properties])
      if (write(storage, key, value)) return
      // Delete acknowledged events to make room; unacknowledged ones are worth more than the new one.
      const sent = keys().filter((old) => isAcknowledged(read(old)))
      remove(sent.slice(0, COUNT_EVERY))
      if (!write(storage, key, value) && waiting.size < MOST_WAITING) waiting.set(key, value)
    },
    acknowledge(some: readonly string[]): void {
      for (const key of some) {
        const value = read(key)
        // If the mark cannot be written, delete the event: losing it here is better than sending it again forever.
        if (!isAcknowledged(value) && !write(storage, key, `${value?.slice(0, -1)},1]`)) remove([key])
        waiting.delete(key)
      }
    },
    clear: () => remove(keys()),
  }
}

/** Whether a stored item was acknowledged; a missing one counts as acknowledged, as there is nothing to send. */
export const isAcknowledged = (value: string | undefined) => !value?.endsWith('}]')

/** The visitor opted out on this page: it counts here even where the storage has no room to write it down. */
let objected = false

/** Local storage, or undefined where the browser forbids it. */
export const deviceStorage = (): Storage | undefined => attempt(() => globalThis.localStorage ?? undefined)

/** Whether the visitor opted out by the opt-out key; false where storage cannot be read. */
export function hasOptedOut(): boolean {
  return objected || !/^(?:0|false|null|undefined)?$/.test(`${deviceStorage()?.getItem(OPT_OUT_KEY)}`)
}

/** Opts out of analytics and error reporting in all tabs, or in again. Old events make room in a full storage. */
export function setOptOut(out: boolean): void {
  objected = out
  const storage = deviceStorage()
  if (!out) storage?.removeItem(OPT_OUT_KEY)
  else if (storage && !write(storage, OPT_OUT_KEY, '1')) {
    const events = Object.keys(storage).filter((key) => key.startsWith(PREFIX))
    events.sort().some((event) => {
      storage.removeItem(event)
      return write(storage, OPT_OUT_KEY, '1')
    })
  }
}

/** Whether a storage took an item: not with a full quota, or where it can only be read. */
export const write = (storage: Storage, key: string, value: string): boolean =>
  attempt(() => {
    storage.setItem(key, value)
    return true
  }) ?? false

/**
 * May anything be recorded or reported? Read anew each time, so that an objection counts at once and in all tabs: the
 * opt-out key, or Global Privacy Control (w3.org/TR/gpc). Where storage cannot be read, consent is unknown, so the answer is no.
 */
export function isAllowed(): boolean {
  const isPrivate = () => (navigator as { globalPrivacyControl?: boolean }).globalPrivacyControl
  return attempt(() => deviceStorage() !== undefined && !hasOptedOut() && !isPrivate()) ?? false
}

/** Parses a stored list; anything else counts as an empty list. */
export function parse<List extends unknown[]>(text: string | null | undefined): List | [] {
  const value = parsedJson(text ?? '')
  return Array.isArray(value) ? (value as List) : []
}
