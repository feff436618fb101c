import { expect, test } from 'vitest'
import { systemClock } from '../../src/core/host.ts'
import type { Store } from '../../src/core/store/store.ts'
import type { OpenedPlatform } from '../../src/daemon/platform.ts'
import { forgetOld } from '../../src/daemon/schedule.ts'
import { keptLog } from '../support/opened.ts'

const NOW = Date.UTC(2026, 10, 22)
const DAY = 24 * 60 * 60 * 1000

/** A platform and a store that note what they are asked to forget; the part named here fails. */
async function forgotten(failing?: string) {
  const asked: Record<string, unknown> = {}
  const note =
    (name: string) =>
    async (...input: unknown[]): Promise<void> => {
      if (name === failing) throw new Error(`${name} fails`)
      asked[name] = input[0] ?? 'all that is old'
    }
  // No other part of the two is used.
  const platform = {
    ingest: { prune: note('ingest') },
    course: async () => ({ prunePlans: note('plans') }),
  } as unknown as OpenedPlatform
  const store = {
    paymentEvents: { prune: note('payment events') },
    sending: { prune: note('counted minutes') },
    feedback: { prune: note('feedback') },
    incidents: { prune: note('incidents') },
    course: { pruneUnconfirmed: note('unconfirmed') },
  } as unknown as Store
  const { log, told } = keptLog()
  const clock = { ...systemClock, now: () => NOW }
  const over = await forgetOld(platform, store, { clock, log }).then(
    () => 'done',
    (error: Error) => error.message,
  )
  return { asked, over, warned: told('analytics_not_pruned').length }
}

const ago = (days: number) => NOW - days * DAY

test('each part forgets what is older than it is kept, counted from now', async () => {
  expect(await forgotten()).toEqual({
    over: 'done',
    warned: 0,
    asked: {
      ingest: 'all that is old',
      plans: 'all that is old',
      'payment events': ago(90),
      'counted minutes': ago(2),
      feedback: ago(90),
      incidents: { before: ago(90), keep: 1000 },
      unconfirmed: ago(30),
    },
  })
})

test('a part that fails keeps nothing else from being forgotten, and ends the hour as failed, so that it is run again', async () => {
  const { asked } = await forgotten()
  for (const failing of ['incidents', 'plans', 'unconfirmed']) {
    const { [failing]: _, ...others } = asked
    expect(await forgotten(failing)).toEqual({ over: `${failing} fails`, asked: others, warned: 0 })
  }
})

test('visitors’ events that cannot be deleted are a warning, and the hour ends as done: its ping leaves', async () => {
  const { ingest: _, ...others } = (await forgotten()).asked
  expect(await forgotten('ingest')).toEqual({ over: 'done', asked: others, warned: 1 })
})
