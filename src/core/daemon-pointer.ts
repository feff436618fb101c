import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import path from 'node:path'
import { isRunning } from './daemon-record.ts'

/** A running daemon, as commands in other folders find it. */
export interface DaemonPointer {
  /** The pointer's own file. */
  readonly file: string
  /** Absolute; its `daemon.json` says the rest. */
  readonly dataFolder: string
}

/** Leaves a pointer to this process until the function that it gives is called. */
export function leavePointer(folder: string, dataFolder: string): () => void {
  mkdirSync(folder, { recursive: true, mode: 0o755 })
  // A daemon that crashed has left its pointer.
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

function readAll(folder: string): readonly (DaemonPointer & { readonly isLive: boolean })[] {
  let names: readonly string[]
  try {
    names = readdirSync(folder)
  } catch {
    return []
  }
  // A state folder can be on a disk that several machines share.
  return names
    .filter((name) => name.endsWith(`@${hostname()}.json`))
    .flatMap((name) => read(path.join(folder, name)))
}

function read(file: string): readonly (DaemonPointer & { readonly isLive: boolean })[] {
  try {
    const { pid, dataFolder } = JSON.parse(readFileSync(file, 'utf8')) as {
      pid?: unknown
      dataFolder?: unknown
    }
    if (typeof pid !== 'number' || typeof dataFolder !== 'string' || !path.isAbsolute(dataFolder)) return []
    return [{ file, dataFolder, isLive: isRunning({ pid }) }]
  } catch {
    return []
  }
}
