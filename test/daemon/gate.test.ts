import { expect, test } from 'vitest'
import { localLimiter, policiesOf } from '../../src/core/access/limit/limiter.ts'
import { PlatformError } from '../../src/core/errors.ts'
import { bodyMemory } from '../../src/daemon/http/body.ts'
import type { RouteContext } from '../../src/daemon/http/context.ts'
import { createGate } from '../../src/daemon/http/gate.ts'
import type { Handler } from '../../src/daemon/http/route.ts'
import { frameOf } from '../../src/daemon/pages/layout.ts'
import { ROUTES } from '../../src/daemon/routes.ts'
import { learning } from '../../src/presets/learning/platform.ts'

interface Asking {
  readonly route?: keyof typeof ROUTES
  readonly target?: string
  readonly secret?: boolean
  readonly wantsHtml?: boolean
}

function gate() {
  const local = localLimiter({ monotonic: () => 0 })
  const through = createGate(local, local, policiesOf())
  /** A request with a secret to a route of the default policy; only what the gate reads of it is there. */
  const ask = (
    handler: Handler,
    from: string | { readonly client: string; readonly behind: string } = 'a',
    { route = 'dispatch', target = '/api', secret = true, wantsHtml = false }: Asking = {},
  ) => {
    const { client, behind } = typeof from === 'string' ? { client: from, behind: undefined } : from
    const { searchParams } = new URL(`http://x${target}`)
    const asked = {
      request: new Request(`http://x${target}`, { headers: secret ? { Authorization: 'Bearer x' } : {} }),
      query: (name: string) => searchParams.get(name) ?? undefined,
      client,
      behind,
      requestId: 'request-1',
      wantsHtml,
      frame: frameOf(learning, 'https://www.example.com', ''),
      passed: () => {},
    }
    return through({ name: route, ...ROUTES[route] }, asked as unknown as RouteContext, handler)
  }
  return { ask }
}

const fine: Handler = async () => new Response('ok')

test('a place among the secrets being looked at comes back when the work throws, whatever it throws', async () => {
  const { ask } = gate()
  const fault = () => Promise.reject(new TypeError('a fault'))
  const known = () => Promise.reject(new PlatformError('unavailable', 'not now'))
  for (let n = 0; n < 50; n += 1) await expect(ask(fault)).rejects.toThrow('a fault')
  for (let n = 0; n < 50; n += 1) expect((await ask(known)).status).toBe(503)
  expect((await ask(fine)).status).toBe(200)
})

test('a 401 counts, thrown or answered, and the twenty-first request is refused with the fields', async () => {
  const { ask } = gate()
  const thrown: Handler = async () => {
    throw new PlatformError('unauthenticated', 'no')
  }
  const answered: Handler = async () => new Response('', { status: 401 })
  for (let n = 0; n < 20; n += 1)
    expect((await ask(n % 2 ? thrown : answered, 'a', { wantsHtml: n % 4 > 1 })).status).toBe(401)
  const refused = await ask(fine)
  expect(refused.status).toBe(429)
  expect(refused.headers.get('retry-after')).toBe('3')
  expect(refused.headers.get('ratelimit-policy')).toBe('"auth-failure";q=20;w=60')
  expect((await ask(fine, 'b')).status).toBe(200)
})

test('a right secret gives its place back before its work ends', async () => {
  const { ask } = gate()
  const held: (() => void)[] = []
  const slow: Handler = async (asked) => {
    asked.passed()
    await new Promise<void>((resolve) => held.push(resolve))
    return new Response('ok')
  }
  const running = Array.from({ length: 40 }, () => ask(slow))
  await expect.poll(() => held.length).toBe(40)
  for (const release of held) release()
  for (const response of await Promise.all(running)) expect(response.status).toBe(200)
})

