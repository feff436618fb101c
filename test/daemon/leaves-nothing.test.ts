import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { promisify } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, onTestFinished, test } from 'vitest'
import { openPlatform, type Platform } from '../../src/daemon/index.ts'
import { emptyFolder } from '../support/folder.ts'
import { asking } from '../support/opened.ts'

const run = promisify(execFile)
const ada = async () => ({ kind: 'person', subject: 'ada', email: 'ada@example.com' }) as const

test('an opened platform without requests holds no resources', async () => {
  const before = resources()
  const platform = openPlatform({
    env: { STORE_URL: `sqlite:${path.join(await emptyFolder(), 'none', 'store.sqlite')}` },
  })
  expect(resources()).toEqual(before)
  await platform.close()
  await platform.close()
})

test('a program that has mailed somebody ends by itself, without closing its platform', async () => {
  const STORE_URL = `sqlite:${path.join(await emptyFolder(), 'store.sqlite')}`
  const program = `
    import { openPlatform } from '${new URL('../../src/daemon/index.ts', import.meta.url)}'
    const send = async () => {
      console.log('mailed')
      return { kind: 'sent', id: 'one' }
    }
    const mailer = { kind: 'test', send, verify: async () => {}, close: async () => {} }
    const platform = openPlatform({ env: { STORE_URL: ${JSON.stringify(STORE_URL)} }, mailer })
    await platform.courses.subscribe({ email: 'ada@example.com' })
  `
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program], {
    timeout: 15_000,
  })
  expect(stdout).toBe('mailed\n')
})

test('twenty platforms, opened, used and closed, leave no memory, no file and no timer', {
  timeout: 60_000,
}, async () => {
  const provider = createServer((request, response) => {
    request.resume()
    response.end('{"id":"one","url":"https://pay.example.com/c/one"}')
  }).listen(0, '127.0.0.1')
  await once(provider, 'listening')
  onTestFinished(() => {
    provider.closeAllConnections()
    provider.close()
  })
  const url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`
  const folder = await emptyFolder()
  const alive: WeakRef<Platform>[] = []

  async function useOne(): Promise<void> {
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
    const { ask, post } = asking(platform)
    const statuses = [
      (await ask('/api/health')).status,
      (await post('/api/email/subscribe', { email: 'ada@example.com' })).status,
      (await post('/api/email', { template: 'welcome', inputs: {} })).status,
      (await post('/api/checkout', { price: 'pro-monthly' })).status,
      (await ask('/api/health', { service: 'api' })).status,
    ]
    expect(statuses).toEqual([200, 202, 200, 200, 200])
    await platform.close()
  }

  // Lazy modules are loaded once for the process: the first rounds do that.
  for (let round = 0; round < 5; round += 1) await useOne()
  provider.closeAllConnections()
  const before = await settled()
  alive.length = 0
  for (let round = 0; round < 20; round += 1) await useOne()

  provider.closeAllConnections()
  await expect.poll(resources).toEqual(before)
  const leaked = async () => {
    await collected()
    return alive.filter((one) => one.deref() !== undefined).length
  }
  await expect.poll(leaked).toBeLessThan(3)
})

/** Resources of this process: open files by number, and handles that keep its event loop alive, by kind. */
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
