import { createServer, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { onTestFinished } from 'vitest'
import { useProxies } from '../../src/core/network/proxy.ts'

/**
 * A proxy on loopback, which every call of this process goes through until the test ends. Every name leads to the server
 * at `to`; no name is resolved on this machine. Gives what was asked for, and the port of each connection.
 */
export async function behindProxy(
  to: string,
  more: Record<string, string> = {},
): Promise<{
  readonly asked: readonly string[]
  readonly from: ReadonlySet<number | undefined>
  readonly env: Record<string, string>
}> {
  const { port } = new URL(to)
  const asked: string[] = []
  const from = new Set<number | undefined>()
  const proxy = createServer((asking, answer) => {
    from.add(asking.socket.remotePort)
    asked.push(`${asking.method} ${asking.url}`)
    const { pathname, search } = new URL(asking.url ?? '')
    const { method, headers } = asking
    asking.pipe(
      request({ port, host: '127.0.0.1', method, headers, path: pathname + search }, (found) => {
        answer.writeHead(found.statusCode ?? 0, found.headers)
        found.pipe(answer)
      }).on('error', () => answer.destroy()),
    )
  })
  proxy.on('connect', (asking, socket) => {
    asked.push(`CONNECT ${asking.url}`)
    const onward = connect(Number(port), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      onward.pipe(socket).pipe(onward)
    })
    for (const one of [onward, socket]) one.on('error', () => {})
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  const env = { HTTP_PROXY: url, HTTPS_PROXY: url, ...more }
  useProxies(env)
  onTestFinished(() => {
    useProxies({})
    proxy.closeAllConnections()
    proxy.close()
  })
  return { asked, from, env }
}