test('memory for bodies is given back whole, and once, and none that another request of the client holds', () => {
  const memory = bodyMemory(800)
  const [small, large] = [memory('z'), memory('z')]
  small.take(40)
  large.take(60)
  large.release()
  const next = memory('z')
  next.take(60)
  expect(() => next.take(1)).toThrow(PlatformError)
  for (const one of [small, next]) one.release()
  const first = memory('a')
  first.take(100)
  expect(() => first.take(1)).toThrow(PlatformError)
  first.release()
  first.release()
  const again = memory('a')
  again.take(100)
  expect(() => memory('a').take(1)).toThrow('Too many large requests')
  for (const client of ['b', 'c', 'd', 'e', 'f', 'g', 'h']) memory(client).take(100)
  expect(() => memory('i').take(1)).toThrow(
    expect.objectContaining({ code: 'unavailable', retryAfterSeconds: 1 }),
  )
  again.release()
  memory('i').take(100)
  expect(() => memory('embedded').take(1)).toThrow(PlatformError)
})

test('if clients cannot be distinguished, one of them may use all the memory', () => {
  const memory = bodyMemory(800)
  memory('embedded').take(800)
  expect(() => memory('embedded').take(1)).toThrow(PlatformError)
})

test('behind a proxy wrong secrets count for the client that it names and, ten times later, for the proxy', async () => {
  const { ask } = gate()
  const wrong: Handler = async () => new Response('', { status: 401 })
  const behind = (who: string) => ({ client: 'proxy', behind: who })
  for (let n = 0; n < 20; n += 1) expect((await ask(wrong, behind('eve'))).status).toBe(401)
  expect((await ask(fine, behind('eve'))).status).toBe(429)
  expect((await ask(fine, behind('ada'))).status).toBe(200)
  // The same name at another proxy is somebody else.
  expect((await ask(fine, { client: 'other', behind: 'eve' })).status).toBe(200)
  expect((await ask(fine, 'proxy')).status).toBe(200)
  for (let n = 0; n < 180; n += 1) await ask(wrong, behind(`guesser-${n}`))
  const refused = await ask(fine, behind('ada'))
  expect(refused.status).toBe(429)
  expect(refused.headers.get('ratelimit-policy')).toBe('"auth-failure-proxy";q=200;w=60')
})

test.each([
  ['dispatch', '/api', true, 429],
  ['metrics', '/metrics', true, 429],
  ['health', '/api/health?deep=1', true, 429],
  ['health', '/api/health?deep=true', true, 429],
  ['health', '/api/health', true, 401],
  ['dispatch', '/api', false, 401],
] as const)(
  'after twenty 401 the next request to %s at %s (with a secret: %s) is answered %d',
  async (route, target, secret, status) => {
    const { ask } = gate()
    const wrong: Handler = async () => new Response('', { status: 401 })
    for (let n = 0; n < 20; n += 1) await ask(wrong, 'a', { route, target, secret })
    expect((await ask(wrong, 'a', { route, target, secret })).status).toBe(status)
  },
)

test('an answer within a limit carries its fields, thrown or given, and one without a limit carries none', async () => {
  const { ask } = gate()
  const fields = async (...asked: Parameters<typeof ask>) => {
    const { headers } = await ask(...asked)
    return [headers.get('ratelimit-policy'), headers.get('ratelimit')]
  }
  const locked: Handler = async () => {
    throw new PlatformError('locked', 'no')
  }
  expect(await fields(fine)).toEqual(['"default";q=300;w=60', '"default";r=299;t=1'])
  expect(await fields(locked)).toEqual(['"default";q=300;w=60', '"default";r=298;t=1'])
  expect(await fields(fine, 'a', { route: 'metrics' })).toEqual([null, null])
})

test('one client gets a tenth of a day’s confirmations, however patiently it asks, and others get theirs', async () => {
  const time = { ms: 0 }
  const local = localLimiter({ monotonic: () => time.ms })
  const through = createGate(local, local, policiesOf(undefined, 1000))
  const statuses = async (client: string, count: number) => {
    const found = new Map<number, number>()
    for (let n = 0; n < count; n += 1) {
      time.ms += 2000
      const asked = { request: new Request('http://x/'), client, requestId: 'request-1', wantsHtml: false }
      const { status } = await through(
        { name: 'subscribe', ...ROUTES.subscribe },
        asked as unknown as RouteContext,
        fine,
      )
      found.set(status, (found.get(status) ?? 0) + 1)
    }
    return Object.fromEntries(found)
  }
  // A hundred at once, and what comes back in 67 minutes.
  expect(await statuses('a', 2000)).toEqual({ 200: 104, 429: 1896 })
  expect(await statuses('b', 100)).toEqual({ 200: 100 })
})
