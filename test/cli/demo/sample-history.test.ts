import { expect, onTestFinished, test } from 'vitest'
import { withSampleDays } from '../../../src/cli/demo/sample-history.ts'
import type { ProbeState } from '../../../src/core/health/probe.ts'
import { openHistory } from '../../../src/core/store/open.ts'

const DAY = 86_400_000
const NOW = Date.UTC(2026, 10, 21, 7, 26, 34)

async function demo() {
  const file = await openHistory(undefined)
  onTestFinished(() => file.close())
  const history = withSampleDays(file)
  const look = (at: number, states: Readonly<Record<string, ProbeState>>) =>
    history.record({
      at,
      builds: { web: 'demo' },
      observations: Object.entries(states).map(([probe, state]) => ({
        service: 'web',
        probe,
        state,
        reason: undefined,
        latencyMs: 3,
        credit: undefined,
      })),
    })
  const days = async (now: number, probe: string) => {
    const { series } = await history.read(now)
    return series.find((one) => one.probe === probe)?.days.map(({ start, ms }) => ({ start, ms })) ?? []
  }
  return { history, look, days }
}

test('the demo of any platform begins with eighty days of what its first look found, with trouble in them', async () => {
  const { history, look, days } = await demo()
  await look(NOW, { '': 'ok', mail: 'ok', kiln: 'ok', off: 'skipped' })
  expect((await days(NOW, 'kiln')).length).toBeGreaterThan(76)
  expect(await days(NOW, 'off')).toHaveLength(1)
  const { incidents } = await history.read(NOW)
  expect(new Set(incidents.map(({ probe }) => probe))).toEqual(new Set(['mail', 'kiln']))
  expect(incidents.every(({ endedAt }) => endedAt !== undefined)).toBe(true)
  expect(history.sampleUntil).toBe(NOW)
})

test('days that the clock of the demo skips are filled when all was well, and are no data when something failed', async () => {
  const { history, look, days } = await demo()
  await look(NOW, { '': 'ok', kiln: 'ok' })
  await look(NOW + 5 * DAY, { '': 'ok', kiln: 'failing' })
  expect(history.sampleUntil).toBe(NOW + 5 * DAY)
  await look(NOW + 8 * DAY, { '': 'ok', kiln: 'ok' })
  expect(history.sampleUntil).toBe(NOW + 5 * DAY)
  const found = await days(NOW + 8 * DAY, 'kiln')
  const ok = (day: number) =>
    found.find(({ start }) => start === Math.floor(NOW / DAY) * DAY + day * DAY)?.ms.ok ?? 0
  for (const day of [1, 2, 3, 4]) expect(ok(day)).toBe(DAY)
  for (const day of [6, 7]) expect(ok(day)).toBe(0)
})
