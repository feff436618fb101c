import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { hashToken, unsubscribeBy } from '../../../src/core/course/links.ts'
import type { StoreAddress } from '../../../src/core/env/settings.ts'
import { systemClock } from '../../../src/core/host.ts'
import type { Message } from '../../../src/core/mail/mailer.ts'
import { secret } from '../../../src/core/secret.ts'
import { POSTGRES_STEPS, SQLITE_STEPS } from '../../../src/core/store/migrations.ts'
import { afterRestore, compareStores, copyStore, restoreStore } from '../../../src/core/store/open.ts'
import { createPool } from '../../../src/core/store/postgres/connection.ts'
import { migrate as migratePostgres } from '../../../src/core/store/postgres/sql.ts'
import { connect } from '../../../src/core/store/sqlite/connection.ts'
import { migrateFile } from '../../../src/core/store/sqlite/sql.ts'
import { emptyFolder } from '../../support/folder.ts'
import { openLearning } from '../../support/learning.ts'
import { newDatabase } from '../../support/stores.ts'
import { testTransport } from '../../support/test-transport.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const NOW = Date.UTC(2026, 3, 15, 12)
const LINK_SECRET = 'a secret that signs the links'
const TOKEN = 'a-token-that-was-mailed-by-the-build-before'

/** A row of the table as it was before there were courses: one a person. */
interface OldRow {
  readonly state: 'unconfirmed' | 'confirmed' | 'unsubscribed'
  readonly enrolment?: number
  readonly confirmed_at?: number
  readonly unsubscribed_at?: number
  readonly sent_days?: string
  readonly next_attempt_at?: number
  readonly first_attempt_at?: number
  readonly claimed_by?: string
  readonly claimed_at?: number
  readonly lease_until?: number
  readonly fence?: number
  readonly failures?: number
  readonly problem_kind?: string
  readonly problem_reason?: string
  readonly problem_since?: number
}

/** Confirmed so many days ago, and sent so many lessons; the next is planned when it is due. */
const inCourse = (daysAgo: number, sent: number, more: Partial<OldRow> = {}): OldRow => {
  const confirmed_at = NOW - daysAgo * DAY
  const sent_days = JSON.stringify(Array.from({ length: sent }, (_, index) => index + 1))
  const next = sent === 7 ? {} : { next_attempt_at: confirmed_at + sent * DAY }
  return { state: 'confirmed', enrolment: 1, fence: 2 * sent + 1, confirmed_at, sent_days, ...next, ...more }
}
const without = ({ next_attempt_at: _, ...row }: OldRow): OldRow => row

const problem = (problem_kind: string, problem_reason: string, agoMs: number) => ({
  problem_kind,
  problem_reason,
  problem_since: NOW - agoMs,
})
const busy = { ...problem('failed', 'the mailbox is busy', HOUR), first_attempt_at: NOW - HOUR }
const broken = (agoMs: number) => ({
  ...problem('unknown', 'the connection broke', agoMs),
  first_attempt_at: NOW - agoMs,
})
/** Claimed by a dispatch call that died. */
const dead = {
  claimed_by: 'a dispatch call that died',
  claimed_at: NOW - 2 * HOUR,
  first_attempt_at: NOW - 2 * HOUR,
  next_attempt_at: NOW - 2 * HOUR + 90_000,
}
const left = (daysAgo: number) => ({ state: 'unsubscribed', unsubscribed_at: NOW - daysAgo * DAY }) as const
const refused = {
  ...problem('parked', 'the message was refused', DAY),
  first_attempt_at: NOW - 2 * DAY,
}

