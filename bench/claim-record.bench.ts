import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import { openStore } from '../src/core/store/open.ts'
import { nextOf } from '../test/support/learning.ts'
import { settle } from '../test/support/settle.ts'
import { ROWS } from './claims.ts'
import type { Benchmark } from './harness.ts'
import { subscriptionsFile } from './subscriptions.ts'

const DUE = 5000
const LEASE_MS = 90_000

/** Claims and records lessons until none is due, a hundred at a time and `together` outcomes per commit; gives rows per second. */
async function claimAndRecord(file: string, together: number): Promise<number> {
  const store = await openStore({ kind: 'sqlite', file })
  const now = Date.now()
  const began = performance.now()
  let recorded = 0
  for (;;) {
    const claims = await store.course.claimDue({
      now,
      limit: ROWS,
      retries: 0,
      leaseMs: LEASE_MS,
      call: 'one',
    })
    if (claims.length === 0) break
    const outcomes = claims.map((claim) =>
      settle(claim, { kind: 'sent', id: 'x' }, { now, fraction: 0, next: nextOf(claim) }),
    )
    for (let at = 0; at < outcomes.length; at += together)
      await store.course.settle(outcomes.slice(at, at + together))
    recorded += outcomes.length
  }
  const seconds = (performance.now() - began) / 1000
  await store.close()
  if (recorded !== DUE) throw new Error(`${recorded} of ${DUE} were recorded`)
  return recorded / seconds
}

/** Time for two durable SQLite commits of a hundred changed rows each, without our code. */
function bare(file: string): number {
  const database = new Database(file)
  database.pragma('synchronous = FULL')
  const update = database.prepare('UPDATE subscription SET next_attempt_at = ? WHERE id = ?')
  const commit = database.transaction((from: number, time: number) => {
    for (let n = from; n < from + ROWS; n += 1) update.run(time, String(n).padStart(10, '0'))
  })
  const began = performance.now()
  for (let from = 1; from <= DUE; from += ROWS) {
    commit.immediate(from, LEASE_MS)
    commit.immediate(from, 4_000_000_000_000)
  }
  const seconds = (performance.now() - began) / 1000
  database.close()
  return DUE / seconds
}

export const benchmark: Benchmark = {
  name: 'claim-record',
  title: 'Claiming and recording lessons',
  unit: 'lessons/s',
  better: 'higher',
  promises: [],
  bound: 10_000,
  notes:
    'As the dispatcher does, without sending: SQLite with synchronous FULL, one process, one connection, 100 recorded per commit. Bare SQLite changes one number in the same rows, in as many commits.',
  async open() {
    const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-bench-'))
    const fresh = () => subscriptionsFile({ folder, subscriptions: DUE, due: DUE })
    const measured = async (measure: (file: string) => number | Promise<number>) => {
      const file = await fresh()
      const value = await measure(file)
      for (const end of ['', '-wal', '-shm']) await rm(`${file}${end}`, { force: true })
      return value
    }
    return {
      contenders: [
        {
          name: 'recorded a hundred in a commit',
          role: 'ours',
          measure: () => measured((file) => claimAndRecord(file, ROWS)),
        },
        {
          name: 'recorded ten in a commit',
          role: 'peer',
          measure: () => measured((file) => claimAndRecord(file, 10)),
        },
        {
          name: 'recorded one by one',
          role: 'peer',
          measure: () => measured((file) => claimAndRecord(file, 1)),
        },
        { name: 'bare SQLite, two updates a row', role: 'floor', measure: () => measured(bare) },
      ],
      close: () => rm(folder, { recursive: true, force: true }),
    }
  },
}
