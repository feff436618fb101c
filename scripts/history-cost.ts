import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import type { Claim, CourseStore } from '../src/core/course/store.ts'
import { secret } from '../src/core/secret.ts'
import { openStore } from '../src/core/store/open.ts'
import { begin } from '../test/support/learning.ts'
import { startPostgres } from '../test/support/postgres.ts'

/**
 * `node scripts/history-cost.ts [LESSONS]`: what the history of each lesson costs, in time and in bytes. Records the same
 * outcomes with and without an entry, in groups of a hundred, on SQLite and on PostgreSQL; the median of three rounds.
 */
const LESSONS = Number(process.argv[2] ?? 10_000)
/** A course has seven lessons, and each round records two. */
const ROUNDS = 3
const GROUP = 100
const START = Date.UTC(2026, 10, 21)
const DAY_MS = 86_400_000

const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-history-'))
const server = await startPostgres()
try {
  for (const kind of ['sqlite', 'postgres'] as const) {
    const file = path.join(folder, 'store.sqlite')
    const url = kind === 'postgres' ? await server.createDatabase() : ''
    const store = await openStore(kind === 'sqlite' ? { kind, file } : { kind, url: secret(url) })
    const bytes = async () => {
      if (kind === 'sqlite') {
        const beside = new Database(file, { readonly: true })
        const found = beside
          .prepare(`SELECT sum(pgsize) FROM dbstat WHERE name = 'subscription_event'`)
          .pluck()
          .get()
        beside.close()
        return Number(found)
      }
      const size = `SELECT pg_total_relation_size('platformctl.subscription_event') AS bytes`
      return Number((await server.query(url, size)).rows[0]?.bytes)
    }
    for (let n = 0; n < LESSONS; n += 1) {
      const identity = `person-${n}@example.com`
      await store.course.requestConfirmation({
        course: 'quantum',
        identity,
        address: identity,
        id: `person-${n}`,
        tokenHash: `${n}`,
        now: START,
      })
      await store.course.confirm({ begin, tokenHash: `${n}`, now: START })
    }
    const times = { without: [] as number[], with: [] as number[] }
    let day = 0
    let grown = 0
    for (let round = 0; round < ROUNDS; round += 1)
      for (const how of ['without', 'with'] as const) {
        const claims = await claimAll(store.course, START + day * DAY_MS, `call-${day}`)
        const before = await bytes()
        times[how].push(await record(store.course, claims, START + day * DAY_MS, how === 'with'))
        if (how === 'with') grown += (await bytes()) - before
        day += 1
      }
    const median = (values: number[]) =>
      values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
    const [without, withEntry] = [median(times.without), median(times.with)]
    console.log(
      `${kind}: ${((without / LESSONS) * 1000).toFixed(1)} µs a lesson without an entry, ${((withEntry / LESSONS) * 1000).toFixed(1)} µs with one; ${Math.round(grown / (LESSONS * times.with.length))} bytes an entry`,
    )
    await store.close()
  }
} finally {
  await server.stop()
  await rm(folder, { recursive: true, force: true })
}

async function claimAll(course: CourseStore, now: number, call: string): Promise<readonly Claim[]> {
  const claims: Claim[] = []
  for (;;) {
    const taken = await course.claimDue({ now, limit: GROUP, retries: 0, leaseMs: 600_000, call })
    if (taken.length === 0) return claims
    claims.push(...taken)
  }
}

/** Milliseconds that recording took. */
async function record(
  course: CourseStore,
  claims: readonly Claim[],
  now: number,
  remember: boolean,
): Promise<number> {
  const began = performance.now()
  for (let at = 0; at < claims.length; at += GROUP)
    await course.settle(
      claims.slice(at, at + GROUP).map((claim) => ({
        claim,
        now,
        sent: true,
        nextAttemptAt: now + DAY_MS,
        failures: 0,
        problem: undefined,
        end: false,
        ...(remember && {
          attempt: {
            outcome: 'sent' as const,
            messageId: `<course.${claim.subscription}.1.${claim.day}@example.com>`,
            providerId: '0100018f-4d2e-7c61-b0d5-2f7c8a1e9d3b',
          },
        }),
      })),
    )
  return performance.now() - began
}
