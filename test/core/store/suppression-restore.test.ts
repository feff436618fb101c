import { rmSync } from 'node:fs'
import { copyFile, mkdir, readFile } from 'node:fs/promises'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { suppressionHash } from '../../../src/core/course/links.ts'
import { DAY_MS, HOUR_MS } from '../../../src/core/durations.ts'
import { applyFeedback } from '../../../src/core/mail/feedback/store.ts'
import type { StreamName } from '../../../src/core/mail/holds.ts'
import { journalFile } from '../../../src/core/store/journal.ts'
import type { Store } from '../../../src/core/store/store.ts'
import { eventOf, hear } from '../../support/feedback.ts'
import {
  channelOf,
  closeIncident,
  hostAt,
  incidentWith,
  openIncident,
  tellDue,
} from '../../support/incidents.ts'
import { begin, nextAfter } from '../../support/learning.ts'
import { KEY, NOW, storeWith } from '../../support/restoring.ts'
import { asked, audited, subscribe } from '../../support/subscribers.ts'

type It = Awaited<ReturnType<typeof storeWith>>

const report = ({ store }: It, name: string, now: number, kind: 'hard-bounce' | 'complaint') =>
  applyFeedback({
    feedback: {
      events: [
        {
          id: `${kind}-of-${name}`,
          kind,
          address: `${name}@example.com`,
          messageId: undefined,
          at: now,
          reason: 'the address does not exist (5.1.1)',
        },
      ],
      ignored: 0,
    },
    source: 'postmark',
    store: store.feedback,
    sending: store.sending,
    erasureHashes: (identity) => [suppressionHash(KEY, identity)],
    now,
  })

const bounce = (it: It, name: string, now: number) => report(it, name, now, 'hard-bounce')

test('nothing that waits in a replaced store goes to somebody whose erasure only its journal knows', async () => {
  const it = await storeWith('ada')
  await it.backup()
  const database = new Database(it.file)
  const columns = 'id, stream, key, address, payload, created_at, expires_at, next_attempt_at'
  const queue = database.prepare(`INSERT INTO message (${columns}) VALUES (?, 'mail', ?, ?, '{}', ?, ?, ?)`)
  for (const name of ['ada', 'bob']) queue.run(name, name, `${name}@example.com`, NOW, NOW + DAY_MS, NOW)
  await database.backup(it.at('older.sqlite'))
  database.close()
  await it.erase('ada')
  await it.store.close()
  await copyFile(it.at('older.sqlite'), it.file)
  await it.restore()
  const restored = new Database(it.file, { readonly: true })
  expect(restored.prepare('SELECT id FROM message').pluck().all()).toEqual(['bob'])
  restored.close()
})

test('a restore of an older backup forgets no suppression and no removal, and doing it twice changes nothing more', async () => {
  const it = await storeWith('ada', 'grace')
  const { store } = it
  for (const name of ['mary', 'erin', 'rose', 'gone', 'angry']) await it.suppress(name, NOW)
  await report(it, 'worse', NOW, 'complaint')
  await it.backup()

  await bounce(it, 'ada', NOW + 1)
  // The backup knows these by a cause that stops less mail.
  for (const name of ['gone', 'worse']) await bounce(it, name, NOW + 4)
  await report(it, 'angry', NOW + 4, 'complaint')
  // The backup knows neither: one comes from an old provider's list, one went off the list again.
  await it.suppress('imported', NOW + 1)
  await it.suppress('passing', NOW + 1)
  await it.release('passing', NOW + 2)
  await it.release('mary', NOW + 2)
  await it.release('rose', NOW + 2)
  await it.suppress('rose', NOW + 3)
  await it.erase('erin', { now: NOW + 3 })
  const before = await store.feedback.listSuppressed(100)
  const ended = await store.course.findById('ada')
  await store.close()

  // A restore keeps the replaced file under the second at which it was replaced.
  for (const now of [NOW + 1000, NOW + 2000]) {
    const { replayed } = await it.restore({ now })
    expect(replayed).toEqual({
      // With that of somebody erased, under her hash.
      suppressed: 6,
      released: 1,
      unsubscribed: 0,
      undone: 0,
      erased: 1,
      paused: 0,
      resumed: 0,
    })
    const again = await it.open()
    const listed = await again.feedback.listSuppressed(100)
    expect(listed.map(({ identity, cause }) => [identity, cause])).toEqual([
      ['rose@example.com', 'manual'],
      ['ada@example.com', 'hard-bounce'],
      ['imported@example.com', 'manual'],
      ['angry@example.com', 'complaint'],
      ['gone@example.com', 'hard-bounce'],
      ['worse@example.com', 'hard-bounce'],
    ])
    // But for the time of one that was on the list before, they are as they were.
    const others = ({ identity }: { identity: string }) => identity !== 'rose@example.com'
    expect(listed.filter(others)).toEqual(before.filter(others))
    expect(await again.course.findById('ada')).toEqual({ ...ended, fence: expect.any(Number) })
    expect((await again.course.findById('grace'))?.state).toBe('confirmed')
    await again.close()
  }
})

