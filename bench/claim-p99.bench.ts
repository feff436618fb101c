import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import { openStore } from '../src/core/store/open.ts'
import type { Store } from '../src/core/store/store.ts'
import { claimTimes, label, quantile, ROWS, SIZES } from './claims.ts'
import type { Benchmark, Contender } from './harness.ts'
import { subscriptionsFile } from './subscriptions.ts'

const CLAIMS = 400
const ORDINARY = 'an ordinary commit of 100 rows'

/**
 * The floor: updates as many rows by id in an equal file, with a new time and holder. A claim cannot cost less than this
 * commit, including the checkpoint that every tenth commit brings.
 */
function ordinaryCommits(file: string) {
  const database = new Database(file)
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = FULL')
  const ids = database
    .prepare('SELECT id FROM subscription WHERE next_attempt_at < 4000000000000 ORDER BY id')
    .pluck()
    .all()
  const update = database.prepare(
    'UPDATE subscription SET next_attempt_at = ?, first_attempt_at = ?, claimed_at = ?, holder = ?, fence = fence + 1 WHERE id = ?',
  )
  let [at, now] = [0, 1]
  const commit = database.transaction((by: string) => {
    now += 1
    // Rotate through all due rows, as the claims do.
    for (let n = 0; n < ROWS; n += 1) update.run(now, now, now, by, ids[(at + n) % ids.length])
    at += ROWS
  })
  return {
    times: (commits: number) =>
      Array.from({ length: commits }, () => {
        const began = performance.now()
        commit.immediate(`call-${began}`)
        return performance.now() - began
      }),
    close: () => database.close(),
  }
}

export const benchmark: Benchmark = {
  name: 'claim-p99',
  title: 'Claiming 100 lessons, p99 until durable',
  unit: 'ms',
  better: 'lower',
  promises: [{ against: ORDINARY, ratio: 1.5 }],
  notes: `${CLAIMS} claims a round, SQLite with synchronous FULL, 1,000 due lessons scattered over the table. The ordinary commit updates the same columns of 100 rows by id in a file as large as ours, which holds 10,000,000 subscriptions.`,
  async open() {
    const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-bench-'))
    const stores: Store[] = []
    const claims: Contender[] = []
    const ordinaryFile = path.join(folder, 'ordinary.sqlite')
    for (const subscriptions of SIZES) {
      const file = await subscriptionsFile({ folder, subscriptions, due: 1000 })
      if (subscriptions === SIZES.at(-1)) await copyFile(file, ordinaryFile)
      const store = await openStore({ kind: 'sqlite', file })
      stores.push(store)
      claims.unshift({
        name: label(subscriptions),
        role: subscriptions === SIZES.at(-1) ? 'ours' : 'peer',
        measure: async () => quantile(await claimTimes(store, CLAIMS), 0.99),
      })
    }
    const ordinary = ordinaryCommits(ordinaryFile)
    return {
      contenders: [
        ...claims,
        {
          name: ORDINARY,
          role: 'floor',
          measure: () => Promise.resolve(quantile(ordinary.times(CLAIMS), 0.99)),
        },
      ],
      close: async () => {
        ordinary.close()
        for (const store of stores) await store.close()
        await rm(folder, { recursive: true, force: true })
      },
    }
  },
}
