import { expect, test } from 'vitest'
import { COURSE, MAIL, recordOf } from '../../../src/core/delivery/retries.ts'
import { HOUR_MS, MINUTE_MS } from '../../../src/core/durations.ts'

const NOW = Date.UTC(2026, 10, 22)

test.each([
  [1e15, HOUR_MS],
  [Number.POSITIVE_INFINITY, HOUR_MS],
  [20 * MINUTE_MS, 20 * MINUTE_MS],
  [0, 5 * MINUTE_MS],
  [-1e15, 5 * MINUTE_MS],
  [Number.NaN, 5 * MINUTE_MS],
  ['soon' as unknown as number, 5 * MINUTE_MS],
])('a transport that asks to be left alone for %d ms is tried again after %i', (retryAfterMs, pause) => {
  const job = { dueAt: NOW, failures: 0, unknownSince: undefined, wasTried: false }
  const delivery = { kind: 'transient', scope: 'message', reason: 'busy', retryAfterMs } as const
  for (const stream of [COURSE, MAIL])
    expect(recordOf(job, delivery, { now: NOW, fraction: 0, stream })).toMatchObject({
      result: 'waits',
      nextAttemptAt: NOW + pause,
    })
})
