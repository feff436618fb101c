import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import path from 'node:path'
import type { Environment, StoreAddress } from './env/settings.ts'
import { postgresLocation } from './env/values.ts'
import { faultOf } from './errors.ts'
import { attempt, jsonObject } from './is-record.ts'
import { readWhole } from './regular-file.ts'
import type { Service } from './service.ts'

/** A daemon's description of itself in its data folder, without any secret, for commands that use the same store. */
export interface DaemonRecord {
  readonly version: 1
  readonly pid: number
  readonly host: string
  readonly startedAt: string
  /** When daemons of this folder with web started lately, this start included, in UTC milliseconds. */
  readonly starts?: readonly number[]
  readonly stoppedAt?: string
  readonly build: string | null
  /** Absent in the record of an older build. */
  readonly platform?: RecordedPlatform
  readonly store: RecordedStore
  /** Absolute paths, in the order in which they were read. */
  readonly envFiles: readonly string[]
  readonly schedule: boolean
  readonly urls: Readonly<Partial<Record<Service, string>>>
  /** Other daemons that run with the same folder. */
  readonly others?: readonly DaemonRecord[]
}

export interface RecordedPlatform {
  readonly name: string
  /** The absolute path of the definition; null for the default platform. */
  readonly definition: string | null
  readonly fingerprint: string | null
}

export interface RecordedStore {
  readonly kind: 'sqlite' | 'postgres'
  /** The file, or `host:port/database`: never a user or a password. */
  readonly location: string
}

export function recordedStore(address: StoreAddress): RecordedStore {
  if (address.kind === 'sqlite') return { kind: 'sqlite', location: path.resolve(address.file) }
  return { kind: 'postgres', location: postgresLocation(address.url.reveal()) }
}

export const isSameStore = (one: RecordedStore, other: RecordedStore) =>
  one.kind === other.kind && one.location === other.location

/** Writes what a daemon says of itself, and keeps and gives what others say that run with the same folder. */
export function recordDaemon(folder: string, own: DaemonRecord): readonly DaemonRecord[] {
  const { others: beside = [], ...last } = readRecord(folder) ?? own
  // In each container it is process 1. One that is not stopped there has been replaced where its services start anew.
  const isOther = ({ host, pid, urls }: DaemonRecord) =>
    host === own.host ? pid !== own.pid : !Object.keys(urls).some((service) => own.urls[service])
  const running = [last, ...beside].filter((one) => isOther(one) && isRunning(one))
  const [next = own, ...left] = own.stoppedAt === undefined ? [own, ...running] : running
  // A service that goes on says nothing of the starts of one that stopped since.
  const { starts = next.starts } = own
  writeRecord(folder, { ...next, ...(starts && { starts }), ...(left.length > 0 && { others: left }) })
  return running
}

/** Writes when and why a start was refused in place of a record, while no daemon has started with the folder. */
export const recordRefusal = (folder: string, refused: string): unknown =>
  readRecord(folder) ?? attempt(() => writeWhole(recordFile(folder), `${JSON.stringify({ refused })}\n`))

export function writeRecord(folder: string, record: DaemonRecord): void {
  writeWhole(recordFile(folder), `${JSON.stringify({ ...record, folder: path.resolve(folder) }, null, 2)}\n`)
}

/** Writes a file whole or not at all; readable by its owner only, unless `mode` says more. */
export function writeWhole(file: string, text: string, mode = 0o600): void {
  const scratch = `${file}.${process.pid}@${hostname()}`
  try {
    // What a crash left, or a link that another user put there.
    rmSync(scratch, { force: true })
    writeFileSync(scratch, text, { flag: 'wx', mode })
    renameSync(scratch, file)
  } catch (error) {
    rmSync(scratch, { force: true })
    throw error
  }
}

/** The last record of the daemon that owns a folder; undefined if there is none, or it cannot be read. */
export const readRecord = (folder: string): DaemonRecord | undefined =>
  attempt(() => {
    // The record of an older build has no folder.
    type Kept = DaemonRecord & { readonly folder?: string }
    const { folder: before, ...record }: Kept = JSON.parse(readWhole(recordFile(folder)))
    if (record.version !== 1 || typeof record.store?.location !== 'string') return undefined
    const { kind, location } = record.store
    // The folder may have been moved since, with the store in it.
    return kind === 'sqlite' && path.dirname(location) === before
      ? { ...record, store: { kind, location: path.resolve(folder, path.basename(location)) } }
      : record
  })

/** Where its services are reached from here: those of another container by the name of its host. */
export const reachedUrls = ({ urls, host }: DaemonRecord): DaemonRecord['urls'] =>
  host === hostname()
    ? urls
    : Object.fromEntries(
        Object.entries(urls).map(([name, url = '']) => [name, url.replace(new URL(url).hostname, host)]),
      )