/** Every state that a row could be in. */
const ROWS: Readonly<Record<string, OldRow>> = {
  pending: { state: 'unconfirmed' },
  'refused-a-confirmation': { state: 'unconfirmed' },
  fresh: inCourse(0, 0),
  middle: inCourse(3, 3),
  early: inCourse(0.5, 1),
  behind: inCourse(6, 1),
  again: inCourse(1, 1, { enrolment: 3, fence: 40 }),
  last: inCourse(6, 6),
  completed: inCourse(20, 7),
  failing: inCourse(2, 2, { ...busy, failures: 2, next_attempt_at: NOW - 1000 }),
  waiting: inCourse(2, 2, { ...busy, failures: 3, next_attempt_at: NOW + 2 * HOUR }),
  claimed: inCourse(1, 1, { ...dead, lease_until: 1 }),
  'claimed-without-lease': inCourse(1, 1, dead),
  unknown: inCourse(4, 4, { ...broken(HOUR), failures: 1, next_attempt_at: NOW - 1 }),
  'unknown-for-days': without(inCourse(4, 1, { ...broken(3 * DAY), failures: 3 })),
  parked: without(inCourse(4, 2, { ...refused, failures: 12 })),
  unsubscribed: without(inCourse(4, 2, left(2))),
  bounced: without(inCourse(4, 1, { ...left(3), ...problem('bounced', 'no such user', 3 * DAY) })),
  suppressed: without(inCourse(4, 1, { ...left(3), ...problem('suppressed', 'reported as spam', 3 * DAY) })),
}

/** The lessons that readers are to get at once. */
const DUE = {
  fresh: 1,
  middle: 4,
  behind: 2,
  again: 2,
  last: 7,
  failing: 3,
  claimed: 2,
  'claimed-without-lease': 2,
  unknown: 5,
}

const addressOf = (name: string) => `${name}@example.com`
const literal = (value: string | number) =>
  typeof value === 'number' ? String(Math.round(value)) : `'${value.replaceAll("'", "''")}'`

type Insert = (table: string, row: Readonly<Record<string, string | number>>) => string

/** The statements that fill a store of that time. */
function filling(insert: Insert): readonly string[] {
  return [
    ...Object.entries(ROWS).map(([name, row]) =>
      insert('subscription', {
        id: `id-${name}`,
        identity: addressOf(name),
        address: addressOf(name),
        mailbox_key: addressOf(name),
        created_at: NOW - 30 * DAY,
        ...row,
      }),
    ),
    ...[
      [TOKEN, 'id-pending'],
      ['a token that could not be mailed', 'id-refused-a-confirmation'],
    ].map(([token = '', subscription = '']) =>
      insert('confirmation', { token_hash: hashToken(token), subscription, created_at: NOW - HOUR }),
    ),
    insert('subscription_event', {
      subscription: 'id-refused-a-confirmation',
      at: NOW - HOUR,
      kind: 'confirmation',
      enrolment: 0,
      day: 0,
      outcome: 'transient',
    }),
    insert('subscription_event', {
      subscription: 'id-middle',
      at: NOW - 3 * DAY,
      kind: 'confirmed',
      enrolment: 1,
      day: 0,
    }),
    ...[
      ['bounced', 'hard-bounce', 'send'],
      ['suppressed', 'complaint', 'ses'],
    ].map(([name = '', cause = '', source = '']) =>
      insert('mailbox', { identity: addressOf(name), cause, suppressed_at: NOW - 3 * DAY, source }),
    ),
  ]
}

/** A store as the build before a step of the schema left it: the last before there were courses, unless another is named. */
async function oldStore(kind: 'sqlite' | 'postgres', step = 'ADD COLUMN course ', fill = filling) {
  const before = (steps: readonly string[]) =>
    steps.slice(
      0,
      steps.findIndex((sql) => sql.includes(step)),
    )
  const filled = (prefix = '') =>
    fill(
      (table, row) =>
        `INSERT INTO ${prefix}${table} (${Object.keys(row).join(', ')}) VALUES (${Object.values(row).map(literal).join(', ')});`,
    ).join('\n')
  if (kind === 'sqlite') {
    const file = path.join(await emptyFolder(), 'platform.sqlite')
    const database = connect({ file })
    await migrateFile(database, file, before(SQLITE_STEPS))
    database.exec(filled())
    database.close()
    return { url: `file:${file}`, address: { kind, file } as const }
  }
  const { url, address } = await newDatabase()
  const pool = createPool({ url: address.url, size: 1 })
  await migratePostgres(pool, before(POSTGRES_STEPS))
  await pool.query(filled('platformctl.'))
  await pool.end()
  return { url, address }
}

