import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Ask } from './worker.ts'

const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url))

export interface Child {
  /** What it answers, or `late` when it took longer; it is ended then, and the next ask starts another. */
  readonly ask: (ask: Ask, limitMs: number) => Promise<unknown>
  readonly close: () => Promise<void>
}

/** A process that runs a room's tests. A mutant may loop forever: then it is killed with all that it started. */
export function openChild(folders: readonly string[]): Child {
  let child: ChildProcess | undefined

  async function ask(question: Ask, limitMs: number): Promise<unknown> {
    if (child === undefined && question.kind !== 'open') await ask({ kind: 'open', folders }, 600_000)
    child ??= fork(WORKER, { detached: true, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
    const over = new AbortController()
    const late = AbortSignal.timeout(limitMs)
    const answers = once(child, 'message', { signal: AbortSignal.any([late, over.signal]) })
    const ends = once(child, 'exit', { signal: over.signal }).then(() => [{ answer: 'late' }])
    child.send(question)
    try {
      // The worker sends nothing else.
      const [message] = (await Promise.race([answers, ends])) as [{ answer?: unknown; fault?: string }]
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
    ask,
    async close() {
      if (child === undefined) return
      const ended = once(child, 'exit')
      child.disconnect()
      await ended
    },
  }
}
