import { expect, test } from 'vitest'
import type { RouteHandler } from '../../src/daemon/http/route.ts'
import { lazyHandler } from '../../src/daemon/services/web.ts'

test('retries loading a handler with the next request, and then loads it once', async () => {
  let loads = 0
  const handler = lazyHandler(async () => {
    loads += 1
    if (loads === 1) throw new Error('the build is being replaced')
    return async () => new Response('here')
  })
  // The handler looks at nothing of what it is asked.
  const asked = {} as Parameters<RouteHandler>[0]
  await expect(handler(asked)).rejects.toThrow('the build is being replaced')
  for (let n = 0; n < 2; n += 1) expect(await (await handler(asked)).text()).toBe('here')
  expect(loads).toBe(2)
})
