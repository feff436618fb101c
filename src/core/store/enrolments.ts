import { nextDay } from '../course/schedule.ts'
import type { Admitted, Arrival, CourseStore, EnrolAnswer } from '../course/store.ts'
import {
  admitRefusal,
  arrive,
  ELSEWHERE,
  enrol,
  enrolRefusal,
  newSubscription,
  prefer,
  resolve,
  revise,
  type SubscriptionRecord,
  undoUnsubscribe,
  unsubscribe,
} from '../course/subscription.ts'
import { addAudit } from './audit.ts'
import type { CourseParts } from './parts.ts'
import { all, type Dialect, first, journal, lock, ROWS_A_STEP, run, type Sql, type Steps } from './sql.ts'
import { enrolmentKey, type Row, recordOf } from './subscriptions.ts'

export const TEXTS = ({ by, each, length }: Dialect) => ({
  requested: 'SELECT subscription AS id, enrolment FROM enrol_request WHERE key = @key',
  keepRequest: 'INSERT INTO enrol_request (key, subscription, enrolment) VALUES (@key, @id, @enrolment)',
  replaceLinks:
    'UPDATE confirmation SET replaced = true WHERE subscription = @id AND used_at IS NULL AND NOT replaced',
  ask: `UPDATE confirmation SET language = coalesce(@language, language), time_zone = coalesce(@timeZone, time_zone)
    WHERE subscription = @id AND used_at IS NULL`,
  page: `SELECT * FROM subscription WHERE id > @after ORDER BY id LIMIT ${ROWS_A_STEP}`,
  pageOfCut: `SELECT * FROM subscription ${by('subscription_cut')}
    WHERE promised IS NOT NULL AND id > @after ORDER BY id LIMIT ${ROWS_A_STEP}`,
  sentNames: `SELECT value AS name, count(*) AS people FROM subscription CROSS JOIN ${each('sent_lessons')}
    WHERE course = @course AND state = 'confirmed' AND sent_lessons IS NOT NULL AND ${length('sent_days')} < lessons GROUP BY 1`,
})

type Enrolments = Pick<
  CourseStore,
  | 'enrol'
  | 'admit'
  | 'page'
  | 'unsubscribe'
  | 'undoUnsubscribe'
  | 'set'
  | 'resolve'
  | 'find'
  | 'findPerson'
  | 'findById'
  | 'review'
  | 'sentNames'
  | 'remember'
  | 'history'
>

