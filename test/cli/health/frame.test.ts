import { expect, test } from 'vitest'
import { loadPaint } from '../../../src/cli/context.ts'
import { type FrameInput, follow, frame, type StateHistory } from '../../../src/cli/health/watch.ts'
import type { RemoteHealth } from '../../../src/core/health/prober.ts'
import type { Verdict } from '../../../src/core/health/verdict.ts'

const NOW = Date.UTC(2026, 10, 22, 12, 0, 5)
const paint = await loadPaint(false)

const health = (parts: object = {}): RemoteHealth =>
  ({
    service: 'web',
    url: 'http://127.0.0.1',
    phases: { total: 12.34 },
    reached: true,
    report: { state: 'ok', build: 'b1', probes: {} },
    ...parts,
  }) as unknown as RemoteHealth
const away = health({ reached: false, cause: 'refused', reason: 'nobody listens', fix: 'start it' })

function verdict(results: readonly RemoteHealth[], parts: Partial<Verdict['diagnosis']> = {}): Verdict {
  const none = { rootCauses: [], followers: new Map(), origins: new Map(), builds: new Map(), skew: false }
  const diagnosis = { ...none, ...parts }
  return { outcome: 'passed', sentence: 'all well', warnings: [], results, diagnosis } as unknown as Verdict
}

const lines = (parts: Partial<FrameInput> = {}) =>
  frame({
    verdict: verdict([health()]),
    tracks: new Map(),
    now: NOW,
    nextInMs: 4001,
    intervalMs: 5000,
    columns: 200,
    rows: 24,
    paint,
    ...parts,
  })

test('the head says the time, how often it looks and when next', () => {
  expect(lines()[0]).toBe('platformctl health  12:00:05 UTC · every 5 s · next check in 5 s · Ctrl-C ends')
  expect(lines({ nextInMs: undefined })[0]).toContain('· checking now ·')
  expect(lines({ verdict: undefined })).toEqual([lines()[0], '', 'asking …'])
})

test('no line is wider than the terminal, and none is too many for it', () => {
  const many = verdict(Array.from({ length: 9 }, () => health()))
  for (const columns of [1, 20, 80])
    for (const line of lines({ columns })) expect([...line].length).toBeLessThanOrEqual(columns)
  expect(lines({ verdict: many, rows: 6 })).toHaveLength(5)
  expect(lines({ verdict: many, rows: 1 })).toHaveLength(1)
  expect(lines({ verdict: many, rows: 40 })).toHaveLength(13)
})

test('states begin in one column, however long the names of the services are', () => {
  const [, , first, second] = lines({ verdict: verdict([health(), health({ service: 'bookings' })]) })
  expect([first?.slice(0, 13), second?.slice(0, 13)]).toEqual(['● web      ok', '● bookings ok'])
})

test('a service shows its state, its time, since when, its build or why it is away', () => {
  const tracks = (since: number): ReadonlyMap<string, StateHistory> =>
    new Map([['web', { state: 'ok', since, points: [] }]])
  expect(lines({ tracks: tracks(NOW - 999) })[2]).toMatch(/^● web {3}ok +12\.3 ms +just now +build b1$/)
  expect(lines({ tracks: tracks(NOW - 1000) })[2]).toContain('  for 1 s')
  expect(lines({ verdict: verdict([away]) })[2]).toMatch(/^✖ web {3}unreached +12\.3 ms .* refused$/)
})

test('latencies are bars against the longest, as many as fit, with a cross where there was no answer', () => {
  const points = [10, 80, 40, undefined, 79].map((ms) => ({ ms, state: 'ok' as const }))
  const tracks = new Map([['web', { state: 'ok' as const, since: NOW, points }]])
  expect(lines({ tracks })[2]).toContain(' ms  ▂█▅×█ ')
  expect(lines({ tracks, columns: 90 })[2]).toContain(' ms  ▂█▅×█   ')
  const many = Array.from({ length: 40 }, (_, n) => ({ ms: n, state: 'ok' as const }))
  const long = new Map([['web', { state: 'ok' as const, since: NOW, points: many }]])
  // The latest eight.
  expect(lines({ tracks: long, columns: 94 })[2]).toContain(' ms  ▇▇▇█████  ')
  expect(lines({ tracks: long, columns: 126 })[2]?.match(/[▁-█]+/)?.[0]).toHaveLength(40)
})

test('probes in trouble have a line, unless the trouble is another service’s, and root causes come before the verdict', () => {
  const sick = health({
    service: 'api',
    report: {
      state: 'failing',
      build: null,
      probes: {
        web: { state: 'failing', checked: true, reason: 'web fails' },
        jobs: { state: 'degraded', checked: true },
        off: { state: 'skipped', checked: false },
      },
    },
  })
  expect(lines({ verdict: verdict([sick]) }).slice(3, 5)).toEqual([
    '    ✖ web web fails',
    '    ◐ jobs degraded',
  ])
  const roots = [{ services: ['web', 'agent'], probe: 'mail', reason: 'no answer' }] as never
  const followed = {
    ...verdict([sick], { followers: new Map([['api', ['web']]]), rootCauses: roots }),
    outcome: 'failed' as const,
  }
  expect(lines({ verdict: followed }).slice(3)).toEqual([
    '    ◐ jobs degraded',
    '',
    'root cause  web, agent: mail: no answer',
    '✖ all well',
  ])
})

test('a track keeps the last forty looks and since when the state is the same', () => {
  let tracks: ReadonlyMap<string, StateHistory> = new Map()
  for (let look = 0; look < 41; look += 1)
    tracks = follow(tracks, verdict([health({ phases: { total: look } })]), NOW + look)
  expect(tracks.get('web')?.points).toHaveLength(40)
  expect(tracks.get('web')?.points.at(0)).toEqual({ ms: 1, state: 'ok' })
  expect(tracks.get('web')?.since).toBe(NOW)
  tracks = follow(tracks, verdict([away]), NOW + 99)
  expect(tracks.get('web')).toMatchObject({ state: 'unreached', since: NOW + 99 })
  expect(tracks.get('web')?.points.at(-1)).toEqual({ ms: undefined, state: 'unreached' })
  expect(follow(tracks, verdict([]), NOW).size).toBe(0)
})
