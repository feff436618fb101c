import type { HistoryEntry } from '../course/history.ts'
import type { Change, CourseStore, EnrolAnswer } from '../course/store.ts'
import {
  type Admitted,
  type Arrival,
  nextDay,
  type Start,
  type SubscriptionRecord,
} from '../course/subscription.ts'
import { resolve, revise } from '../course/transitions/claim.ts'
import * as joining from '../course/transitions/enrol.ts'
import { endedByBounce, undoUnsubscribe, unsubscribe } from '../course/transitions/leave.ts'
import { keepOut, leaving, leftOf } from './departures.ts'
import { keptOf } from './erasure.ts'
import { mailboxes } from './mailboxes.ts'
import { keepPlan } from './plans.ts'
import { addAudit, all, first, journal, lock, ROWS_A_STEP, run, SPACE, type Sql, type Steps } from './sql.ts'
import { enrolmentKey, history, subscriptions } from './subscriptions.ts'

export const TEXTS = {
  requested: 'SELECT subscription AS id, enrolment FROM enrol_request WHERE key = @key',
  keepRequest:
    'INSERT INTO enrol_request (key, subscription, enrolment) VALUES (@key, @id, @enrolment) ON CONFLICT DO NOTHING',
  overtakeLink: `UPDATE confirmation SET used_at = @now, replaced = true
    WHERE subscription = @id AND used_at IS NULL AND NOT replaced`,
  ask: `UPDATE confirmation SET language = coalesce(@language, language), time_zone = coalesce(@timeZone, time_zone)
    WHERE subscription = @id AND used_at IS NULL`,
  page: `SELECT * FROM subscription WHERE id > @after ORDER BY id LIMIT ${ROWS_A_STEP}`,
  endOfPage: `SELECT max(id) AS last FROM (SELECT id FROM subscription WHERE id > @after ORDER BY id LIMIT ${ROWS_A_STEP}) AS page`,
  // Without those whom no course can change: reading all columns of everybody takes a tenth of the time of sending.
  underWay: `SELECT * FROM subscription WHERE id > @after AND id <= @last AND state = 'confirmed'
    AND ({length sent_days} BETWEEN 1 AND lessons - 1 OR promised IS NOT NULL)`,
  pageOfCut: `SELECT * FROM subscription {by subscription_cut}
    WHERE promised IS NOT NULL AND id > @after ORDER BY id LIMIT ${ROWS_A_STEP}`,
  sentNames: `SELECT value AS name, count(*) AS people FROM subscription CROSS JOIN {each sent_lessons}
    WHERE course = @course AND state = 'confirmed' AND sent_lessons IS NOT NULL AND {length sent_days} < lessons GROUP BY 1`,
  removed: `SELECT course, count(*) AS people FROM subscription WHERE course NOT IN (SELECT value FROM {each @known})
    AND state = 'confirmed' AND {length sent_days} < lessons GROUP BY course ORDER BY {byBytes course}`,
}

/** Under which an id of an import is kept of somebody who is known by another. No key of a program begins so. */
const linkKey = (id: string) => ` link ${id}`

