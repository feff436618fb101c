import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { first, owned, stopped } from './child.ts'

const SOURCE = `const body = Buffer.from(JSON.stringify({
  service: 'web', state: 'ok', build: 'bench', startedAt: '2026-11-21T00:00:00.000Z', time: '2026-11-21T00:00:00.000Z', latencyMs: 1,
  probes: Object.fromEntries(['datastore', 'payments', 'api', 'agent', 'models', 'mail', 'store', 'sharedstore', 'errortrack', 'analytics']
    .map((name) => [name, { state: 'ok', checked: false }])),
}))
const server = require('node:http').createServer((request, response) => {
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length }).end(body)
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))`

/** A bare server of one health report, in a process of its own so that it shares no event loop with who asks. */
export async function healthServer(): Promise<{ readonly url: string; readonly close: () => Promise<void> }> {
  const child = owned(spawn(process.execPath, ['-e', SOURCE], { stdio: ['ignore', 'pipe', 'inherit'] }))
  const [line] = (await first(child, once(child.stdout, 'data'))) as [Buffer]
  return {
    url: `http://127.0.0.1:${Number(String(line))}`,
    close: () => stopped(child),
  }
}
