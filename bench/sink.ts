import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { first, owned } from './child.ts'

/** Starts a sink in a process of its own, so that it does not share the sender's core; gives its port. */
export async function startSink(
  script: string,
  args: readonly string[] = [],
): Promise<{ readonly port: number; close(): void }> {
  const child = owned(
    spawn(process.execPath, [fileURLToPath(new URL(script, import.meta.url)), ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  )
  const [chunk] = (await first(child, once(child.stdout, 'data'))) as [Buffer]
  return { port: Number(chunk.toString()), close: () => void child.kill() }
}

/** Calls `send` `count` times with so many at work at once, and gives calls a second. */
export async function perSecond(
  count: number,
  atOnce: number,
  send: () => Promise<unknown>,
): Promise<number> {
  let left = count
  const started = performance.now()
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (left > 0) {
        left -= 1
        await send()
      }
    }),
  )
  return (count / (performance.now() - started)) * 1000
}
