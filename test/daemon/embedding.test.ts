import { readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, onTestFinished, test } from 'vitest'
import type { Message } from '../../src/core/mail/transport.ts'
import { openStore } from '../../src/core/store/open.ts'
import { type Log, openPlatform, type Platform } from '../../src/daemon/index.ts'
import { emptyFolder } from '../support/folder.ts'

const json = { 'Content-Type': 'application/json' }
const post = (platform: Platform, target: string, body: unknown, headers: Record<string, string> = {}) =>
  platform.web.fetch(
    new Request(`http://web.example${target}`, {
      method: 'POST',
      headers: { ...json, ...headers },
      body: JSON.stringify(body),
    }),
  )
const ada = async () => ({ kind: 'person', subject: 'ada', email: 'ada@example.com' }) as const

test('two platforms in one process share nothing', async () => {
  const open = async (limit: string, build: string) => {
    const platform = openPlatform({
      env: {
        STORE_URL: `sqlite:${path.join(await emptyFolder(), 'store.sqlite')}`,
        RATE_LIMIT_PER_MINUTE: limit,
        BUILD_STAMP: build,
        EMAIL_DISPATCH_SECRET: `a-dispatch-secret-of-${build}-and-more-bytes`,
      },
    })
    onTestFinished(() => platform.close())
    return platform
  }
  const [first, second] = [await open('2', 'first'), await open('300', 'second')]
  await post(first, '/api/email/subscribe', { email: 'ada@example.com' })
  await post(first, '/api/email/subscribe', { email: 'eve@example.com' })
  expect((await post(first, '/api/email/subscribe', { email: 'ada@example.com' })).status).toBe(429)
  expect((await post(second, '/api/email/subscribe', { email: 'ada@example.com' })).status).toBe(202)
  expect([(await first.health('web')).build, (await second.health('web')).build]).toEqual(['first', 'second'])
  const withSecretOf = (build: string) => ({
    Authorization: `Bearer a-dispatch-secret-of-${build}-and-more-bytes`,
  })
  expect((await post(second, '/api/email/dispatch', {}, withSecretOf('first'))).status).toBe(401)
  expect((await post(second, '/api/email/dispatch', {}, withSecretOf('second'))).status).toBe(200)

  await first.close()
  expect((await post(second, '/api/email/subscribe', { email: 'grace@example.com' })).status).toBe(202)
  expect((await second.health('web', { deep: true })).probes.store).toMatchObject({ state: 'ok' })
})

test('a platform that was opened and never asked anything holds nothing open', async () => {
  const before = resources()
  const platform = openPlatform({
    env: { STORE_URL: `sqlite:${path.join(await emptyFolder(), 'none', 'store.sqlite')}` },
  })
  expect(resources()).toEqual(before)
  await platform.close()
  await platform.close()
})

test('what a host gives is used, and stays the host’s', async () => {
  const store = await openStore({ kind: 'sqlite', file: path.join(await emptyFolder(), 'own.sqlite') })
  onTestFinished(() => store.close())
  const sent: Message[] = []
  const events: string[] = []
  let closed = 0
  const note: Log['info'] = (event) => void events.push(event)
  const platform = openPlatform({
    env: { STORE_URL: 'sqlite:/nowhere/that/is/opened.sqlite' },
    store,
    mailer: {
      kind: 'own',
      send: async (message) => {
        sent.push(message)
        return { kind: 'sent', id: 'own-1' }
      },
      verify: async () => {},
      close: async () => {
        closed += 1
      },
    },
    identify: ada,
    log: { debug: note, info: note, warn: note, error: note },
  })
  const answer = await post(platform, '/api/email', { template: 'welcome', inputs: {} })
  expect(await answer.json()).toEqual({ sent: true, id: 'own-1' })
  expect(sent.map(({ to }) => to.address)).toEqual(['ada@example.com'])
  expect(events).toContain('request')
  expect(await store.course.find('ada@example.com')).toBeUndefined()
  await post(platform, '/api/email/subscribe', { email: 'ada@example.com' })
  await Promise.all([platform.close(), platform.close()])
  expect(sent).toHaveLength(2)
  expect(await store.course.find('ada@example.com')).toMatchObject({ state: 'unconfirmed' })
  expect(closed).toBe(0)
})

test.each(['postgress://ada:canary@db/x', 'sqlite:'])(
  'a misspelt address of a store (%s) opens no other one: the answer is 503, and health fails',
  async (misspelt) => {
    const events: string[] = []
    const note: Log['info'] = (event) => void events.push(event)
    const log: Log = { debug: note, info: note, warn: note, error: note }
    const platform = openPlatform({ env: { STORE_URL: misspelt }, log })
    onTestFinished(() => platform.close())
    const answer = await post(platform, '/api/email/subscribe', { email: 'ada@example.com' })
    expect(answer.status).toBe(503)
    expect(await answer.json()).toMatchObject({ code: 'store_unavailable' })
    await expect(platform.dispatch()).rejects.toMatchObject({ code: 'store_unavailable' })
    expect((await platform.health('web')).probes.store).toMatchObject({ state: 'failing' })
    expect((await platform.health('api')).probes.job_store).toMatchObject({ state: 'failing' })
    expect(events).not.toContain('store_in_memory')
  },
)

