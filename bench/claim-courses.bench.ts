import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { openStore } from '../src/core/store/open.ts'
import { claimTimes, quantile, SIZES } from './claims.ts'
import type { Benchmark, Contender } from './harness.ts'
import { subscriptionsFile } from './subscriptions.ts'

/** Few, and many rounds: what else the machine does then falls on both alike. */
const CLAIMS = 20
const ROUNDS = 40
/** Ten millions, with BENCH_LARGE=1, take two files of some gigabytes. */
const ENROLMENTS = Number(process.env.BENCH_ENROLMENTS ?? SIZES.at(-1))
const COURSES = 100
const ONE = 'in one course'

export const benchmark: Benchmark = {
  name: 'claim-courses',
  title: `Claiming 100 due lessons, in ${COURSES} courses or in one`,
  unit: 'ms',
  better: 'lower',
  rounds: ROUNDS,
  promises: [{ against: ONE, ratio: 1.2 }],
  notes: `Of ${ENROLMENTS.toLocaleString('en')} enrolments, 1,000 are due. The median of twenty claims a round on SQLite, each a durable commit. In the many courses, everybody is in ten of them, with a pinned version, a time zone and a language; in the one course, rows are as short as the default platform has them.`,
  async open() {
    const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-bench-'))
    const contender = async (name: string, role: Contender['role'], courses?: number) => {
      const file = await subscriptionsFile({
        folder,
        subscriptions: ENROLMENTS,
        due: 1000,
        ...(courses && { courses }),
      })
      const store = await openStore({ kind: 'sqlite', file })
      const measure = async () => quantile(await claimTimes(store, CLAIMS), 0.5)
      return { store, contender: { name, role, measure } }
    }
    const many = await contender(`in ${COURSES} courses`, 'ours', COURSES)
    const one = await contender(ONE, 'peer')
    return {
      contenders: [many.contender, one.contender],
      close: async () => {
        await many.store.close()
        await one.store.close()
        await rm(folder, { recursive: true, force: true })
      },
    }
  },
}
