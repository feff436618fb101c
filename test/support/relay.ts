import { connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { freePort } from './free-port.ts'

/** A relay to a server that can go silent, like a firewall that forgot its connections: nothing is closed, nothing passes. */
export interface Relay {
  readonly port: number
  /** Connections that the near side holds open. */
  readonly open: () => number
  /** Silences the open connections, or with `all` also new ones. */
  readonly silence: (which: 'present' | 'all') => void
  readonly heal: () => void
  /** Every connection is reset, as by a machine that came back and knows none of them. */
  readonly reset: () => void
}

export async function relayTo(target: number): Promise<Relay> {
  const pairs = new Set<{ near: Socket; far: Socket; silent: boolean }>()
  let silent = false
  // A machine that is gone does not answer a FIN either.
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const pair = { near, far: connect(target, '127.0.0.1'), silent }
    pairs.add(pair)
    const end = () => {
      if (!pair.silent) pair.far.destroy()
      if (!pair.silent) near.destroy()
      if (near.destroyed) pairs.delete(pair)
    }
    near.on('end', () => pair.silent || near.end())
    near.on('data', (chunk) => pair.silent || pair.far.write(chunk))
    pair.far.on('data', (chunk) => pair.silent || near.write(chunk))
    for (const socket of [near, pair.far]) socket.on('error', () => {}).on('close', end)
  })
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const { near, far } of pairs) for (const socket of [near, far]) socket.destroy()
    server.close()
  })
  return {
    port,
    open: () => [...pairs].filter(({ near }) => !near.readableEnded).length,
    silence(which) {
      for (const pair of pairs) pair.silent = true
      silent = which === 'all'
    },
    heal() {
      silent = false
    },
    reset() {
      for (const { near } of pairs) near.resetAndDestroy()
    },
  }
}