/** This build on a store of that time; it hears of each message before it counts as sent. */
const openOn = (url: string, hear: (message: Message) => void, now = () => NOW) =>
  openLearning({
    env: { EMAIL_LINK_SECRET: LINK_SECRET, STORE_URL: url },
    clock: { ...systemClock, now },
    mailer: testTransport(async (message) => {
      hear(message)
      return { kind: 'sent', id: message.key }
    }),
  })

describe.each(['sqlite', 'postgres'] as const)('on %s', (kind) => {
  test('every row of the build before courses goes on as an enrolment of the default course, and gets exactly what is due', async () => {
    const { url } = await oldStore(kind)
    let now = NOW
    const sent: { readonly who: string; readonly lesson: number; readonly messageId: string }[] = []
    const hear = ({ to, key, messageId }: Message) => {
      const lesson = Number(/^course-day-(\d)\./.exec(key)?.[1])
      if (lesson) sent.push({ who: to.address.split('@')[0] ?? '', lesson, messageId })
    }
    const opened = openOn(url, hear, () => now)
    const course = await opened.course()
    for (const [name, row] of Object.entries(ROWS))
      expect(await course.find(addressOf(name)), name).toMatchObject({
        id: `id-${name}`,
        course: 'quantum',
        state: row.state,
        enrolment: row.enrolment ?? 0,
        lessons: 7,
        sentDays: JSON.parse(row.sent_days ?? '[]'),
        nextAttemptAt: row.next_attempt_at,
      })
    // An import asks for a proof of consent, so an export has one of everybody.
    for await (const page of course.people())
      for (const { address, state, consentAt, consentHow = '' } of page)
        if (state !== 'unconfirmed')
          expect([consentAt, consentHow], address).toEqual([
            expect.any(String),
            expect.stringMatching(/link/),
          ])
    const due = Object.entries(DUE).map(([who, lesson]) => ({ who, lesson }))
    const [unknown] = await course.findPerson(addressOf('unknown'))
    const messageId = unknown && (await course.messageIdOf(unknown))
    const dispatch = async () => {
      sent.length = 0
      await opened.dispatch({ limit: 1000 })
      return sent
        .map(({ who, lesson }) => ({ who, lesson }))
        .sort((a, b) => Object.keys(ROWS).indexOf(a.who) - Object.keys(ROWS).indexOf(b.who))
    }
    expect(await dispatch()).toEqual(due)
    // A retry has the key of the attempt before.
    expect(sent.find(({ who }) => who === 'unknown')?.messageId).toBe(messageId)
    expect(await course.history('id-claimed')).toMatchObject([
      { kind: 'attempt', day: 2, outcome: 'unknown' },
      { kind: 'attempt', day: 2, outcome: 'sent' },
    ])
    expect(await course.history('id-middle')).toMatchObject([{ kind: 'confirmed' }, { day: 4 }])

    // The link that the old build mailed, an operator's decisions, and an old link to leave by.
    expect(await course.confirm(TOKEN)).toBe('confirmed')
    expect(await course.resolve('id-unknown-for-days', 'sent')).toBe(true)
    expect(await course.resolve('id-parked', 'retry')).toBe(true)
    const again = { id: 'id-again', enrolment: 2 }
    const { unsubscribeUrl } = unsubscribeBy('https://www.example.com', [secret(LINK_SECRET)], again)
    const link = new URL(unsubscribeUrl).searchParams
    await course.unsubscribe({ s: link.get('s') ?? '', t: link.get('t') ?? '' })
    expect(await dispatch()).toEqual([
      { who: 'pending', lesson: 1 },
      // Days behind: a lesson for each call until it has caught up.
      { who: 'behind', lesson: 3 },
      { who: 'unknown-for-days', lesson: 3 },
      { who: 'parked', lesson: 3 },
    ])
    const all = new Map<string, number[]>()
    for (let hours = 0; hours < 24 * 8; hours += 6) {
      now += 6 * HOUR
      for (const { who, lesson } of await dispatch()) all.set(who, [...(all.get(who) ?? []), lesson])
    }
    expect(Object.fromEntries(all)).toEqual({
      pending: [2, 3, 4, 5, 6, 7],
      fresh: [2, 3, 4, 5, 6, 7],
      middle: [5, 6, 7],
      early: [2, 3, 4, 5, 6, 7],
      behind: [4, 5, 6, 7],
      failing: [4, 5, 6, 7],
      waiting: [3, 4, 5, 6, 7],
      claimed: [3, 4, 5, 6, 7],
      'claimed-without-lease': [3, 4, 5, 6, 7],
      unknown: [6, 7],
      'unknown-for-days': [4, 5, 6, 7],
      parked: [4, 5, 6, 7],
    })
    await opened.close()
  })

  test('a confirmation that the build before would have mailed again is mailed once, with a link that works', async () => {
    const { url } = await oldStore(kind)
    const texts: string[] = []
    const opened = openOn(url, ({ text }) => texts.push(text))
    const course = await opened.course()
    expect([await course.deliverMessages(), await course.deliverMessages()]).toEqual([1, 0])
    const [, token = ''] = /token=([\w-]+)/.exec(texts.join()) ?? []
    expect(await course.confirm(token)).toBe('confirmed')
    expect(await course.find(addressOf('refused-a-confirmation'))).toMatchObject({ state: 'confirmed' })
    await opened.close()
  })
})