test('a restore of any backup keeps what an operator decided about a bounce', async () => {
  const it = await storeWith('ada')
  const { store } = it
  await it.backup('before.sqlite')
  await bounce(it, 'ada', NOW + 1)
  await it.backup('bounced.sqlite')
  expect(await store.course.resolve({ id: 'ada', as: 'retry', now: NOW + 2, next: nextAfter })).toBe(true)
  await it.backup('decided.sqlite')
  await store.close()
  for (const [index, from] of ['before', 'bounced', 'decided'].entries()) {
    await it.restore({ from: it.at(`${from}.sqlite`), now: NOW + 1000 * (index + 1) })
    const again = await it.open()
    expect(await again.feedback.listSuppressed(9)).toEqual([])
    const found = await again.course.findById('ada')
    expect(found).toMatchObject({ state: 'confirmed', problem: undefined, nextAttemptAt: expect.any(Number) })
    await again.close()
  }
})

test.each(['from its journal', 'from its rows'])(
  'whom a bounce ended that was reported late, a restore %s ends again, and an operator may still retry',
  async (from) => {
    const it = await storeWith('ada', 'mia')
    await it.backup()
    await hear(it.store, [eventOf('hard-bounce', NOW - 4000)], { now: NOW + 1000 })
    // Who left as well stays out.
    for (const kind of ['hard-bounce', 'unsubscribed'] as const)
      await hear(it.store, [eventOf(kind, NOW - 4000, { name: 'mia' })], { now: NOW + 1000 })
    await it.store.close()
    if (from === 'from its rows') rmSync(it.journal)
    await it.restore({ withoutJournal: true })
    const { course } = await it.open()
    const resolved = { as: 'retry', now: NOW + DAY_MS, next: nextAfter } as const
    for (const id of ['ada', 'mia']) {
      expect(await course.findById(id)).toMatchObject({ state: 'unsubscribed', problem: { kind: 'bounced' } })
      expect(await course.resolve({ id, ...resolved })).toBe(id === 'ada')
    }
  },
)

test.each([
  ['both', 'journal', false],
  ['both', 'rows', false],
  ['the complaint', 'journal', false],
  ['the complaint', 'rows', false],
  ['the complaint', 'journal', true],
  ['the complaint', 'rows', true],
] as const)(
  'no operator retries who complained after a bounce, also after a restore from before %s by its %s (bounced again: %s)',
  async (since, by, again) => {
    const it = await storeWith('ada')
    const happens = (kind: 'hard-bounce' | 'complaint', now: number) =>
      hear(it.store, [eventOf(kind, now - 5000)], { now })
    if (since === 'both') await it.backup()
    await happens('hard-bounce', NOW + 1000)
    if (since !== 'both') await it.backup()
    await happens('complaint', NOW + 2000)
    if (again) await happens('hard-bounce', NOW + 3000)
    const retry = { id: 'ada', as: 'retry', now: NOW + DAY_MS, next: nextAfter } as const
    expect(await it.store.course.resolve(retry)).toBe(false)
    await it.store.close()
    if (by === 'rows') rmSync(it.journal)
    await it.restore({ withoutJournal: true })
    const { course } = await it.open()
    expect(await course.resolve(retry)).toBe(false)
  },
)