/** Of another machine or container: what its record says. */
export function isRunning(record: Pick<DaemonRecord, 'pid' | 'stoppedAt'> & Partial<DaemonRecord>) {
  const { pid, host, stoppedAt } = record
  if (stoppedAt !== undefined || (host ?? hostname()) !== hostname()) return stoppedAt === undefined
  // Linux keeps the number of a process that has ended until its parent has looked.
  if (/\) [ZX] /.test(attempt(() => readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? '')) return false
  // Another user's process may not be signalled, but it is there.
  return (faultOf(() => process.kill(pid, 0)) ?? 'EPERM') === 'EPERM'
}

/** A running daemon, as commands in other folders find it. */
export interface DaemonPointer {
  readonly file: string
  readonly pid: number
  /** Absolute; its `daemon.json` says the rest. */
  readonly dataFolder: string
  /** False if it crashed and left this behind. */
  readonly isLive: boolean
}

/** Leaves a pointer to this process until the function that it gives is called. */
export function leavePointer(folder: string, dataFolder: string): () => void {
  mkdirSync(folder, { recursive: true, mode: 0o755 })
  for (const { file, isLive } of readAll(folder)) if (!isLive) rmSync(file, { force: true })
  const file = path.join(folder, `${process.pid}@${hostname()}.json`)
  const pointer = { version: 1, pid: process.pid, dataFolder: path.resolve(dataFolder) }
  rmSync(file, { force: true })
  writeFileSync(file, `${JSON.stringify(pointer)}\n`, { flag: 'wx', mode: 0o644 })
  return () => rmSync(file, { force: true })
}

/** The daemons that run on this machine, of those that left a pointer in the folder. */
export function pointersIn(folder: string): readonly DaemonPointer[] {
  return readAll(folder).filter(({ isLive }) => isLive)
}

function readAll(folder: string): readonly DaemonPointer[] {
  // A state folder can be on a disk that several machines share.
  return (attempt(() => readdirSync(folder)) ?? [])
    .filter((name) => name.endsWith(`@${hostname()}.json`))
    .flatMap((name) => {
      const file = path.join(folder, name)
      const { pid, dataFolder } = jsonObject(attempt(() => readWhole(file)) ?? '')
      return typeof pid === 'number' && typeof dataFolder === 'string' && path.isAbsolute(dataFolder)
        ? [{ file, pid, dataFolder, isLive: isRunning({ pid }) }]
        : []
    })
}

export const recordFile = (folder: string) => path.join(folder, 'daemon.json')

/** Where a daemon keeps incidents while its store fails; the second is used where the first cannot be written. */
export function alertsFiles(folder: string, pointerFolder?: string): readonly string[] {
  const named = encodeURIComponent(path.resolve(folder)).slice(-120)
  return [
    path.join(folder, 'alerts.json'),
    ...(pointerFolder === undefined ? [] : [path.join(pointerFolder, `alerts-${named}.json`)]),
  ]
}

/** The machine's folder for pointers; it is emptied when the machine restarts. */
const RUN = '/run/platformctl'

/** The folders in which commands look for pointers to running daemons. */
export const pointerFolders = (env: Environment): readonly string[] =>
  [stateFolder(env) ?? [], process.platform === 'win32' ? [] : RUN].flat()

/** The folder in which a daemon of this user leaves its pointer; undefined if there is none. */
export function ownPointerFolder(env: Environment): string | undefined {
  const isService = process.geteuid?.() === 0 || env.RUNTIME_DIRECTORY === RUN
  return isService && !env.XDG_STATE_HOME ? RUN : stateFolder(env)
}

function stateFolder({ LOCALAPPDATA, XDG_STATE_HOME, HOME }: Environment): string | undefined {
  const base =
    process.platform === 'win32'
      ? LOCALAPPDATA
      : XDG_STATE_HOME || (HOME && path.join(HOME, '.local', 'state'))
  return base && path.isAbsolute(base) ? path.join(base, 'platformctl', 'daemons') : undefined
}

/** What a daemon was started with, as options name it. */
export interface Places {
  readonly definition: string | null
  readonly envFiles: readonly string[]
  readonly dataFolder: string
}

/** Commands that work on no store, and so take no `--data`. */
const WITHOUT_DATA = /^platformctl (?:preflight|health|billing|alert test)\b/

/** A command with the options that make it act on one daemon, to be pasted into a POSIX shell in any folder. */
export function nextStep(command: string, { definition, envFiles, dataFolder }: Places): string {
  return [
    command,
    ...(definition === null ? [] : ['--config', shellWord(definition)]),
    ...envFiles.flatMap((file) => ['--env-file', shellWord(file)]),
    ...(WITHOUT_DATA.test(command) ? [] : ['--data', shellWord(dataFolder)]),
  ].join(' ')
}

/** Quoted for a POSIX shell where it needs to be. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}
