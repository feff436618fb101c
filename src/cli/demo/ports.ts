import { createServer } from 'node:net'

/** The first port from `wanted` on that is free on 127.0.0.1; looks at 50 at the most. */
export async function freePort(wanted: number, taken: readonly number[] = []): Promise<number> {
  for (let port = wanted; port < wanted + 50; port += 1) {
    if (!taken.includes(port) && (await isFree(port))) return port
  }
  throw new Error(`no free port from ${wanted} to ${wanted + 49}`)
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
