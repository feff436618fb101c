import { createRequire } from 'node:module'
import { performance } from 'node:perf_hooks'
import { Worker } from 'node:worker_threads'

/** Reading every page of a file may take one part in so many of the time. */
const SHARE = 100
const LEAST_PAUSE_MS = 5000

/**
 * Gives a check of the file's pages, as `PRAGMA quick_check` reads them: in a thread and through a connection of its own,
 * because the daemon's would read its cache and hold up the event loop. The check waits for a fresh result while that
 * takes less than `patienceMs`, and otherwise gives the one before. True: every page is sound.
 */
export function createPageCheck(
  file: string,
  { patienceMs = 1200, leastPauseMs = LEAST_PAUSE_MS } = {},
): { check(): Promise<boolean>; close(): Promise<void> } {
  let sound = true
  let nextAt = Number.NEGATIVE_INFINITY
  let running: Promise<void> | undefined
  let worker: Worker | undefined

  function start(): Promise<void> {
    let readMs = 0
    return new Promise((resolve) => {
      worker = new Worker(READ_PAGES, { eval: true, workerData: { file, driver: driver() } })
      worker.unref()
      worker.once('message', ({ result, tookMs }: { result: boolean | undefined; tookMs: number }) => {
        readMs = tookMs
        // Undefined: it could not be read now (a lock, a file in the middle of a restore), which says nothing of its pages.
        if (result !== undefined) sound = result
      })
      worker.once('error', () => {})
      worker.once('exit', () => {
        // Of the reading alone: on a busy machine a thread starts late, and that must not put off the next look.
        nextAt = performance.now() + Math.max(leastPauseMs, readMs * SHARE)
        running = undefined
        worker = undefined
        resolve()
      })
    })
  }

  return {
    async check() {
      if (running === undefined && performance.now() >= nextAt) running = start()
      if (running) await Promise.race([running, patience(patienceMs)])
      return sound
    },
    async close() {
      await worker?.terminate()
    },
  }
}

const driver = () => createRequire(import.meta.url).resolve('better-sqlite3')

const READ_PAGES = `
const { parentPort, workerData } = require('node:worker_threads')
const Database = require(workerData.driver)
const began = performance.now()
let result
try {
  const database = new Database(workerData.file, { readonly: true, fileMustExist: true, timeout: 500 })
  result = database.pragma('quick_check(1)', { simple: true }) === 'ok'
  database.close()
} catch (error) {
  if (/^SQLITE_(?:CORRUPT|NOTADB)/.test(error.code)) result = false
}
parentPort.postMessage({ result, tookMs: performance.now() - began })
`

function patience(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref()
  })
}