test.each(
  ['never there', 'asked', 'left before', 'left before any', 'anew since'].flatMap((then) =>
    ['the link', 'their provider'].map((by) => [then, by]),
  ),
)(
  'who left while a restore had lost what they began (%s) by %s is out when a newer backup is restored, from its journal or its rows, until they undo it',
  async (then, by) => {
    const it = await storeWith('mia')
    const { course } = it.store
    if (then === 'asked') await course.requestConfirmation(asked('ada', NOW))
    if (then === 'left before') {
      await subscribe(it.store, 'ada', NOW)
      await it.leave('ada')
    }
    if (then === 'left before any') await hear(it.store, [eventOf('unsubscribed', NOW)], { now: NOW })
    await it.backup()
    const began = NOW + 2 * HOUR_MS
    if (then === 'asked') await course.confirm({ begin, tokenHash: `ada.${NOW}`, now: began })
    else await subscribe(it.store, 'ada', began)
    await subscribe(it.store, 'bob', began)
    const { enrolment } = (await course.findById('ada')) ?? {}
    await it.backup('newer.sqlite')
    await it.store.close()
    await it.restore({ now: began + 1000 })
    const store = await it.open()
    const id = then === 'anew since' ? 'anew' : 'ada'
    if (then === 'anew since') await subscribe(store, 'ada', began + 2000, { id })
    const now = began + HOUR_MS
    if (by === 'the link') await store.course.unsubscribe({ id, enrolment, now })
    else await hear(store, [eventOf('unsubscribed', now)], { now })
    await store.close()
    // Without its journal, the replaced store has its rows alone.
    await mkdir(it.at('rows'))
    await copyFile(it.file, it.at('rows/platform.sqlite'))
    for (const where of ['', 'rows/']) {
      const to = `${where}platform.sqlite`
      const restored = async (file: string, later: number) => {
        rmSync(it.at('rows/platform-journal.jsonl'), { force: true })
        const options = { from: it.at(file), now: now + later, withoutJournal: true }
        const { replayed } = await it.restore(options, to)
        const again = await it.open(to)
        const states = ['ada', 'bob', 'mia'].map(async (one) => (await again.course.findById(one))?.state)
        return { again, replayed, states: await Promise.all(states) }
      }
      const { again, replayed, states } = await restored('newer.sqlite', 90_000)
      expect([replayed.unsubscribed > 0, ...states]).toEqual([true, 'unsubscribed', 'confirmed', 'confirmed'])
      await again.course.undoUnsubscribe({ id: 'ada', now: now + 100_000 })
      await it.backup(`${where}undone.sqlite`, it.at(to))
      await again.close()
      expect((await restored(`${where}undone.sqlite`, 200_000)).states[0]).toBe('confirmed')
    }
  },
)