/** Subscribers of incidents, each with the notices sent, and three announcements that the build before has published. */
const subscribers: Readonly<Record<string, Readonly<Record<string, string | number>>>> = {
  'up-to-date': { sent_days: '[1,2,3]' },
  behind: { sent_days: '[1]', next_attempt_at: NOW - HOUR },
  failing: {
    ...{ sent_days: '[1]', next_attempt_at: NOW - 1, first_attempt_at: NOW - HOUR, failures: 2 },
    ...{ problem_kind: 'failed', problem_reason: 'busy', problem_since: NOW - HOUR },
  },
  claimed: {
    ...{ sent_days: '[1]', next_attempt_at: NOW - HOUR, first_attempt_at: NOW - HOUR, lease_until: 1 },
    ...{ claimed_by: 'a call that died', claimed_at: NOW - HOUR },
  },
  parked: {
    sent_days: '[1]',
    ...{ problem_kind: 'parked', problem_reason: 'refused', problem_since: NOW - HOUR },
  },
  late: { course_version: '2', next_attempt_at: NOW - HOUR },
  damaged: { course_version: '', sent_days: '[]' },
  left: { state: 'unsubscribed', unsubscribed_at: NOW - HOUR },
}

describe.each(['sqlite', 'postgres'] as const)('on %s', (kind) => {
  test('notices that the build before had not sent, or had in hand, are mailed once, under the keys that it gave them', async () => {
    const { url } = await oldStore(kind, 'notice ADD COLUMN queued', (insert) => [
      ...Object.entries(subscribers).map(([name, row]) =>
        insert('subscription', {
          ...{ id: `id-${name}`, identity: `${addressOf(name)} status`, person: addressOf(name) },
          ...{
            address: addressOf(name),
            course: 'status',
            course_version: '0',
            lessons: 3,
            state: 'confirmed',
          },
          ...{ enrolment: 1, created_at: NOW - 9 * DAY, confirmed_at: NOW - 9 * DAY, ...row },
        }),
      ),
      ...[1, 2, 3].flatMap((seq) => [
        insert('announcement', { id: `a${seq}`, text: `News ${seq}`, from_at: NOW - DAY, who: 'ops' }),
        insert('notice', {
          ...{ seq, subject: `a${seq}`, kind: 'announced', at: NOW - DAY },
          facts: `{"from":${NOW - DAY},"text":"News ${seq}"}`,
        }),
      ]),
    ])
    const mailed: string[] = []
    const keys = new Map<string, string>()
    const opened = openOn(url, ({ key, to, subject }) => {
      const said = `${to.address.split('@')[0]} ${/News \d/.exec(subject)?.[0]}`
      mailed.push(said)
      keys.set(said, key)
    })
    const course = await opened.course()
    expect([await course.deliverMessages(), await course.deliverMessages()]).toEqual([8, 0])
    expect(mailed.toSorted()).toEqual([
      ...['behind', 'claimed', 'failing'].flatMap((name) => [`${name} News 2`, `${name} News 3`]),
      ...['late News 3', 'parked News 3'],
    ])
    expect(keys.get('claimed News 2')).toMatch(/^status-2\./)
    expect(keys.get('claimed News 3')).toMatch(/^status-notice\./)
    expect(await course.dispatch({ limit: 100 })).toMatchObject({ processed: 0, remaining: 0 })
    await opened.close()
  })
})

