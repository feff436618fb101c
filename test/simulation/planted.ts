import { readFile } from 'node:fs/promises'
import path from 'node:path'

/** A bug to plant: the first place of a text in a file of `src/core`, and what to put there. */
export interface Mutation {
  readonly name: string
  readonly file: string
  readonly find: string
  readonly replace: string
}

type Planted = readonly [name: string, find: string, replace: string]

const PLANTED: Readonly<Record<string, readonly Planted[]>> = {
  'delivery/run.ts': [
    [
      'records a day as sent before it is sent',
      'const delivery = await inLine(',
      `await record(taken, { kind: 'sent', id: '' }, prepared)
    const delivery = await inLine(`,
    ],
    ['parks everybody for a refusal of all that we send', "if (scope === 'one' ||", 'if (scope ||'],
    ['starts a run while courses are paused', 'stop(await source.held?.())', '{}'],
    ['lets the lease of a message end while it is out', 'lease.begin(claim)', ''],
    [
      'hands over what it has claimed after its stream was paused',
      'if (waitMs > 0) await timer.sleep(waitMs, halted).catch(() => {})\n    await lookAtHold()',
      'if (waitMs > 0) await timer.sleep(waitMs, halted).catch(() => {})',
    ],
    [
      'records only what was sent',
      'await marker.mark(attempted, lease.heldUntil())',
      "if (delivery.kind === 'sent') await marker.mark(attempted, lease.heldUntil())",
    ],
  ],
  'course/transitions/claim.ts': [
    [
      'takes any outcome, whatever its fencing number',
      'const holds = current.fence === claim.fence && ',
      'const holds = ',
    ],
    ['dates every attempt anew', 'firstAttemptAt: record.firstAttemptAt ?? now', 'firstAttemptAt: now'],
    ['forgets that an attempt was lost', '...(claimedAt !== undefined && {', '...(claimedAt === 0 && {'],
    [
      'drops the mark of a message that went out after its subscription ended',
      '  if (sent) {',
      '  if (sent && holds) {',
    ],
    [
      'gives up what was claimed when the process stops',
      'nextAttemptAt: now + leaseMs,',
      'nextAttemptAt: undefined,',
    ],
    ['sends to a dead address', "end: problem?.kind === 'bounced'", 'end: false'],
  ],
  'lease.ts': [
    [
      'holds a lease that is shorter than a send',
      'export const LEASE_MS = 90_000',
      'export const LEASE_MS = 1_000',
    ],
    [
      'does not renew a lease while its message is out',
      'succeeds(keep([...out])))) until = now + ATTEMPT_MS',
      'succeeds(keep([...out])))) until = last',
    ],
    ['lets an attempt outlive its lease', 'const ATTEMPT_MS = 80_000', 'const ATTEMPT_MS = 800_000'],
  ],
  'course/dispatch.ts': [
    [
      'makes a new key for every attempt',
      '...lessonOf(plan, claim),\n          stream',
      '...lessonOf(plan, claim),\n          about: String(random.fraction()),\n          stream',
    ],
    [
      'does not look again before it hands over',
      `if (!(await store.stillHolds(claim))) return { kind: 'gone' }`,
      '',
    ],
    [
      'spaces a lesson from the one before the last',
      'catalog.next(plan, claim, claim.day, now)',
      'catalog.next(plan, claim, claim.day)',
    ],
    ['sends everybody the original of a lesson', '{ language: text.language }', '{}'],
    [
      'takes the lesson in the place of one that a killed process had in hand',
      'tried?.template ?? catalog.inHand(claim, known)',
      'tried?.template',
    ],
  ],
  'course/due.ts': [
    [
      'counts 23 hours as a day',
      'return before + cadence.ms',
      'return before + Math.min(cadence.ms, 23 * HOUR_MS)',
    ],
    [
      'takes the local hour of a course for UTC',
      "const zone = fixed ?? timeZone ?? 'UTC'",
      "const zone = 'UTC'",
    ],
    ['takes the zone of a course for that of each subscriber', 'fixed ?? timeZone', 'timeZone ?? fixed'],
    ['sends on every day of the week', 'weekdays.length === 0 ||', 'weekdays.length >= 0 ||'],
    [
      'counts the first lesson of a week twice',
      'slots.shift(slots.first(confirmedAt), day - 1)',
      'slots.shift(slots.first(confirmedAt), Math.max(0, day - 2))',
    ],
    [
      'keeps no spacing',
      'if (lastSentAt === undefined || spacingMs === 0) return due',
      'if (spacingMs >= 0) return due',
    ],
  ],
  'delivery/retries.ts': [
    [
      'takes an unknown outcome for sent',
      "if (delivery.kind === 'sent')",
      "if (delivery.kind === 'sent' || (delivery.kind === 'unknown' && delivery.reason !== ''))",
    ],
    ['retries at once', "message('course', 5 * MINUTE_MS,", "message('course', 1,"],
    [
      'tries again what was refused for good',
      "return { result: 'over', nextAttemptAt: 0,",
      "return { result: 'waits', nextAttemptAt: Math.max(now + HOUR_MS, dueAt),",
    ],
    [
      'takes a released lesson for one that waits for ever',
      "if (delivery.kind === 'again' ||",
      "if (delivery.kind === 'again') return { ...later(now), result: 'over' }\n  if (delivery.kind === 'again' ||",
    ],
    [
      'takes a connection that broke for a message that was refused',
      "const kind = noted === 'failed' &&",
      "const kind = noted === 'unknown' ? 'failed' : noted === 'failed' &&",
    ],
    ['gives up a confirmation that failed once', 'const isOver = isLast ||', 'const isOver = true ||'],
    ['tries again what was sent', "return { ...kept, result: 'sent' }", 'return later(now + HOUR_MS)'],
    [
      'tries what is over for ever',
      "return { ...kept, result: 'skipped', problem }",
      'return { ...later(now + HOUR_MS), problem }',
    ],
    [
      'retries a confirmation at once',
      "message('confirmation', 5 * MINUTE_MS,",
      "message('confirmation', 1,",
    ],
    [
      'tells nobody of an announcement whose mails failed once',
      'HOUR_MS), isBulk: true }',
      'HOUR_MS), isBulk: true, most: 1 }',
    ],
    [
      'gives up a notice whose first outcome was unknown before the day is over',
      'HOUR_MS), isBulk: true }',
      'HOUR_MS), isBulk: true, parksUnknown: true }',
    ],
  ],
  'delivery/marker.ts': [
    [
      'records an outcome in one attempt',
      'if (passing && latest < mark.until)',
      'if (passing && latest < 0)',
    ],
  ],
  'store/dispatch.ts': [
    [
      'claims by the wall clock what others hold by the clock of leases',
      'ELSE lease_until <= @leaseNow OR lease_until > @longest END',
      'ELSE next_attempt_at <= @now OR (@leaseNow + @longest) < 0 END',
    ],
    [
      'sends from the start to whom it cannot read',
      'if (found.unreadableDays !== undefined) {',
      'if (found.unreadableDays === 0) {',
    ],
    ['takes an attempt for a lesson that was sent', "attempt?.outcome === 'sent'", 'attempt !== undefined'],
  ],
  'course/transitions/leave.ts': [
    [
      'mails on after an unsubscribe',
      "    state: 'unsubscribed',\n    unsubscribedAt: now,\n    nextAttemptAt: undefined,",
      '    unsubscribedAt: now,',
    ],
    [
      'undoes no unsubscribe',
      'nextAttemptAt: day === undefined || waits ? undefined : Math.max(now, record.dueAt ?? now),',
      'nextAttemptAt: undefined,',
    ],
    [
      'ends a newer enrolment by a report about an earlier one',
      'return at < agreedAt - UNCLEAR_MS ? undefined : unsubscribe(record, now)',
      'return unsubscribe(record, now)',
    ],
    [
      'mails on after a complaint',
      "  const kind = effect === 'end-dead' ? 'bounced' : 'suppressed'\n",
      "  const kind = effect === 'end-dead' ? 'bounced' : 'suppressed'\n  if (kind === 'suppressed') return undefined\n",
    ],
  ],
  'course/enrolments.ts': [
    [
      'accepts no link of the secret before',
      'keys.map((key) => readUnsubscribeLink',
      'keys.slice(0, 1).map((key) => readUnsubscribeLink',
    ],
    [
      'cancels another course of the same person',
      'const found = await store.find(await storedForm(host, identity), course)',
      'const found = await store.find(await storedForm(host, identity))',
    ],
  ],
  'store/erasure.ts': [
    [
      'keeps what was erased',
      'DELETE FROM subscription WHERE identity = @identity OR person = @identity RETURNING id, address',
      'SELECT id, address FROM subscription WHERE identity = @identity OR person = @identity',
    ],
  ],
  'delivery/claims.ts': [
    ['goes beyond its limit', 'room -= claims.length', 'room -= 1'],
    [
      'loses the turn of a lesson that is not handed over',
      'place !== undefined && pace?.giveBack([place])',
      'place !== undefined',
    ],
  ],
  'course/transitions/enrol.ts': [
    [
      'starts over with the days of the enrolment before',
      '    ...UNSTARTED,\n    state:',
      '    ...UNSTARTED,\n    sentDays: record.sentDays,\n    state:',
    ],
    [
      'starts the course of a suppressed address',
      'if (suppression === undefined) return enrolled',
      'if (suppression === undefined || enrolled) return enrolled',
    ],
  ],
  'course/hours.ts': [
    [
      'takes an hour whose run failed for handled',
      'await store.endHour(hour, false).catch',
      'await store.endHour(hour, true).catch',
    ],
    [
      'gives away an hour that another process runs',
      'if (claimed === hour) await store.endHour',
      'await store.endHour',
    ],
    ['does not hold an hour while it runs', 'if (hour !== undefined)', "if (hour === '')"],
    [
      'keeps the hours of a clock that was ahead for handled',
      'await store.forgetHoursAfter(hourAt(clock.now() + MOST_SKEW_MS))',
      '0',
    ],
    ['sends all that an outage made overdue at once', 'gentle: true', 'gentle: false'],
    ['leaves what became due within the hour to the next one', '(await isDue())', 'clock.now() < 0'],
  ],
  'store/jobs.ts': [
    [
      'never takes over an hour whose process was killed',
      '(handled_hour.claimed_until <= @leaseNow OR',
      '(handled_hour.claimed_until = 0 OR',
    ],
    [
      'measures the claim of an hour by the wall clock',
      'run(TEXTS.claim, { hour, leaseMs })',
      'run(TEXTS.claim.replaceAll("@leaseNow", "@wall"), { hour, leaseMs, wall: Date.parse(hour.concat(":30Z")) })',
    ],
  ],
  'store/subscriptions.ts': [
    [
      'stops for a record that it cannot read',
      "=== 'string' ? parsedJson(value)",
      "=== 'string' ? JSON.parse(value)",
    ],
  ],
  'store/feedback.ts': [
    [
      'counts a report as often as it is delivered',
      "if (key !== undefined && !fresh.delete(storableText(key))) return 'repeated'",
      '',
    ],
    [
      'keeps what is reported of a person who was erased',
      'if (hash !== undefined) hashOf.set(identity, hash)',
      'void [identity, erasureHashes]',
    ],
  ],
  'mail/feedback/event.ts': [
    [
      'counts soft bounces from before a delivery that was reported first',
      'if (mailbox.deliveredAt !== undefined && at <= mailbox.deliveredAt)',
      'if (mailbox.deliveredAt !== undefined && at <= 0)',
    ],
    [
      'suppresses an address for any five soft bounces',
      'if (softBounces < SOFT_BOUNCES.most || softUntil - softSince < SOFT_BOUNCES.overMs)',
      'if (softBounces < SOFT_BOUNCES.most)',
    ],
  ],
  'course/zones.ts': [
    [
      'reads an hour that the clock skips with the offset after the gap',
      "disambiguation: 'compatible'",
      "disambiguation: 'earlier'",
    ],
  ],
  'course/catalog.ts': [
    [
      'gives the changed course to those who are in it',
      '?.version === version) return course',
      '?.version.length) return course',
    ],
    [
      'goes by the number of a lesson in a course that changed',
      'if (known.every((name, index) => name === course[index])) return course',
      'if (known.length >= 0) return course',
    ],
    ['ends for good whom a shorter course ended', '(isOver && promised === undefined)', 'isOver'],
  ],
  'course/pinned-texts.ts': [
    [
      'sends a lesson that was edited to those who enrolled before',
      'running?.[kept]?.hash === hash',
      'running?.[kept] !== undefined',
    ],
    [
      'sends the original to those who keep a translation',
      'inLanguage((key) => Object.hasOwn(hashes, key), language)',
      "''",
    ],
    [
      'sends a translation to those who enrolled before there was one',
      "language: kept === '' ? undefined : kept",
      'language',
    ],
    [
      'keeps the first text that it compiled for every lesson',
      'compiled.get(hash)',
      'compiled.values().next().value',
    ],
  ],
  'store/plans.ts': [
    ['keeps the plan of a course without its texts', 'yield* run(TEXTS.keepTexts, { rows: texts })', ''],
    [
      'deletes texts that somebody will still get',
      '{length sent_days} < lessons AS follows',
      '{length sent_days} < 2 AS follows',
    ],
  ],
  'mail/template.ts': [['looks for no translation in the language of a dialect', ".split('-')[0]", '']],
  'store/enrolments.ts': [
    [
      'enrols anew for a request that it has answered',
      'if (before) return { enrolled: true',
      'if (before?.enrolment === 0) return { enrolled: true',
    ],
  ],
  'mail/feedback/sending.ts': [
    ['takes reports by mail for proven ones', 'Math.min(proven, byMail)', 'byMail'],
    ['pauses courses for one complaint', 'fewestComplaints: 5', 'fewestComplaints: 1'],
  ],
  'mail/feedback/store.ts': [
    ['counts each report of one person for the breaker', "known: applied[n] !== 'changed'", 'known: false'],
  ],
  'store/sending.ts': [
    [
      'counts again after a pause what led to it',
      'resumed_at = @now WHERE name = @name',
      'resumed_at = @now * 0 WHERE name = @name',
    ],
  ],
  'store/migrations.ts': [
    [
      'lets an older build claim courses that it does not know',
      "ELSE OLD.needs > 0 OR OLD.course <> 'quantum'",
      'ELSE OLD.needs > 0',
    ],
    [
      'lets an older build go on with a claim that was refused',
      'SET fence = OLD.fence + 2',
      'SET fence = OLD.fence + 1',
    ],
  ],
  'store/sqlite/open.ts': [
    [
      'keeps no names of lessons sent',
      'progress === undefined ? null : JSON.stringify(progress.sentLessons)',
      'null',
    ],
    [
      'forgets with the last lesson of a shorter course that it had more',
      '(nextAttemptAt === undefined ? lessons !== known : lessons > known)',
      'lessons > known',
    ],
  ],
  'delivery/messages.ts': [
    [
      'leaves a confirmation to the process that stored it',
      'store.claimMessages({ stream: name, quiet: await isQuiet(), ownDirectory, ...asked }),',
      '[],',
    ],
    [
      'hands over a confirmation that another process has in hand',
      'keep: (messages, leaseMs) => store.keepMessages({ messages, leaseMs }),',
      'keep: async () => {},',
    ],
  ],
  'store/messages.ts': [
    [
      'never takes over a confirmation whose process was killed',
      'IS NULL OR lease_until <= ',
      'IS NULL OR lease_until + 999999999999 <= ',
    ],
    [
      'mails a withdrawn announcement to those whom it has not reached',
      'AND (a.id IS NOT NULL\n',
      "AND (n.kind = 'announced'\n",
    ],
  ],
  'course/confirmations.ts': [
    [
      'mails every attempt of a confirmation under a key of its own',
      '    about,\n',
      '    about: about + String(host.random.fraction()),\n',
    ],
  ],
  'store/confirmations.ts': [
    [
      'throws away a second course that is asked for within the hour',
      'max(CASE WHEN s.course = @course THEN c.created_at END)',
      "max(CASE WHEN s.course <> '' OR @course = '' THEN c.created_at END)",
    ],
  ],
  'store/incidents.ts': [
    [
      'takes a withdrawn announcement off the page alone',
      "'DELETE FROM announcement WHERE id = @id AND",
      "'UPDATE announcement SET who = who WHERE id = @id AND",
    ],
    [
      'lets a short silence end a long one',
      'WHERE until_at = from_at AND from_at >= s.from_at',
      'WHERE until_at <= @now AND from_at >= s.from_at',
    ],
  ],
  'store/departures.ts': [
    [
      'forgets in a journal made from rows who came back',
      "    ...(yield* all<Left & { readonly what: 'unsubscribed' | 'undone' }>(text.past)),\n",
      '',
    ],
  ],
  'store/replay.ts': [
    [
      'brings erased people back by a restore',
      'const { subscription, others = [], invites, logins } = rows',
      'const { invites, logins } = rows\n    const [subscription, others] = [undefined, []]\n    byHash.clear()',
    ],
  ],
  'store/sqlite/restore.ts': [
    [
      'takes no sent records at a restore of who came back by undoing an unsubscribe',
      `const replayed = await replay(sql, entries, had)
  // After the replay, which lets those go on who undid an unsubscribe that the backup has.
  const taken = sentFrom === undefined ? 0 : takeSentRecords(database, sentFrom)`,
      `if (sentFrom !== undefined) takeSentRecords(database, sentFrom)
  const replayed = await replay(sql, entries, had)
  const taken = 0`,
    ],
  ],
  'mail/feedback/pacer.ts': [
    [
      'reserves more turns than it uses',
      'reserve({ messages, intervalUs })',
      'reserve({ messages: messages + 1, intervalUs })',
    ],
    ['sends together what has its turn one after the other', 'n * intervalUs', 'n'],
  ],
  'incidents/conditions.ts': [
    [
      'tells nobody that every attempt fails',
      'if (stalledAt !== undefined)',
      'if (stalledAt !== undefined) return undefined\n  if (stalledAt !== undefined)',
    ],
  ],
  'incidents/due.ts': [
    [
      'tells the end of an incident to nobody',
      "if (closedAt !== undefined) return once('closed', closedAt)",
      'if (closedAt !== undefined) return undefined',
    ],
    [
      'reminds of an incident that somebody looks at',
      "if (acknowledgedAt !== undefined) return once('acknowledged', acknowledgedAt)",
      '',
    ],
    ['pages somebody at once', 'toldAt + (afterMs ?? 0)', 'toldAt'],
  ],
  'incidents/prerequisites.ts': [
    [
      'opens an incident of what another one explains',
      'return names !== undefined && (',
      'return names === undefined && one === other && (',
    ],
  ],
  'store/counts.ts': [
    ['holds back a lesson that is on time for an hour', '> last_sent_at)', '> last_sent_at + 3600000)'],
  ],
  'incidents/channels.ts': [
    [
      'sends alerts during a silence',
      'if ((await store.silenceAt(clock.now())) !== undefined) return true',
      '',
    ],
  ],
}

export const MUTATIONS: readonly Mutation[] = Object.entries(PLANTED).flatMap(([file, planted]) =>
  planted.map(([name, find, replace]) => ({ name, file, find, replace })),
)

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
