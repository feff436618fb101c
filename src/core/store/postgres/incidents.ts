import { MOST_SKEW_MS } from '../../durations.ts'
import type { IncidentStore } from '../../incidents/incident.ts'
import {
  announcementOf,
  incidentOf,
  incidentRow,
  messageOf,
  silenceOf,
  storedReason,
} from '../incident-rows.ts'
import { storableText } from '../rows.ts'
import { guarded, type Pool } from './connection.ts'
import { statements } from './statements.ts'

const COLUMNS =
  'id, cause, service, reason, affected, opened_at, seen_at, closed_at, acknowledged_at, acknowledged_by'

/** $1 is now; a time more than $2 ahead of it was recorded before the clock was set back. */
const REWIND = [
  `UPDATE platformctl.incident SET opened_at = least(opened_at, $1), seen_at = least(seen_at, $1 - $2::bigint),
     acknowledged_at = CASE WHEN acknowledged_at > $1 THEN $1 ELSE acknowledged_at END,
     closed_at = CASE WHEN closed_at > $1 THEN $1 ELSE closed_at END
   WHERE opened_at > $1 + $2::bigint OR seen_at > $1 + $2::bigint OR closed_at > $1 + $2::bigint`,
  "DELETE FROM platformctl.alert_message WHERE at > $1 + $2::bigint AND kind LIKE 'reminder-%'",
  "UPDATE platformctl.alert_message SET at = $1, next_at = $1 WHERE at > $1 + $2::bigint AND outcome = 'pending'",
  'DELETE FROM platformctl.silence WHERE from_at > $1 + $2::bigint',
]

