import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { owned } from './child.ts'

export interface Dispatchers {
  /** Lets the first `count` of them drain the store together; gives the seconds from the word to the last of them. */
  drain(input: { readonly count: number; readonly lessons: number }): Promise<number>
  close(): Promise<void>
}

/** So many dispatchers of one store, each a process of its own that lives as long as a daemon does: warm after the first drain. */
export async function openDispatchers(input: {
  readonly count: number
  /** An SQLite file or a PostgreSQL address. */
  readonly store: string
  readonly api: string
}): Promise<Dispatchers> {
  const children = await Promise.all(
    Array.from({ length: input.count }, async () => {
      const child = owned(
        fork(fileURLToPath(new URL('./dispatcher.ts', import.meta.url)), [input.store, input.api]),
      )
      await answer(child)
      return child
    }),
  )
  return {
    async drain({ count, lessons }) {
      const began = performance.now()
      const counts = await Promise.all(
        children.slice(0, count).map(async (child) => {
          child.send('drain')
          return ((await answer(child)) as { sent: number }).sent
        }),
      )
      const seconds = (performance.now() - began) / 1000
      const sent = counts.reduce((sum, one) => sum + one, 0)
      if (sent !== lessons) throw new Error(`${sent} of ${lessons} were sent`)
      return seconds
    },
    async close() {
      await Promise.all(
        children.map(async (child) => {
          if (child.exitCode !== null) return
          child.disconnect()
          await once(child, 'exit')
        }),
      )
    },
  }
}

async function answer(child: ChildProcess): Promise<unknown> {
  const waiting = new AbortController()
  const { signal } = waiting
  const ended = once(child, 'exit', { signal }).then(([code]) => {
    throw new Error(`a dispatcher ended with ${code}`)
  })
  try {
    const [message] = await Promise.race([once(child, 'message', { signal }), ended])
    return message
  } finally {
    ended.catch(() => {})
    waiting.abort()
  }
}
