import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as sdk from '@sentry/node'
import {
  reportError,
  reportMessage,
  setUserContext,
  startReporting,
  withErrorReporting,
} from '../../../src/reporting.ts'

// A program with the real SDK that does everything wrong: what it knows of a visitor stands wherever it can stand.
// Run by wire.test.ts in a process of its own, because the SDK is global to a process.
const [dsn] = process.argv.slice(2)
// Every trace is kept, at whatever rate.
Math.random = () => 0
const reporting = await startReporting({
  dsn,
  build: '2026.11.21-abc1234',
  environment: 'staging',
  secrets: ['canary-configured-secret'],
})
if (reporting.outcome !== 'on') throw new Error(reporting.outcome)

const shared = 'https://www.example.com/play?c=canary-circuit#canary-fragment'
const personal = {
  url: shared,
  email: 'canary@example.com',
  note: `write to canary.anna@example.com from 203.0.113.77 or 2001:db8:0:0:1:2:3:4, ${shared}`,
  password: 'canary-password',
  requestBody: { circuit: 'canary-body' },
  headers: { cookie: 'session=canary-cookie', authorization: 'Bearer canary.token' },
  cookies: { session: 'canary-cookie' },
  nested: { deep: { er: { phone: 'canary-phone', list: [{ firstName: 'canary-name' }] } } },
  configured: 'the key is canary-configured-secret',
  jwt: 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.canary-signature',
  lesson: 3,
}
setUserContext({ id: 'user-17', email: 'canary@example.com', ip_address: '203.0.113.77' } as { id: string })
sdk.setUser({
  id: 'user-17',
  email: 'canary@example.com',
  ip_address: '203.0.113.77',
  username: 'canary-name',
})
sdk.setTag('shared', shared)
sdk.setExtra('anything', personal)
sdk.setContext('visitor', personal)
sdk.addBreadcrumb({
  category: 'navigation',
  message: shared,
  data: { from: shared, to: '/play?c=canary-circuit', ...personal },
})
sdk.addBreadcrumb({ category: 'http', data: { url: shared, 'http.query': 'c=canary-circuit' } })

const fails = withErrorReporting(async () => {
  throw new TypeError(`could not load ${shared} for canary@example.com`, {
    cause: new Error(`token=canary-token at /play?c=canary-circuit from 203.0.113.77`),
  })
}, personal)
await fails().catch(() => {})
reportError(new Error('with the configured secret canary-configured-secret'), personal)
reportError({ thrown: shared, ...personal }, personal)
reportMessage(`the visitor canary@example.com opened ${shared}`, 'warning', personal)

const server = createServer((_, response) => response.end('{}'))
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const { port } = server.address() as AddressInfo
await sdk.startSpan(
  {
    name: `GET ${shared}`,
    op: 'http.server',
    attributes: {
      'http.url': shared,
      'url.query': '?c=canary-circuit',
      'http.request.header.cookie': 'canary-cookie',
      'client.address': '203.0.113.77',
      'user.email': 'canary@example.com',
    },
  },
  async () => {
    await sdk.startSpan(
      { name: `fetch /api?c=canary-circuit`, op: 'http.client', attributes: { 'url.full': shared } },
      async () => {},
    )
    // Through the SDK's own instrumentation of Node, on both sides.
    await new Promise((resolve) =>
      get(
        `http://127.0.0.1:${port}/play?c=canary-circuit`,
        { headers: { cookie: 'session=canary-cookie', 'x-forwarded-for': '203.0.113.77' } },
        (response) => response.resume().on('end', resolve),
      ),
    )
  },
)
// Items that nobody asked for must not leave either.
sdk.captureCheckIn({ monitorSlug: 'canary-monitor', status: 'ok' })
sdk.captureFeedback({ message: 'canary-feedback', email: 'canary@example.com' })
sdk.captureEvent({
  message: 'an event',
  request: {
    url: shared,
    query_string: 'c=canary-circuit',
    cookies: { a: 'canary-cookie' },
    data: 'canary-body',
    headers: { Cookie: 'canary-cookie' },
  },
  server_name: 'canary-host',
  extra: { circular: loop() },
})
server.close()
server.closeAllConnections()
await reporting.close(5000)
reportError(new Error('after the end'))

function loop(): Record<string, unknown> {
  const one: Record<string, unknown> = {}
  one.self = one
  return one
}
