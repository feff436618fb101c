import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import { openStore } from '../src/core/store/open.ts'
import type { Store } from '../src/core/store/store.ts'
import type { Benchmark, Contender } from './harness.ts'

const SIZES = process.env.BENCH_LARGE === '1' ? [100_000, 1_000_000, 10_000_000] : [100_000, 1_000_000]
const DUE = 1000
const CLAIMS = 40

/** `size` subscriptions, of which a thousand are due at the time 1; the others far in the future. */
async function filled(folder: string, size: number): Promise<Store> {
  const file = path.join(folder, `${size}.sqlite`)
  await (await openStore({ kind: 'sqlite', file })).close()
  const database = new Database(file)
  database.exec('PRAGMA synchronous = OFF')
  database.exec(`
    INSERT INTO subscription (id, identity, address, state, enrolment, created_at, confirmed_at, next_attempt_at)
    WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${size})
    SELECT printf('%010d', n), n || '@example.com', n || '@example.com', 'confirmed', 1, 0, 0,
      CASE WHEN n % ${size / DUE} = 0 THEN 0 ELSE 1000000000 + n END FROM n`)
  database.pragma('wal_checkpoint(TRUNCATE)')
  database.close()
  return openStore({ kind: 'sqlite', file })
}

export const benchmark: Benchmark = {
  name: 'claim',
  title: 'Claiming 100 of 1,000 due lessons, by how many subscriptions the store holds',
  unit: 'ms',
  better: 'lower',
  promises: SIZES.slice(1).map((size) => ({ against: label(size), ratio: 1.3 })),
  notes:
    'The median of forty claims a round, each a durable commit; the ratio is the smallest store beside a larger.',
  async open() {
    const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-bench-'))
    const stores: Store[] = []
    const contenders: Contender[] = []
    for (const size of SIZES) {
      const store = await filled(folder, size)
      stores.push(store)
      contenders.push({
        name: label(size),
        role: size === SIZES[0] ? 'ours' : 'peer',
        measure: async () => {
          const times: number[] = []
          for (let n = 0; n < CLAIMS; n += 1) {
            const began = performance.now()
            // A lease of no length: the same thousand are due again at once.
            const claims = await store.course.claimDue({
              now: 1,
              limit: 100,
              retries: 0,
              leaseMs: -1,
              call: `call-${n}-${began}`,
            })
            times.push(performance.now() - began)
            if (claims.length !== 100) throw new Error(`${claims.length} claims instead of 100`)
          }
          return times.sort((a, b) => a - b)[CLAIMS / 2] ?? Number.NaN
        },
      })
    }
    return {
      contenders,
      close: async () => {
        for (const store of stores) await store.close()
        await rm(folder, { recursive: true, force: true })
      },
    }
  },
}

function label(size: number): string {
  return `${size.toLocaleString('en')} subscriptions`
}
