import type { RestoredStore } from '../replay.ts'
import { postgresAudit } from './audit.ts'
import { type Pool, transaction } from './connection.ts'
import { postgresCourse } from './course.ts'
import { postgresFeedback } from './feedback.ts'

/** A restored schema `platformctl`, to apply the restore rule to. */
export function postgresRestored(pool: Pool): RestoredStore {
  const key = (table: string) => (table === 'mailbox' ? 'identity' : 'id')
  return {
    // Nothing is claimed during a restore, so no lease is measured.
    course: postgresCourse(pool, () => 0),
    feedback: postgresFeedback(pool),
    audit: postgresAudit(pool),
    async addressKeys() {
      const { rows } = await pool.query<{ value: string }>(
        `SELECT value FROM platformctl.meta WHERE name IN ('address_key', 'link_key')`,
      )
      return rows.map(({ value }) => value)
    },
    async personal(table, after, limit) {
      const { rows } = await pool.query<{ id: string; address: string }>(
        `SELECT ${key(table)} AS id, ${table === 'mailbox' ? 'identity AS address' : 'address'}
         FROM platformctl.${table} WHERE ${key(table)} > $1 ORDER BY ${key(table)} LIMIT $2`,
        [after, limit],
      )
      return rows
    },
    erase: ({ hash, at, rows }) =>
      transaction(pool, async (on) => {
        const { rowCount } = await on.query(
          'INSERT INTO platformctl.suppression (hash, created_at) VALUES ($1, $2) ON CONFLICT DO NOTHING',
          [hash, at],
        )
        let changes = rowCount ?? 0
        for (const [table, ids] of Object.entries(rows)) {
          const deleted = await on.query(`DELETE FROM platformctl.${table} WHERE ${key(table)} = ANY ($1)`, [
            ids,
          ])
          changes += deleted.rowCount ?? 0
        }
        return changes
      }),
  }
}
