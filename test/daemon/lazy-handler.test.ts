import { expect, test } from 'vitest'
import { PlatformError, POOL_BUSY } from '../../src/core/errors.ts'
import { lazyHandler } from '../../src/daemon/http/app.ts'
import type { RouteContext } from '../../src/daemon/http/context.ts'
import { defineRoute, type Site, text } from '../../src/daemon/http/route.ts'
import { openRegistry } from '../../src/daemon/metrics/registry.ts'

test('retries loading a route with the next request, and then loads it once', async () => {
  let loads = 0
  const route = () =>
    defineRoute({
      tag: 'Pages',
      summary: 'Says that it is here',
      answers: [text('text/plain', 'A word.')],
      handle: () => async () => new Response('here'),
    })
  const load = async () => {
    loads += 1
    if (loads === 1) throw new Error('the build is being replaced')
    return { route }
  }
  // Neither is looked at by this route.
  const handler = lazyHandler({ load }, {} as Site)
  const c = {} as RouteContext
  await expect(handler(c)).rejects.toThrow('the build is being replaced')
  for (let n = 0; n < 2; n += 1) expect(await (await handler(c)).text()).toBe('here')
  expect(loads).toBe(2)
})

test('a request that gets no connection of the store is counted, and no other that fails', async () => {
  const { metrics: series, text: written } = openRegistry()
  const faults = [
    new PlatformError('store_unavailable', 'later', {
      cause: Object.assign(new Error(), { code: POOL_BUSY }),
    }),
    new PlatformError('store_unavailable', 'later', {
      cause: Object.assign(new Error(), { code: 'ECONNREFUSED' }),
    }),
  ]
  const route = () =>
    defineRoute({
      tag: 'Pages',
      summary: 'Fails',
      answers: [text('text/plain', 'A word.')],
      handle: () => async () => {
        throw faults.shift()
      },
    })
  const handler = lazyHandler({ load: async () => ({ route }) }, { metrics: { series } } as unknown as Site)
  for (let n = 0; n < 2; n += 1) await expect(handler({} as RouteContext)).rejects.toThrow('later')
  expect((await written()).body).toContain('\nplatformctl_pool_exhausted_total 1\n')
})
