import { auditLog } from './audit.ts'
import { course } from './course.ts'
import { feedback } from './feedback.ts'
import { courseParts } from './parts.ts'
import type { PersonalRow, RestoredStore } from './replay.ts'
import { all, type Dialect, run, type Sql } from './sql.ts'

type Personal = PersonalRow['table']

const textsOf = (table: Personal, { each }: Dialect) => {
  const [id, address] = table === 'mailbox' ? ['identity', 'identity'] : ['id', 'address']
  return {
    page: `SELECT ${id} AS id, ${address} AS address FROM ${table} WHERE ${id} > @after AND ${address} IS NOT NULL ORDER BY ${id} LIMIT @limit`,
    erase: `DELETE FROM ${table} WHERE ${id} IN (SELECT value FROM ${each('@ids')})`,
  }
}

export const TEXTS = {
  suppress: 'INSERT INTO suppression (hash, created_at) VALUES (@hash, @at) ON CONFLICT DO NOTHING',
  keys: `SELECT value FROM meta WHERE name IN ('address_key', 'link_key')`,
}

/** A store that was brought back to an older state, to apply the restore rule to. */
export function restored(sql: Sql): RestoredStore {
  const parts = courseParts(sql)
  return {
    course: course(sql, parts),
    feedback: feedback(sql, parts),
    audit: auditLog(sql),
    addressKeys: async () => (await sql.one(all<{ value: string }>(TEXTS.keys))).map(({ value }) => value),
    personal: (table, after, limit) => sql.one(all(textsOf(table, sql.dialect).page, { after, limit })),
    erase: ({ hash, at, rows }) =>
      sql.write(function* () {
        let changes = yield* run(TEXTS.suppress, { hash, at })
        for (const [table, ids] of Object.entries(rows))
          changes += yield* run(textsOf(table as Personal, sql.dialect).erase, { ids })
        return changes
      }),
  }
}
