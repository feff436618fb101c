import { expect, test } from 'vitest'
import { lazyHandler } from '../../src/daemon/http/app.ts'
import type { RouteContext } from '../../src/daemon/http/context.ts'
import { defineRoute, type Site, text } from '../../src/daemon/http/route.ts'

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
