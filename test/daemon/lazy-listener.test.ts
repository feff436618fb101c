import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { lazyListener } from '../../src/daemon/node-listener.ts'

test('answers 503 if the listener cannot be loaded, and serves the next request', async () => {
  let loads = 0
  const listener = lazyListener(async () => {
    loads += 1
    if (loads === 1) throw new Error('the build is being replaced')
    return async (_, outgoing) => outgoing.end('here')
  })
  const server = createServer((incoming, outgoing) => void listener(incoming, outgoing))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const refused = await fetch(url)
  expect([refused.status, await refused.json()]).toMatchObject([503, { code: 'unavailable' }])
  for (let n = 0; n < 2; n += 1) expect(await (await fetch(url)).text()).toBe('here')
  expect(loads).toBe(2)
})