test('a misspelt address of the job store fails its probe, and leaves the store alone', async () => {
  const platform = openPlatform({
    env: {
      STORE_URL: `sqlite:${path.join(await emptyFolder(), 'store.sqlite')}`,
      JOB_STORE_URL: 'postgress://db/x',
    },
  })
  onTestFinished(() => platform.close())
  expect((await platform.health('api')).probes.job_store).toMatchObject({ state: 'failing' })
  expect((await post(platform, '/api/email/subscribe', { email: 'ada@example.com' })).status).toBe(202)
})

test('after it was closed a platform answers 503 instead of failing', async () => {
  const platform = openPlatform({
    env: { STORE_URL: `sqlite:${path.join(await emptyFolder(), 'store.sqlite')}` },
  })
  const subscribe = () => post(platform, '/api/email/subscribe', { email: 'ada@example.com' })
  expect((await subscribe()).status).toBe(202)
  await platform.close()
  await platform.close()
  const after = await subscribe()
  expect(after.status).toBe(503)
  expect(await after.json()).toMatchObject({ code: 'store_unavailable' })
})

test('a hundred platforms, opened, used and closed, leave no memory, no file and no timer', {
  timeout: 60_000,
}, async () => {
  const provider = createServer((request, response) => {
    request.resume()
    response.end('{"id":"one","url":"https://pay.example.com/c/one"}')
  })
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    provider.closeAllConnections()
    provider.close()
  })
  const url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`
  const folder = await emptyFolder()
  const alive: WeakRef<Platform>[] = []

  async function once(): Promise<void> {
    const platform = openPlatform({
      env: {
        STORE_URL: `sqlite:${path.join(folder, 'store.sqlite')}`,
        MAILER_API_KEY: 'key',
        MAILER_API_URL: url,
        MAILER_FROM: 'course@example.com',
        PAYMENTS_SECRET_KEY: 'sk_test_4eC39HqLyjWDarjtT1zdp7dc',
        PAYMENTS_WEBHOOK_SECRET: 'whsec_of-thirty-two-bytes-at-least',
        PAYMENTS_PRICE_PRO_MONTHLY: 'price_pro_monthly',
        PAYMENTS_API_URL: url,
      },
      identify: ada,
    })
    alive.push(new WeakRef(platform))
    const statuses = [
      (await platform.web.fetch(new Request('http://web.example/api/health'))).status,
      (await post(platform, '/api/email/subscribe', { email: 'ada@example.com' })).status,
      (await post(platform, '/api/email', { template: 'welcome', inputs: {} })).status,
      (await post(platform, '/api/checkout', { price: 'pro-monthly' })).status,
      (await platform.api.fetch(new Request('http://api.example/api/health'))).status,
    ]
    expect(statuses).toEqual([200, 202, 200, 200, 200])
    await platform.close()
  }

  // What is loaded lazily is loaded once for the process: the first rounds do that.
  for (let round = 0; round < 5; round += 1) await once()
  provider.closeAllConnections()
  const before = await settled()
  alive.length = 0
  for (let round = 0; round < 100; round += 1) await once()

  provider.closeAllConnections()
  await expect.poll(resources).toEqual(before)
  const leaked = async () => {
    await collected()
    return alive.filter((one) => one.deref() !== undefined).length
  }
  await expect.poll(leaked).toBeLessThan(3)
})

/** What this process holds: open files by number, and what keeps its loop alive, by kind. */
function resources(): { readonly files: number; readonly handles: Readonly<Record<string, number>> } {
  const handles: Record<string, number> = {}
  // Timers of a poll and files being read come and go.
  for (const name of process.getActiveResourcesInfo())
    if (!/^(?:Timeout|Immediate|FSReq)/.test(name)) handles[name] = (handles[name] ?? 0) + 1
  return { files: process.platform === 'linux' ? readdirSync('/proc/self/fd').length : 0, handles }
}

/** Once sockets that were closed are gone: two looks, a turn of the loop apart, that see the same. */
async function settled(): Promise<ReturnType<typeof resources>> {
  for (let [last, next] = ['', JSON.stringify(resources())]; last !== next; ) {
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    ;[last, next] = [next, JSON.stringify(resources())]
  }
  return resources()
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

async function collected(): Promise<void> {
  for (let round = 0; round < 3; round += 1) {
    collect()
    await new Promise((resolve) => setImmediate(resolve))
  }
}
