import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { first, owned, stopped } from './child.ts'
import type { Server } from './servers.ts'

const SOURCE = `const body = Buffer.from(process.argv[1])
const headers = { 'Content-Type': 'application/json', 'Content-Length': body.length }
let waiting = []
const answer = () => {
  for (const response of waiting.splice(0)) response.writeHead(200, headers).end(body)
}
const server = require('node:http').createServer((request, response) => {
  if (waiting.push(response) === 1) setImmediate(answer)
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))`

/**
 * Bare `node:http` that serves the current body of `url` and answers all requests of one turn of the event loop
 * together, as a server must that shares one run of its work among them, begun after the last arrived.
 */
export async function waitingServer(url: string): Promise<Server> {
  const answer = await fetch(url, { headers: { Accept: 'application/json' } })
  const child = owned(
    spawn(process.execPath, ['-e', SOURCE, await answer.text()], { stdio: ['ignore', 'pipe', 'inherit'] }),
  )
  const [line] = (await first(child, once(child.stdout, 'data'))) as [Buffer]
  return { port: Number(String(line)), pid: child.pid ?? 0, close: () => stopped(child) }
}
