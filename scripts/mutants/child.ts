import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Ask, Planted, Ran } from './worker.ts'

const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url))

export interface Child {
  /**
   * Runs these test files in this order until one fails. `late` when that took longer: its process is ended then, and
   * the next run starts another.
   */
  readonly run: (tests: readonly string[], limitMs: number, planted?: Planted) => Promise<Ran | 'late'>
  readonly close: () => Promise<void>
}

const OPENING_MS = 120_000

/**
 * A process that runs the tests in these places; it may take `leftMs` to open them. A mutant may loop forever: it is
 * killed with all that it started.
 */
export function openChild(
  places: readonly string[],
  leftMs: () => number = () => Number.POSITIVE_INFINITY,
): Child {
  let child: ChildProcess | undefined

  async function ask(question: Ask, limitMs: number): Promise<Ran | 'late'> {
    child ??= fork(WORKER, { detached: true, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
    const over = new AbortController()
    const late = AbortSignal.timeout(Math.ceil(limitMs))
    const answers = once(child, 'message', { signal: AbortSignal.any([late, over.signal]) })
    const ends = once(child, 'exit', { signal: over.signal }).then(() => [{ answer: 'late' }])
    child.send(question)
    try {
      // The worker sends nothing else.
      const [message] = (await Promise.race([answers, ends])) as [{ answer: Ran | 'late'; fault?: string }]
      if (message.fault !== undefined) throw new Error(message.fault)
      if (message.answer === 'late') child = undefined
      return message.answer
    } catch (error) {
      if (!late.aborted) throw error
      kill()
      return 'late'
    } finally {
      over.abort()
      await Promise.allSettled([answers, ends])
    }
  }

  function kill(): void {
    try {
      if (child?.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // It ended meanwhile.
    }
    child = undefined
  }

  return {
    async run(tests, limitMs, planted) {
      const openingMs = Math.max(1, Math.min(OPENING_MS, leftMs()))
      if (child === undefined && (await ask({ kind: 'open', places }, openingMs)) === 'late') {
        if (openingMs < OPENING_MS) return 'late'
        throw new Error('The tests could not be opened')
      }
      return await ask({ kind: 'run', tests, ...(planted && { planted }) }, limitMs)
    },
    async close() {
      if (child === undefined) return
      const ended = once(child, 'exit')
      child.disconnect()
      await ended
    },
  }
}