/** Enrolments, from their start to their end. */
export function enrolments(sql: Sql, { subscriptions, history, plans, mailboxes }: CourseParts): Enrolments {
  const { one, write } = sql
  const text = TEXTS(sql.dialect)
  /** Saves what a transition makes of an enrolment; undefined: it changes nothing. */
  function* change(
    id: string,
    transition: (record: SubscriptionRecord) => SubscriptionRecord | undefined,
  ): Steps<{ readonly before: SubscriptionRecord; readonly after: SubscriptionRecord } | undefined> {
    const before = yield* subscriptions.lock(id)
    const after = before && transition(before)
    if (before === undefined || after === undefined) return undefined
    yield* subscriptions.save([after])
    return { before, after }
  }
  /** Stores an enrolment that begins now. */
  function* begin(
    enrolled: SubscriptionRecord,
    { start, isNew, mailboxKey }: Pick<Arrival, 'start' | 'mailboxKey'> & { readonly isNew: boolean },
  ): Steps<void> {
    const { course } = enrolled
    if (isNew) yield* subscriptions.insert({ ...enrolled, state: 'unconfirmed', mailboxKey })
    yield* subscriptions.sayCourse(course)
    if (start.pinned) yield* plans.keep(course, start.pinned)
    yield* subscriptions.save([enrolled])
    yield* run(text.replaceLinks, { id: enrolled.id })
  }
  function* admit(arrival: Arrival, now: number, dryRun: boolean): Steps<Admitted> {
    const { identity, mailboxKey, course, consent } = arrival
    yield* lock(1, mailboxKey)
    const known = yield* subscriptions.lockKey(enrolmentKey(identity, course))
    const suppressed = (yield* mailboxes.find(identity))?.suppression !== undefined
    const refusal = suppressed ? 'suppressed' : known && admitRefusal(known)
    if (refusal !== undefined || dryRun) return refusal ?? 'imported'
    const arrived = arrive(known ?? newSubscription({ ...arrival, now }), arrival)
    yield* begin(arrived, { ...arrival, isNew: known === undefined })
    // Again: a change of the enrolment's number clears the names of its lessons (the migration with `sent_lessons`).
    if (arrival.progress) yield* subscriptions.save([arrived])
    const { id, enrolment } = arrived
    const entry = {
      at: now,
      kind: 'confirmed',
      enrolment,
      day: 0,
      source: 'import',
      reason: consent.how,
    } as const
    yield* history.remember([id, entry])
    return 'imported'
  }
  const findPerson = (identity: string) => one(subscriptions.ofPerson(identity))
  return {
    enrol: ({
      begin: startOf,
      identity,
      mailboxKey,
      address,
      course,
      timeZone,
      language,
      id,
      now,
      key,
      audit,
    }) =>
      write(function* (): Steps<EnrolAnswer> {
        // One at a time for a mailbox, and for a key: the second of two calls finds what the first did.
        yield* lock(1, mailboxKey)
        if (key !== undefined) {
          yield* lock(2, key)
          const before = yield* first<{ id: string; enrolment: number }>(text.requested, { key })
          if (before) return { enrolled: true, ...before }
        }
        const known = yield* subscriptions.lockKey(enrolmentKey(identity, course))
        const suppressed = (yield* mailboxes.find(identity))?.suppression !== undefined
        const reason = suppressed ? 'suppressed' : known && enrolRefusal(known)
        if (reason !== undefined) return { enrolled: false, reason }
        const start = startOf({ course, confirmedAt: now, timeZone })
        if (start === undefined) return { enrolled: false, reason: 'no_such_course' }
        const current = known ?? newSubscription({ id, identity, address, course, now })
        const consent = { at: now, how: ELSEWHERE }
        const enrolled = enrol(current, { now, start, timeZone, language, consent, suppression: undefined })
        const { enrolment } = enrolled
        yield* begin(enrolled, { start, isNew: known === undefined, mailboxKey })
        if (key !== undefined) yield* run(text.keepRequest, { key, id: enrolled.id, enrolment })
        yield* history.remember([enrolled.id, { at: now, kind: 'confirmed', enrolment, day: 0 }])
        yield* addAudit(audit?.(enrolled.id))
        return { enrolled: true, id: enrolled.id, enrolment }
      }),
    admit: ({ arrivals, now, dryRun, audit }) =>
      write(function* () {
        const became: Admitted[] = []
        for (const arrival of arrivals) became.push(yield* admit(arrival, now, dryRun))
        if (!dryRun && became.includes('imported')) yield* addAudit(audit)
        return became
      }),
    page: async (after) => (await one(all<Row>(text.page, { after }))).map(recordOf),
    unsubscribe: ({ id, enrolment: named, now, audit }) =>
      write(function* () {
        const ended = yield* change(id, (current) => unsubscribe(current, named, now))
        if (ended === undefined) return
        const { enrolment } = ended.after
        yield* journal({ what: 'unsubscribed', at: now, id, enrolment })
        yield* history.remember([id, { at: now, kind: 'unsubscribed', enrolment, day: 0 }])
        yield* addAudit(audit)
      }),
    async undoUnsubscribe({ id, enrolment: named, now }) {
      const undone = await write(function* () {
        const changed = yield* change(id, (current) => undoUnsubscribe(current, named, now))
        if (changed === undefined) return undefined
        const { enrolment } = changed.after
        yield* history.remember([id, { at: now, kind: 'undone', enrolment, day: 0 }])
        return enrolment
      })
      // After the commit: if the store lost it, a restore would mail somebody who left.
      if (undone !== undefined) await sql.journal({ what: 'undone', at: now, id, enrolment: undone })
    },
    set: ({ id, now, moved, audit, ...wanted }) =>
      write(function* () {
        const changed = yield* change(id, (current) => prefer(current, wanted, moved(current)))
        if (changed === undefined) return false
        const { enrolment } = changed.after
        const { language, timeZone } = wanted
        yield* run(text.ask, { id, language, timeZone })
        const reason = [language && `language ${language}`, timeZone && `time zone ${timeZone}`]
        yield* history.remember([
          id,
          { at: now, kind: 'set', enrolment, day: 0, reason: reason.filter(Boolean).join(', ') },
        ])
        yield* addAudit(audit)
        return true
      }),
    resolve: ({ id, as, now, next, progress, audit }) =>
      write(function* () {
        const resolved = yield* change(id, (current) => resolve(current, { as, now, next, progress }))
        if (resolved === undefined) return false
        const { identity, sentDays, lessons, enrolment } = resolved.before
        const day = nextDay(sentDays, lessons) ?? 0
        yield* history.remember([id, { at: now, kind: 'resolved', enrolment, day, outcome: as }])
        yield* addAudit(audit)
        // An operator who retries a lesson vouches that its address can be mailed.
        yield* mailboxes.release(identity)
        return true
      }),
    findPerson,
    find: async (identity, course) =>
      (await findPerson(identity)).find((enrolled) => course === undefined || enrolled.course === course),
    findById: (id) => one(subscriptions.find(id)),
    async review({ after, cut, revise: revisionOf }) {
      const revised = (enrolled: SubscriptionRecord) => {
        const revision = revisionOf(enrolled)
        return (revision && revise(enrolled, revision)) ?? []
      }
      const page = await one(all<Row>(cut ? text.pageOfCut : text.page, { after }))
      const ids = page
        .map(recordOf)
        .flatMap(revised)
        .map(({ id }) => id)
      // Begin a transaction only if something changes.
      if (ids.length > 0)
        await write(function* () {
          yield* subscriptions.save((yield* subscriptions.lockAll(ids)).flatMap(revised))
        })
      return page.length < ROWS_A_STEP ? undefined : page.at(-1)?.id
    },
    async sentNames(course) {
      const rows = await one(all<{ name: string; people: number }>(text.sentNames, { course }))
      return new Map(rows.map(({ name, people }) => [name, people]))
    },
    remember: (id, entry) => write(() => history.remember([id, entry])),
    history: (id) => one(history.of(id)),
  }
}