export function enrolments(sql: Sql) {
  const { one, write } = sql
  /** Saves a transition with its entries in history, journal and audit log; gives the enrolment before, if it changed. */
  function* change(
    { id, now: at, audit }: Change,
    entry: Pick<HistoryEntry, 'kind' | 'outcome' | 'reason'>,
    transition: (record: SubscriptionRecord) => SubscriptionRecord | undefined,
  ): Steps<{ readonly before: SubscriptionRecord; readonly enrolment: number } | undefined> {
    const before = yield* subscriptions.lock(id)
    const after = before && transition(before)
    if (before === undefined || after === undefined) return undefined
    const { enrolment } = after
    yield* subscriptions.save([after])
    const day = entry.kind === 'resolved' ? (nextDay(before) ?? 0) : 0
    if (entry.kind === 'unsubscribed') yield* journal(...(yield* leaving(at, after)))
    yield* history.remember([id, { at, enrolment, day, ...entry }])
    yield* addAudit(audit)
    return { before, enrolment }
  }
  /** `mailboxKey`: of one that has no row yet. */
  function* begin(enrolled: SubscriptionRecord, now: number, { pinned }: Start, mailboxKey?: string) {
    const { course } = enrolled
    if (mailboxKey) yield* subscriptions.insert({ ...enrolled, state: 'unconfirmed', mailboxKey })
    yield* subscriptions.sayCourse(course)
    if (pinned) yield* keepPlan(course, pinned)
    yield* subscriptions.save([enrolled])
    yield* run(TEXTS.overtakeLink, { id: enrolled.id, now })
  }
  type Admission = { now: number; dryRun: boolean; left: ReadonlySet<string> }
  function* admit(arrival: Arrival, { now, dryRun, left }: Admission): Steps<Admitted> {
    const { identity, mailboxKey, course } = arrival
    yield* lock(SPACE.mailbox, mailboxKey)
    const key = enrolmentKey(identity, course)
    const known = yield* subscriptions.lockKey(key)
    if (known && arrival.before !== undefined && !dryRun)
      yield* run(TEXTS.keepRequest, {
        ...{ id: known.id, enrolment: known.enrolment },
        key: linkKey(arrival.id),
      })
    const listed = known && (yield* mailboxes.cleared(known))
    const refusal = (listed && joining.admitRefusal(listed)) ?? (left.has(key) ? 'unsubscribed' : undefined)
    if (refusal !== undefined || dryRun) return refusal ?? 'imported'
    const arrived = joining.arrive(known ?? joining.newSubscription({ ...arrival, now }), arrival)
    yield* begin(arrived, now, arrival.start, known ? undefined : mailboxKey)
    // Again: a change of the enrolment's number clears the names of its lessons (the migration with `sent_lessons`).
    if (arrival.progress) yield* subscriptions.save([arrived])
    const { id, enrolment } = arrived
    const entry = { at: now, kind: 'confirmed', enrolment, day: 0, source: 'import' } as const
    yield* history.remember([id, { ...entry, reason: arrival.consent.how }])
    return 'imported'
  }
  /** The id of a link, or of the enrolment that somebody whom a restore had lost began before an import brought them back. */
  function* linkedTo(id: string): Steps<string | undefined> {
    const found = yield* subscriptions.find(id)
    return (found ?? (yield* first<{ id: string }>(TEXTS.requested, { key: linkKey(id) })))?.id
  }
  const findPerson = (identity: string) => one(subscriptions.ofPerson(identity))
  return {
    enrol: ({ begin: startOf, key, audit, ...who }) =>
      write(function* (): Steps<EnrolAnswer> {
        const { identity, mailboxKey, course, timeZone, language, now } = who
        const suppressed = yield* mailboxes.suppressedOf([identity])
        if ((yield* keptOf(who.erasureHashes ?? [])).size > 0) return { enrolled: false, reason: 'erased' }
        // One at a time for a mailbox, and for a key: the second of two calls finds what the first did.
        yield* lock(SPACE.mailbox, mailboxKey)
        const known = yield* subscriptions.lockKey(enrolmentKey(identity, course))
        if (key !== undefined) {
          yield* lock(SPACE.key, key)
          const before = yield* first<{ id: string; enrolment: number }>(TEXTS.requested, { key })
          if (before && before.id !== known?.id) return { enrolled: false, reason: 'conflict' }
          if (before) return { enrolled: true, ...before }
        }
        const hasLeft = (yield* leftOf([who])).size > 0 && known?.state !== 'confirmed'
        const listed = known && (yield* mailboxes.cleared(known))
        const refused = (listed && joining.enrolRefusal(listed)) ?? (hasLeft ? 'unsubscribed' : undefined)
        const reason = suppressed.has(identity) ? 'suppressed' : refused
        if (reason !== undefined) return { enrolled: false, reason }
        const start = startOf({ course, confirmedAt: now, timeZone })
        if (start === undefined) return { enrolled: false, reason: 'no_such_course' }
        const current = known ?? joining.newSubscription(who)
        const how = { consent: { at: now, how: joining.ELSEWHERE }, suppression: undefined }
        const enrolled = joining.enrol(current, { now, start, timeZone, language, ...how })
        const { enrolment } = enrolled
        yield* begin(enrolled, now, start, known ? undefined : mailboxKey)
        if (key !== undefined) yield* run(TEXTS.keepRequest, { key, id: enrolled.id, enrolment })
        yield* history.remember([enrolled.id, { at: now, kind: 'confirmed', enrolment, day: 0 }])
        yield* addAudit(audit?.(enrolled.id))
        return { enrolled: true, id: enrolled.id, enrolment }
      }),
    admit: ({ arrivals, now, dryRun, audit }) =>
      write(function* () {
        const suppressed = yield* mailboxes.suppressedOf(arrivals.map(({ identity }) => identity))
        const erased = yield* keptOf(arrivals.flatMap(({ erasureHashes = [] }) => erasureHashes))
        const left = yield* leftOf(arrivals)
        const became: Admitted[] = []
        for (const one of arrivals)
          if (one.erasureHashes?.some((hash) => erased.has(hash))) became.push('erased')
          else if (suppressed.has(one.identity)) became.push('suppressed')
          else became.push(yield* admit(one, { now, dryRun, left }))
        if (!dryRun && became.includes('imported')) yield* addAudit(audit)
        return became
      }),
    page: (after) => one(subscriptions.list(TEXTS.page, { after })),
    unsubscribe: ({ enrolment = 0, ...input }) =>
      write(function* () {
        const { now } = input
        const found = yield* subscriptions.find(input.id)
        const id = found?.id ?? (yield* linkedTo(input.id))
        // A restore has lost what the link is of: it may come back with a newer backup, or an import.
        if (id === undefined) yield* journal(...(yield* keepOut(now, [input.id])))
        else if (found && enrolment > found.enrolment)
          yield* journal(...(yield* keepOut(now, [enrolmentKey(found.identity, found.course)])))
        if (id) yield* change({ ...input, id }, { kind: 'unsubscribed' }, (one) => unsubscribe(one, now))
      }),
    async undoUnsubscribe(input) {
      const { now: at } = input
      const id = (await one(linkedTo(input.id))) ?? input.id
      const undone = await write(() =>
        change({ ...input, id }, { kind: 'undone' }, (one) => undoUnsubscribe(one, at)),
      )
      // After the commit: if the store lost it, a restore would mail somebody who left.
      if (undone) await sql.journal({ what: 'undone', at, id, enrolment: undone.enrolment })
    },
    set: ({ id, now, moved, audit, ...wanted }) =>
      write(function* () {
        const { language, timeZone } = wanted
        const said = [language && `language ${language}`, timeZone && `time zone ${timeZone}`]
        const entry = { kind: 'set', reason: said.filter(Boolean).join(', ') } as const
        const set = yield* change({ id, now, audit }, entry, (one) => joining.prefer(one, wanted, moved(one)))
        if (set) yield* run(TEXTS.ask, { id, language, timeZone })
        return set !== undefined
      }),
    async redate(input) {
      const entry = { kind: 'set', reason: 'a clock that was ahead had dated it' } as const
      await write(() => change(input, entry, (one) => joining.redate(one, input)))
    },
    async resolve({ as, next, progress, ...input }) {
      const { id, now: at } = input
      const resolved = await write(function* () {
        const changed = yield* change(input, { kind: 'resolved', outcome: as }, (one) =>
          resolve(one, { as, now: at, next, progress }),
        )
        // An operator who retries a lesson vouches that its address can be mailed.
        if (changed) yield* mailboxes.release(changed.before.identity)
        return changed
      })
      if (resolved && endedByBounce(resolved.before)) {
        const { enrolment, before } = resolved
        const released = { what: 'released', at, identity: before.identity } as const
        await sql.journal(released, { what: 'undone', at, id, enrolment })
      }
      return resolved !== undefined
    },
    findPerson,
    find: async (identity, course) =>
      (await findPerson(identity)).find((enrolled) => course === undefined || enrolled.course === course),
    findById: (id) => one(subscriptions.find(id)),
    async review({ after, cut, revise: revisionOf }) {
      const revised = (enrolled: SubscriptionRecord) => {
        const revision = revisionOf(enrolled)
        return (revision && revise(enrolled, revision)) ?? []
      }
      const last = cut ? undefined : (await one(first<{ last?: string }>(TEXTS.endOfPage, { after })))?.last
      const page = await one(subscriptions.list(cut ? TEXTS.pageOfCut : TEXTS.underWay, { after, last }))
      const ids = page.flatMap(revised).map(({ id }) => id)
      if (ids.length > 0)
        await write(function* () {
          yield* subscriptions.save((yield* subscriptions.lockAll(ids)).flatMap(revised))
        })
      return cut && page.length === ROWS_A_STEP ? page.at(-1)?.id : last
    },
    async sentNames(course) {
      const rows = await one(all<{ name: string; people: number }>(TEXTS.sentNames, { course }))
      return new Map(rows.map(({ name, people }) => [name, people]))
    },
    removedCourses: (known) => one(all<{ course: string; people: number }>(TEXTS.removed, { known })),
    remember: (id, entry) => write(() => history.remember([id, entry])),
    history: (id) => one(history.of(id)),
  } satisfies Partial<CourseStore>
}
