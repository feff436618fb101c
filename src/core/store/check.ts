import { type StoredSubscription, violations } from '../course/invariants.ts'
import type { VerifyResult } from './maintenance.ts'
import { listPlans, listTexts, planFaults } from './plans.ts'
import { all, type Steps } from './sql.ts'

const MOST_FAULTS = 100
/** Rows are read in pages, because one long read would keep the write-ahead log from shrinking. */
const PAGE = 500

export const TEXTS = {
  page: `SELECT id, state, enrolment, confirmed_at, unsubscribed_at, CAST(sent_days AS text) AS sent_days, lessons,
      due_at, last_sent_at, next_attempt_at, problem_kind AS problem
    FROM subscription WHERE id > @after ORDER BY id LIMIT ${PAGE}`,
}

interface Checked {
  readonly checked: number
  readonly faults: readonly string[]
}

/** The invariants of the course, row by row; a store of an earlier build has no texts to check. */
export function* checkRows(now: number, hasTexts: boolean): Steps<Checked> {
  const faults: string[] = []
  let checked = 0
  for (let after: string | undefined = ''; after !== undefined; ) {
    const rows: readonly StoredSubscription[] = yield* all<StoredSubscription>(TEXTS.page, { after })
    for (const row of rows)
      faults.push(...violations(row, now).map((found) => `subscription ${row.id}: ${found}`))
    checked += rows.length
    after = rows.length < PAGE ? undefined : rows.at(-1)?.id
  }
  if (hasTexts) faults.push(...planFaults(yield* listPlans(), yield* listTexts()))
  return { checked, faults }
}

export const verifyResult = ({ checked, faults }: Checked, damaged: boolean): VerifyResult => ({
  ok: faults.length === 0,
  damaged,
  checked,
  faults: faults.slice(0, MOST_FAULTS),
  moreFaults: Math.max(0, faults.length - MOST_FAULTS),
})
