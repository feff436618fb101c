import { describe, expect, test } from 'vitest'
import { addressOf, openTestStore, STORES } from '../../support/stores.ts'

const NOW = Date.UTC(2026, 10, 21, 9)

describe.each(STORES)('%s', (kind) => {
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
    expect(await heartbeats.beat({ name: 'backup', now: NOW + 40, failed: undefined })).toEqual({
      ...never,
      beatAt: NOW + 40,
    })
    expect(await heartbeats.beat({ name: 'other', now: NOW, failed: { exitCode: undefined } })).toMatchObject(
      {
        since: NOW,
        failedAt: NOW,
      },
    )
  })
})