// An hour passes with each step. Ada has confirmed; a link of a later enrolment than she has now was lost by a restore.
test.each([
  [
    'out',
    'left while lost, and the journal was lost',
    'leave, backup a, join, backup b, leave, restore a, lose journal, backup c, restore b',
  ],
  [
    'out',
    'left while lost twice',
    'leave, backup a, join, backup b, restore a, link 2, backup c, join, backup d, restore c, link 2, restore d',
  ],
  ['in', 'undid it while lost', 'backup a, leave, join, backup b, restore a, link 2, undo, restore b'],
  [
    'in',
    'began anew after a restore that ended the earlier',
    'backup a, leave, join, leave, restore a, join, backup b, restore b',
  ],
  ['in', 'began anew after leaving by a clock that was ahead', 'leave 80, join, backup a, restore a'],
  ['out', 'left by a clock that was ahead', 'backup a, leave 80, restore a'],
])('who is %s before restores is after them: %s', async (expected, _, steps) => {
  const it = await storeWith('ada')
  let [store, now] = [it.store, NOW]
  for (const step of steps.split(', ')) {
    const [what, name = ''] = step.split(' ')
    const id = 'ada'
    now += HOUR_MS
    if (what === 'join') await subscribe(store, id, now)
    if (what === 'leave') await store.course.unsubscribe({ id, now: now + Number(name) * HOUR_MS })
    if (what === 'link') await store.course.unsubscribe({ id, enrolment: Number(name), now })
    if (what === 'undo') await store.course.undoUnsubscribe({ id, now })
    if (what === 'backup') await it.backup(name, it.file, now)
    if (what === 'lose') rmSync(it.journal)
    if (what !== 'restore') continue
    await store.close()
    await it.restore({ from: it.at(name), now })
    store = await it.open()
  }
  const state = expected === 'in' ? 'confirmed' : 'unsubscribed'
  expect(await store.course.findById('ada')).toMatchObject({ state })
})

test('an enrolment that took over the id of one that was erased is not erased by a restore', async () => {
  const it = await storeWith('ada')
  await it.backup()
  await it.leave('ada')
  await it.erase('ada', { now: NOW + 2 })
  const eve = 'eve@example.com'
  const request = asked('ada', NOW + 5, { identity: eve, address: eve, mailboxKey: eve, tokenHash: 'of eve' })
  await it.store.course.requestConfirmation(request)
  await it.store.course.confirm({ begin, tokenHash: 'of eve', now: NOW + 5 })
  await it.backup('after.sqlite')
  await it.store.close()
  await it.restore({ from: it.at('after.sqlite') })
  const { course } = await it.open()
  expect(await course.findById('ada')).toMatchObject({ identity: eve, state: 'confirmed' })
})

test('a bounce that is reported late counts after a restore with an older copy of the journal', async () => {
  const it = await storeWith('ada')
  await it.backup()
  await bounce(it, 'ada', NOW + 10)
  const { course } = it.store
  expect(await course.resolve({ id: 'ada', as: 'retry', now: NOW + 2000, next: nextAfter })).toBe(true)
  await copyFile(it.journal, it.at('copy'))
  await hear(it.store, [eventOf('hard-bounce', NOW + 1000)], { now: NOW + 3000 })
  await it.store.close()
  await copyFile(it.at('copy'), it.journal)
  await it.restore()
  const again = await it.open()
  expect(await again.course.findById('ada')).toMatchObject({ state: 'unsubscribed' })
  expect(await again.feedback.listSuppressed(9)).toMatchObject([{ cause: 'hard-bounce' }])
})

