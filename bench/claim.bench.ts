import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { openStore } from '../src/core/store/open.ts'
import type { Store } from '../src/core/store/store.ts'
import { claimTimes, label, quantile, SIZES } from './claims.ts'
import type { Benchmark, Contender } from './harness.ts'
import { subscriptionsFile } from './subscriptions.ts'

const CLAIMS = 80

export const benchmark: Benchmark = {
  name: 'claim',
  title: 'Claiming 100 of 1,000 due lessons, median',
  unit: 'ms',
  better: 'lower',
  promises: SIZES.slice(0, -1).map((size) => ({ against: label(size), ratio: 1.3 })),
  notes: 'Eighty claims a round, each a durable commit. Ours holds 10,000,000 subscriptions.',
  async open() {
    const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-bench-'))
    const stores: Store[] = []
    const contenders: Contender[] = []
    for (const subscriptions of SIZES) {
      const file = await subscriptionsFile({ folder, subscriptions, due: 1000 })
      const store = await openStore({ kind: 'sqlite', file })
      stores.push(store)
      contenders.unshift({
        name: label(subscriptions),
        role: subscriptions === SIZES.at(-1) ? 'ours' : 'peer',
        measure: async () => quantile(await claimTimes(store, CLAIMS), 0.5),
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