/** The incidents in a PostgreSQL that several machines share; leases are measured by its clock. */
export function postgresIncidents(pool: Pool, leaseNow: () => string): IncidentStore {
  const statement = statements(pool)
  return {
    open: (incident) =>
      guarded(async () => {
        const row = incidentRow(incident)
        const { rowCount } = await pool.query(
          `INSERT INTO platformctl.incident (${COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING`,
          [
            row.id,
            row.cause,
            row.service,
            row.reason,
            row.affected,
            row.opened_at,
            row.seen_at,
            row.closed_at,
            row.acknowledged_at,
            row.acknowledged_by,
          ],
        )
        return rowCount === 1
      }),
    seen: ({ cause, reason, affected, now }) =>
      statement.run(
        'UPDATE platformctl.incident SET seen_at = greatest(seen_at, $1), reason = $2, affected = $3 WHERE cause = $4 AND closed_at IS NULL',
        [now, storedReason(reason), JSON.stringify(affected), cause],
      ),
    close: ({ cause, now, unseenSince }) =>
      statement.run(
        'UPDATE platformctl.incident SET closed_at = greatest(opened_at, $1) WHERE cause = $2 AND closed_at IS NULL AND seen_at <= $3',
        [now, cause, unseenSince],
      ),
    acknowledge: ({ id, now, by }) =>
      statement.hits(
        'UPDATE platformctl.incident SET acknowledged_at = $1, acknowledged_by = $2 WHERE id = $3 AND closed_at IS NULL AND acknowledged_at IS NULL',
        [now, by, id],
      ),
    list: (limit) =>
      statement.all(
        incidentOf,
        `SELECT ${COLUMNS} FROM platformctl.incident
           WHERE closed_at IS NULL OR id IN (SELECT id FROM platformctl.incident ORDER BY opened_at DESC, id LIMIT $1)
           ORDER BY opened_at DESC, id`,
        [limit],
      ),
    claim: ({ incident, kind, channel, now, leaseMs }) =>
      guarded(async () => {
        const { rows } = await pool.query<{ attempts: number }>(
          `INSERT INTO platformctl.alert_message AS m (incident, kind, channel, outcome, attempts, at, next_at, claimed_until)
           VALUES ($1, $2, $3, 'pending', 1, $4, 0, ${leaseNow()} + $5)
           ON CONFLICT (incident, kind, channel) DO UPDATE
           SET attempts = m.attempts + 1, at = excluded.at, claimed_until = excluded.claimed_until
           WHERE m.outcome = 'pending' AND m.next_at <= $4 AND (m.claimed_until <= ${leaseNow()} OR m.claimed_until > ${leaseNow()} + 2 * $5)
           RETURNING attempts`,
          [incident, kind, channel, now, leaseMs],
        )
        return rows[0]?.attempts
      }),
    settle: ({ incident, kind, channel, outcome, now, nextAt, reason }) =>
      statement.run(
        `UPDATE platformctl.alert_message SET outcome = $1, at = $2, next_at = $3, reason = $4, claimed_until = 0
           WHERE incident = $5 AND kind = $6 AND channel = $7 AND outcome = 'pending'`,
        [outcome, now, nextAt, storedReason(reason), incident, kind, channel],
      ),
    messages: (incidents) =>
      statement.all(
        messageOf,
        `SELECT incident, kind, channel, outcome, attempts, at, reason FROM platformctl.alert_message
           WHERE incident = ANY ($1) ORDER BY at DESC, incident, kind`,
        [incidents],
      ),
    unfinished: ({ channels, since }) =>
      statement.all(
        incidentOf,
        `SELECT ${COLUMNS} FROM platformctl.incident i WHERE closed_at IS NULL OR opened_at > $2 OR EXISTS (
             SELECT 1 FROM platformctl.alert_message o
             WHERE o.incident = i.id AND o.kind = 'opened' AND o.channel = ANY ($1) AND NOT EXISTS (
               SELECT 1 FROM platformctl.alert_message c
               WHERE c.incident = i.id AND c.kind = 'closed' AND c.channel = o.channel AND c.outcome <> 'pending'))
           ORDER BY opened_at DESC, id`,
        [channels, since],
      ),
    rewind: (now) =>
      guarded(async () => {
        let changed = 0
        for (const text of REWIND) changed += (await pool.query(text, [now, MOST_SKEW_MS])).rowCount ?? 0
        return changed
      }),
    prune: ({ before, keep }) =>
      guarded(async () => {
        await pool.query(
          `DELETE FROM platformctl.incident WHERE closed_at IS NOT NULL AND (closed_at < $1 OR id NOT IN
             (SELECT id FROM platformctl.incident WHERE closed_at IS NOT NULL ORDER BY closed_at DESC, id LIMIT $2))`,
          [before, keep],
        )
        await pool.query(
          'DELETE FROM platformctl.alert_message WHERE incident NOT IN (SELECT id FROM platformctl.incident)',
          [],
        )
        await pool.query('DELETE FROM platformctl.silence WHERE until_at < $1', [before])
        await pool.query('DELETE FROM platformctl.announcement WHERE until_at < $1', [before])
      }),
    silence: ({ from, until, reason, by }) =>
      statement.run(
        `INSERT INTO platformctl.silence AS s (from_at, until_at, reason, who) VALUES ($1, $2, $3, $4)
           ON CONFLICT (from_at) DO UPDATE SET reason = excluded.reason, who = excluded.who, until_at =
             CASE WHEN excluded.until_at = excluded.from_at THEN excluded.until_at ELSE greatest(s.until_at, excluded.until_at) END`,
        [from, until, reason, by],
      ),
    announce: ({ id, text, from, until, by }) =>
      statement.run(
        'INSERT INTO platformctl.announcement (id, text, from_at, until_at, who) VALUES ($1, $2, $3, $4, $5)',
        [id, storableText(text), from, until ?? null, by],
      ),
    withdraw: ({ id, now }) =>
      statement.hits(
        'DELETE FROM platformctl.announcement WHERE id = $1 AND (until_at IS NULL OR until_at > $2)',
        [id, now],
      ),
    announcements: (now) =>
      statement.all(
        announcementOf,
        'SELECT * FROM platformctl.announcement WHERE until_at IS NULL OR until_at > $1 ORDER BY from_at, id',
        [now],
      ),
    silenceAt: (now) =>
      statement.first(
        silenceOf,
        `SELECT from_at, until_at, reason, who FROM platformctl.silence s
           WHERE from_at <= $1 AND until_at > $1 AND NOT EXISTS (
             SELECT 1 FROM platformctl.silence WHERE until_at = from_at AND from_at >= s.from_at AND from_at <= $1)
           ORDER BY until_at DESC LIMIT 1`,
        [now],
      ),
  }
}
