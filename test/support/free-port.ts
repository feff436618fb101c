import { type AddressInfo, createServer } from 'node:net'

/** A port of 127.0.0.1 that was free just now, for servers that do not tell which they took when they are given 0. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}
