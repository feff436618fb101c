import { expect, test } from 'vitest'
import type { HealthReport, ProbeState } from '../../../src/core/health/probe.ts'
import { causesOf, followRound, type Streaks } from '../../../src/core/incidents/causes.ts'

const report = (service: string, states: Readonly<Record<string, ProbeState>>): HealthReport => ({
  service,
  state: Object.values(states).includes('failing') ? 'failing' : 'ok',
  build: null,
  startedAt: '',
  time: '',
  latencyMs: 1,
  probes: Object.fromEntries(
    Object.entries(states).map(([probe, state]) => [
      probe,
      { state, checked: true, reason: `${probe} reason` },
    ]),
  ),
})

test('names a service that fails because of another beside the cause, even over two steps', () => {
  expect(
    causesOf([
      report('web', { api: 'ok', agent: 'failing' }),
      report('agent', { api: 'failing' }),
      report('api', { job_store: 'failing' }),
    ]),
  ).toEqual([{ cause: 'job_store', service: 'api', reason: 'job_store reason', affected: ['web', 'agent'] }])
})

test('services that fail because of each other are both reported, without a loop', () => {
  const causes = causesOf([report('web', { api: 'failing' }), report('api', { web: 'failing' })])
  expect(causes.length).toBeGreaterThan(0)
})

test('forty services that fail for one cause are one cause that lists them', () => {
  const services = Array.from({ length: 40 }, (_, index) => `shop-${index}`)
  const [cause, ...others] = causesOf(services.map((name) => report(name, { gateway: 'failing' })))
  expect(others).toEqual([])
  expect(cause).toMatchObject({ cause: 'gateway', service: 'shop-0' })
  expect(cause?.affected).toEqual(services.slice(1))
})

/** The causes that open and close over rounds of one probe. An open cause stays open until it closes. */
function story(states: readonly (ProbeState | 'not looked at')[], open: string[] = []): string[] {
  let streaks: Streaks = new Map()
  return states.map((state) => {
    const reports =
      state === 'not looked at' ? [report('api', { circuit: 'ok' })] : [report('web', { mail: state })]
    const round = followRound({ streaks, reports, open })
    streaks = round.streaks
    for (const { cause } of round.opens) open.push(cause)
    for (const cause of round.closes) open.splice(open.indexOf(cause), 1)
    return round.opens.length > 0 ? 'opens' : round.closes.length > 0 ? 'closes' : '-'
  })
}

test.each([
  [
    ['failing', 'failing', 'failing'],
    ['-', 'opens', '-'],
  ],
  [
    ['failing', 'ok', 'failing', 'ok'],
    ['-', '-', '-', '-'],
  ],
  [
    ['failing', 'failing', 'ok', 'failing', 'ok', 'ok'],
    ['-', 'opens', '-', '-', '-', 'closes'],
  ],
  [
    ['degraded', 'degraded', 'degraded'],
    ['-', '-', '-'],
  ],
  [
    ['failing', 'failing', 'not looked at', 'not looked at', 'ok', 'ok'],
    ['-', 'opens', '-', '-', '-', 'closes'],
  ],
] as const)('%j', (states, expected) => {
  expect(story(states)).toEqual(expected)
})

test('after a restart an open incident still needs two good rounds to close, and is not opened anew', () => {
  expect(story(['failing', 'failing'], ['mail'])).toEqual(['-', '-'])
  expect(story(['ok', 'ok'], ['mail'])).toEqual(['-', 'closes'])
})
