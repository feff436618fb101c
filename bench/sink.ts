import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Starts a sink in a process of its own, so that it does not share the sender's core; gives its port. */
export function startSink(
  script: string,
  args: readonly string[] = [],
): Promise<{ readonly port: number; close(): void }> {
  const child = spawn(process.execPath, [fileURLToPath(new URL(script, import.meta.url)), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.stdout.once('data', (chunk: Buffer) =>
      resolve({ port: Number(chunk.toString()), close: () => void child.kill() }),
    )
  })
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
