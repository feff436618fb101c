import path from 'node:path'
import type { StoreAddress } from '../core/env/settings.ts'
import { type Clock, within } from '../core/host.ts'
import type { History, Round, SharedHistory } from '../core/status/history.ts'
import { StoreOpenError } from '../core/store/errors.ts'
import { openHistory, openSharedHistory } from '../core/store/open.ts'
import type { OnLost } from '../core/store/store.ts'
import { type DaemonOptions, replicaOf } from './options.ts'

/** The longest that a check or a visitor waits for a store that hangs. */
const STORE_WITHIN_MS = 1000
/** Four hours without the store are recorded there afterwards. */
const ROUNDS_KEPT = 240

/** This machine's history, and with it the one that all machines of the store share. */
export async function openHistoryOf(options: DaemonOptions, address: StoreAddress, onLost: OnLost) {
  const { history, clock, dataFolder, log } = options
  const opened = history ?? openHistory(path.join(dataFolder, 'history.sqlite'), onLost)
  // In memory if the file cannot be opened, so that the services can still run.
  const own = await Promise.resolve(opened).catch((error: unknown) => {
    const reason = error instanceof StoreOpenError ? error.message : 'its file cannot be opened'
    log.warn('history_in_memory', 'the health history is in memory and ends with the process', { reason })
    return openHistory(undefined)
  })
  const shared = await openSharedHistory(address, log)
  return shared ? shareHistory(clock, own, shared, replicaOf(options)) : own
}

/**
 * The history that all machines of a store record into and show. Each also keeps its own: that is shown while the store
 * fails. What could not be written there is written when it is back; a new store begins with what this machine has.
 */
export function shareHistory(clock: Pick<Clock, 'now'>, own: History, shared: SharedHistory, name: string) {
  let waiting: Round[] = []
  let seeded = false
  let behind = false
  let writing: Promise<void> | undefined

  /** Fills a new store with this machine's record, and so with the rounds that wait until that record is read. */
  async function seed(): Promise<void> {
    let read: readonly Round[] = []
    const past = () => {
      read = waiting
      return own.read(clock.now())
    }
    if (await shared.seed(past, name)) waiting = waiting.filter((round) => !read.includes(round))
  }

  async function write(): Promise<void> {
    if (!seeded) await seed()
    seeded = true
    for (let round = waiting[0]; round !== undefined; round = waiting[0]) {
      await shared.record(round, name, clock.now())
      if (waiting[0] === round) waiting.shift()
    }
    behind = false
  }

  return {
    persistent: true,
    ...(own.sampleUntil !== undefined && { sampleUntil: own.sampleUntil }),
    async record(round) {
      waiting = [...waiting, round].slice(-ROUNDS_KEPT)
      const kept = own.record(round)
      await kept.catch(() => {})
      writing ??= write()
        .catch(() => {
          behind = true
        })
        .finally(() => {
          writing = undefined
        })
      await within(STORE_WITHIN_MS, writing, () => {})
      await kept
    },
    async read(now) {
      const mine = await own.read(now)
      const nothing = () => undefined
      const all = behind ? undefined : await within(STORE_WITHIN_MS, shared.read(now), nothing).catch(nothing)
      return all === undefined || all.series.length === 0 ? mine : { ...all, incidents: mine.incidents }
    },
    async close() {
      await within(STORE_WITHIN_MS, writing ?? Promise.resolve(), () => {})
      await Promise.all([own.close(), shared.close()])
    },
  } satisfies History
}
