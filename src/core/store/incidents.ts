import { type AuditEntry, withoutAddresses } from '../audit.ts'
import type { QueuedMessage } from '../delivery/messages.ts'
import type { JobRecord } from '../delivery/retries.ts'
import { MOST_SKEW_MS } from '../durations.ts'
import { ABOUT_PAUSES } from '../incidents/conditions.ts'
import { plannedAlerts, REMINDER_MS } from '../incidents/due.ts'
import * as model from '../incidents/incident.ts'
import { LEASE_MS } from '../lease.ts'
import { dueText, noticeSteps as notices, messageSteps as queue } from './messages.ts'
import { addAudit, all, first, insertRows, lock, run, SPACE, type Sql, type Steps, scalar } from './sql.ts'

const OPENED =
  'id, cause, service, reason, affected, opened_at, seen_at, closed_at, acknowledged_at, acknowledged_by, resolved_by, resolved_reason'
const PLANNED = 'id, stream, key, subject, channel, payload, created_at, expires_at, next_attempt_at'
/** Not out: its lease, if it has one, is over. */
const IS_FREE =
  '(message.lease_until IS NULL OR message.lease_until <= @leaseNow OR message.lease_until > @leaseNow + 2 * @leaseMs)'
/** Brings back what a clock that was ahead has dated. */
const atMost = (moment: string, ...columns: readonly string[]) =>
  columns.map((at) => `${at} = CASE WHEN ${at} > ${moment} THEN ${moment} ELSE ${at} END`).join(', ')
const MESSAGE_KEY = 'incident = @incident AND kind = @kind AND channel = @channel'
/** Of an alert that an older build has in hand. */
const ASK_AGAIN_MS = 15_000

