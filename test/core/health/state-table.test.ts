import { expect, test } from 'vitest'
import type { ProbeState } from '../../../src/core/health/probe.ts'
import { createHealth } from '../../../src/core/health/runner.ts'
import { systemClock } from '../../../src/core/host.ts'
import type { RouteContext } from '../../../src/daemon/http/context.ts'
import type { Site } from '../../../src/daemon/http/route.ts'
import { route } from '../../../src/daemon/routes/health.ts'
import { learning } from '../../../src/presets/learning/platform.ts'

const STATES: readonly ProbeState[] = ['ok', 'degraded', 'failing', 'skipped']

/** Every tuple of states of the length. */
function tuples(length: number): ProbeState[][] {
  return length === 0 ? [[]] : tuples(length - 1).flatMap((rest) => STATES.map((state) => [...rest, state]))
}

async function answer(states: readonly ProbeState[], accept: string) {
  const health = createHealth({
    service: 'web',
    probes: states.map((state, index) => ({
      name: `probe_${index}`,
      run: async () => ({ state, checked: false }),
    })),
    clock: systemClock,
    build: undefined,
    startedAt: 0,
  })
  const request = new Request('http://web.example/api/health', { headers: { Accept: accept } })
  const service = { name: 'web', health: '/api/health' }
  // The route reads nothing else of either.
  const site = { health, settings: { health: {} }, timer: systemClock } as unknown as Site
  const c = { request, query: () => undefined } as unknown as RouteContext
  const response = await route(learning, service).open(site)(c)
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    body: (await response.json()) as Record<string, unknown>,
  }
}

test.each([0, 1, 2, 3])(
  'over every combination of %d probes: one failing is 503, else one degraded is 200, skipped is never red',
  async (length) => {
    for (const states of tuples(length)) {
      const state = states.includes('failing') ? 'failing' : states.includes('degraded') ? 'degraded' : 'ok'
      const status = state === 'failing' ? 503 : 200
      expect(await answer(states, '*/*'), states.join()).toMatchObject({ status, body: { state } })
      const pass = { ok: 'pass', degraded: 'warn', failing: 'fail' }[state]
      const draft = await answer(states, 'application/health+json')
      expect(draft, states.join()).toMatchObject({ status, body: { status: pass } })
      const checks = Object.values(draft.body.checks as Record<string, { status: string }[]>)
      expect(checks.map(([check]) => check?.status)).toEqual(
        states.map((one) => ({ ok: 'pass', skipped: 'pass', degraded: 'warn', failing: 'fail' })[one]),
      )
    }
  },
)

test.each([
  ['application/health+json', true],
  ['application/health+json; q=0.5, text/html', true],
  ['application/json, application/health+json', true],
  ['application/json, application/health+json;q=0.9', false],
  ['application/health+json;q=0', false],
  ['*/*', false],
  ['', false],
])('gives the health+json format to a client that accepts %j: %s', async (accept, draft) => {
  const { type } = await answer(['ok'], accept)
  expect(type).toBe(`application/${draft ? 'health+json' : 'json'}; charset=utf-8`)
})
