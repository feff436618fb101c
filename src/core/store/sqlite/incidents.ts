import { MOST_SKEW_MS } from '../../durations.ts'
import type { IncidentStore } from '../../incidents/incident.ts'
import {
  type AlertRow,
  type AnnouncementRow,
  announcementOf,
  type IncidentRow,
  incidentOf,
  incidentRow,
  messageOf,
  type SilenceRow,
  silenceOf,
  storedReason,
} from '../incident-rows.ts'
import { storableText } from '../rows.ts'
import type { Guarded, SqliteDatabase } from './connection.ts'

/** The incidents in an SQLite file. */
export function sqliteIncidents(
  database: SqliteDatabase,
  guarded: Guarded,
  leaseClock: () => number,
): IncidentStore {
  const sql = {
    open: database.prepare(`
      INSERT INTO incident (id, cause, service, reason, affected, opened_at, seen_at, closed_at, acknowledged_at, acknowledged_by)
      VALUES (@id, @cause, @service, @reason, @affected, @opened_at, @seen_at, @closed_at, @acknowledged_at, @acknowledged_by)
      ON CONFLICT DO NOTHING`),
    seen: database.prepare(
      'UPDATE incident SET seen_at = max(seen_at, @now), reason = @reason, affected = @affected WHERE cause = @cause AND closed_at IS NULL',
    ),
    close: database.prepare(
      'UPDATE incident SET closed_at = max(opened_at, @now) WHERE cause = @cause AND closed_at IS NULL AND seen_at <= @unseenSince',
    ),
    acknowledge: database.prepare(
      'UPDATE incident SET acknowledged_at = @now, acknowledged_by = @by WHERE id = @id AND closed_at IS NULL AND acknowledged_at IS NULL',
    ),
    list: database.prepare(`
      SELECT * FROM incident WHERE closed_at IS NULL OR id IN (SELECT id FROM incident ORDER BY opened_at DESC, id LIMIT ?)
      ORDER BY opened_at DESC, id`),
    // A lease that ends later than any could was taken before the machine started.
    claim: database
      .prepare(`
      INSERT INTO alert_message (incident, kind, channel, outcome, attempts, at, next_at, claimed_until)
      VALUES (@incident, @kind, @channel, 'pending', 1, @now, 0, @lease + @leaseMs)
      ON CONFLICT (incident, kind, channel) DO UPDATE
      SET attempts = attempts + 1, at = excluded.at, claimed_until = excluded.claimed_until
      WHERE outcome = 'pending' AND next_at <= @now
        AND (claimed_until <= @lease OR claimed_until > @lease + @leaseMs)
      RETURNING attempts`)
      .pluck(),
    settle: database.prepare(`
      UPDATE alert_message SET outcome = @outcome, at = @now, next_at = @nextAt, reason = @reason, claimed_until = 0
      WHERE incident = @incident AND kind = @kind AND channel = @channel AND outcome = 'pending'`),
    messages: database.prepare(`
      SELECT incident, kind, channel, outcome, attempts, at, reason FROM alert_message
      WHERE incident IN (SELECT value FROM json_each(?)) ORDER BY at DESC, incident, kind`),
    unfinished: database.prepare(`
      SELECT * FROM incident i WHERE closed_at IS NULL OR opened_at > @since OR EXISTS (
        SELECT 1 FROM alert_message o
        WHERE o.incident = i.id AND o.kind = 'opened' AND o.channel IN (SELECT value FROM json_each(@channels))
          AND NOT EXISTS (
            SELECT 1 FROM alert_message c
            WHERE c.incident = i.id AND c.kind = 'closed' AND c.channel = o.channel AND c.outcome <> 'pending'))
      ORDER BY opened_at DESC, id`),
    rewind: [
      `UPDATE incident SET opened_at = min(opened_at, @now), seen_at = min(seen_at, @now - ${MOST_SKEW_MS}),
         acknowledged_at = min(acknowledged_at, @now), closed_at = min(closed_at, @now)
       WHERE opened_at > @latest OR seen_at > @latest OR closed_at > @latest`,
      "DELETE FROM alert_message WHERE at > @latest AND kind LIKE 'reminder-%'",
      "UPDATE alert_message SET at = @now, next_at = @now WHERE at > @latest AND outcome = 'pending'",
      'DELETE FROM silence WHERE from_at > @latest',
    ].map((text) => database.prepare(text)),
    pruneIncidents: database.prepare(`
      DELETE FROM incident WHERE closed_at IS NOT NULL AND (closed_at < @before OR id NOT IN
        (SELECT id FROM incident WHERE closed_at IS NOT NULL ORDER BY closed_at DESC, id LIMIT @keep))`),
    pruneMessages: database.prepare(
      'DELETE FROM alert_message WHERE incident NOT IN (SELECT id FROM incident)',
    ),
    pruneSilences: database.prepare('DELETE FROM silence WHERE until_at < ?'),
    pruneAnnouncements: database.prepare('DELETE FROM announcement WHERE until_at < ?'),
    announce: database.prepare(
      'INSERT INTO announcement (id, text, from_at, until_at, who) VALUES (?, ?, ?, ?, ?)',
    ),
    withdraw: database.prepare(
      'DELETE FROM announcement WHERE id = @id AND (until_at IS NULL OR until_at > @now)',
    ),
    announcements: database.prepare(
      'SELECT * FROM announcement WHERE until_at IS NULL OR until_at > ? ORDER BY from_at, id',
    ),
    silence: database.prepare(`
      INSERT INTO silence (from_at, until_at, reason, who) VALUES (?, ?, ?, ?)
      ON CONFLICT (from_at) DO UPDATE SET reason = excluded.reason, who = excluded.who, until_at =
        iif(excluded.until_at = excluded.from_at, excluded.until_at, max(until_at, excluded.until_at))`),
    silenceAt: database.prepare(`
      SELECT * FROM silence s WHERE from_at <= @now AND until_at > @now AND NOT EXISTS (
        SELECT 1 FROM silence WHERE until_at = from_at AND from_at >= s.from_at AND from_at <= @now)
      ORDER BY until_at DESC LIMIT 1`),
  }
  return {
    open: async (incident) => guarded(() => sql.open.run(incidentRow(incident)).changes === 1),
    seen: async ({ cause, reason, affected, now }) =>
      guarded(() => {
        sql.seen.run({ cause, reason: storedReason(reason), affected: JSON.stringify(affected), now })
      }),
    close: async (input) => guarded(() => void sql.close.run(input)),
    acknowledge: async (input) => guarded(() => sql.acknowledge.run(input).changes === 1),
    // Casts here and below are safe: the tables are STRICT, so SQLite enforces the types of the columns selected.
    list: async (limit) => guarded(() => (sql.list.all(limit) as IncidentRow[]).map(incidentOf)),
    claim: async (input) =>
      guarded(() => sql.claim.get({ ...input, lease: leaseClock() }) as number | undefined),
    settle: async ({ reason, ...input }) =>
      guarded(() => void sql.settle.run({ ...input, reason: storedReason(reason) })),
    messages: async (incidents) =>
      guarded(() => (sql.messages.all(JSON.stringify(incidents)) as AlertRow[]).map(messageOf)),
    unfinished: async ({ channels, since }) =>
      guarded(() =>
        (sql.unfinished.all({ channels: JSON.stringify(channels), since }) as IncidentRow[]).map(incidentOf),
      ),
    rewind: async (now) =>
      guarded(() => {
        const times = { now, latest: now + MOST_SKEW_MS }
        return sql.rewind.reduce((changed, statement) => changed + statement.run(times).changes, 0)
      }),
    prune: async (input) =>
      guarded(() => {
        sql.pruneIncidents.run(input)
        sql.pruneMessages.run()
        sql.pruneSilences.run(input.before)
        sql.pruneAnnouncements.run(input.before)
      }),
    silence: async ({ from, until, reason, by }) =>
      guarded(() => void sql.silence.run(from, until, reason, by)),
    announce: async ({ id, text, from, until, by }) =>
      guarded(() => void sql.announce.run(id, storableText(text), from, until ?? null, by)),
    withdraw: async (input) => guarded(() => sql.withdraw.run(input).changes === 1),
    announcements: async (now) =>
      guarded(() => (sql.announcements.all(now) as AnnouncementRow[]).map(announcementOf)),
    silenceAt: async (now) =>
      guarded(() => {
        const row = sql.silenceAt.get({ now }) as SilenceRow | undefined
        return row && silenceOf(row)
      }),
  }
}