export const TEXTS = {
  open: `${insertRows('incident', OPENED)} ON CONFLICT DO NOTHING`,
  seen: `UPDATE incident SET seen_at = CASE WHEN seen_at < @now THEN @now ELSE seen_at END, reason = @reason, affected = @affected
    WHERE cause = @cause AND closed_at IS NULL`,
  close: `UPDATE incident SET closed_at = CASE WHEN opened_at < @now THEN @now ELSE opened_at END, resolved_reason = @resolvedReason
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
  // Alerts: a row of the queue for each incident and channel says what comes next, and `alert_message` what was said. Builds
  // before the queue know only the second: a claim takes both, so that an alert is never in hand of two builds.
  plan: `${insertRows('message', PLANNED)} ON CONFLICT (id) DO UPDATE SET key = excluded.key, payload = excluded.payload, created_at = excluded.created_at,
      next_attempt_at = excluded.next_attempt_at, attempts = 0, fence = message.fence + 1, lease_until = NULL,
      outcome = NULL, reason = NULL, unknown_since = NULL, done_at = NULL
    WHERE ${IS_FREE} AND (message.key <> excluded.key OR (message.attempts = 0 AND message.next_attempt_at <> excluded.next_attempt_at))`,
  unplan: `DELETE FROM message WHERE stream = 'alert' AND subject IN (SELECT value FROM {each @incidents})
    AND channel IN (SELECT value FROM {each @channels}) AND id NOT IN (SELECT value FROM {each @ids}) AND ${IS_FREE}`,
  channels: `SELECT channel AS name FROM alert_message WHERE incident = @id AND channel <> '${model.SUBSCRIBERS}'
    UNION SELECT channel FROM message WHERE subject = @id AND stream = 'alert'`,
  due: dueText(
    "stream = 'alert' AND channel = @channel",
    `subject IN (SELECT id FROM incident WHERE cause IN (${ABOUT_PAUSES.map((cause) => `'${cause}'`).join(', ')}))`,
  ),
  queued: `SELECT m.payload, m.next_attempt_at AS at, i.cause FROM message m JOIN incident i ON i.id = m.subject
    WHERE m.stream = 'alert' AND m.done_at IS NULL ORDER BY m.next_attempt_at, m.id`,
  pin: 'UPDATE message SET payload = @payload WHERE id = @id AND fence = @fence',
  elsewhere: `UPDATE message SET lease_until = NULL, next_attempt_at = @at WHERE id = @id AND fence = @fence`,
  isOver: `SELECT 1 FROM alert_message WHERE ${MESSAGE_KEY} AND outcome <> 'pending'`,
  // Older builds claim nothing before next_at, and hold what they claim by claimed_until: 0.2.0 by the wall clock.
  claim: `INSERT INTO alert_message (incident, kind, channel, outcome, attempts, at, next_at, claimed_until)
    VALUES (@incident, @kind, @channel, 'pending', 1, @now, @until, 0)
    ON CONFLICT (incident, kind, channel) DO UPDATE
    SET attempts = alert_message.attempts + 1, at = excluded.at, next_at = excluded.next_at, claimed_until = 0
    WHERE alert_message.outcome = 'pending' AND alert_message.next_at <= @now
      AND NOT (alert_message.claimed_until > @leaseNow AND alert_message.claimed_until <= @leaseNow + 2 * @leaseMs)
      AND NOT (alert_message.claimed_until > @now AND alert_message.claimed_until <= @until)
    RETURNING attempts`,
  keep: `UPDATE alert_message SET next_at = @until
    WHERE ${MESSAGE_KEY} AND outcome = 'pending' AND attempts = @attempt`,
  // What was sent is sent, whoever has the message by now. It keeps why an attempt before failed.
  settle: `UPDATE alert_message SET outcome = @outcome, at = @now, next_at = @nextAt, reason = COALESCE(@reason, reason), claimed_until = 0
    WHERE ${MESSAGE_KEY} AND outcome = 'pending' AND (@outcome = 'sent' OR attempts = @attempt)`,
  giveBack: `UPDATE alert_message SET attempts = attempts - 1, next_at = @nextAt WHERE ${MESSAGE_KEY} AND outcome = 'pending' AND attempts = @attempt`,
  forget: `DELETE FROM alert_message WHERE ${MESSAGE_KEY} AND attempts = 0`,
  told: `INSERT INTO alert_message (incident, kind, channel, outcome, attempts, at, next_at, claimed_until)
    VALUES (@incident, @kind, @channel, 'sent', 1, @at, 0, 0)
    ON CONFLICT (incident, kind, channel) DO UPDATE SET outcome = 'sent', at = excluded.at, reason = NULL, claimed_until = 0
    WHERE alert_message.outcome <> 'sent'`,
  messages: `SELECT incident, kind, channel, outcome, attempts, at, reason FROM alert_message
    WHERE incident IN (SELECT value FROM {each @incidents}) ORDER BY at DESC, incident, kind`,
  unfinished: `SELECT * FROM incident i WHERE closed_at IS NULL OR opened_at > @since OR EXISTS (
      SELECT 1 FROM alert_message o WHERE o.incident = i.id AND o.kind = 'opened' AND NOT EXISTS (
        SELECT 1 FROM alert_message c
        WHERE c.incident = i.id AND c.kind = 'closed' AND c.channel = o.channel AND c.outcome <> 'pending'))
    ORDER BY opened_at, id`,
  // In this order: what a clock that was set back dated later than any skew explains.
  rewind: {
    incidents: `UPDATE incident SET ${atMost('@now', 'opened_at', 'acknowledged_at', 'closed_at')}, ${atMost('@seenAt', 'seen_at')}
      WHERE opened_at > @latest OR seen_at > @latest OR closed_at > @latest`,
    reminders: "DELETE FROM alert_message WHERE at > @latest AND kind LIKE 'reminder-%'",
    queue: `UPDATE message SET next_attempt_at = @now WHERE stream = 'alert' AND attempts > 0
      AND subject IN (SELECT incident FROM alert_message WHERE at > @latest) AND EXISTS (SELECT 1 FROM alert_message a
      WHERE a.at > @latest AND a.outcome = 'pending' AND a.incident = message.subject AND a.channel = message.channel)`,
    messages: `UPDATE alert_message SET at = @now, next_at = @now WHERE at > @latest AND outcome = 'pending'`,
    // Before the row that ended them is forgotten, silences that it ended are shortened to nothing, which still ends older ones.
    endedSilences: `UPDATE silence SET until_at = from_at WHERE EXISTS (
      SELECT 1 FROM silence e WHERE e.until_at = e.from_at AND e.from_at > @latest AND e.from_at >= silence.from_at)`,
    silences: 'DELETE FROM silence WHERE from_at > @latest',
    heartbeats: `UPDATE heartbeat SET ${atMost('@now', 'since', 'beat_at')} WHERE since > @latest OR beat_at > @latest`,
  },
  prune: {
    incidents: `DELETE FROM incident WHERE closed_at IS NOT NULL AND (closed_at < @before OR id NOT IN
      (SELECT id FROM incident WHERE closed_at IS NOT NULL ORDER BY closed_at DESC, id LIMIT @keep))`,
    messages: 'DELETE FROM alert_message WHERE incident NOT IN (SELECT id FROM incident)',
    queue: "DELETE FROM message WHERE stream = 'alert' AND subject NOT IN (SELECT id FROM incident)",
    silences: 'DELETE FROM silence WHERE until_at < @before',
    announcements: 'DELETE FROM announcement WHERE until_at < @before',
    updates: `DELETE FROM status_update
      WHERE subject NOT IN (SELECT id FROM incident) AND subject NOT IN (SELECT id FROM announcement)`,
  },
  update: `INSERT INTO status_update (id, subject, at, text, state, who) VALUES (@id, @subject, @at, @text, @state, @by)`,
  updates: `SELECT u.id, u.subject, u.at, u.text, u.state, u.who AS "by", i.cause, i.opened_at
    FROM status_update u LEFT JOIN incident i ON i.id = u.subject ORDER BY u.at, u.id`,
  announce: `INSERT INTO announcement (id, text, translations, from_at, until_at, who) VALUES (@id, @text, @translations, @from, @until, @by)`,
  withdraw: 'DELETE FROM announcement WHERE id = @id AND (until_at IS NULL OR until_at > @now)',
  unpublished: `SELECT id, text, translations, from_at AS "from", until_at AS "until", who AS "by" FROM announcement a
    WHERE (until_at IS NULL OR until_at > @now) AND NOT EXISTS (SELECT 1 FROM notice WHERE subject = a.id AND kind = 'announced')`,
  announcements: `SELECT id, text, translations, from_at AS "from", until_at AS "until", who AS "by" FROM announcement
    WHERE until_at IS NULL OR until_at > @now ORDER BY from_at, id`,
  silence: `INSERT INTO silence (from_at, until_at, reason, who) VALUES (@from, @until, @reason, @by)
    ON CONFLICT (from_at) DO UPDATE SET reason = excluded.reason, who = excluded.who, until_at =
      CASE WHEN excluded.until_at = excluded.from_at OR excluded.until_at > silence.until_at
        THEN excluded.until_at ELSE silence.until_at END`,
  silenceAt: `SELECT from_at AS "from", until_at AS "until", reason, who AS "by" FROM silence s
    WHERE from_at <= @now AND until_at > @now AND NOT EXISTS (
      SELECT 1 FROM silence WHERE until_at = from_at AND from_at >= s.from_at AND from_at <= @now)
    ORDER BY until_at DESC LIMIT 1`,
  // Until when alerts have been held, by a silence or a pause; a silence without length ends those before it.
  quietUntil: `SELECT max(at) AS at FROM (
    SELECT (SELECT min(until_at) FROM silence e WHERE e.from_at = s.from_at OR (e.from_at > s.from_at AND e.until_at = e.from_at)) AS at
    FROM silence s WHERE s.from_at <= @now AND s.until_at > s.from_at
    UNION ALL SELECT CASE WHEN paused_at IS NULL THEN resumed_at ELSE @now END FROM breaker
    WHERE name = 'stream alert' AND (paused_at IS NOT NULL OR resumed_at <= @now)) AS quiet`,
}

type AnnouncementRow = Omit<model.Announcement, 'translations'> & { translations: string | undefined }
const announcementOf = ({ translations, ...row }: AnnouncementRow): model.Announcement => ({
  ...row,
  ...(translations !== undefined && { translations: JSON.parse(translations) }),
})
type Row = Omit<model.StoredIncident, 'affected'> & { readonly affected: string }

const outcomeOf = (result: JobRecord['result']): model.MessageRecord['outcome'] =>
  result === 'sent' ? 'sent' : result === 'waits' ? 'pending' : 'failed'
type Told = { incidents: readonly model.StoredIncident[]; messages: readonly model.MessageRecord[] }
/** What the payload of an alert's message is; `said` since `pin` at the first attempt. */
type Payload = model.MessageKey & { said?: model.AlertFacts }

type Hears = (cause: string) => boolean
/** The channel of the status page's subscribers: it gets the beginning and the end of incidents that visitors notice. */
const visitors = (hears: Hears): model.Hearing => ({
  name: model.SUBSCRIBERS,
  // The end follows every beginning that was told, whatever the definition says today.
  takes: (kind, { cause }) => kind === 'closed' || (kind === 'opened' && hears(cause)),
})

export function incidents({ one, read, write }: Sql): model.IncidentStore {
  function* found(query: Steps<readonly Row[]>): Steps<readonly model.StoredIncident[]> {
    return (yield* query).map((row) => ({ ...row, affected: JSON.parse(row.affected) }))
  }
  const byId = (id: string) => found(all(TEXTS.byId, { id }))
  /** Keeps for all attempts at an alert what the incident is at the first; whether it fails again until one may arrive. */
  function* pin({ id, fence, unknownSince }: QueuedMessage, { said: kept, ...key }: Payload) {
    if (kept && (key.kind !== 'closed' || unknownSince !== undefined)) return kept
    const [about] = yield* byId(key.incident)
    const others = (yield* found(all(TEXTS.list, { limit: 0 }))).filter((one) => one.id !== key.incident)
    // The end may be late: nobody may read last that something works which fails again.
    const failsAgain = others.some(({ cause }) => cause === about?.cause)
    const said = { reason: about?.reason, affected: about?.affected ?? [], ...kept, failsAgain }
    yield* run(TEXTS.pin, { id, fence, payload: JSON.stringify({ ...key, said }) })
    return said
  }
  function* withMessages(about: readonly model.StoredIncident[]): Steps<Told> {
    const values = { incidents: about.map(({ id }) => id) }
    return { incidents: about, messages: yield* all<model.MessageRecord>(TEXTS.messages, values) }
  }
  function* unfinished(now: number) {
    return yield* withMessages(yield* found(all(TEXTS.unfinished, { since: now - REMINDER_MS })))
  }
  /** Queues what comes next on these channels, and takes out what does not. */
  function* plan({ incidents: about, messages }: Told, channels: readonly model.Hearing[], now: number) {
    if (about.length === 0 || channels.length === 0) return
    const quietUntil = yield* scalar<number>(TEXTS.quietUntil, { now })
    const planned = plannedAlerts(about, messages, channels, now, quietUntil).map(
      ({ incident, channel, kind, at }) => ({
        id: `alert.${incident}.${channel}`,
        stream: 'alert',
        key: `alert.${incident}.${kind}.${channel}`,
        subject: incident,
        channel,
        payload: JSON.stringify({ incident, kind, channel } satisfies model.MessageKey),
        createdAt: at,
        expiresAt: at + model.INCIDENTS_KEPT.ms,
        nextAttemptAt: at,
      }),
    )
    yield* run(TEXTS.unplan, {
      incidents: about.map(({ id }) => id),
      channels: channels.map(({ name }) => name),
      ids: planned.map(({ id }) => id),
      leaseMs: LEASE_MS,
    })
    if (planned.length > 0) yield* run(TEXTS.plan, { rows: planned, leaseMs: LEASE_MS })
  }
  /** Mails subscribers what they have not been told, the older incident first, unless a silence holds. */
  function* publish({ incidents: about, messages }: Told, hears: Hears, now: number): Steps<void> {
    if (yield* first(TEXTS.silenceAt, { now })) return
    // That an operator looks at it is no news that a visitor has.
    const unattended = about.map((one) => ({ ...one, acknowledgedAt: undefined }))
    for (const one of plannedAlerts(unattended, messages, [visitors(hears)], now)) {
      const { incident: subject, channel, kind } = one
      const incident = about.find(({ id }) => id === subject)
      if (one.at > now || incident === undefined || (kind !== 'opened' && kind !== 'closed')) continue
      const { cause, service, affected, openedAt: from, closedAt: until, resolvedBy } = incident
      const isGone = incident.resolvedReason !== undefined && resolvedBy === undefined
      const facts = { cause, service, affected, from, until, isGone }
      yield* notices.publish({ subject, kind, at: now, facts })
      yield* run(TEXTS.told, { incident: subject, kind, channel, at: now })
    }
  }
  function* publishAnnouncements(now: number): Steps<void> {
    for (const row of yield* all<AnnouncementRow>(TEXTS.unpublished, { now })) {
      const { id: subject, text, translations, from, until } = announcementOf(row)
      const facts = { text, translations, from, until }
      yield* notices.publish({ subject, kind: 'announced', at: now, facts })
    }
  }
  /** An operator's change of an incident, and what comes next for the channels that hear of it. */
  type Amended = { id: string; now: number; reason?: string; audit?: AuditEntry }
  const amend = (query: string, { audit, ...input }: Amended) =>
    write(function* () {
      yield* lock(SPACE.alerts, 'incidents')
      if ((yield* run(query, input)) === 0) return false
      yield* addAudit(audit)
      const about = yield* withMessages(yield* byId(input.id))
      yield* plan(about, yield* all<model.Hearing>(TEXTS.channels, input), input.now)
      yield* publish(about, () => false, input.now)
      return true
    })
  return {
    follow: ({ now, channels, visitorsHear, decide }) =>
      write(function* () {
        // One at a time, so that no plan is made of what another one has changed.
        yield* lock(SPACE.alerts, 'incidents')
        const times = { now, seenAt: now - MOST_SKEW_MS, latest: now + MOST_SKEW_MS }
        let repaired = 0
        for (const text of Object.values(TEXTS.rewind)) repaired += yield* run(text, times)
        const decided = decide(yield* found(all(TEXTS.list, { limit: 0 })))
        const { seen = [], opens = [], closes = [], told = [] } = decided
        for (const { at, ...one } of seen) yield* run(TEXTS.seen, { ...one, now: at })
        for (const { at, ...one } of closes)
          yield* run(TEXTS.close, { resolvedReason: undefined, ...one, now: at })
        if (opens.length > 0) yield* run(TEXTS.open, { rows: opens })
        for (const one of told) yield* run(TEXTS.told, one)
        const about = yield* unfinished(now)
        yield* plan(about, channels, now)
        if (visitorsHear) {
          yield* publish(about, visitorsHear, now)
          // An older build leaves announcements for the next round, and its notices without mails.
          yield* publishAnnouncements(now)
          yield* notices.queue()
        }
        return { repaired }
      }),
    acknowledge: (input) => amend(TEXTS.acknowledge, input),
    resolve: (input) => amend(TEXTS.resolve, { ...input, reason: withoutAddresses(input.reason) }),
    find: async (id) => (await one(byId(id)))[0],
    list: (limit) => one(found(all(TEXTS.list, { limit }))),
    unfinished: (now) => read(() => unfinished(now)),
    // Look before beginning a transaction: nearly always, none is due.
    claimAlerts: async (input) =>
      (await one(queue.due(input, TEXTS.due))).length === 0
        ? []
        : write(function* () {
            const claimed: model.AlertClaim[] = []
            for (const message of yield* queue.claim(input, TEXTS.due)) {
              const payload: Payload = JSON.parse(message.payload)
              const { said: _, ...key } = payload
              const until = input.now + input.leaseMs
              const taken = yield* first<{ attempts: number }>(TEXTS.claim, { ...key, ...input, until })
              if (taken) {
                const said = yield* pin(message, payload)
                claimed.push({ ...message, ...key, attempt: taken.attempts, said })
              } else if (yield* first(TEXTS.isOver, key)) yield* queue.remove(message)
              else yield* run(TEXTS.elsewhere, { ...message, at: input.now + ASK_AGAIN_MS })
            }
            return claimed
          }),
    keepAlerts: (input) =>
      write(function* () {
        yield* queue.keep(input)
        const until = input.now + input.leaseMs
        for (const message of input.messages) yield* run(TEXTS.keep, { ...message, until })
      }),
    settleAlerts: (settlements) =>
      write(function* () {
        // Not while a plan is made of what was told before.
        yield* lock(SPACE.alerts, 'incidents')
        for (const settlement of settlements) {
          yield* queue.settle(settlement)
          const { claim, record, isTried, now, reason } = settlement
          const values = { ...claim, now, nextAt: record.nextAttemptAt, reason }
          if (isTried) yield* run(TEXTS.settle, { ...values, outcome: outcomeOf(record.result) })
          else {
            yield* run(TEXTS.giveBack, values)
            yield* run(TEXTS.forget, values)
            // Nobody has it: the next attempt is the first again.
            const { incident, kind, channel, attempts, unknownSince } = claim
            if (attempts === 0 && unknownSince === undefined)
              yield* run(TEXTS.pin, { ...claim, payload: JSON.stringify({ incident, kind, channel }) })
          }
        }
      }),
    async queuedAlerts() {
      const rows = await one(all<{ payload: string; at: number; cause: string }>(TEXTS.queued))
      return rows.map(({ payload, at, cause }): model.QueuedAlert => {
        const { incident, kind, channel }: model.MessageKey = JSON.parse(payload)
        return { incident, kind, channel, at, leaves: ABOUT_PAUSES.includes(cause) }
      })
    },
    messages: (about) => one(all<model.MessageRecord>(TEXTS.messages, { incidents: about })),
    prune: ({ before, keep }) =>
      write(function* () {
        for (const text of Object.values(TEXTS.prune)) yield* run(text, { before, keep })
        yield* notices.prune(before)
      }),
    async silence(silence) {
      const { from: now } = silence
      await one(run(TEXTS.silence, { ...silence, reason: withoutAddresses(silence.reason) }))
      return (await one(first<model.Silence>(TEXTS.silenceAt, { now })))?.until ?? now
    },
    announce: ({ translations: said, ...announcement }, now) =>
      write(function* () {
        yield* run(TEXTS.announce, { ...announcement, translations: said && JSON.stringify(said) })
        yield* publishAnnouncements(now)
      }),
    withdraw: async (input) => (await one(run(TEXTS.withdraw, input))) === 1,
    announcements: async (now) =>
      (await one(all<AnnouncementRow>(TEXTS.announcements, { now }))).map(announcementOf),
    update: (update) =>
      write(function* () {
        const { id, subject, at, text: said, state } = update
        const [incident] = yield* byId(subject)
        const current = all<AnnouncementRow>(TEXTS.announcements, { now: at })
        const announced = (yield* current).find((one) => one.id === subject)
        if (incident === undefined && announced === undefined) return false
        yield* run(TEXTS.update, update)
        const { cause, service, affected } = incident ?? {}
        const facts = { about: subject, text: said, state, from: at, until: announced?.until }
        // An older build takes it for an announcement that is over.
        const notice = { subject: id, kind: 'announced', at } as const
        yield* notices.publish({ ...notice, facts: { ...facts, cause, service, affected } })
        // Who was told of it hears of its end, also where a silence held back its beginning.
        if (incident && incident.closedAt === undefined)
          yield* run(TEXTS.told, { incident: subject, kind: 'opened', channel: model.SUBSCRIBERS, at })
        return true
      }),
    updates: () => one(all<model.StatusUpdate>(TEXTS.updates)),
    silenceAt: (now) => one(first<model.Silence>(TEXTS.silenceAt, { now })),
  }
}
