import type { AnalyticsEvent } from '../core/analytics/events.ts'

/** The part of the Web Storage API that is used here; its own keys are the stored names. */
export interface DeviceStorage {
  getItem(key: string): string | null
  setItem(key: string, value: string): void
  removeItem(key: string): void
}

/** At most this many events are kept on a device; beyond that the oldest are deleted. */
const MOST_BUFFERED = 10_000
/** Counting names costs milliseconds, so it is done once a page and then once in this many events. */
const COUNT_EVERY = 200
/** At most this many events wait in memory while the storage is full. */
const MOST_WAITING = 500

/** Begins the name of each event's item. */
export const PREFIX = 'platform.event.'

/**
 * The ring buffer of a device, in local storage. Every event is an item of its own, so that tabs never write over each
 * other: there is nothing to read, change and write back. Names sort by time. An acknowledged event stays for the
 * dashboards of /insights and carries a mark.
 */
export interface Buffer {
  add(event: AnalyticsEvent): void
  /** Names of all events, the oldest first. */
  keys(): string[]
  /** The item as it is stored: JSON of `[kind, at, properties]`, and a fourth element when it was acknowledged. */
  read(key: string): string | undefined
  acknowledge(keys: readonly string[]): void
  clear(): void
}

export function openBuffer(storage: DeviceStorage): Buffer {
  const waiting = new Map<string, string>()
  let added = 0
  const keys = () =>
    [...Object.keys(storage).filter((key) => key.startsWith(PREFIX)), ...waiting.keys()].sort()
  const read = (key: string) => waiting.get(key) ?? storage.getItem(key) ?? undefined
  const remove = (some: readonly string[]) => {
    for (const key of some) {
      waiting.delete(key)
      storage.removeItem(key)
    }
  }
  const write = (key: string, value: string): boolean => {
    try {
      storage.setItem(key, value)
      return true
    } catch {
      // A full quota, or a storage that can only be read.
      return false
    }
  }

  return {
    keys,
    read,
    add({ kind, at, properties }) {
      if (added++ % COUNT_EVERY === 0) remove(keys().slice(0, COUNT_EVERY - MOST_BUFFERED))
      const key = `${PREFIX}${at.toString(36).padStart(9, '0')}.${Math.random().toString(36).slice(2, 8)}`
      const value = JSON.stringify([kind, at, properties])
      if (write(key, value)) return
      // Delete acknowledged events to make room; unacknowledged ones are worth more than the new one.
      remove(
        keys()
          .filter((old) => isAcknowledged(read(old)))
          .slice(0, COUNT_EVERY),
      )
      if (!write(key, value) && waiting.size < MOST_WAITING) waiting.set(key, value)
    },
    acknowledge(some) {
      for (const key of some) {
        const value = read(key)
        // If the mark cannot be written, delete the event: losing it here is better than sending it again forever.
        if (!isAcknowledged(value) && !write(key, `${value?.slice(0, -1)},1]`)) remove([key])
        waiting.delete(key)
      }
    },
    clear: () => remove(keys()),
  }
}

/** Whether a stored item was acknowledged; a missing one counts as acknowledged, as there is nothing to send. */
export function isAcknowledged(value: string | undefined): boolean {
  return !value?.endsWith('}]')
}
