import { describe, expect, test } from 'vitest'
import { DAY_MS, MOST_SKEW_MS } from '../../../src/core/durations.ts'
import { heartbeatState } from '../../../src/core/heartbeats.ts'
import { change } from '../../support/incidents.ts'
import { addressOf, openTestStore, STORES } from '../../support/stores.ts'

const NOW = Date.UTC(2026, 10, 21, 9)

describe.each(STORES.filter((kind) => kind !== 'memory'))('%s', (kind) => {
  test('expects a heartbeat from the first check on, and keeps its last success after a failure', async () => {
    const { heartbeats } = await openTestStore(await addressOf(kind))
    const never = { name: 'backup', since: NOW, beatAt: undefined, failedAt: undefined, exitCode: undefined }
    expect(await heartbeats.expect({ name: 'backup', now: NOW })).toEqual(never)
    expect(await heartbeats.expect({ name: 'backup', now: NOW + 5 })).toEqual(never)
    expect(await heartbeats.beat({ name: 'backup', now: NOW + 10, failed: undefined })).toEqual({
      ...never,
      beatAt: NOW + 10,
    })
    const failed = { ...never, beatAt: NOW + 10, failedAt: NOW + 20, exitCode: 3 }
    expect(await heartbeats.beat({ name: 'backup', now: NOW + 20, failed: { exitCode: 3 } })).toEqual(failed)
    expect(await heartbeats.expect({ name: 'backup', now: NOW + 30 })).toEqual(failed)
    const again = { ...failed, failedAt: NOW + 35, exitCode: 75 }
    expect(await heartbeats.beat({ name: 'backup', now: NOW + 35, failed: { exitCode: 75 } })).toEqual(again)
    // That it also is late by now says less.
    expect(heartbeatState({ everyMs: DAY_MS, graceMs: 0 }, failed, NOW + 9 * DAY_MS).state).toBe('failed')
    expect(await heartbeats.beat({ name: 'backup', now: NOW + 40, failed: undefined })).toEqual({
      ...never,
      beatAt: NOW + 40,
    })
    const other = { name: 'other', now: NOW, failed: { exitCode: undefined } }
    expect(await heartbeats.beat(other)).toMatchObject({ since: NOW, failedAt: NOW })
  })

  test('a job that reported while the clock was ahead is missed as soon as any other once it is right', async () => {
    const { heartbeats, incidents } = await openTestStore(await addressOf(kind))
    await heartbeats.expect({ name: 'import', now: NOW + 30 * DAY_MS })
    await heartbeats.beat({ name: 'backup', now: NOW + 30 * DAY_MS, failed: undefined })
    await heartbeats.beat({ name: 'other', now: NOW + MOST_SKEW_MS, failed: undefined })
    const stateAt = async (name: string, now: number) => {
      await change(incidents, now, {})
      const record = await heartbeats.expect({ name, now })
      return heartbeatState({ everyMs: DAY_MS, graceMs: 0 }, record, now).state
    }
    for (const name of ['import', 'backup']) {
      expect(await stateAt(name, NOW)).toBe('ok')
      expect(await stateAt(name, NOW + DAY_MS)).toBe('ok')
      expect(await stateAt(name, NOW + DAY_MS + 1)).toBe('late')
    }
    // No clock is ahead by less than machines may differ.
    expect(await heartbeats.expect({ name: 'other', now: NOW })).toMatchObject({ beatAt: NOW + MOST_SKEW_MS })
  })
})
