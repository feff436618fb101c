import { MOST_SKEW_MS } from '../durations.ts'
import type {
  Announcement,
  IncidentStore,
  MessageRecord,
  Silence,
  StatusUpdate,
  StoredIncident,
} from '../incidents/incident.ts'
import { addAudit } from './audit.ts'
import { publishNotice } from './notices.ts'
import { all, type Dialect, first, run, type Sql, type Steps } from './sql.ts'

export const TEXTS = ({ each }: Dialect) => ({
  open: `INSERT INTO incident (id, cause, service, reason, affected, opened_at, seen_at, closed_at, acknowledged_at, acknowledged_by)
    VALUES (@id, @cause, @service, @reason, @affected, @openedAt, @seenAt, @closedAt, @acknowledgedAt, @acknowledgedBy)
    ON CONFLICT DO NOTHING`,
  seen: `UPDATE incident SET seen_at = CASE WHEN seen_at < @now THEN @now ELSE seen_at END, reason = @reason, affected = @affected
    WHERE cause = @cause AND closed_at IS NULL`,
  close: `UPDATE incident SET closed_at = CASE WHEN opened_at < @now THEN @now ELSE opened_at END
    WHERE cause = @cause AND closed_at IS NULL AND seen_at <= @unseenSince`,
  acknowledge: `UPDATE incident SET acknowledged_at = @now, acknowledged_by = @by
    WHERE id = @id AND closed_at IS NULL AND acknowledged_at IS NULL`,
  resolve: `UPDATE incident SET closed_at = CASE WHEN opened_at < @now THEN @now ELSE opened_at END,
      resolved_by = @by, resolved_reason = @reason
    WHERE id = @id AND closed_at IS NULL`,
  byId: 'SELECT * FROM incident WHERE id = @id',
  list: `SELECT * FROM incident
    WHERE closed_at IS NULL OR id IN (SELECT id FROM incident ORDER BY opened_at DESC, id LIMIT @limit)
    ORDER BY opened_at DESC, id`,
  // A lease that ends much later than any new one could was taken before the clock of leases was set back.
  claim: `INSERT INTO alert_message (incident, kind, channel, outcome, attempts, at, next_at, claimed_until)
    VALUES (@incident, @kind, @channel, 'pending', 1, @now, 0, @leaseNow + @leaseMs)
    ON CONFLICT (incident, kind, channel) DO UPDATE
    SET attempts = alert_message.attempts + 1, at = excluded.at, claimed_until = excluded.claimed_until
    WHERE alert_message.outcome = 'pending' AND alert_message.next_at <= @now
      AND (alert_message.claimed_until <= @leaseNow OR alert_message.claimed_until > @leaseNow + 2 * @leaseMs)
    RETURNING attempts`,
  renew: `UPDATE alert_message SET claimed_until = @leaseNow + @leaseMs
    WHERE incident = @incident AND kind = @kind AND channel = @channel AND outcome = 'pending' AND attempts = @attempt`,
  // What was sent is sent, whoever has the message by now.
  settle: `UPDATE alert_message SET outcome = @outcome, at = @now, next_at = @nextAt, reason = @reason, claimed_until = 0
    WHERE incident = @incident AND kind = @kind AND channel = @channel AND outcome = 'pending'
      AND (@outcome = 'sent' OR attempts = COALESCE(@attempt, attempts))`,
  messages: `SELECT incident, kind, channel, outcome, attempts, at, reason FROM alert_message
    WHERE incident IN (SELECT value FROM ${each('@incidents')}) ORDER BY at DESC, incident, kind`,
  unfinished: `SELECT * FROM incident i WHERE closed_at IS NULL OR opened_at > @since OR EXISTS (
      SELECT 1 FROM alert_message o
      WHERE o.incident = i.id AND o.kind = 'opened' AND o.channel IN (SELECT value FROM ${each('@channels')}) AND NOT EXISTS (
        SELECT 1 FROM alert_message c
        WHERE c.incident = i.id AND c.kind = 'closed' AND c.channel = o.channel AND c.outcome <> 'pending'))
    ORDER BY opened_at DESC, id`,
  rewindIncidents: `UPDATE incident SET
      opened_at = CASE WHEN opened_at > @now THEN @now ELSE opened_at END,
      seen_at = CASE WHEN seen_at > @seenAt THEN @seenAt ELSE seen_at END,
      acknowledged_at = CASE WHEN acknowledged_at > @now THEN @now ELSE acknowledged_at END,
      closed_at = CASE WHEN closed_at > @now THEN @now ELSE closed_at END
    WHERE opened_at > @latest OR seen_at > @latest OR closed_at > @latest`,
  forgetReminders: "DELETE FROM alert_message WHERE at > @latest AND kind LIKE 'reminder-%'",
  rewindMessages:
    "UPDATE alert_message SET at = @now, next_at = @now WHERE at > @latest AND outcome = 'pending'",
  // Before the row that ended them is forgotten, silences that it ended are shortened to nothing, which still ends older ones.
  endSilences: `UPDATE silence SET until_at = from_at WHERE EXISTS (
      SELECT 1 FROM silence e WHERE e.until_at = e.from_at AND e.from_at > @latest AND e.from_at >= silence.from_at)`,
  forgetSilences: 'DELETE FROM silence WHERE from_at > @latest',
  pruneIncidents: `DELETE FROM incident WHERE closed_at IS NOT NULL AND (closed_at < @before OR id NOT IN
    (SELECT id FROM incident WHERE closed_at IS NOT NULL ORDER BY closed_at DESC, id LIMIT @keep))`,
  pruneMessages: 'DELETE FROM alert_message WHERE incident NOT IN (SELECT id FROM incident)',
  pruneSilences: 'DELETE FROM silence WHERE until_at < @before',
  pruneAnnouncements: 'DELETE FROM announcement WHERE until_at < @before',
  pruneUpdates: `DELETE FROM status_update
    WHERE subject NOT IN (SELECT id FROM incident) AND subject NOT IN (SELECT id FROM announcement)`,
  update: `INSERT INTO status_update (id, subject, at, text, state, who) VALUES (@id, @subject, @at, @text, @state, @by)`,
  updates: `SELECT u.id, u.subject, u.at, u.text, u.state, u.who AS "by", i.cause, i.opened_at
    FROM status_update u LEFT JOIN incident i ON i.id = u.subject ORDER BY u.at, u.id`,
  announce:
    'INSERT INTO announcement (id, text, from_at, until_at, who) VALUES (@id, @text, @from, @until, @by)',
  withdraw: 'DELETE FROM announcement WHERE id = @id AND (until_at IS NULL OR until_at > @now)',
  announcements: `SELECT id, text, from_at AS "from", until_at AS "until", who AS "by" FROM announcement
    WHERE until_at IS NULL OR until_at > @now ORDER BY from_at, id`,
  silence: `INSERT INTO silence (from_at, until_at, reason, who) VALUES (@from, @until, @reason, @by)
    ON CONFLICT (from_at) DO UPDATE SET reason = excluded.reason, who = excluded.who, until_at =
      CASE WHEN excluded.until_at = excluded.from_at OR excluded.until_at > silence.until_at
        THEN excluded.until_at ELSE silence.until_at END`,
  silenceAt: `SELECT from_at AS "from", until_at AS "until", reason, who AS "by" FROM silence s
    WHERE from_at <= @now AND until_at > @now AND NOT EXISTS (
      SELECT 1 FROM silence WHERE until_at = from_at AND from_at >= s.from_at AND from_at <= @now)
    ORDER BY until_at DESC LIMIT 1`,
})