test.each(['journal', 'rows'])(
  'a restore of an older backup forgets no pause of mail, by an operator or by complaints, and no end of one, by its %s',
  async (by) => {
    const it = await storeWith()
    const { store } = it
    const pause = (streams: readonly StreamName[], now: number, reason = 'wrong texts') =>
      store.sending.pause({ streams, reason, now, audit: audited('pause', now) })
    await pause(['notice', 'confirmation'], NOW)
    await pause(['sign-in'], NOW, 'emergency stop')
    await it.backup()
    await pause(['mail'], NOW + 2)
    // The stream that the backup knows as paused gets a second reason, and the other one its second too.
    await pause(['confirmation', 'mail'], NOW + 2, 'wrong links')
    await store.sending.resume({
      streams: ['notice', 'sign-in'],
      now: NOW + 3,
      audit: audited('resume', NOW + 3),
    })
    // In place of a pause that ended, whose reason ends alike.
    await pause(['sign-in'], NOW + 3, 'stop')
    await store.sending.count([
      { at: NOW, kind: 'sent', source: 'smtp', domain: 'example.com', count: 1000 },
      { at: NOW, kind: 'complaint', source: 'postmark', domain: 'example.com', count: 9 },
    ])
    expect(await store.sending.check(NOW + 4)).toMatchObject({ at: NOW + 4 })
    const before = await store.sending.holds()
    await store.close()
    rmSync(by === 'rows' ? it.journal : it.file)
    // Twice: a second restore finds in the first one's journal what it did again.
    for (const now of [NOW + 1000, NOW + 2000]) {
      const { replayed } = await it.restore({ now, withoutJournal: true })
      expect(replayed).toMatchObject({ paused: 4, resumed: 1 })
      const again = await it.open()
      expect(await again.sending.holds()).toEqual(before)
      expect(before[1]).toMatchObject({ at: NOW, reason: 'wrong links; wrong texts' })
      expect(before.map(({ stream }) => stream).toSorted()).toEqual([
        'confirmation',
        'course',
        'mail',
        'sign-in',
      ])
      await again.close()
    }
  },
)

test.each(['paused', 'resumed'] as const)(
  'a mail stream that the backup knows as %s is not changed by an older copy of the journal',
  async (now) => {
    const it = await storeWith()
    const { sending } = it.store
    const streams = ['course'] as const
    const pause = (at: number) =>
      sending.pause({ streams, reason: 'wrong texts', now: at, audit: audited('pause', at) })
    const resume = (at: number) => sending.resume({ streams, now: at, audit: audited('resume', at) })
    const steps = now === 'paused' ? [pause, resume, pause] : [pause, resume, pause, resume]
    for (const [step, change] of steps.entries()) {
      if (step === steps.length - 1) await copyFile(it.journal, it.at('copy'))
      await change(NOW + step)
    }
    const before = await sending.holds()
    expect(before).toHaveLength(now === 'paused' ? 1 : 0)
    await it.backup()
    await it.store.close()
    rmSync(it.file)
    await copyFile(it.at('copy'), it.journal)
    const { replayed } = await it.restore({ withoutJournal: true })
    expect(replayed).toMatchObject({ paused: 0, resumed: 0 })
    expect(await (await it.open()).sending.holds()).toEqual(before)
  },
)

test('the reason of a pause is kept without addresses, in the store and in its journal', async () => {
  const it = await storeWith()
  const reason = 'mail to "zed q"@example.com, zed%40example.com and Zed@Example.com was wrong'
  const audit = audited('pause', NOW)
  const pause = { streams: ['mail', 'course'], reason, now: NOW, audit } as const
  const masked = 'mail to [address] [address] and [address] was wrong'
  expect((await it.store.sending.pause(pause)).map((hold) => hold.reason)).toEqual([masked, masked])
  await openIncident(it.store.incidents, incidentWith({ cause: 'mail_paused', openedAt: NOW }))
  await it.store.sending.pause({ ...pause, streams: ['notice'] })
  await it.store.close()
  const journal = await readFile(journalFile(it.file), 'utf8')
  expect(journal).toContain(`"reason":"${masked}"`)
  expect(`${journal}${await readFile(it.file, 'latin1')}`).not.toMatch(/zed/i)
})