/** The lessons that one dispatch call of this build sends from a store. */
async function sentFrom(url: string): Promise<readonly string[]> {
  const sent: string[] = []
  const opened = openOn(url, ({ to, key }) => {
    const [, lesson] = /^course-day-(\d)\./.exec(key) ?? []
    if (lesson) sent.push(`${to.address.split('@')[0]} ${lesson}`)
  })
  await opened.dispatch({ limit: 1000 })
  await opened.close()
  return sent.sort()
}
const dueTo = (due: Readonly<Record<string, number>>) =>
  Object.entries(due)
    .map(([who, lesson]) => `${who} ${lesson}`)
    .sort()

test('a store of the build before courses is copied into PostgreSQL with everything, and each reader gets there what is due', async () => {
  const { address } = await oldStore('sqlite')
  const { url, address: to } = await newDatabase()
  expect((await copyStore(address, to, NOW)).counts).toMatchObject({
    subscription: Object.keys(ROWS).length,
    confirmation: 2,
    message: 1,
    mailbox: 2,
  })
  expect(await compareStores(address, to)).toEqual([])
  expect(await sentFrom(url)).toEqual(dueTo(DUE))
})

test('a backup of the build before courses is restored as a store of this build, and keeps out those who left since', async () => {
  const { url } = await oldStore('sqlite')
  const from = url.replace('file:', '')
  const to = path.join(await emptyFolder(), 'platform.sqlite')
  const restore = () => restoreStore({ kind: 'sqlite', file: to }, { from, force: false, now: NOW })
  await expect(restore()).rejects.toThrow(/there is no .*platform-journal\.jsonl: people who unsubscribed/)
  // As that build wrote it.
  const left = { what: 'unsubscribed', at: NOW, id: 'id-fresh', enrolment: 1 }
  await writeFile(to.replace('.sqlite', '-journal.jsonl'), `\n${JSON.stringify(left)}\n`)
  expect(await restore()).toMatchObject({
    version: SQLITE_STEPS.length,
    replayed: { unsubscribed: 1 },
    uncoveredSince: undefined,
  })
  const { fresh: _, ...others } = DUE
  expect(await sentFrom(`file:${to}`)).toEqual(dueTo(others))
})

test.each<[string, (from: StoreAddress) => Promise<string | undefined>]>([
  ['after-restore', async (from) => void (await afterRestore(from, { now: NOW, withoutJournal: true }))],
  [
    'a copy into a file',
    async (from) => {
      const file = path.join(await emptyFolder(), 'platform.sqlite')
      await copyStore(from, { kind: 'sqlite', file }, NOW)
      return `file:${file}`
    },
  ],
])(
  'a database of the build before courses is brought up to date by %s, and each reader gets what is due',
  async (_, work) => {
    const { address, url } = await oldStore('postgres')
    expect(await sentFrom((await work(address)) ?? url)).toEqual(dueTo(DUE))
  },
)