/** An incident as its table has it: the names of what else is affected are JSON. */
type Row = Omit<StoredIncident, 'affected'> & { readonly affected: string }

/** The incidents, the alerts about them, silences and announcements. */
export function incidents({ dialect, one, write }: Sql): IncidentStore {
  const text = TEXTS(dialect)
  function* found(query: Steps<readonly Row[]>): Steps<readonly StoredIncident[]> {
    return (yield* query).map((row) => ({ ...row, affected: JSON.parse(row.affected) as string[] }))
  }
  const changes = async (statement: string, values: object) => (await one(run(statement, values))) === 1
  return {
    open: (incident) => changes(text.open, incident),
    seen: async (input) => void (await changes(text.seen, input)),
    close: async (input) => void (await changes(text.close, input)),
    acknowledge: (input) => changes(text.acknowledge, input),
    resolve: ({ audit, ...input }) =>
      write(function* () {
        const changed = (yield* run(text.resolve, input)) === 1
        if (changed) yield* addAudit(audit)
        return changed
      }),
    list: (limit) => one(found(all(text.list, { limit }))),
    claim: async (input) => (await one(first<{ attempts: number }>(text.claim, input)))?.attempts,
    renew: async (input) => void (await changes(text.renew, input)),
    settle: async (input) => void (await changes(text.settle, { attempt: undefined, ...input })),
    messages: (about) => one(all<MessageRecord>(text.messages, { incidents: about })),
    unfinished: ({ channels, since }) => one(found(all(text.unfinished, { channels, since }))),
    rewind: (now) =>
      write(function* () {
        const times = { now, seenAt: now - MOST_SKEW_MS, latest: now + MOST_SKEW_MS }
        let changed = yield* run(text.rewindIncidents, times)
        changed += yield* run(text.forgetReminders, times)
        changed += yield* run(text.rewindMessages, times)
        yield* run(text.endSilences, times)
        return changed + (yield* run(text.forgetSilences, times))
      }),
    prune: ({ before, keep }) =>
      write(function* () {
        yield* run(text.pruneIncidents, { before, keep })
        yield* run(text.pruneMessages)
        yield* run(text.pruneSilences, { before })
        yield* run(text.pruneAnnouncements, { before })
        yield* run(text.pruneUpdates)
      }),
    silence: async (silence) => void (await changes(text.silence, silence)),
    announce: async (announcement) => void (await changes(text.announce, announcement)),
    withdraw: (input) => changes(text.withdraw, input),
    announcements: (now) => one(all<Announcement>(text.announcements, { now })),
    update: (update) =>
      write(function* () {
        const { id, subject, at, text: said, state } = update
        const [incident] = yield* found(all(text.byId, { id: subject }))
        const announced = (yield* all<Announcement>(text.announcements, { now: at })).find(
          (one) => one.id === subject,
        )
        if (incident === undefined && announced === undefined) return false
        yield* run(text.update, update)
        const { cause, service, affected } = incident ?? {}
        const facts = { about: subject, text: said, state, from: at, until: announced?.until }
        // An older build takes it for an announcement that is over.
        yield* publishNotice({
          subject: id,
          kind: 'announced',
          at,
          facts: { ...facts, cause, service, affected },
        })
        return true
      }),
    updates: () => one(all<StatusUpdate>(text.updates)),
    silenceAt: (now) => one(first<Silence>(text.silenceAt, { now })),
  }
}
