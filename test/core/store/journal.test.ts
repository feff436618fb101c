import { chownSync, copyFileSync, readdirSync, readlinkSync, statSync, symlinkSync } from 'node:fs'
import { appendFile, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises'
import path from 'node:path'
import Database from 'better-sqlite3'
import { execa } from 'execa'
import { expect, onTestFinished, test, vi } from 'vitest'
import { suppressionHash } from '../../../src/core/course/links.ts'
import { DAY_MS, HOUR_MS } from '../../../src/core/durations.ts'
import { storeState } from '../../../src/core/health/engine-probes.ts'
import { attempt } from '../../../src/core/is-record.ts'
import { recipientHashes } from '../../../src/core/mail/send-once.ts'
import { entryOf } from '../../../src/core/store/journal.ts'
import { openMaintenance, openStore, readSchema } from '../../../src/core/store/open.ts'
import type { Store } from '../../../src/core/store/store.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { eventOf, hear } from '../../support/feedback.ts'
import { emptyFolder } from '../../support/folder.ts'
import { command } from '../../support/in-process.ts'
import { begin, nextAfter } from '../../support/learning.ts'
import { KEY, NOW, storeWith } from '../../support/restoring.ts'
import { isErased } from '../../support/stores.ts'
import { asked, erasureOf, outcomeOf, subscribe } from '../../support/subscribers.ts'

const three = () => storeWith('ada', 'grace', 'joan')
test('an erasure that writes what the journal was owed leaves no address of it there', async () => {
  const it = await storeWith('ada', 'joan')
  await it.leave('ada')
  await it.withoutJournal(() => it.suppress('joan'))
  expect(await it.erase('joan')).toMatchObject({ bytesGone: true })
  expect(await it.journalText()).not.toContain('joan@')
})

/** What looks at the health of a store has it write what its journal is owed. */
async function caughtUp(it: { readonly open: () => Promise<Store> }) {
  const store = await it.open()
  await store.ping()
  await store.close()
}
/** A new place without a store and a journal. */
const ELSEWHERE = 'new/platform.sqlite'

test('a restore elsewhere needs the journal of the replaced store, and names the time that is not covered without it', async () => {
  const it = await three()
  await it.backup()
  await it.leave('ada')
  await it.erase('joan')
  await it.store.close()
  await expect(it.restore({}, ELSEWHERE)).rejects.toThrow(
    /was made at 2026-11-21T00:00:00\.000Z, and there is no .*new\/platform-journal\.jsonl: .* would be mailed again/,
  )
  // Without the replaced store nobody knows what a copy of the journal misses.
  expect(await it.restore({ journal: it.journal }, ELSEWHERE)).toMatchObject({
    replayed: { unsubscribed: 1, erased: 1 },
    coveredTo: NOW + 1,
  })
  expect(await it.states(ELSEWHERE)).toEqual(['unsubscribed', 'confirmed', undefined])
  // The journal moved with it: the next restore there needs no other.
  expect(await it.restore({ now: NOW + 5000 }, ELSEWHERE)).toMatchObject({
    replayed: { erased: 1, unsubscribed: 1 },
    uncoveredSince: undefined,
    coveredTo: undefined,
  })
  expect(await it.restore({ withoutJournal: true }, 'lost/platform.sqlite')).toMatchObject({
    uncoveredSince: NOW,
  })
  expect(await it.states('lost/platform.sqlite')).toEqual(['confirmed', 'confirmed', 'confirmed'])
  // The journal that begins there does not cover the time before.
  const lost = await openStore({ kind: 'sqlite', file: it.at('lost/platform.sqlite') })
  await lost.course.unsubscribe({ id: 'grace', now: NOW + 10 })
  await lost.close()
  await it.backup('later.sqlite', it.at('lost/platform.sqlite'))
  await expect(it.restore({ now: NOW + 5000 }, 'lost/platform.sqlite')).rejects.toThrow(
    /is not the journal of its store/,
  )
  // Without any journal, the replaced store still names those who left it.
  await rm(it.at('lost/platform-journal.jsonl'))
  expect(await it.restore({ now: NOW + 5000, withoutJournal: true }, 'lost/platform.sqlite')).toMatchObject({
    replayed: { unsubscribed: 1 },
    uncoveredSince: NOW,
  })
  expect(await it.states('lost/platform.sqlite')).toEqual(['confirmed', 'unsubscribed', 'confirmed'])
})

test('a restore does again what happened after the backup, in its place or elsewhere: unsubscribes, undone ones and erasures', async () => {
  const it = await storeWith('ada', 'grace', 'joan', 'mary')
  await subscribe(it.store, 'joan', NOW, { course: 'pottery', id: 'joan-2', tokenHash: 'joan-2' })
  await it.leave('mary', NOW)
  await it.backup()
  for (const name of ['ada', 'grace']) await it.leave(name)
  for (const name of ['grace', 'mary']) await it.undo(name)
  await it.erase('joan')
  await it.store.close()
  for (const to of [ELSEWHERE, 'platform.sqlite']) {
    const { replayed } = await it.restore({ journal: it.journal }, to)
    expect(replayed).toMatchObject({ unsubscribed: 1, undone: 1, erased: 1 })
    expect(await it.states(to)).toEqual(['unsubscribed', 'confirmed', undefined, 'confirmed'])
  }
  const again = await it.open()
  expect(await isErased(again, suppressionHash(KEY, 'joan@example.com'))).toBe(true)
  for (const id of ['joan', 'joan-2']) expect(await again.course.findById(id)).toBeUndefined()
})

test('a restore that a command overtakes is refused, and what the command did is not lost', async () => {
  const it = await three()
  await it.backup()
  await it.leave('ada')
  await it.store.close()
  // Comes and goes after the restore has read the store, and before it has every lock.
  const overtaking = vi.fn(() => {
    const store = new Database(it.file)
    const left = `state = 'unsubscribed', unsubscribed_at = ${NOW + 2}, next_attempt_at = NULL`
    store.exec(`UPDATE subscription SET ${left} WHERE id = 'grace'`)
    store.close()
  })
  const audit = {
    id: 'x',
    at: NOW,
    action: 'restore',
    who: 'ada',
    place: 'here',
    subject: undefined,
  } as const
  const overtaken = {
    ...audit,
    get details() {
      if (overtaking.mock.calls.length === 0) overtaking()
      return 'b.sqlite'
    },
  }
  await expect(it.restore({ audit: overtaken })).rejects.toThrow(
    /^another process changed .*platform\.sqlite meanwhile, .*: stop it, and try again; nothing was changed\.$/,
  )
  expect(await it.states()).toEqual(['unsubscribed', 'unsubscribed', 'confirmed'])
  expect(await it.restore({ audit: { ...audit, details: 'b.sqlite' } })).toMatchObject({
    replayed: { unsubscribed: 2 },
  })
  expect(await it.states()).toEqual(['unsubscribed', 'unsubscribed', 'confirmed'])
})

// Which files another process has open, only Linux says to everybody.
test.runIf(process.platform === 'linux')(
  'a command that waits while a restore swaps the files writes into the restored store',
  async () => {
    const it = await three()
    await it.store.close()
    copyFileSync(it.file, it.at('restored.sqlite'))
    const held = new Database(it.file)
    held.pragma('journal_mode = DELETE')
    held.exec('BEGIN EXCLUSIVE')
    const [open, address] = [
      new URL('../../../src/core/store/open.ts', import.meta.url),
      JSON.stringify({ kind: 'sqlite', file: it.file }),
    ]
    const leaves = `
      const { openStore } = await import(${JSON.stringify(open.href)})
      const store = await openStore(${address})
      await store.course.unsubscribe({ id: 'ada', now: ${NOW + 1} })
      await store.close()`
    const child = execa('node', ['--input-type=module', '--eval', leaves])
    const files = () =>
      readdirSync(`/proc/${child.pid}/fd`).map((fd) =>
        attempt(() => readlinkSync(`/proc/${child.pid}/fd/${fd}`)),
      )
    await expect.poll(files).toContain(it.file)
    await rename(it.file, it.at('kept.sqlite'))
    await rename(it.at('restored.sqlite'), it.file)
    held.close()
    await child
    expect(await it.states()).toEqual(['unsubscribed', 'confirmed', 'confirmed'])
    expect(await it.states('kept.sqlite')).toEqual(['confirmed', 'confirmed', 'confirmed'])
  },
)

test('a restore ends the course of somebody who left when it had begun again after the backup', async () => {
  const it = await storeWith('ada')
  await it.backup()
  const beside = new Database(it.file)
  beside.exec(`UPDATE subscription SET sent_days = '[1,2,3,4,5,6,7]', next_attempt_at = NULL`)
  beside.close()
  const ada = { identity: 'ada@example.com', mailboxKey: 'ada@example.com', address: 'ada@example.com' }
  const again = await it.store.course.enrol({ ...ada, begin, course: 'quantum', id: 'new', now: NOW + 1 })
  expect(again).toMatchObject({ id: 'ada', enrolment: 2 })
  await it.leave('ada', NOW + 2)
  await it.store.close()
  expect((await it.restore()).replayed).toMatchObject({ unsubscribed: 1 })
  const after = await it.open()
  expect(await after.course.find('ada@example.com')).toMatchObject({ state: 'unsubscribed', enrolment: 1 })
})

test('somebody who had left and come back before the backup is still in the course after a restore', async () => {
  const it = await storeWith('ada')
  await it.leave('ada')
  await subscribe(it.store, 'ada', NOW + 2 * HOUR_MS)
  await it.backup()
  await it.store.close()
  for (const now of [NOW + DAY_MS, NOW + 2 * DAY_MS]) {
    expect((await it.restore({ now })).replayed).toMatchObject({ unsubscribed: 0 })
    expect(await it.states()).toEqual(['confirmed'])
  }
})

test('the journal names those whose course ended because mail to them bounced, or their provider says that they left', async () => {
  const it = await storeWith('ada', 'grace', 'joan', 'mia', 'rose')
  await hear(it.store, [eventOf('hard-bounce', NOW, { name: 'mia' })], { now: NOW })
  await it.backup()
  const { course } = it.store
  const problem = { kind: 'bounced', reason: 'no such mailbox', since: NOW + 1 } as const
  const claims = await course.claimDue({ now: NOW, limit: 9, retries: 0, leaseMs: 60_000, call: 'c' })
  const end = { sent: false, end: true, failures: 1, problem }
  await course.settle(claims.flatMap((claim) => (claim.id === 'ada' ? outcomeOf(claim, NOW + 1, end) : [])))
  const queued = { id: 'm', stream: 'notice', key: 'm', expiresAt: NOW + DAY_MS } as const
  const { message } = await course.requestConfirmation(asked('mary', NOW, { message: queued }))
  if (message === undefined) throw new TypeError('a message was queued')
  await course.settleMessages([
    {
      claim: { ...message, subscription: 'grace' },
      record: { result: 'over', nextAttemptAt: NOW, failures: 1, problem, untried: false },
      ...{ now: NOW + 1, outcome: 'permanent', reason: problem.reason, providerId: undefined },
    },
  ])
  const leave = (name: string) => eventOf('unsubscribed', NOW + 1, { name })
  await hear(it.store, ['joan', 'mia'].map(leave), { now: NOW + 1 })
  await it.store.close()
  // Where the machine is lost, only the journal says it.
  expect((await it.restore({ journal: it.journal }, ELSEWHERE)).replayed).toMatchObject({ unsubscribed: 3 })
  const left = ['ada', 'grace', 'joan', 'mia'].map(() => 'unsubscribed')
  expect(await it.states(ELSEWHERE)).toEqual([...left, 'confirmed'])
  const restored = await it.open(ELSEWHERE)
  // Who left after a bounce is brought back by no operator there either.
  const again = { id: 'mia', as: 'retry', now: NOW + DAY_MS, next: nextAfter } as const
  expect(await restored.course.resolve(again)).toBe(false)
})

test('a line of a journal that this build cannot read is not left out without a word, and stays in the journal', async () => {
  const it = await three()
  await it.backup()
  await it.leave('ada')
  await it.store.close()
  const strange = '{"what":"moved","at":1,"id":"grace"}'
  const elsewhere = { journal: it.journal }
  // One from before the store began is in no need of being done again.
  await writeFile(it.journal, `${strange}\n${await readFile(it.journal, 'utf8')}`)
  await it.restore(elsewhere, 'earlier/platform.sqlite')
  await appendFile(it.journal, `\n${strange}\n`)
  await expect(it.restore(elsewhere, ELSEWHERE)).rejects.toThrow(
    /1 line of the journal cannot be read: .* or use the build that wrote it, or accept that with --without-journal/,
  )
  await it.restore({ ...elsewhere, withoutJournal: true }, ELSEWHERE)
  expect(await it.states(ELSEWHERE)).toEqual(['unsubscribed', 'confirmed', 'confirmed'])
  expect(await readFile(it.at('new/platform-journal.jsonl'), 'utf8')).toContain(`\n${strange}\n`)
  // The rows of the replaced store say what its journal does not.
  await it.restore()
})

test('the restore of a backup of another platform names both, and each row that it restored with its fault', async () => {
  const it = await three()
  await it.store.owner.claim('Kiln School')
  await it.store.close()
  const database = new Database(it.file)
  database.exec(`UPDATE subscription SET sent_days = '[1,3]' WHERE id = 'ada'`)
  database.close()
  await it.backup()
  const args = ['db', 'restore', 'b.sqlite', '--data', 'new', '--without-journal']
  const { exitCode, stderr } = await command(args, { cwd: it.folder })
  expect({ exitCode, stderr }).toMatchObject({
    exitCode: 0,
    stderr: expect.stringContaining(
      `the backup is of the platform "Kiln School", and this is "${learning.name}": unless the platform was renamed (daemon --adopt), restore another one.`,
    ),
  })
  expect(stderr).toMatch(/^restored as it was: subscription ada: the days sent are not in order: 1, 3$/m)
})

test('a copy of a journal from before an erasure brings no erased address back', async () => {
  const it = await three()
  await it.backup()
  await it.suppress('joan')
  copyFileSync(it.journal, it.at('copy.jsonl'))
  await it.erase('joan')
  await it.store.close()
  await it.restore({ journal: it.at('copy.jsonl') })
  const again = await it.open()
  expect(await again.feedback.find('joan@example.com')).toBeUndefined()
  expect(await again.course.find('joan@example.com')).toBeUndefined()
  expect(await it.journalText()).not.toContain('joan@')
})

test('of somebody who was erased since the backup, a restore keeps nothing of what the backup says', async () => {
  const it = await three()
  await it.suppress('joan')
  const recipients = recipientHashes(KEY, 'joan@example.com')
  for (const [n, recipient] of recipients.entries())
    await it.store.sentMail.begin({ key: `mail ${n}`, now: NOW, recipient, caps: [], content: 'c' })
  await it.backup()
  await it.erase('joan', { recipients })
  await it.store.close()
  await it.restore()
  const again = await it.open()
  const capped = { now: NOW + 1, caps: [{ most: 1, windowMs: DAY_MS }], content: 'c' }
  for (const recipient of recipients)
    expect(await again.sentMail.begin({ ...capped, key: recipient, recipient })).not.toBe('capped')
  expect(await again.feedback.find('joan@example.com')).toBeUndefined()
  expect(await again.feedback.listSuppressed(10)).toEqual([])
})

test('an erasure that is done again takes nobody whom an import gave the id later', async () => {
  const it = await storeWith('zoe')
  await it.backup()
  await it.erase('zoe')
  await it.store.close()
  const beside = new Database(it.at('b.sqlite'))
  const theirs = `'max@example.com', address = 'max@example.com', mailbox_key = NULL, created_at = ${NOW + 2}`
  beside.exec(`UPDATE subscription SET identity = ${theirs}`)
  beside.close()
  expect((await it.restore()).replayed).toMatchObject({ erased: 1 })
  expect(await (await it.open()).course.findById('zoe')).toMatchObject({ address: 'max@example.com' })
})

test('a restore erases again whom an erasure names by a hash alone, on whichever page of rows they are', async () => {
  const it = await storeWith('zoe')
  // As builds did that had no key of their own for addresses.
  const hash = suppressionHash('the key of links', 'zoe@example.com')
  await it.store.getOrCreate('link_key', () => 'the key of links')
  const beside = new Database(it.file)
  beside.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
    INSERT INTO subscription (id, identity, address, state, created_at)
    SELECT 'p' || i, i || '@example.com', i || '@example.com', 'unconfirmed', ${NOW} FROM n`)
  beside.close()
  await it.backup()
  await it.store.course.erase(erasureOf('zoe', hash, NOW + 1))
  await it.store.close()
  // As the rows of a store say it, which keep no id.
  const hashes = (await it.journalText()).replace(/"rows":{[^}]*}/, '"rows":{"invites":[],"logins":[]}')
  await writeFile(it.at('hashes.jsonl'), hashes)
  await it.restore({ journal: it.at('hashes.jsonl') }, ELSEWHERE)
  expect(await it.states(ELSEWHERE)).toEqual([undefined])
})

test('an unsubscribe counts while the journal cannot be written, health fails, and the journal catches up', async () => {
  const it = await three()
  await it.backup()
  await it.suppress('joan')
  const health = () =>
    storeState(
      { kind: async () => 'sqlite', ping: (options) => it.store.ping(options) },
      { live: true, pages: false, inMemory: '' },
    )
  const maintenance = await openMaintenance({ kind: 'sqlite', file: it.file })
  onTestFinished(() => maintenance.close())
  await it.withoutJournal(async () => {
    await it.leave('ada')
    expect(await it.erase('joan')).toMatchObject({ existed: true, bytesGone: false })
    expect((await it.store.course.findById('ada'))?.state).toBe('unsubscribed')
    expect(await health()).toMatchObject({
      state: 'failing',
      reason: 'its journal cannot be written, so a restore would forget who leaves now',
    })
    expect(await maintenance.verify(NOW + 2)).toMatchObject({
      ok: false,
      damaged: false,
      faults: [expect.stringMatching(/platform-journal\.jsonl cannot be written/)],
    })
    expect((await maintenance.status()).verifiedAt).toBeUndefined()
  })
  expect(await health()).toMatchObject({ state: 'ok' })
  await it.store.ping()
  expect((await it.journalText()).match(/"ada"/g)).toHaveLength(1)
  expect(await it.journalText()).not.toContain('joan@')
  await maintenance.close()
  await it.store.close()
  expect((await it.restore()).replayed).toMatchObject({ unsubscribed: 1, erased: 1 })
  expect(await it.states()).toEqual(['unsubscribed', 'confirmed', undefined])
})

test('a line of which the disk takes only the beginning is written again when there is room', async () => {
  const it = await three()
  await it.store.close()
  const most = 8 * 1024 * 1024
  await writeFile(it.journal, 'x'.repeat(most - 40))
  const unsubscribe = `
    import { openStore } from ${JSON.stringify(new URL('../../../src/core/store/open.ts', import.meta.url))}
    const store = await openStore({ kind: 'sqlite', file: ${JSON.stringify(it.file)} })
    await store.course.unsubscribe({ id: 'ada', now: ${NOW + 1} })
    await store.close()`
  // No file grows beyond that size, as on a full disk.
  const limited = `ulimit -f ${most / 1024}; trap "" XFSZ; exec "$0" --input-type=module --eval "$1"`
  await execa('bash', ['-c', limited, process.execPath, unsubscribe])
  await (await it.open()).ping()
  const lines = (await it.journalText()).slice(most).split('\n')
  expect(lines.flatMap((line) => entryOf(line) ?? [])).toMatchObject([{ what: 'unsubscribed', id: 'ada' }])
})

test('an erasure takes out every line that names the address, whatever it tells of, and leaves the rest to its owner alone', async () => {
  const it = await three()
  const lines = async () => (await it.journalText()).split('\n').flatMap((line) => entryOf(line)?.what ?? [])
  for (const name of ['ada', 'grace']) {
    await it.suppress(name)
    await it.release(name)
  }
  expect(await lines()).toEqual(expect.arrayContaining(['suppressed', 'released']))
  expect(await it.erase('ada')).toMatchObject({ bytesGone: true })
  expect(await it.journalText()).not.toContain('ada@')
  if (process.platform !== 'win32') expect(statSync(it.journal).mode & 0o777).toBe(0o600)
  expect((await lines()).filter((what) => /suppressed|released/.test(what))).toEqual([
    'suppressed',
    'released',
  ])
})

test('a torn line of the journal loses no other line, and an erasure takes it out too', async () => {
  const it = await three()
  await it.backup()
  await it.suppress('grace')
  await appendFile(it.journal, '\n{"what":"suppressed","at":1,"identity":"ada@example.com","suppr')
  await it.leave('joan')
  expect(await it.journalText()).toMatch(/suppr\n.*"joan"/)
  expect(await it.erase('ada')).toMatchObject({ bytesGone: true })
  expect(await it.journalText()).not.toContain('ada@')
  expect(await it.journalText()).toContain('grace@')
  await it.store.close()
  expect((await it.restore()).replayed).toMatchObject({ suppressed: 1, unsubscribed: 1, erased: 1 })
})

test('what the replaced store could not write to its journal is replayed all the same', async () => {
  const it = await three()
  await it.suppress('joan')
  await it.backup()
  await it.withoutJournal(async () => {
    await it.leave('ada')
    // No row says that an address was taken off the list.
    await it.release('joan', NOW + 1)
    const maintenance = await openMaintenance({ kind: 'sqlite', file: it.file })
    const exported = await maintenance.journal(NOW + 2).finally(() => maintenance.close())
    expect(exported.map(({ what }) => what)).toEqual(['unsubscribed', 'released', 'anchor'])
  })
  await it.store.close()
  expect((await it.restore()).replayed).toMatchObject({ unsubscribed: 1, released: 1 })
  // The store that was replaced is gone, so from now on the journal has to say it.
  expect((await it.restore({ now: NOW + 5000 })).replayed).toMatchObject({ released: 1 })
  expect(await it.states()).toEqual(['unsubscribed', 'confirmed', 'unsubscribed'])
})

// Files of /proc can be read, and not even the superuser can append to them.
test.skipIf(process.platform !== 'linux')(
  'a restore beside a journal that cannot be written keeps in the store what the journal is owed',
  async () => {
    const it = await three()
    await it.backup()
    await rename(it.journal, it.at('aside'))
    symlinkSync('/proc/version', it.journal)
    await it.leave('ada')
    await it.store.close()
    const journal = it.at('aside')
    expect(await it.restore({ journal })).toMatchObject({
      replayed: { unsubscribed: 1 },
      kept: expect.stringContaining('.before-'),
    })
    await rm(it.journal)
    await rename(it.at('aside'), it.journal)
    await caughtUp(it)
    await it.restore({ now: NOW + 5000 })
    expect(await it.states()).toEqual(['unsubscribed', 'confirmed', 'confirmed'])
  },
)

test.each([
  ['its journal', false],
  ['its rows', true],
])(
  'who unsubscribed at the provider before any course began is kept out after a restore by %s',
  async (_, replaced) => {
    const it = await three()
    await it.backup()
    await hear(it.store, [eventOf('unsubscribed', NOW, { name: 'mary' })], { now: NOW + 1 })
    const journal = await it.journalText()
    expect(journal).not.toContain('mary@')
    await it.store.close()
    if (replaced) await writeFile(it.journal, journal.replace(/.*left:.*\n/, ''))
    expect(await it.restore()).toMatchObject({ replayed: { unsubscribed: 1 } })
    const restored = await it.open()
    const who = { ...asked('mary', NOW), mailboxKey: 'mary@example.com', begin }
    expect(await restored.course.enrol(who)).toEqual({ enrolled: false, reason: 'unsubscribed' })
    await restored.close()
  },
)

test.each([
  ['its journal', 'unknown', false, 'status'],
  ['its rows', 'unknown', true, 'quantum'],
  ['its journal', 'unconfirmed', false, 'quantum'],
  ['its rows', 'unconfirmed', true, 'status'],
])(
  'who joined after the backup and left is kept out by %s, until they subscribe themselves (%s in the backup)',
  async (_, before, replaced, course) => {
    const it = await three()
    const who = asked('mary', NOW, { course, mailboxKey: 'mary@example.com' })
    const enrolment = { ...who, mailboxKey: who.identity, begin }
    if (before === 'unconfirmed') await it.store.course.requestConfirmation(who)
    await it.backup()
    await it.store.course.enrol(enrolment)
    await it.leave('mary')
    const journal = await it.journalText()
    expect(journal).not.toContain('mary@')
    await it.store.close()
    if (replaced) await writeFile(it.journal, journal.replace(/.*left:.*\n/, ''))
    for (const now of [NOW + 2, NOW + 2000]) {
      const to = replaced ? 'platform.sqlite' : ELSEWHERE
      await it.restore({ journal: replaced ? undefined : it.journal, now }, to)
      const restored = await it.open(to)
      const refused = { enrolled: false, reason: 'unsubscribed' }
      expect(await restored.course.enrol({ ...enrolment, id: 'again' })).toEqual(refused)
      const consent = { at: NOW, how: 'form' }
      const goes = { sent: 0, lastSentAt: undefined, progress: undefined, confirmedAt: now }
      const start = { lessons: 7, dueAt: now }
      const arrivals = [{ ...enrolment, id: 'again', consent, start, ...goes }]
      expect(await restored.course.admit({ arrivals, now, dryRun: false })).toEqual(['unsubscribed'])
      if (now > NOW + 2) {
        // A confirmation is mailed at most once an hour.
        const later = { now: NOW + 2 * 3_600_000, tokenHash: 'again' }
        await restored.course.requestConfirmation({ ...who, id: 'again', ...later })
        await restored.course.confirm({ begin, ...later })
        expect((await restored.course.find(who.identity))?.state).toBe('confirmed')
      }
      await restored.close()
    }
  },
)

test('what the journal of a backup was owed is not appended again, after what happened since', async () => {
  const it = await three()
  await it.leave('ada')
  await it.withoutJournal(async () => {
    await it.undo('ada')
    await it.backup()
  })
  await it.store.ping()
  await it.leave('ada', NOW + 3)
  await it.store.close()
  for (const now of [NOW + 5000, NOW + 6000]) {
    await it.restore({ now })
    expect(await it.states()).toEqual(['unsubscribed', 'confirmed', 'confirmed'])
    await caughtUp(it)
  }
})

test.each(['named', 'in its place'])(
  'an older copy of the journal, %s, brings nobody back: the rows of the replaced store say who left',
  async (where) => {
    const it = await three()
    await it.backup()
    await it.leave('ada')
    await it.undo('ada')
    copyFileSync(it.journal, it.at('copy.jsonl'))
    await it.leave('ada', NOW + 3)
    await it.erase('grace')
    await it.suppress('joan')
    await it.store.close()
    if (where === 'in its place') copyFileSync(it.at('copy.jsonl'), it.journal)
    const first = await it.restore(where === 'named' ? { journal: it.at('copy.jsonl') } : {})
    expect(first.replayed).toMatchObject({ unsubscribed: 1, erased: 1, suppressed: 1 })
    // The store that was replaced is gone, so from now on the journal has to say it; a whole one gains nothing.
    const text = await it.journalText()
    for (const now of [NOW + 5000, NOW + 6000]) {
      await it.restore({ now })
      expect(await it.states()).toEqual(['unsubscribed', undefined, 'unsubscribed'])
    }
    expect(await it.journalText()).toBe(text)
    // No line of the copy seems to have happened last, where no rows say what did.
    await rm(it.file)
    await it.restore({ journal: it.at('copy.jsonl'), now: NOW + 7000 })
    expect(await it.states()).toEqual(['unsubscribed', undefined, 'unsubscribed'])
  },
)

test('a copy of the journal that is older than a backup does not cover it, though it covers the one before', async () => {
  const it = await three()
  await it.backup('early.sqlite')
  const older = it.at('older.jsonl')
  copyFileSync(it.journal, older)
  await it.backup('later.sqlite', it.file, NOW + 1)
  await it.leave('ada', NOW + 2)
  await it.store.close()
  const from = (name: string, journal: string) =>
    it.restore({ from: it.at(name), journal }, `of ${path.basename(journal)}/${name}`)
  await expect(from('later.sqlite', older)).rejects.toThrow(
    'older.jsonl is not the journal of its store, or is older',
  )
  await from('early.sqlite', older)
  for (const name of ['early.sqlite', 'later.sqlite'])
    expect((await from(name, it.journal)).replayed).toMatchObject({ unsubscribed: 1 })
})

test('a journal that did not cover a restore has from then on what its rows knew', async () => {
  const it = await three()
  await it.backup()
  copyFileSync(it.journal, it.at('older'))
  await it.leave('ada', NOW + 1)
  await it.backup('newer.sqlite', it.file, NOW + 2)
  await it.store.close()
  copyFileSync(it.at('older'), it.journal)
  await rm(it.file)
  const newer = { from: it.at('newer.sqlite'), withoutJournal: true }
  expect(await it.restore(newer)).toMatchObject({ uncoveredSince: NOW + 2 })
  await rm(it.file)
  await it.restore()
  expect((await it.states('platform.sqlite'))[0]).toBe('unsubscribed')
})

test('an older copy of the journal undoes nothing that the backup knows of later', async () => {
  const it = await three()
  await it.leave('ada', NOW + 1)
  await it.undo('ada', NOW + 2)
  await it.suppress('grace', NOW + 1)
  await it.release('grace', NOW + 2)
  copyFileSync(it.journal, it.at('older'))
  await it.leave('ada', NOW + 3)
  await it.suppress('grace', NOW + 3)
  await it.backup('b.sqlite', it.file, NOW + 4)
  await it.store.close()
  copyFileSync(it.at('older'), it.journal)
  await rm(it.file)
  await it.restore({ withoutJournal: true })
  expect((await it.states())[0]).toBe('unsubscribed')
  expect(await (await it.open()).feedback.listSuppressed(9)).toHaveLength(1)
})

test('an undo after a leaving that the clock dates later is done again all the same', async () => {
  const it = await three()
  await it.leave('ada', NOW + 5)
  await it.backup()
  await it.undo('ada', NOW + 1)
  await it.store.close()
  expect((await it.restore()).replayed).toMatchObject({ undone: 1 })
  expect((await it.states())[0]).toBe('confirmed')
})

test.each(['before', 'after'])(
  'what is sent and waits after an erasure that came %s a backup is there after its restore',
  async (when) => {
    const it = await three()
    const mail = { stream: 'mail', address: 'joan@example.com', payload: '{}' } as const
    const [recipient = ''] = recipientHashes(KEY, mail.address)
    const later = { now: NOW + HOUR_MS, recipient, caps: [] }
    const sent = async (id: string, now = later.now) => {
      await it.store.sentMail.begin({ ...later, key: 'sent', content: 'b', now })
      await it.store.sentMail.recordSent({ key: 'sent', id, now })
    }
    await sent('forgotten', NOW - 1)
    if (when === 'after') await it.backup()
    // One erasure has a line for each form of the address.
    for (const ms of [1, 8]) await it.erase('joan', { now: NOW + ms, recipients: [recipient] })
    await it.store.sentMail.begin({ ...later, key: 'waits', content: 'a', mail })
    await sent('of-provider')
    if (when === 'before') await it.backup('b.sqlite', it.file, NOW + 2 * HOUR_MS)
    await it.store.close()
    expect((await it.restore({ now: NOW + 3 * HOUR_MS })).counts).toMatchObject({ message: 1 })
    const again = (await it.open()).sentMail.begin({ ...later, key: 'sent', content: 'b' })
    expect(await again).toMatchObject({ sentId: 'of-provider' })
  },
)

test('a restore takes no mail from an older replaced store that waits for somebody whom the backup knows as erased', async () => {
  const it = await three()
  const mail = { stream: 'mail', address: 'joan@example.com', payload: '{}' } as const
  const [recipient = ''] = recipientHashes(KEY, mail.address)
  await it.store.sentMail.begin({ key: 'a', now: NOW, recipient, caps: [], content: 'a', mail })
  await it.backup('older.sqlite')
  await it.erase('joan', { recipients: [recipient] })
  await it.backup('b.sqlite', it.file, NOW + 3)
  await it.store.close()
  copyFileSync(it.at('older.sqlite'), it.file)
  expect((await it.restore()).counts).toMatchObject({ message: 0 })
})

test('an address that was suppressed by a clock that was ahead, and then released, stays released', async () => {
  const it = await three()
  await it.suppress('ada', NOW + HOUR_MS)
  await it.backup()
  await it.release('ada', NOW + 5)
  await it.store.close()
  await it.restore()
  expect(await (await it.open()).feedback.listSuppressed(9)).toHaveLength(0)
})

test.each([
  ['deleted', rm],
  ['emptied', truncate],
])(
  'a journal that was %s and went on covers no backup until it has everybody who left before',
  async (_, lose) => {
    const it = await three()
    await it.backup()
    await it.leave('ada')
    await it.erase('joan')
    await lose(it.journal)
    await it.leave('grace', NOW + 2)
    const elsewhere = (to: string) => it.restore({ journal: it.journal }, to)
    await expect(elsewhere('early/platform.sqlite')).rejects.toThrow('is not the journal of its store')
    await it.backup('later.sqlite')
    await it.store.close()
    await elsewhere(ELSEWHERE)
    expect(await it.states(ELSEWHERE)).toEqual(['unsubscribed', 'unsubscribed', undefined])
  },
)

test.skipIf(process.getuid?.() !== 0)(
  'a link that the owner of the folder puts in the place of a file has the superuser write and give away nothing',
  async () => {
    const it = await three()
    await it.suppress('joan')
    await it.store.close()
    for (const file of [it.folder, it.file, it.journal]) chownSync(file, 65534, 65534)
    const theirs = await emptyFolder()
    const secret = path.join(theirs, 'secret')
    await writeFile(secret, 'of the superuser')
    symlinkSync(secret, `${it.journal}.new`)
    const opened = await it.open()
    await it.erase('joan', { within: opened })
    await rename(it.journal, it.at('aside'))
    symlinkSync(secret, it.journal)
    await opened.course.unsubscribe({ id: 'ada', now: NOW + 2 })
    await rm(it.journal)
    symlinkSync(path.join(theirs, 'planted'), it.journal)
    await opened.course.unsubscribe({ id: 'grace', now: NOW + 2 })
    expect(readdirSync(theirs)).toEqual(['secret'])
    expect([await readFile(secret, 'utf8'), statSync(secret).uid]).toEqual(['of the superuser', 0])
    // What could not be written is owed, and comes after.
    await rm(it.journal)
    await rename(it.at('aside'), it.journal)
    await opened.course.unsubscribe({ id: 'joan', now: NOW + 3 })
    await opened.ping()
    const text = await it.journalText()
    expect(text).toMatch(/"ada".*"grace"/s)
    expect(text).not.toContain('joan@')
  },
)

test.skipIf(process.platform === 'win32')(
  'a pipe in the place of the journal holds up no change, no backup and no restore',
  async () => {
    const it = await three()
    await it.backup('copy.sqlite')
    await rename(it.journal, it.at('aside'))
    await execa('mkfifo', [it.journal])
    await it.leave('ada')
    await it.erase('joan')
    await it.backup('second.sqlite')
    await it.store.close()
    await expect(it.restore({ from: it.at('copy.sqlite') })).rejects.toThrow(`there is no ${it.journal}`)
    // What could not be written is owed, and comes after.
    await rm(it.journal)
    await rename(it.at('aside'), it.journal)
    const opened = await it.open()
    await opened.course.unsubscribe({ id: 'grace', now: NOW + 3 })
    expect(await it.journalText()).toMatch(/"ada".*"grace"/s)
  },
)

test.skipIf(process.getuid?.() !== 0)(
  'files that the superuser makes belong to the owner of the store, and one that does not is found',
  async () => {
    const it = await three()
    await it.store.close()
    await rm(it.journal, { force: true })
    for (const file of [it.folder, it.file]) chownSync(file, 65534, 65534)
    const opened = await it.open()
    await opened.course.unsubscribe({ id: 'ada', now: NOW + 1 })
    await it.backup()
    const fresh = it.at('below/other.sqlite')
    await (await openStore({ kind: 'sqlite', file: fresh })).close()
    for (const file of [it.journal, `${it.file}-wal`, path.dirname(fresh), fresh])
      expect(statSync(file).uid, file).toBe(65534)
    chownSync(it.journal, 0, 0)
    const maintenance = await openMaintenance({ kind: 'sqlite', file: it.file })
    expect((await maintenance.verify(NOW + 2)).faults).toEqual([
      expect.stringMatching(/belongs to another user than the store.*: chown --reference=/),
    ])
    await maintenance.close()
    await expect(readSchema({ kind: 'sqlite', file: it.file })).rejects.toMatchObject({
      cause: { code: 'JOURNAL_FOREIGN' },
    })
    chownSync(it.journal, 65534, 65534)
    await opened.close()
    const { kept } = await it.restore()
    await it.restore({ withoutJournal: true }, 'lost/platform.sqlite')
    for (const file of [it.file, String(kept), it.at('lost/platform.sqlite')])
      expect(statSync(file).uid, file).toBe(65534)
  },
)

test('a restore says how many lessons will be sent again, and takes their records from the replaced store', async () => {
  const it = await three()
  await it.backup()
  const { course, heartbeats } = it.store
  const claims = await course.claimDue({ now: NOW, limit: 2, retries: 0, leaseMs: 60_000, call: 'c' })
  // The first gets two.
  const sent = (claim: (typeof claims)[number], nextAttemptAt: number) =>
    outcomeOf(claim, NOW + 1, { nextAttemptAt })
  await course.settle(claims.map((claim, index) => sent(claim, index === 0 ? NOW + 1 : NOW + DAY_MS)))
  const second = await course.claimDue({ now: NOW + 1, limit: 9, retries: 0, leaseMs: 1, call: 'e' })
  await course.settle(second.flatMap((one) => (one.id === claims[0]?.id ? sent(one, NOW + DAY_MS) : [])))
  await heartbeats.beat({ name: 'backup', now: NOW + 1, failed: undefined })
  await it.store.close()
  const replaced = new Database(it.file)
  replaced.exec(`INSERT INTO course_plan VALUES ('quantum', 'v2', '{}', ${NOW})`)
  replaced.close()
  const args = ['db', 'restore', 'b.sqlite', '--data', '.', '--force']
  expect(await command(args, { cwd: it.folder })).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining(
      '\n3 lessons sent after the backup will be sent again: restore with --sent-from',
    ),
  })
  const other = await openStore({ kind: 'sqlite', file: it.at('other.sqlite') })
  await other.getOrCreate('address_key', () => 'of another store')
  await other.close()
  expect(await command([...args, '--sent-from', 'other.sqlite'], { cwd: it.folder })).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('other.sqlite is another store than that of the backup'),
  })
  const again = await it.open()
  const next = () => ({ dueAt: NOW + DAY_MS, lessons: 7 })
  const id = claims[0]?.id ?? ''
  expect(await again.course.resolve({ id, as: 'sent', now: NOW + 2, next })).toBe(true)
  const repeated = await again.course.claimDue({ now: NOW, limit: 9, retries: 9, leaseMs: 1, call: 'd' })
  expect(repeated).toHaveLength(2)
  await again.close()
  const kept = readdirSync(it.at('')).find((name) => name.includes('.before-')) ?? ''
  const elsewhere = await it.restore({ journal: it.journal, sentFrom: it.at(kept) }, ELSEWHERE)
  expect(elsewhere).toMatchObject({ taken: 3, repeats: 0, faults: [] })
  const restored = await it.open(ELSEWHERE)
  expect(await restored.heartbeats.expect({ name: 'backup', now: NOW + 2 })).toMatchObject({
    beatAt: NOW + 1,
  })
  // What they are sent by, too.
  expect(await restored.course.pinnedPlan({ course: 'quantum', version: 'v2' })).toBe('{}')
  const due = await restored.course.claimDue({ now: NOW, limit: 9, retries: 9, leaseMs: 60_000, call: 'd' })
  expect(due.map(({ id }) => id)).not.toContain(claims[0]?.id)
  expect(due).toHaveLength(1)
})

test('sent records are also taken of those who left and came back by undoing it', async () => {
  const it = await three()
  const { course } = it.store
  await it.leave('ada')
  await it.backup()
  await it.undo('ada', NOW + 3)
  const claims = await course.claimDue({ now: NOW + 3, limit: 9, retries: 0, leaseMs: 60_000, call: 'c' })
  await course.settle(claims.map((claim) => outcomeOf(claim, NOW + 4, { nextAttemptAt: NOW + 5 })))
  // A copy of the replaced store that is older than the last entries of the journal.
  await it.leave('grace')
  await it.backup('copy.sqlite')
  await it.undo('grace', NOW + 3)
  await it.leave('joan')
  await it.store.close()
  const restored = await it.restore({ sentFrom: it.at('copy.sqlite') })
  expect(restored).toMatchObject({ taken: 2, repeats: 0, replayed: { unsubscribed: 1 } })
  const again = await it.open()
  const due = await again.course.claimDue({ now: NOW + 9, limit: 9, retries: 9, leaseMs: 1, call: 'd' })
  expect(due.map(({ id, day }) => [id, day]).sort()).toEqual([
    ['ada', 2],
    ['grace', 2],
  ])
})

test('who left the replaced store stays out although an older file is named for what was sent, and the journal is older', async () => {
  const it = await three()
  await it.backup()
  await it.leave('grace')
  await it.backup('kept.sqlite')
  const older = await readFile(it.journal)
  await it.leave('ada')
  await it.store.close()
  await writeFile(it.journal, older)
  const restored = await it.restore({ sentFrom: it.at('kept.sqlite') })
  expect(restored.replayed).toMatchObject({ unsubscribed: 2 })
})
