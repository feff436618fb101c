import { mkdtemp, rm } from 'node:fs/promises'
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

/** 100 rows scattered over a table with one index, each given a new time: what a commit of so many rows costs at least. */
function ordinaryCommits(folder: string) {
  const size = 100_000
  const database = new Database(path.join(folder, 'ordinary.sqlite'))
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = FULL')
  database.exec(`
    CREATE TABLE ordinary (id TEXT PRIMARY KEY, address TEXT, state TEXT, due INTEGER) STRICT, WITHOUT ROWID;
    CREATE INDEX ordinary_due ON ordinary (due);
    INSERT INTO ordinary WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < ${size - 1})
    SELECT printf('%010d', n), n || '@example.com', 'confirmed', n FROM n`)
  const update = database.prepare('UPDATE ordinary SET due = due + 1 WHERE id = ?')
  // A thousand rows take turns, as in the claims beside it.
  const ids = Array.from({ length: 1000 }, (_, n) => String((n * size) / 1000).padStart(10, '0'))
  let at = 0
  const commit = database.transaction(() => {
    for (let n = 0; n < ROWS; n += 1) update.run(ids[(at + n) % ids.length])
    at += ROWS
  })
  return {
    times: (commits: number) =>
      Array.from({ length: commits }, () => {
        const began = performance.now()
        commit.immediate()
        return performance.now() - began
      }),
    close: () => database.close(),
  }
}

export const benchmark: Benchmark = {
  name: 'claim-p99',
  title: 'Claiming 100 lessons: 99 of 100 claims are durable within',
  unit: 'ms',
  better: 'lower',
  promises: [{ against: ORDINARY, ratio: 1.5 }],
  notes: `${CLAIMS} claims a round on SQLite with synchronous FULL, 1,000 lessons due. The ordinary commit updates as many rows, scattered over a table of 100,000 with one index, under the same settings: what the disk and SQLite take for it. A claim also reads what is due.`,
  async open() {
    const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-bench-'))
    const ordinary = ordinaryCommits(folder)
    const stores: Store[] = []
    const claims: Contender[] = []
    for (const subscriptions of SIZES) {
      const file = await subscriptionsFile({ folder, subscriptions, due: 1000 })
      const store = await openStore({ kind: 'sqlite', file })
      stores.push(store)
      claims.unshift({
        name: label(subscriptions),
        role: subscriptions === SIZES.at(-1) ? 'ours' : 'peer',
        measure: async () => quantile(await claimTimes(store, CLAIMS), 0.99),
      })
    }
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
