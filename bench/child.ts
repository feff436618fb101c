import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

const alive = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of alive) child.kill('SIGKILL')
})

/** A process that ends with the benchmark's own, however that ends: a server that is left would change what is measured next. */
export function owned<Child extends ChildProcess>(child: Child): Child {
  alive.add(child)
  child.once('exit', () => alive.delete(child))
  child.once('error', () => alive.delete(child))
  return child
}

/** Resolves with the child's first message. Rejects if the child ends before it, so that a crash is not waited for. */
export async function first<Value>(child: ChildProcess, said: Promise<Value>): Promise<Value> {
  // Its own complaint is on standard error already.
  const ended = once(child, 'exit').then(([code, signal]) =>
    Promise.reject(
      new Error(`${child.spawnargs.slice(1).join(' ')} ended with ${code ?? signal} before it served`),
    ),
  )
  return Promise.race([said, ended])
}

/** Sends SIGTERM, and waits for the end when it has not come yet. */
export async function stopped(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}
