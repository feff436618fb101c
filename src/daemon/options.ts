import { hostname } from 'node:os'
import path from 'node:path'
import { type DaemonRecord, leavePointer, type Places, recordDaemon } from '../core/daemon-record.ts'
import type { Environment, Settings, StoreAddress } from '../core/env/settings.ts'
import { codeOf, faultName } from '../core/errors.ts'
import type { Host } from '../core/host.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import type { Service } from '../core/service.ts'
import type { History } from '../core/status/history.ts'

export interface DaemonOptions extends Omit<Host, 'timer'> {
  readonly env: Environment
  readonly platform: ResolvedPlatform
  readonly services: readonly Service[]
  readonly host: string
  /** 0 takes a free one; of a service that is not named, the one of its definition. */
  readonly ports: Readonly<Record<Service, number>>
  /** Holds `history.sqlite`, and `platform.sqlite` unless STORE_URL names another store. */
  readonly dataFolder: string
  /** In place of `history.sqlite`; closed with the daemon. */
  readonly history?: History
  readonly schedule: boolean
  /** Take the store over from a platform of another name. */
  readonly adopt?: boolean | undefined
  readonly freeSpace?:
    | ((folder: string) => Promise<{ readonly freeBytes: number; readonly bytes: number }>)
    | undefined
  /** The env files that `env` was read from, for the record in the data folder. */
  readonly envFiles?: readonly string[]
  readonly isFromFile?: (name: string) => boolean
  readonly secretFiles?: readonly string[]
  /** Where commands that run in other folders look for this daemon. */
  readonly pointerFolder?: string | undefined
}

/** The store that STORE_URL names, or else the file in the data folder. */
export function storeAddress(settings: Settings, dataFolder: string): StoreAddress {
  return settings.store.address ?? { kind: 'sqlite', file: path.join(dataFolder, 'platform.sqlite') }
}

/** Names this process among those that share its store: two daemons of one machine have a folder each. */
export const replicaOf = ({ dataFolder }: DaemonOptions) => `${hostname()}:${path.resolve(dataFolder)}`

/** What the alert about a refused start is made from. */
export type Started = Pick<DaemonOptions, 'env' | 'platform' | 'envFiles' | 'dataFolder' | 'pointerFolder'>

export function placesOf({ platform, envFiles = [], dataFolder }: Started): Places {
  return { definition: platform.definition?.file ?? null, envFiles, dataFolder: path.resolve(dataFolder) }
}

/** Writes daemon.json for the commands that use this folder's store. The daemon also runs without it. */
export function record({ dataFolder, log }: DaemonOptions, own: DaemonRecord): void {
  try {
    const others = recordDaemon(dataFolder, own).filter(({ host }) => host === own.host)
    const twin = others.find(({ urls }) => Object.keys(urls).some((service) => own.urls[service]))
    const shared = 'another daemon runs the same services with this data folder: stop one of the two'
    if (twin && own.stoppedAt === undefined) log.warn('folder_shared', shared, { process: twin.pid })
  } catch (error) {
    const unwritten = 'daemon.json cannot be written, so commands cannot compare their store with this one'
    log.warn('record_not_written', unwritten, { fault: codeOf(error) || 'unknown' })
  }
}

/** Says where this daemon is, until the returned function is called. Commands in other folders then need no options. */
export function point({ pointerFolder: folder, dataFolder, log }: DaemonOptions): () => void {
  if (folder === undefined) return () => {}
  try {
    return leavePointer(folder, dataFolder)
  } catch (error) {
    const hidden = 'commands in other folders do not find this daemon: name its options'
    log.info('pointer_not_written', hidden, { folder, fault: codeOf(error) || 'unknown' })
    return () => {}
  }
}

/** What a daemon closes, in this order: nothing before what depends on it. */
const CLOSED = [
  'pointer',
  'ping',
  'certificates',
  'eventLoop',
  // What is in flight in one must not wait for another.
  'traffic',
  'platform',
  'history',
  // Alerts in flight are recorded first.
  'alerts',
  'store',
] as const
export type Closing = Partial<Record<(typeof CLOSED)[number], (deadlineMs: number) => unknown>>
/** What each part still gets once the deadline has passed, to record what it knows. */
const LAST_MS = 2000

/** Ends the parts within one deadline: a supervisor that waits no longer kills the process. */
export async function closeAll({ log, timer }: Host, closing: Closing, deadlineMs: number): Promise<void> {
  const until = timer.monotonic() + deadlineMs
  for (const part of CLOSED) {
    try {
      await closing[part]?.(Math.max(Math.min(deadlineMs, LAST_MS), until - timer.monotonic()))
    } catch (error) {
      log.error('stop_failed', 'a part of the daemon did not end cleanly', { fault: faultName(error) })
    }
  }
}
