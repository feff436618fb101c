import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { embedded } from '../../embedded.ts'
import { within } from '../../host.ts'
import { sizeOf } from './files.ts'

/** The pause after a read of every page, as a multiple of its duration: checks take at most 1% of the time. */
const SHARE = 100
const LEAST_PAUSE_MS = 5000
/** Files up to this size are read here, in a few milliseconds: a thread leaves 14 MB behind in the process. */
const SMALL_BYTES = 4_000_000

/** Checks a file's pages by a connection of its own, as the daemon's would read its cache. After `patienceMs` it gives the result before. */
export function createPageCheck(
  file: string,
  { patienceMs = 1200, leastPauseMs = LEAST_PAUSE_MS, smallBytes = SMALL_BYTES } = {},
): { check(): Promise<boolean>; close(): Promise<void> } {
  let sound = true
  let nextAt = Number.NEGATIVE_INFINITY
  let running: Promise<void> | undefined
  let worker: Worker | undefined
  let loaded: Promise<unknown> | undefined

  function note({ result, tookMs }: ReturnType<typeof readPages>): void {
    if (result !== undefined) sound = result
    nextAt = performance.now() + Math.max(leastPauseMs, tookMs * SHARE)
  }

  function start(): void {
    let found: ReturnType<typeof readPages> = { result: undefined, tookMs: 0 }
    const thread = new Worker(inThread(), { eval: true, workerData: file })
    worker = thread
    thread.unref()
    thread.on('error', () => {})
    thread.on('message', (message: typeof found | 'loaded') => {
      if (message !== 'loaded') found = message
    })
    const first = (event: string) => new Promise<void>((resolve) => thread.once(event, () => resolve()))
    running = first('exit').then(() => {
      note(found)
      running = undefined
      worker = undefined
    })
    loaded = Promise.race([first('message'), running])
  }

  return {
    async check() {
      if (running === undefined && performance.now() >= nextAt)
        if (sizeOf(file) + sizeOf(`${file}-wal`) <= smallBytes)
          // With its write-ahead log, which a check reads too.
          note(readPages(Database, file, 0))
        else start()
      if (running) await within(patienceMs, running, () => {})
      return sound
    },
    async close() {
      // Node aborts the whole process if a thread is ended while it loads a native module.
      await loaded
      await worker?.terminate()
    },
  }
}

/** Reads every page; `result` is undefined if it cannot now. The thread runs this source text: it may use only parameters and globals. */
function readPages(Driver: typeof Database, file: string, lockedMs: number) {
  const began = performance.now()
  let result: boolean | undefined
  try {
    const database = new Driver(file, { readonly: true, fileMustExist: true, timeout: lockedMs })
    try {
      result = database.pragma('quick_check(1)', { simple: true }) === 'ok'
    } finally {
      database.close()
    }
  } catch (error) {
    if (error instanceof Error && 'code' in error && /^SQLITE_(?:CORRUPT|NOTADB)/.test(String(error.code)))
      result = false
  }
  return { result, tookMs: performance.now() - began }
}

const inThread = () => `
const { parentPort, workerData } = require('node:worker_threads')
const Driver = ${embedded?.driver ?? `require(${JSON.stringify(createRequire(import.meta.url).resolve('better-sqlite3'))})`}
// Loads the native part as well, which the first connection would.
new Driver(':memory:').close()
parentPort.postMessage('loaded')
parentPort.postMessage((${readPages})(Driver, workerData, 500))
`
