import { readFile } from 'node:fs/promises'
import path from 'node:path'

/** A bug to plant: the first place of a text in a file of `src/core`, and what to put there. */
export interface Mutation {
  readonly name: string
  readonly file: string
  readonly find: string
  readonly replace: string
}

export const MUTATIONS: readonly Mutation[] = [
  {
    name: 'records a day as sent before it is sent',
    file: 'delivery/run.ts',
    find: 'const delivery = await inLine(',
    replace: `await record(taken, { kind: 'sent', id: '' }, prepared)
    const delivery = await inLine(`,
  },
  {
    name: 'takes any outcome, whatever its fencing number',
    file: 'course/transitions/claim.ts',
    find: 'const holds = current.fence === claim.fence && ',
    replace: 'const holds = ',
  },
  {
    name: 'holds a lease that is shorter than a send',
    file: 'delivery/lease.ts',
    find: 'export const LEASE_MS = 90_000',
    replace: 'export const LEASE_MS = 1_000',
  },
  {
    name: 'makes a new key for every attempt',
    file: 'course/dispatch.ts',
    find: '...lessonOf(plan, claim),\n          stream',
    replace: '...lessonOf(plan, claim),\n          about: String(random.fraction()),\n          stream',
  },
  {
    name: 'does not look again before it hands over',
    file: 'course/dispatch.ts',
    find: `if (!(await store.stillHolds(claim))) return { kind: 'gone' }`,
    replace: '',
  },
  {
    name: 'counts 23 hours as a day',
    file: 'course/due.ts',
    find: 'enrolment.confirmedAt + (day - 1) * cadence.ms',
    replace: 'enrolment.confirmedAt + (day - 1) * 23 * HOUR_MS',
  },
  {
    name: 'dates every attempt anew',
    file: 'course/transitions/claim.ts',
    find: 'firstAttemptAt: record.firstAttemptAt ?? now',
    replace: 'firstAttemptAt: now',
  },
  {
    name: 'takes an unknown outcome for sent',
    file: 'delivery/retries.ts',
    find: 'switch (delivery.kind) {',
    replace:
      "if (delivery.kind === 'unknown' && delivery.reason !== '') return { ...kept, result: 'sent' }\n  switch (delivery.kind) {",
  },
  {
    name: 'forgets that an attempt was lost',
    file: 'course/transitions/claim.ts',
    find: '...(claimedAt !== undefined && {',
    replace: '...(claimedAt === 0 && {',
  },
  {
    name: 'retries at once',
    file: 'delivery/retries.ts',
    find: "message('course', 5 * MINUTE_MS,",
    replace: "message('course', 1,",
  },
  {
    name: 'tries again what was refused for good',
    file: 'delivery/retries.ts',
    find: "return { result: 'over', nextAttemptAt: 0,",
    replace: "return { result: 'waits', nextAttemptAt: Math.max(now + HOUR_MS, dueAt),",
  },
  {
    name: 'drops the mark of a message that went out after its subscription ended',
    file: 'course/transitions/claim.ts',
    find: '  if (sent) {',
    replace: '  if (sent && holds) {',
  },
  {
    name: 'gives up what was claimed when the process stops',
    file: 'course/transitions/claim.ts',
    find: 'nextAttemptAt: now + leaseMs,',
    replace: 'nextAttemptAt: undefined,',
  },
  {
    name: 'records an outcome in one attempt',
    file: 'delivery/marker.ts',
    find: 'if (passing && latest < mark.until)',
    replace: 'if (passing && latest < 0)',
  },
  {
    name: 'claims by the wall clock what others hold by the clock of leases',
    file: 'store/dispatch.ts',
    find: 'ELSE lease_until <= @leaseNow OR lease_until > @longest END',
    replace: 'ELSE next_attempt_at <= @now OR (@leaseNow + @longest) < 0 END',
  },
  {
    name: 'does not renew a lease while its message is out',
    file: 'delivery/lease.ts',
    find: 'if (kept) until = now + ATTEMPT_MS',
    replace: 'if (kept) until = last',
  },
  {
    name: 'lets an attempt outlive its lease',
    file: 'delivery/lease.ts',
    find: 'const ATTEMPT_MS = 80_000',
    replace: 'const ATTEMPT_MS = 800_000',
  },
  {
    name: 'parks everybody for a refusal of all that we send',
    file: 'delivery/run.ts',
    find: "if (scope === 'one' ||",
    replace: 'if (scope ||',
  },
  {
    name: 'ends nothing by a link of an earlier enrolment',
    file: 'course/transitions/leave.ts',
    find: 'if (enrolment > record.enrolment) return undefined',
    replace: 'if (enrolment !== record.enrolment) return undefined',
  },
  {
    name: 'accepts no link of the secret before',
    file: 'course/enrolments.ts',
    find: 'keys.map((key) => readUnsubscribeLink',
    replace: 'keys.slice(0, 1).map((key) => readUnsubscribeLink',
  },
  {
    name: 'takes a released lesson for one that waits for ever',
    file: 'delivery/retries.ts',
    find: "case 'again':",
    replace: "case 'again':\n      return { ...later(now), result: 'over' }",
  },
  {
    name: 'keeps what was erased',
    file: 'store/erasure.ts',
    find: 'DELETE FROM subscription WHERE identity = @identity OR person = @identity RETURNING id, address',
    replace: 'SELECT id, address FROM subscription WHERE identity = @identity OR person = @identity',
  },
  {
    name: 'mails on after an unsubscribe',
    file: 'course/transitions/leave.ts',
    find: "    state: 'unsubscribed',\n    unsubscribedAt: now,\n    nextAttemptAt: undefined,",
    replace: '    unsubscribedAt: now,',
  },
  {
    name: 'goes beyond its limit',
    file: 'delivery/claims.ts',
    find: 'room -= claims.length',
    replace: 'room -= 1',
  },
  {
    name: 'sends to a dead address',
    file: 'course/settlement.ts',
    find: "end: problem?.kind === 'bounced'",
    replace: 'end: false',
  },
  {
    name: 'starts over with the days of the enrolment before',
    file: 'course/transitions/enrol.ts',
    find: '    ...UNSTARTED,\n    state:',
    replace: '    ...UNSTARTED,\n    sentDays: record.sentDays,\n    state:',
  },
  {
    name: 'takes a connection that broke for a message that was refused',
    file: 'delivery/retries.ts',
    find: "const kind = noted === 'failed' &&",
    replace: "const kind = noted === 'unknown' ? 'failed' : noted === 'failed' &&",
  },
  {
    name: 'undoes no unsubscribe',
    file: 'course/transitions/leave.ts',
    find: 'nextAttemptAt: day === undefined || waits ? undefined : Math.max(now, record.dueAt ?? now),',
    replace: 'nextAttemptAt: undefined,',
  },
  {
    name: 'takes an hour whose run failed for handled',
    file: 'course/hours.ts',
    find: 'await store.endHour(hour, false).catch',
    replace: 'await store.endHour(hour, true).catch',
  },
  {
    name: 'never takes over an hour whose process was killed',
    file: 'store/jobs.ts',
    find: '(handled_hour.claimed_until <= @leaseNow OR',
    replace: '(handled_hour.claimed_until = 0 OR',
  },
  {
    name: 'gives away an hour that another process runs',
    file: 'course/hours.ts',
    find: 'if (claimed === hour) await store.endHour',
    replace: 'await store.endHour',
  },
  {
    name: 'does not hold an hour while it runs',
    file: 'course/hours.ts',
    find: 'if (hour !== undefined)',
    replace: "if (hour === '')",
  },
  {
    name: 'keeps the hours of a clock that was ahead for handled',
    file: 'course/hours.ts',
    find: 'await store.forgetHoursAfter(hourAt(clock.now() + MOST_SKEW_MS))',
    replace: '0',
  },
  {
    name: 'measures the claim of an hour by the wall clock',
    file: 'store/jobs.ts',
    find: 'run(TEXTS.claim, { hour, leaseMs })',
    replace:
      'run(TEXTS.claim.replaceAll("@leaseNow", "@wall"), { hour, leaseMs, wall: Date.parse(hour.concat(":30Z")) })',
  },
  {
    name: 'sends from the start to whom it cannot read',
    file: 'store/dispatch.ts',
    find: 'if (found.unreadableDays !== undefined) {',
    replace: 'if (found.unreadableDays === 0) {',
  },
  {
    name: 'stops for a record that it cannot read',
    file: 'store/subscriptions.ts',
    find: "=== 'string' ? parsedJson(value)",
    replace: "=== 'string' ? JSON.parse(value)",
  },
  {
    name: 'counts a report as often as it is delivered',
    file: 'store/feedback.ts',
    find: "if (key !== undefined && !fresh.delete(storableText(key))) return 'repeated'",
    replace: '',
  },
  {
    name: 'keeps what is reported of a person who was erased',
    file: 'store/feedback.ts',
    find: 'if (erasureHashes.some((hash) => erased.has(hash))) known.delete(identity)',
    replace: 'void [identity, erasureHashes]',
  },
  {
    name: 'ends a newer enrolment by a report about an earlier one',
    file: 'course/transitions/leave.ts',
    find: "return record.state !== 'confirmed' || at < (record.consent?.at ?? record.confirmedAt ?? at)",
    replace: "return record.state !== 'confirmed'",
  },
  {
    name: 'mails on after a complaint',
    file: 'course/transitions/leave.ts',
    find: "  const kind = effect === 'end-dead' ? 'bounced' : 'suppressed'\n",
    replace:
      "  const kind = effect === 'end-dead' ? 'bounced' : 'suppressed'\n  if (kind === 'suppressed') return undefined\n",
  },
  {
    name: 'starts the course of a suppressed address',
    file: 'course/transitions/enrol.ts',
    find: 'if (suppression === undefined) return enrolled',
    replace: 'if (suppression === undefined || enrolled) return enrolled',
  },
  {
    name: 'counts soft bounces from before a delivery that was reported first',
    file: 'mail/feedback/event.ts',
    find: 'if (mailbox.deliveredAt !== undefined && at <= mailbox.deliveredAt)',
    replace: 'if (mailbox.deliveredAt !== undefined && at <= 0)',
  },
  {
    name: 'suppresses an address for any five soft bounces',
    file: 'mail/feedback/event.ts',
    find: 'if (softBounces < SOFT_BOUNCES.most || softUntil - softSince < SOFT_BOUNCES.overMs)',
    replace: 'if (softBounces < SOFT_BOUNCES.most)',
  },
  {
    name: 'takes the local hour of a course for UTC',
    file: 'course/due.ts',
    find: "const zone = fixed ?? timeZone ?? 'UTC'",
    replace: "const zone = 'UTC'",
  },
  {
    name: 'takes the zone of a course for that of each subscriber',
    file: 'course/due.ts',
    find: 'fixed ?? timeZone',
    replace: 'timeZone ?? fixed',
  },
  {
    name: 'reads an hour that the clock skips with the offset after the gap',
    file: 'course/zones.ts',
    find: "disambiguation: 'compatible'",
    replace: "disambiguation: 'earlier'",
  },
  {
    name: 'sends on every day of the week',
    file: 'course/due.ts',
    find: 'weekdays.length === 0 ||',
    replace: 'weekdays.length >= 0 ||',
  },
  {
    name: 'counts the first lesson of a week twice',
    file: 'course/due.ts',
    find: 'let left = (count - 1) % aWeek',
    replace: 'let left = Math.max(0, ((count - 1) % aWeek) - 1)',
  },
  {
    name: 'keeps no spacing',
    file: 'course/due.ts',
    find: 'if (lastSentAt === undefined || spacingMs === 0) return due',
    replace: 'if (spacingMs >= 0) return due',
  },
  {
    name: 'spaces a lesson from the one before the last',
    file: 'course/dispatch.ts',
    find: '{ confirmedAt, timeZone, dueAt, day }: Claim, now: number) =>\n    catalog.next(plan, { confirmedAt, timeZone, dueAt, lastSentAt: now }, day)',
    replace: 'claim: Claim, now: number) =>\n    catalog.next(plan, claim, claim.day)',
  },
  {
    name: 'gives the changed course to those who are in it',
    file: 'course/catalog.ts',
    find: '?.version === version) return course',
    replace: '?.version.length) return course',
  },
  {
    name: 'sends everybody the original of a lesson',
    file: 'course/dispatch.ts',
    find: '{ language: text.language }',
    replace: '{}',
  },
  {
    name: 'sends a lesson that was edited to those who enrolled before',
    file: 'course/pinned-texts.ts',
    find: 'running?.[kept]?.hash === hash',
    replace: 'running?.[kept] !== undefined',
  },
  {
    name: 'sends the original to those who keep a translation',
    file: 'course/pinned-texts.ts',
    find: 'inLanguage((key) => Object.hasOwn(hashes, key), language)',
    replace: "''",
  },
  {
    name: 'sends a translation to those who enrolled before there was one',
    file: 'course/pinned-texts.ts',
    find: "language: kept === '' ? undefined : kept",
    replace: 'language',
  },
  {
    name: 'keeps the plan of a course without its texts',
    file: 'store/plans.ts',
    find: 'yield* run(TEXTS.keepTexts, { rows: texts })',
    replace: '',
  },
  {
    name: 'takes the lesson in the place of one that a killed process had in hand',
    file: 'course/dispatch.ts',
    find: 'tried?.template ?? catalog.inHand(claim, known)',
    replace: 'tried?.template',
  },
  {
    name: 'keeps the first text that it compiled for every lesson',
    file: 'course/pinned-texts.ts',
    find: 'compiled.get(hash)',
    replace: 'compiled.values().next().value',
  },
  {
    name: 'deletes texts that somebody will still get',
    file: 'store/plans.ts',
    find: '{length sent_days} < lessons AS follows',
    replace: '{length sent_days} < 2 AS follows',
  },
  {
    name: 'looks for no translation in the language of a dialect',
    file: 'mail/template.ts',
    find: ".split('-')[0]",
    replace: '',
  },
  {
    name: 'cancels another course of the same person',
    file: 'course/enrolments.ts',
    find: 'const found = await store.find(await storedForm(host, identity), course)',
    replace: 'const found = await store.find(await storedForm(host, identity))',
  },
  {
    name: 'enrols anew for a request that it has answered',
    file: 'store/enrolments.ts',
    find: 'if (before) return { enrolled: true',
    replace: 'if (before?.enrolment === 0) return { enrolled: true',
  },
  {
    name: 'takes reports by mail for proven ones',
    file: 'mail/feedback/sending.ts',
    find: 'Math.min(proven, byMail)',
    replace: 'byMail',
  },
  {
    name: 'counts each report of one person for the breaker',
    file: 'mail/feedback/store.ts',
    find: "known: applied[n] !== 'changed'",
    replace: 'known: false',
  },
  {
    name: 'pauses courses for one complaint',
    file: 'mail/feedback/sending.ts',
    find: 'fewestComplaints: 5',
    replace: 'fewestComplaints: 1',
  },
  {
    name: 'counts again after a pause what led to it',
    file: 'store/sending.ts',
    find: 'resumed_at = @now WHERE name = @name',
    replace: 'resumed_at = @now * 0 WHERE name = @name',
  },
  {
    name: 'starts a run while courses are paused',
    file: 'delivery/run.ts',
    find: 'stop(await source.held?.())',
    replace: '{}',
  },
  {
    name: 'lets an older build claim courses that it does not know',
    file: 'store/migrations.ts',
    find: "ELSE OLD.needs > 0 OR OLD.course <> 'quantum'",
    replace: 'ELSE OLD.needs > 0',
  },
  {
    name: 'lets an older build go on with a claim that was refused',
    file: 'store/migrations.ts',
    find: 'SET fence = OLD.fence + 2',
    replace: 'SET fence = OLD.fence + 1',
  },
  {
    name: 'goes by the number of a lesson in a course that changed',
    file: 'course/catalog.ts',
    find: 'if (known.every((name, index) => name === course[index])) return course',
    replace: 'if (known.length >= 0) return course',
  },
  {
    name: 'keeps no names of lessons sent',
    file: 'store/sqlite/open.ts',
    find: 'progress === undefined ? null : JSON.stringify(progress.sentLessons)',
    replace: 'null',
  },
  {
    name: 'ends for good whom a shorter course ended',
    file: 'course/catalog.ts',
    find: '(isOver && promised === undefined)',
    replace: 'isOver',
  },
  {
    name: 'leaves a confirmation to the process that stored it',
    file: 'delivery/messages.ts',
    find: 'claim: async (asked) => store.claimMessages({ stream: name, quiet: await isQuiet(), ...asked }),',
    replace: 'claim: async () => [],',
  },
  {
    name: 'never takes over a confirmation whose process was killed',
    file: 'store/messages.ts',
    find: 'ELSE lease_until <= ',
    replace: 'ELSE lease_until + 999999999999 <= ',
  },
  {
    name: 'hands over a confirmation that another process has in hand',
    file: 'delivery/messages.ts',
    find: 'keep: (messages, leaseMs) => store.keepMessages({ messages, leaseMs }),',
    replace: 'keep: async () => {},',
  },
  {
    name: 'gives up a confirmation that failed once',
    file: 'delivery/retries.ts',
    find: 'const isOver = isLast ||',
    replace: 'const isOver = true ||',
  },
  {
    name: 'tries again what was sent',
    file: 'delivery/retries.ts',
    find: "return { ...kept, result: 'sent' }",
    replace: 'return later(now + HOUR_MS)',
  },
  {
    name: 'lets the lease of a message end while it is out',
    file: 'delivery/run.ts',
    find: 'lease.begin(claim)',
    replace: '',
  },
  {
    name: 'tries what is over for ever',
    file: 'delivery/retries.ts',
    find: "return { ...kept, result: 'skipped', problem }",
    replace: 'return { ...later(now + HOUR_MS), problem }',
  },
  {
    name: 'hands over what it has claimed after its stream was paused',
    file: 'delivery/run.ts',
    find: 'if (waitMs > 0) await timer.sleep(waitMs, halted).catch(() => {})\n    await lookAtHold()',
    replace: 'if (waitMs > 0) await timer.sleep(waitMs, halted).catch(() => {})',
  },
  {
    name: 'records only what was sent',
    file: 'delivery/run.ts',
    find: 'await marker.mark(attempted, lease.heldUntil())',
    replace: "if (delivery.kind === 'sent') await marker.mark(attempted, lease.heldUntil())",
  },
  {
    name: 'retries a confirmation at once',
    file: 'delivery/retries.ts',
    find: "message('confirmation', 5 * MINUTE_MS,",
    replace: "message('confirmation', 1,",
  },
  {
    name: 'mails every attempt of a confirmation under a key of its own',
    file: 'course/confirmations.ts',
    find: '    about,\n',
    replace: '    about: about + String(host.random.fraction()),\n',
  },
  {
    name: 'throws away a second course that is asked for within the hour',
    file: 'store/confirmations.ts',
    find: 'max(CASE WHEN s.course = @course THEN c.created_at END)',
    replace: "max(CASE WHEN s.course <> '' OR @course = '' THEN c.created_at END)",
  },
  {
    name: 'mails a withdrawn announcement to those whom it has not reached',
    file: 'store/messages.ts',
    find: 'AND (a.id IS NOT NULL\n',
    replace: "AND (n.kind = 'announced'\n",
  },
  {
    name: 'takes a withdrawn announcement off the page alone',
    file: 'store/incidents.ts',
    find: "'DELETE FROM announcement WHERE id = @id AND",
    replace: "'UPDATE announcement SET who = who WHERE id = @id AND",
  },
  {
    name: 'tells nobody of an announcement whose mails failed once',
    file: 'delivery/retries.ts',
    find: 'HOUR_MS), isBulk: true }',
    replace: 'HOUR_MS), isBulk: true, most: 1 }',
  },
  {
    name: 'gives up a notice whose first outcome was unknown before the day is over',
    file: 'delivery/retries.ts',
    find: 'HOUR_MS), isBulk: true }',
    replace: 'HOUR_MS), isBulk: true, parksUnknown: true }',
  },
  {
    name: 'forgets in a journal made from rows who came back',
    file: 'store/departures.ts',
    find: '    ...past,\n',
    replace: '',
  },
  {
    name: 'brings erased people back by a restore',
    file: 'store/replay.ts',
    find: 'const { subscription, others = [], invites, logins } = rows',
    replace:
      'const { invites, logins } = rows\n    const [subscription, others] = [undefined, []]\n    byHash.clear()',
  },
  {
    name: 'takes no sent records at a restore of who came back by undoing an unsubscribe',
    file: 'store/sqlite/restore.ts',
    find: `const replayed = await replay(sql, entries)
  // After the replay, which lets those go on who undid an unsubscribe that the backup has.
  const taken = sentFrom === undefined ? 0 : takeSentRecords(database, sentFrom)`,
    replace: `if (sentFrom !== undefined) takeSentRecords(database, sentFrom)
  const replayed = await replay(sql, entries)
  const taken = 0`,
  },
  {
    name: 'loses the turn of a lesson that is not handed over',
    file: 'delivery/claims.ts',
    find: 'place !== undefined && pace?.giveBack([place])',
    replace: 'place !== undefined',
  },
  {
    name: 'reserves more turns than it uses',
    file: 'mail/feedback/pacer.ts',
    find: 'reserve({ messages, intervalUs })',
    replace: 'reserve({ messages: messages + 1, intervalUs })',
  },
  {
    name: 'sends together what has its turn one after the other',
    file: 'mail/feedback/pacer.ts',
    find: 'n * intervalUs',
    replace: 'n',
  },
  {
    name: 'takes an attempt for a lesson that was sent',
    file: 'store/dispatch.ts',
    find: "attempt?.outcome === 'sent'",
    replace: 'attempt !== undefined',
  },
  {
    name: 'tells nobody that every attempt fails',
    file: 'incidents/conditions.ts',
    find: 'if (stalledAt !== undefined && stalledAt <= before)',
    replace: 'if (stalledAt === before)',
  },
  {
    name: 'forgets with the last lesson of a shorter course that it had more',
    file: 'store/sqlite/open.ts',
    find: '(nextAttemptAt === undefined ? lessons !== known : lessons > known)',
    replace: 'lessons > known',
  },
  {
    name: 'lets a short silence end a long one',
    file: 'store/incidents.ts',
    find: 'WHERE until_at = from_at AND from_at >= s.from_at',
    replace: 'WHERE until_at <= @now AND from_at >= s.from_at',
  },
  {
    name: 'tells the end of an incident to nobody',
    file: 'incidents/due.ts',
    find: "if (closedAt !== undefined) return once('closed', closedAt)",
    replace: 'if (closedAt !== undefined) return undefined',
  },
  {
    name: 'opens an incident of what another one explains',
    file: 'incidents/prerequisites.ts',
    find: 'return names !== undefined && (',
    replace: 'return names === undefined && one === other && (',
  },
  {
    name: 'sends all that an outage made overdue at once',
    file: 'course/wakes.ts',
    find: 'gentle: true',
    replace: 'gentle: false',
  },
  {
    name: 'leaves what became due within the hour to the next one',
    file: 'course/wakes.ts',
    find: '(await isDue())',
    replace: 'clock.now() < 0',
  },
  {
    name: 'holds back a lesson that is on time for an hour',
    file: 'store/counts.ts',
    find: '> last_sent_at)',
    replace: '> last_sent_at + 3600000)',
  },
  {
    name: 'sends alerts during a silence',
    file: 'incidents/lanes.ts',
    find: 'if ((await store.silenceAt(clock.now())) !== undefined) return true',
    replace: '',
  },
  {
    name: 'reminds of an incident that somebody looks at',
    file: 'incidents/due.ts',
    find: "if (acknowledgedAt !== undefined) return once('acknowledged', acknowledgedAt)",
    replace: '',
  },
  {
    name: 'pages somebody at once',
    file: 'incidents/due.ts',
    find: 'Math.max(afterMs ?? 0, isFlapping',
    replace: 'Math.max(0, isFlapping',
  },
]

/** Mutations whose text is no longer in the source of a project: they would prove nothing. */
export async function misfits(project: string): Promise<readonly string[]> {
  const found = await Promise.all(
    MUTATIONS.map(async ({ name, file, find }) =>
      (await readFile(path.join(project, 'src/core', file), 'utf8')).includes(find)
        ? []
        : [`"${name}" fits nowhere in ${file}`],
    ),
  )
  return found.flat()
}