test('a restore tells the end of what was told after the backup, and repeats and revives nothing that ended since', async () => {
  const it = await storeWith()
  const { store } = it
  const told: string[] = []
  const channel = channelOf('webhook', async ({ id, kind }) => {
    told.push(kind)
    return { kind: 'sent', id }
  })
  const host = hostAt(() => NOW)
  const tell = ({ incidents }: Store) => tellDue(host, incidents, [channel])
  await store.incidents.silence({ from: NOW - 9, until: NOW + 900, reason: 'deploy', by: 'ci' })
  await store.incidents.announce(
    { id: 'off', text: 'Water is off', from: NOW - 9, until: NOW + 900, by: 'ada' },
    NOW,
  )
  for (const name of ['ada', 'grace', 'joan']) {
    const times = { createdAt: NOW, expiresAt: NOW + 900, leaseMs: 1 }
    const message = { id: name, stream: 'confirmation', key: name, ...times } as const
    await store.course.requestConfirmation(asked(name, NOW, { message }))
  }
  const mail = { now: NOW, recipient: 'r', caps: [], content: 'c' }
  await store.sentMail.begin({ ...mail, key: 'before' })
  await it.backup()
  // A notice waits for somebody whom the backup does not know, and a mail for nobody of a course.
  const times = { createdAt: NOW, expiresAt: NOW + 900, leaseMs: 1 }
  const message = { id: 'late', stream: 'notice', key: 'late', ...times } as const
  await store.course.requestConfirmation(asked('late', NOW, { message }))
  const queued = { stream: 'mail', address: 'ada@example.com', payload: '{}' } as const
  await store.sentMail.begin({ ...mail, key: 'queued', mail: queued })
  await store.sentMail.recordSent({ key: 'before', id: 'later', now: NOW })
  await store.incidents.silence({ from: NOW, until: NOW, reason: 'done', by: 'ci' })
  await store.incidents.withdraw({ id: 'off', now: NOW })
  await store.heartbeats.beat({ name: 'backup', now: NOW + 5, failed: undefined })
  await openIncident(store.incidents, incidentWith({ openedAt: NOW }))
  const update = { id: 'u', subject: 'one', text: 'Seen', state: 'identified', by: 'ada' } as const
  await store.incidents.update({ ...update, at: NOW })
  await tell(store)
  await store.sentMail.begin({ ...mail, key: 'welcome', now: NOW + 5 })
  await store.sentMail.recordSent({ key: 'welcome', id: 'sent', now: NOW + 5 })
  await store.close()
  const left = new Database(it.file)
  left.exec(`DELETE FROM message WHERE id = 'ada'`)
  // More than are copied at once; "welcome" comes after them.
  left.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
    INSERT INTO sent_mail (key, first_attempt_at) SELECT 'many ' || i, ${NOW + 5} FROM n`)
  left.close()
  // A file that is named for its sent records may be older.
  for (const [now, sentFrom] of [[NOW + 1000], [NOW + 2000, it.at('b.sqlite')]] as const) {
    await it.restore({ now, sentFrom })
    const again = await it.open()
    expect(await again.incidents.silenceAt(NOW)).toBeUndefined()
    expect(await again.incidents.announcements(NOW)).toEqual([])
    expect(await again.incidents.updates()).toMatchObject([{ id: 'u', text: 'Seen' }])
    expect(await again.sentMail.begin({ ...mail, key: 'welcome' })).toMatchObject({ sentId: 'sent' })
    expect(await again.sentMail.begin({ ...mail, key: 'before' })).toMatchObject({ sentId: 'later' })
    expect(await again.sentMail.begin({ ...mail, key: 'welcome', content: 'd' })).toBe('conflict')
    expect(await again.heartbeats.expect({ name: 'backup', now })).toMatchObject({ beatAt: NOW + 5 })
    const mails = { now: NOW + 9, limit: 9, leaseMs: 1, stream: 'confirmation' } as const
    const waiting = [mails, { ...mails, stream: 'notice' }, { ...mails, stream: 'mail' }] as const
    const ids = waiting.map(async (of) =>
      (await again.course.claimMessages(of)).map(({ id }) => id).toSorted(),
    )
    expect(await Promise.all(ids)).toEqual([['grace', 'joan'], [], ['queued']])
    await again.close()
  }
  const again = await it.open()
  await closeIncident(again.incidents, 'mail', NOW)
  await tell(again)
  expect(told).toEqual(['opened', 'closed'])
})
