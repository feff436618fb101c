import { readFile } from 'node:fs/promises'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { auditEntry, PROGRAM } from '../../../src/core/audit.ts'
import { suppressionHash } from '../../../src/core/course/links.ts'
import { systemRandom } from '../../../src/core/host.ts'
import { applyFeedback, releaseChange, suppressionChange } from '../../../src/core/mail/feedback/store.ts'
import type { StreamName } from '../../../src/core/mail/holds.ts'
import { openMaintenance, openStore, restoreStore } from '../../../src/core/store/open.ts'
import type { Store } from '../../../src/core/store/store.ts'
import { emptyFolder } from '../../support/folder.ts'
import {
  channelOf,
  closeIncident,
  hostAt,
  incidentWith,
  openIncident,
  tellDue,
} from '../../support/incidents.ts'
import { begin, nextAfter } from '../../support/learning.ts'

const NOW = Date.parse('2026-11-21T08:00:00Z')
const KEY = 'the key under which this store knows addresses'
const erasureHashes = (identity: string) => [suppressionHash(KEY, identity)]
const addressOf = (name: string) => `${name}@example.com`

async function opened(file: string): Promise<Store> {
  const store = await openStore({ kind: 'sqlite', file })
  onTestFinished(() => store.close())
  await store.getOrCreate('address_key', () => KEY)
  return store
}

async function confirmed(store: Store, name: string) {
  const request = { course: 'quantum', identity: addressOf(name), address: addressOf(name) }
  await store.course.requestConfirmation({ ...request, id: `id-${name}`, tokenHash: name, now: NOW })
  await store.course.confirm({ begin, tokenHash: name, now: NOW })
}

const report = (store: Store, name: string, now: number, kind: 'hard-bounce' | 'complaint') =>
  applyFeedback({
    feedback: {
      events: [
        {
          id: `${kind}-of-${name}`,
          kind,
          address: addressOf(name),
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
    erasureHashes,
    now,
  })

const bounce = (store: Store, name: string, now: number) => report(store, name, now, 'hard-bounce')

const add = (store: Store, name: string, now: number) => {
  const suppression = { cause: 'manual', at: now, source: 'operator', reason: 'asked by phone' } as const
  return store.feedback.apply([suppressionChange(addressOf(name), suppression, erasureHashes)], now)
}

const remove = (store: Store, name: string, now: number) =>
  store.feedback.apply(
    [releaseChange(addressOf(name), { at: now, reason: 'a new mailbox', source: 'operator' })],
    now,
  )

const erase = (store: Store, name: string, now: number) =>
  store.course.erase({
    identity: addressOf(name),
    spellings: [addressOf(name)],
    recipients: [],
    suppressionHash: suppressionHash(KEY, addressOf(name)),
    now,
  })

test('a restore of an older backup forgets no suppression and no removal, and doing it twice changes nothing more', async () => {
  const folder = await emptyFolder()
  const file = path.join(folder, 'platform.sqlite')
  const from = path.join(folder, 'backup.sqlite')
  const store = await opened(file)
  for (const name of ['ada', 'grace']) await confirmed(store, name)
  for (const name of ['mary', 'erin', 'rose', 'gone', 'angry']) await add(store, name, NOW)
  await report(store, 'worse', NOW, 'complaint')
  const maintenance = await openMaintenance({ kind: 'sqlite', file })
  await maintenance.backup(from, NOW)
  await maintenance.close()

  await bounce(store, 'ada', NOW + 1)
  // The backup knows these by a cause that stops less mail.
  for (const name of ['gone', 'worse']) await bounce(store, name, NOW + 4)
  await report(store, 'angry', NOW + 4, 'complaint')
  // The backup knows neither: one comes from an old provider's list, one went off the list again.
  await add(store, 'imported', NOW + 1)
  await add(store, 'passing', NOW + 1)
  await remove(store, 'passing', NOW + 2)
  await remove(store, 'mary', NOW + 2)
  await remove(store, 'rose', NOW + 2)
  await add(store, 'rose', NOW + 3)
  await erase(store, 'erin', NOW + 3)
  const before = await store.feedback.listSuppressed(100)
  const ended = await store.course.findById('id-ada')
  await store.close()

  // A restore keeps the replaced file under the second at which it was replaced.
  for (const now of [NOW + 1000, NOW + 2000]) {
    const { replayed } = await restoreStore({ kind: 'sqlite', file }, { from, force: true, now })
    expect(replayed).toEqual({
      suppressed: 5,
      released: 1,
      unsubscribed: 0,
      undone: 0,
      erased: 1,
      paused: 0,
      resumed: 0,
    })
    const again = await opened(file)
    const listed = await again.feedback.listSuppressed(100)
    expect(listed.map(({ identity, cause }) => [identity, cause])).toEqual([
      ['rose@example.com', 'manual'],
      ['ada@example.com', 'hard-bounce'],
      ['imported@example.com', 'manual'],
      ['angry@example.com', 'complaint'],
      ['gone@example.com', 'hard-bounce'],
      ['worse@example.com', 'hard-bounce'],
    ])
    expect(new Set(listed.map(({ identity }) => identity))).toEqual(
      new Set(before.map(({ identity }) => identity)),
    )
    expect(await again.course.findById('id-ada')).toEqual({ ...ended, fence: expect.any(Number) })
    expect((await again.course.findById('id-grace'))?.state).toBe('confirmed')
    await again.close()
  }
})

test('a restore of any backup keeps what an operator decided about a bounce', async () => {
  const folder = await emptyFolder()
  const file = path.join(folder, 'platform.sqlite')
  const store = await opened(file)
  const backups: string[] = []
  const backup = async () => {
    const maintenance = await openMaintenance({ kind: 'sqlite', file })
    backups.push(path.join(folder, `backup-${backups.length}.sqlite`))
    await maintenance.backup(backups.at(-1) ?? '', NOW)
    await maintenance.close()
  }
  await confirmed(store, 'ada')
  await backup()
  await bounce(store, 'ada', NOW + 1)
  await backup()
  expect(await store.course.resolve({ id: 'id-ada', as: 'retry', now: NOW + 2, next: nextAfter })).toBe(true)
  await backup()
  await store.close()
  for (const [index, from] of backups.entries()) {
    await restoreStore({ kind: 'sqlite', file }, { from, force: true, now: NOW + 1000 * (index + 1) })
    const again = await opened(file)
    expect(await again.feedback.listSuppressed(9)).toEqual([])
    const found = await again.course.findById('id-ada')
    expect(found).toMatchObject({ state: 'confirmed', problem: undefined, nextAttemptAt: expect.any(Number) })
    await again.close()
  }
})

test('a restore of an older backup forgets no pause of mail, by an operator or by complaints, and no end of one', async () => {
  const folder = await emptyFolder()
  const file = path.join(folder, 'platform.sqlite')
  const from = path.join(folder, 'backup.sqlite')
  const store = await opened(file)
  const audit = (action: 'pause' | 'resume', now: number) =>
    auditEntry({ action, operator: PROGRAM, now, random: systemRandom })
  const pause = (streams: readonly StreamName[], now: number) =>
    store.sending.pause({ streams, reason: 'wrong texts', now, audit: audit('pause', now) })
  await pause(['notice', 'confirmation'], NOW)
  const maintenance = await openMaintenance({ kind: 'sqlite', file })
  await maintenance.backup(from, NOW + 1)
  await maintenance.close()
  await pause(['mail'], NOW + 2)
  await store.sending.resume({ streams: ['notice'], now: NOW + 3, audit: audit('resume', NOW + 3) })
  await store.sending.count([
    { at: NOW, kind: 'sent', source: 'smtp', domain: 'example.com', count: 1000 },
    { at: NOW, kind: 'complaint', source: 'postmark', domain: 'example.com', count: 9 },
  ])
  expect(await store.sending.check(NOW + 4)).toMatchObject({ at: NOW + 4 })
  const before = await store.sending.holds()
  await store.close()
  // Twice: a second restore finds in the first one's journal what it did again.
  for (const now of [NOW + 1000, NOW + 2000]) {
    const { replayed } = await restoreStore({ kind: 'sqlite', file }, { from, force: true, now })
    expect(replayed).toMatchObject({ paused: 2, resumed: 1 })
    const again = await opened(file)
    expect(await again.sending.holds()).toEqual(before)
    expect(before.map(({ stream }) => stream).toSorted()).toEqual(['confirmation', 'course', 'mail'])
    await again.close()
  }
})

test('a restore tells the end of what was told after the backup, and repeats and revives nothing that ended since', async () => {
  const folder = await emptyFolder()
  const file = path.join(folder, 'platform.sqlite')
  const from = path.join(folder, 'backup.sqlite')
  const store = await opened(file)
  const told: string[] = []
  const channel = channelOf('webhook', async ({ id, kind }) => {
    told.push(kind)
    return { kind: 'sent', id }
  })
  const tell = ({ incidents }: Store) =>
    tellDue(
      hostAt(() => NOW),
      incidents,
      [channel],
    )
  await store.incidents.silence({ from: NOW - 9, until: NOW + 900, reason: 'deploy', by: 'ci' })
  await store.incidents.announce(
    { id: 'off', text: 'Water is off', from: NOW - 9, until: NOW + 900, by: 'ada' },
    NOW,
  )
  for (const name of ['ada', 'grace', 'joan']) {
    const request = { course: 'quantum', identity: addressOf(name), address: addressOf(name) }
    const message = {
      id: name,
      stream: 'confirmation',
      key: name,
      createdAt: NOW,
      expiresAt: NOW + 900,
      leaseMs: 1,
    } as const
    await store.course.requestConfirmation({
      ...request,
      id: `id-${name}`,
      tokenHash: name,
      now: NOW,
      message,
    })
  }
  const mail = { now: NOW, recipient: 'r', caps: [], content: 'c' }
  await store.sentMail.begin({ ...mail, key: 'before' })
  const maintenance = await openMaintenance({ kind: 'sqlite', file })
  await maintenance.backup(from, NOW + 1)
  await maintenance.close()
  await store.sentMail.recordSent({ key: 'before', id: 'later', now: NOW })
  await store.incidents.silence({ from: NOW, until: NOW, reason: 'done', by: 'ci' })
  await store.incidents.withdraw({ id: 'off', now: NOW })
  await store.heartbeats.beat({ name: 'backup', now: NOW + 5, failed: undefined })
  await openIncident(store.incidents, incidentWith({ openedAt: NOW }))
  await tell(store)
  await store.sentMail.begin({ ...mail, key: 'welcome', now: NOW + 5 })
  await store.sentMail.recordSent({ key: 'welcome', id: 'sent', now: NOW + 5 })
  await store.close()
  const left = new Database(file)
  left.exec(`DELETE FROM message WHERE id = 'ada'`)
  left.close()
  // A file that is named for its sent records may be older.
  for (const [now, sentFrom] of [[NOW + 1000], [NOW + 2000, from]] as const) {
    await restoreStore({ kind: 'sqlite', file }, { from, force: true, now, sentFrom })
    const again = await opened(file)
    expect(await again.incidents.silenceAt(NOW)).toBeUndefined()
    expect(await again.incidents.announcements(NOW)).toEqual([])
    expect(await again.sentMail.begin({ ...mail, key: 'welcome' })).toMatchObject({ sentId: 'sent' })
    expect(await again.sentMail.begin({ ...mail, key: 'before' })).toMatchObject({ sentId: 'later' })
    expect(await again.sentMail.begin({ ...mail, key: 'welcome', content: 'd' })).toBe('conflict')
    expect(await again.heartbeats.expect({ name: 'backup', now })).toMatchObject({ beatAt: NOW + 5 })
    const mails = { now: NOW + 9, limit: 9, leaseMs: 1, stream: 'confirmation' } as const
    expect((await again.course.claimMessages(mails)).map(({ id }) => id).toSorted()).toEqual([
      'grace',
      'joan',
    ])
    await again.close()
  }
  const again = await opened(file)
  await closeIncident(again.incidents, 'mail', NOW)
  await tell(again)
  expect(told).toEqual(['opened', 'closed'])
})

test('an erasure takes an address out of the journal, and every other line stays', async () => {
  const folder = await emptyFolder()
  const file = path.join(folder, 'platform.sqlite')
  const journal = () => readFile(path.join(folder, 'platform-journal.jsonl'), 'utf8')
  const store = await opened(file)
  await confirmed(store, 'ada')
  await bounce(store, 'ada', NOW)
  await add(store, 'grace', NOW)
  expect(await journal()).toContain('ada@example.com')
  await erase(store, 'ada', NOW + 1)
  const text = await journal()
  expect(text).not.toContain('ada@')
  const whats = text.split('\n').flatMap((line) => (line ? [JSON.parse(line).what] : []))
  expect(whats).toEqual(['unsubscribed', 'suppressed', 'erased'])
})
