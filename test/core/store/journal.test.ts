import {
  chownSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  rmdirSync,
  statSync,
  symlinkSync,
  truncateSync,
} from 'node:fs'
import { appendFile, readFile, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import { suppressionHash } from '../../../src/core/course/links.ts'
import { DAY_MS } from '../../../src/core/durations.ts'
import { storeState } from '../../../src/core/health/engine-probes.ts'
import { releaseChange, suppressionChange } from '../../../src/core/mail/feedback/store.ts'
import { recipientHashes } from '../../../src/core/mail/send-once.ts'
import { entryOf } from '../../../src/core/store/journal.ts'
import { openMaintenance, openStore, readSchema, restoreStore } from '../../../src/core/store/open.ts'
import type { Store } from '../../../src/core/store/store.ts'
import { testContext } from '../../support/context.ts'
import { emptyFolder } from '../../support/folder.ts'
import { begin } from '../../support/learning.ts'

const NOW = Date.UTC(2026, 10, 21)
const KEY = 'the key under which this store knows addresses'

async function store() {
  const folder = await emptyFolder()
  const at = (name: string) => path.join(folder, name)
  const file = at('platform.sqlite')
  const open = async (): Promise<Store> => {
    const opened = await openStore({ kind: 'sqlite', file })
    onTestFinished(() => opened.close())
    return opened
  }
  const opened = await open()
  await opened.getOrCreate('address_key', () => KEY)
  const confirm = async (name: string) => {
    const identity = `${name}@example.com`
    const request = { course: 'quantum', identity, address: identity, id: name, tokenHash: name, now: NOW }
    await opened.course.requestConfirmation(request)
    await opened.course.confirm({ begin, tokenHash: name, now: NOW })
  }
  for (const name of ['ada', 'grace', 'joan']) await confirm(name)
  const erase = (name: string, within = opened, recipients: readonly string[] = []) =>
    within.course.erase({
      identity: `${name}@example.com`,
      spellings: [`${name}@example.com`],
      recipients,
      suppressionHash: suppressionHash(KEY, `${name}@example.com`),
      now: NOW + 1,
    })
  const suppress = (name: string) => {
    const suppression = { cause: 'manual', at: NOW, source: 'operator', reason: 'asked' } as const
    return opened.feedback.apply([suppressionChange(`${name}@example.com`, suppression, () => [])], NOW)
  }
  const backup = async (name: string, of = file) => {
    const maintenance = await openMaintenance({ kind: 'sqlite', file: of })
    await maintenance.backup(at(name), NOW)
    await maintenance.close()
    return at(name)
  }
  const restore = (to: string, options: Partial<Parameters<typeof restoreStore>[1]>) =>
    restoreStore(
      { kind: 'sqlite', file: at(to) },
      { from: at('b.sqlite'), force: false, now: NOW + 9, ...options },
    )
  const states = async (name: string) => {
    const restored = await openStore({ kind: 'sqlite', file: at(name) })
    const found = await Promise.all(
      ['ada', 'grace', 'joan'].map((one) => restored.course.find(`${one}@example.com`)),
    )
    await restored.close()
    return found.map((one) => one?.state)
  }
  return {
    at,
    file,
    open,
    opened,
    erase,
    suppress,
    backup,
    restore,
    states,
    journal: at('platform-journal.jsonl'),
  }
}

test('a restore elsewhere needs the journal of the replaced store, and names the time that is not covered without it', async () => {
  const it = await store()
  await it.backup('b.sqlite')
  await it.opened.course.unsubscribe({ id: 'ada', enrolment: 1, now: NOW + 1 })
  await it.erase('joan')
  await it.opened.close()
  await expect(it.restore('new/platform.sqlite', {})).rejects.toThrow(
    /was made at 2026-11-21T00:00:00\.000Z, and there is no .*new\/platform-journal\.jsonl: .* would be mailed again/,
  )
  // Without the replaced store nobody knows what a copy of the journal misses.
  expect(await it.restore('new/platform.sqlite', { journal: it.journal })).toMatchObject({
    replayed: { unsubscribed: 1, erased: 1 },
    coveredTo: NOW + 1,
  })
  expect(await it.states('new/platform.sqlite')).toEqual(['unsubscribed', 'confirmed', undefined])
  // The journal moved with it: the next restore there needs no other.
  expect(await it.restore('new/platform.sqlite', { force: true, now: NOW + 5000 })).toMatchObject({
    replayed: { erased: 1, unsubscribed: 1 },
    uncoveredSince: undefined,
    coveredTo: undefined,
  })
  expect(await it.restore('lost/platform.sqlite', { withoutJournal: true })).toMatchObject({
    uncoveredSince: NOW,
  })
  expect(await it.states('lost/platform.sqlite')).toEqual(['confirmed', 'confirmed', 'confirmed'])
  // The journal that begins there does not cover the time before.
  const lost = await openStore({ kind: 'sqlite', file: it.at('lost/platform.sqlite') })
  await lost.course.unsubscribe({ id: 'grace', enrolment: 1, now: NOW + 10 })
  await lost.close()
  await it.backup('later.sqlite', it.at('lost/platform.sqlite'))
  await expect(it.restore('lost/platform.sqlite', { force: true, now: NOW + 5000 })).rejects.toThrow(
    /is not the journal of its store/,
  )
})

test('who left after the backup and undid it is in the course after a restore elsewhere', async () => {
  const it = await store()
  await it.backup('b.sqlite')
  const ada = { id: 'ada', enrolment: 1 }
  await it.opened.course.unsubscribe({ ...ada, now: NOW + 1 })
  await it.opened.course.undoUnsubscribe({ ...ada, now: NOW + 2 })
  await it.opened.close()
  await it.restore('new/platform.sqlite', { journal: it.journal })
  expect(await it.states('new/platform.sqlite')).toEqual(['confirmed', 'confirmed', 'confirmed'])
})

test('a line of a journal that this build cannot read is not left out without a word, and stays in the journal', async () => {
  const it = await store()
  await it.backup('b.sqlite')
  await it.opened.course.unsubscribe({ id: 'ada', enrolment: 1, now: NOW + 1 })
  await it.opened.close()
  const strange = '{"what":"moved","at":1,"id":"grace"}'
  await appendFile(it.journal, `\n${strange}\n`)
  const elsewhere = { journal: it.journal }
  await expect(it.restore('new/platform.sqlite', elsewhere)).rejects.toThrow(
    /1 line of the journal cannot be read: .* or use the build that wrote it, or accept that with --without-journal/,
  )
  await it.restore('new/platform.sqlite', { ...elsewhere, withoutJournal: true })
  expect(await it.states('new/platform.sqlite')).toEqual(['unsubscribed', 'confirmed', 'confirmed'])
  expect(await readFile(it.at('new/platform-journal.jsonl'), 'utf8')).toContain(`\n${strange}\n`)
  // The rows of the replaced store say what its journal does not.
  await it.restore('platform.sqlite', { force: true })
})

test('the restore of a backup of another platform names both', async () => {
  const it = await store()
  await it.opened.owner.claim('Kiln School')
  await it.opened.close()
  await it.backup('b.sqlite')
  const { context, stderr } = testContext({ cwd: it.at('') })
  const args = ['db', 'restore', 'b.sqlite', '--data', 'new', '--without-journal']
  expect(await runProgram(args, context)).toBe(0)
  expect(stderr()).toBe(
    `the backup is of the platform "Kiln School", and this is "${context.platform.name}": unless the platform was renamed (daemon --adopt), restore another one.\n`,
  )
})

test('a copy of a journal from before an erasure brings no erased address back', async () => {
  const it = await store()
  await it.backup('b.sqlite')
  await it.suppress('joan')
  copyFileSync(it.journal, it.at('copy.jsonl'))
  await it.erase('joan')
  await it.opened.close()
  await it.restore('platform.sqlite', { force: true, journal: it.at('copy.jsonl') })
  const again = await it.open()
  expect(await again.feedback.find('joan@example.com')).toBeUndefined()
  expect(await again.course.find('joan@example.com')).toBeUndefined()
  expect(await readFile(it.journal, 'utf8')).not.toContain('joan@')
})

test('of somebody who was erased since the backup, a restore keeps nothing of what the backup says', async () => {
  const it = await store()
  await it.suppress('joan')
  const recipients = recipientHashes(KEY, 'joan@example.com')
  for (const [n, recipient] of recipients.entries())
    await it.opened.sentMail.begin({ key: `mail ${n}`, now: NOW, recipient, caps: [], content: 'c' })
  await it.backup('b.sqlite')
  await it.erase('joan', it.opened, recipients)
  await it.opened.close()
  await it.restore('platform.sqlite', { force: true })
  const again = await it.open()
  const capped = { now: NOW + 1, caps: [{ most: 1, windowMs: DAY_MS }], content: 'c' }
  for (const recipient of recipients)
    expect(await again.sentMail.begin({ ...capped, key: recipient, recipient })).not.toBe('capped')
  expect(await again.feedback.find('joan@example.com')).toBeUndefined()
  expect(await again.feedback.listSuppressed(10)).toEqual([])
})

test('an unsubscribe counts while the journal cannot be written, health fails, and the journal catches up', async () => {
  const it = await store()
  await it.backup('b.sqlite')
  await it.suppress('joan')
  // A folder in its place: not even the superuser can write it.
  await rename(it.journal, it.at('aside'))
  mkdirSync(it.journal)
  await it.opened.course.unsubscribe({ id: 'ada', enrolment: 1, now: NOW + 1 })
  expect(await it.erase('joan')).toMatchObject({ existed: true, bytesGone: false })
  expect((await it.opened.course.findById('ada'))?.state).toBe('unsubscribed')
  const health = () =>
    storeState(
      { kind: async () => 'sqlite', ping: (options) => it.opened.ping(options) },
      { live: true, pages: false, inMemory: '' },
    )
  expect(await health()).toMatchObject({
    state: 'failing',
    reason: 'its journal cannot be written, so a restore would forget who leaves now',
  })
  const maintenance = await openMaintenance({ kind: 'sqlite', file: it.file })
  expect(await maintenance.verify(NOW + 2)).toMatchObject({
    ok: false,
    damaged: false,
    faults: [expect.stringMatching(/platform-journal\.jsonl cannot be written/)],
  })
  await maintenance.close()
  rmdirSync(it.journal)
  await rename(it.at('aside'), it.journal)
  expect(await health()).toMatchObject({ state: 'ok' })
  expect(await readFile(it.journal, 'utf8')).not.toContain('joan@')
  await it.opened.close()
  expect((await it.restore('platform.sqlite', { force: true })).replayed).toMatchObject({
    unsubscribed: 1,
    erased: 1,
  })
  expect(await it.states('platform.sqlite')).toEqual(['unsubscribed', 'confirmed', undefined])
})

test('a line of which the disk takes only the beginning is written again when there is room', async () => {
  const it = await store()
  await it.opened.close()
  const most = 8 * 1024 * 1024
  await writeFile(it.journal, 'x'.repeat(most - 40))
  const unsubscribe = `
    import { openStore } from ${JSON.stringify(new URL('../../../src/core/store/open.ts', import.meta.url))}
    const store = await openStore({ kind: 'sqlite', file: ${JSON.stringify(it.file)} })
    await store.course.unsubscribe({ id: 'ada', enrolment: 1, now: ${NOW + 1} })
    await store.close()`
  // No file grows beyond that size, as on a full disk.
  const limited = `ulimit -f ${most / 1024}; trap "" XFSZ; exec "$0" --input-type=module --eval "$1"`
  await execa('bash', ['-c', limited, process.execPath, unsubscribe])
  await (await it.open()).ping()
  const lines = (await readFile(it.journal, 'utf8')).slice(most).split('\n')
  expect(lines.flatMap((line) => entryOf(line) ?? [])).toMatchObject([{ what: 'unsubscribed', id: 'ada' }])
})

test('an erasure takes out every line that names the address, whatever it tells of', async () => {
  const it = await store()
  const lines = async () =>
    (await readFile(it.journal, 'utf8')).split('\n').flatMap((line) => entryOf(line)?.what ?? [])
  for (const name of ['ada', 'grace']) {
    await it.suppress(name)
    const release = { at: NOW, reason: 'a new mailbox', source: 'operator' }
    await it.opened.feedback.apply([releaseChange(`${name}@example.com`, release)], NOW)
  }
  expect(await lines()).toEqual(expect.arrayContaining(['suppressed', 'released']))
  expect(await it.erase('ada')).toMatchObject({ bytesGone: true })
  expect(await readFile(it.journal, 'utf8')).not.toContain('ada@')
  expect((await lines()).filter((what) => /suppressed|released/.test(what))).toEqual([
    'suppressed',
    'released',
  ])
})

test('an erasure takes the rest of a torn line out of the journal too', async () => {
  const it = await store()
  await it.suppress('grace')
  await appendFile(it.journal, '\n{"what":"suppressed","at":1,"identity":"ada@example.com","suppr')
  expect(await it.erase('ada')).toMatchObject({ bytesGone: true })
  expect(await readFile(it.journal, 'utf8')).not.toContain('ada@')
  expect(await readFile(it.journal, 'utf8')).toContain('grace@')
})

test('what the replaced store could not write to its journal is replayed all the same', async () => {
  const it = await store()
  await it.suppress('joan')
  await it.backup('b.sqlite')
  await rename(it.journal, it.at('aside'))
  mkdirSync(it.journal)
  await it.opened.course.unsubscribe({ id: 'ada', enrolment: 1, now: NOW + 1 })
  // No row says that an address was taken off the list.
  await it.opened.feedback.apply(
    [releaseChange('joan@example.com', { at: NOW + 1, source: 'operator', reason: 'new mailbox' })],
    NOW + 1,
  )
  rmdirSync(it.journal)
  await rename(it.at('aside'), it.journal)
  await it.opened.close()
  expect((await it.restore('platform.sqlite', { force: true })).replayed).toMatchObject({
    unsubscribed: 1,
    released: 1,
  })
  // The store that was replaced is gone, so from now on the journal has to say it.
  expect((await it.restore('platform.sqlite', { force: true, now: NOW + 5000 })).replayed).toMatchObject({
    released: 1,
  })
  expect(await it.states('platform.sqlite')).toEqual(['unsubscribed', 'confirmed', 'unsubscribed'])
})

// Files of /proc can be read, and not even the superuser can append to them.
test.skipIf(process.platform !== 'linux')(
  'a restore beside a journal that cannot be written keeps in the store what the journal is owed',
  async () => {
    const it = await store()
    await it.backup('b.sqlite')
    await rename(it.journal, it.at('aside'))
    symlinkSync('/proc/version', it.journal)
    await it.opened.course.unsubscribe({ id: 'ada', enrolment: 1, now: NOW + 1 })
    await it.opened.close()
    const journal = it.at('aside')
    expect(await it.restore('platform.sqlite', { force: true, journal })).toMatchObject({
      replayed: { unsubscribed: 1 },
      kept: expect.stringContaining('.before-'),
    })
    await rm(it.journal)
    await rename(it.at('aside'), it.journal)
    const restored = await it.open()
    await restored.ping()
    await restored.close()
    await it.restore('platform.sqlite', { force: true, now: NOW + 5000 })
    expect(await it.states('platform.sqlite')).toEqual(['unsubscribed', 'confirmed', 'confirmed'])
  },
)

test.each([
  ['its journal', 'unknown', false],
  ['its rows', 'unknown', true],
  ['its journal', 'unconfirmed', false],
  ['its rows', 'unconfirmed', true],
])(
  'who joined after the backup and left is kept out by %s, until they subscribe themselves (%s in the backup)',
  async (_, before, replaced) => {
    const it = await store()
    const identity = 'mary@example.com'
    const who = {
      ...{ course: 'quantum', identity, address: identity, mailboxKey: identity, id: 'mary' },
      now: NOW,
    }
    const enrolment = { ...who, begin, timeZone: undefined, language: undefined }
    if (before === 'unconfirmed') await it.opened.course.requestConfirmation({ ...who, tokenHash: 'asked' })
    await it.backup('b.sqlite')
    await it.opened.course.enrol(enrolment)
    await it.opened.course.unsubscribe({ id: 'mary', enrolment: 1, now: NOW + 1 })
    const journal = await readFile(it.journal, 'utf8')
    expect(journal).not.toContain('mary@')
    await it.opened.close()
    if (replaced) await writeFile(it.journal, journal.replace(/.*left:.*\n/, ''))
    for (const now of [NOW + 2, NOW + 2000]) {
      const to = replaced ? 'platform.sqlite' : 'new/platform.sqlite'
      await it.restore(to, { force: true, journal: replaced ? undefined : it.journal, now })
      const restored = await openStore({ kind: 'sqlite', file: it.at(to) })
      onTestFinished(() => restored.close())
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
        expect((await restored.course.find(identity))?.state).toBe('confirmed')
      }
      await restored.close()
    }
  },
)

test('what the journal of a backup was owed is not appended again, after what happened since', async () => {
  const it = await store()
  const ada = { id: 'ada', enrolment: 1 }
  await it.opened.course.unsubscribe({ ...ada, now: NOW + 1 })
  await rename(it.journal, it.at('aside'))
  mkdirSync(it.journal)
  await it.opened.course.undoUnsubscribe({ ...ada, now: NOW + 2 })
  await it.backup('b.sqlite')
  rmdirSync(it.journal)
  await rename(it.at('aside'), it.journal)
  await it.opened.ping()
  await it.opened.course.unsubscribe({ ...ada, now: NOW + 3 })
  await it.opened.close()
  for (const now of [NOW + 5000, NOW + 6000]) {
    await it.restore('platform.sqlite', { force: true, now })
    expect(await it.states('platform.sqlite')).toEqual(['unsubscribed', 'confirmed', 'confirmed'])
    const restored = await it.open()
    await restored.ping()
    await restored.close()
  }
})

test('an older copy of the journal brings nobody back who left after it was made', async () => {
  const it = await store()
  const ada = { id: 'ada', enrolment: 1 }
  await it.backup('b.sqlite')
  await it.opened.course.unsubscribe({ ...ada, now: NOW + 1 })
  await it.opened.course.undoUnsubscribe({ ...ada, now: NOW + 2 })
  copyFileSync(it.journal, it.at('copy.jsonl'))
  await it.opened.course.unsubscribe({ ...ada, now: NOW + 3 })
  await it.opened.close()
  await it.restore('platform.sqlite', { force: true, journal: it.at('copy.jsonl') })
  expect(await it.states('platform.sqlite')).toEqual(['unsubscribed', 'confirmed', 'confirmed'])
})

test('an older copy in the place of the journal brings nobody back: the rows of the replaced store say who left', async () => {
  const it = await store()
  const ada = { id: 'ada', enrolment: 1 }
  await it.backup('b.sqlite')
  await it.opened.course.unsubscribe({ ...ada, now: NOW + 1 })
  await it.opened.course.undoUnsubscribe({ ...ada, now: NOW + 2 })
  copyFileSync(it.journal, it.at('copy.jsonl'))
  await it.opened.course.unsubscribe({ ...ada, now: NOW + 3 })
  await it.erase('grace')
  await it.suppress('joan')
  await it.opened.close()
  copyFileSync(it.at('copy.jsonl'), it.journal)
  const first = await it.restore('platform.sqlite', { force: true })
  expect(first.replayed).toMatchObject({ unsubscribed: 1, erased: 1, suppressed: 1 })
  // The store that was replaced is gone, so from now on the journal has to say it; a whole one gains nothing.
  const text = await readFile(it.journal, 'utf8')
  for (const now of [NOW + 5000, NOW + 6000]) {
    await it.restore('platform.sqlite', { force: true, now })
    expect(await it.states('platform.sqlite')).toEqual(['unsubscribed', undefined, 'unsubscribed'])
  }
  expect(await readFile(it.journal, 'utf8')).toBe(text)
})

test('a journal that was deleted begins again with everybody who left', async () => {
  const it = await store()
  await it.backup('b.sqlite')
  await it.opened.course.unsubscribe({ id: 'ada', enrolment: 1, now: NOW + 1 })
  await rm(it.journal)
  await it.backup('later.sqlite')
  await it.opened.close()
  expect((await it.restore('platform.sqlite', { force: true })).replayed).toMatchObject({ unsubscribed: 1 })
})

test.each(['deleted', 'emptied'])(
  'a journal that was %s and went on covers no backup until it has everybody who left before',
  async (how) => {
    const it = await store()
    await it.backup('b.sqlite')
    await it.opened.course.unsubscribe({ id: 'ada', enrolment: 1, now: NOW + 1 })
    await it.erase('joan')
    if (how === 'deleted') await rm(it.journal)
    else truncateSync(it.journal)
    await it.opened.course.unsubscribe({ id: 'grace', enrolment: 1, now: NOW + 2 })
    const elsewhere = (to: string) => it.restore(to, { journal: it.journal })
    await expect(elsewhere('early/platform.sqlite')).rejects.toThrow('is not the journal of its store')
    await it.backup('later.sqlite')
    await it.opened.close()
    await elsewhere('new/platform.sqlite')
    expect(await it.states('new/platform.sqlite')).toEqual(['unsubscribed', 'unsubscribed', undefined])
  },
)

test.skipIf(process.getuid?.() !== 0)(
  'a link that the owner of the folder puts in the place of a file has the superuser write and give away nothing',
  async () => {
    const it = await store()
    await it.suppress('joan')
    await it.opened.close()
    for (const file of [path.dirname(it.file), it.file, it.journal]) chownSync(file, 65534, 65534)
    const theirs = await emptyFolder()
    const secret = path.join(theirs, 'secret')
    await writeFile(secret, 'of the superuser')
    symlinkSync(secret, `${it.journal}.new`)
    const opened = await it.open()
    await it.erase('joan', opened)
    await rename(it.journal, it.at('aside'))
    symlinkSync(secret, it.journal)
    await opened.course.unsubscribe({ id: 'ada', enrolment: 1, now: NOW + 2 })
    await rm(it.journal)
    symlinkSync(path.join(theirs, 'planted'), it.journal)
    await opened.course.unsubscribe({ id: 'grace', enrolment: 1, now: NOW + 2 })
    expect(readdirSync(theirs)).toEqual(['secret'])
    expect([await readFile(secret, 'utf8'), statSync(secret).uid]).toEqual(['of the superuser', 0])
    // What could not be written is owed, and comes after.
    await rm(it.journal)
    await rename(it.at('aside'), it.journal)
    await opened.course.unsubscribe({ id: 'joan', enrolment: 1, now: NOW + 3 })
    await opened.ping()
    const text = await readFile(it.journal, 'utf8')
    expect(text).toMatch(/"ada".*"grace"/s)
    expect(text).not.toContain('joan@')
  },
)

test.skipIf(process.platform === 'win32')(
  'a pipe in the place of the journal holds up no change, no backup and no restore',
  async () => {
    const it = await store()
    await it.backup('copy.sqlite')
    await rename(it.journal, it.at('aside'))
    await execa('mkfifo', [it.journal])
    await it.opened.course.unsubscribe({ id: 'ada', enrolment: 1, now: NOW + 1 })
    await it.erase('joan')
    await it.backup('second.sqlite')
    await it.opened.close()
    const { context, stderr } = testContext({ cwd: path.dirname(it.file) })
    const args = ['db', 'restore', it.at('copy.sqlite'), '--data', '.', '--force']
    expect([await runProgram(args, context), stderr()]).toEqual([
      1,
      expect.stringContaining(`there is no ${it.journal}`),
    ])
    // What could not be written is owed, and comes after.
    await rm(it.journal)
    await rename(it.at('aside'), it.journal)
    const opened = await it.open()
    await opened.course.unsubscribe({ id: 'grace', enrolment: 1, now: NOW + 3 })
    expect(await readFile(it.journal, 'utf8')).toMatch(/"ada".*"grace"/s)
  },
)

test.skipIf(process.getuid?.() !== 0)(
  'files that the superuser makes belong to the owner of the store, and one that does not is found',
  async () => {
    const it = await store()
    await it.opened.close()
    for (const file of [path.dirname(it.file), it.file]) chownSync(file, 65534, 65534)
    const opened = await it.open()
    await opened.course.unsubscribe({ id: 'ada', enrolment: 1, now: NOW + 1 })
    const fresh = path.join(path.dirname(it.file), 'below', 'other.sqlite')
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
  },
)

test('a restore says how many lessons will be sent again, and takes their records from the replaced store', async () => {
  const it = await store()
  await it.backup('b.sqlite')
  const claims = await it.opened.course.claimDue({
    now: NOW,
    limit: 2,
    retries: 0,
    leaseMs: 60_000,
    call: 'c',
  })
  await it.opened.course.settle(
    claims.map((claim) => ({
      claim,
      now: NOW + 1,
      sent: true,
      nextAttemptAt: NOW + 86_400_000,
      dueAt: NOW + 86_400_000,
      outcome: { kind: 'sent', id: 'provider' },
    })) as unknown as Parameters<Store['course']['settle']>[0],
  )
  await it.opened.close()
  const run = async (...args: string[]) => {
    const { context, stdout } = testContext({ cwd: it.at('') })
    expect(await runProgram(['db', 'restore', 'b.sqlite', '--data', '.', ...args], context)).toBe(0)
    return stdout()
  }
  expect(await run('--force')).toMatch(
    /\n2 lessons sent after the backup will be sent again: restore with --sent-from/,
  )
  const again = await it.open()
  const next = () => ({ dueAt: NOW + 86_400_000, lessons: 7 })
  const id = claims[0]?.id ?? ''
  expect(await again.course.resolve({ id, as: 'sent', now: NOW + 2, next })).toBe(true)
  const repeated = await again.course.claimDue({ now: NOW, limit: 9, retries: 9, leaseMs: 1, call: 'd' })
  expect(repeated).toHaveLength(2)
  await again.close()
  const kept = readdirSync(it.at('')).find((name) => name.includes('.before-')) ?? ''
  const elsewhere = await it.restore('new/platform.sqlite', { journal: it.journal, sentFrom: it.at(kept) })
  expect(elsewhere).toMatchObject({ taken: 2, repeats: 0, faults: [] })
  const restored = await openStore({ kind: 'sqlite', file: it.at('new/platform.sqlite') })
  onTestFinished(() => restored.close())
  const due = await restored.course.claimDue({ now: NOW, limit: 9, retries: 9, leaseMs: 60_000, call: 'd' })
  expect(due.map(({ id }) => id)).not.toContain(claims[0]?.id)
  expect(due).toHaveLength(1)
})

test('sent records are also taken of those who left and came back by undoing it', async () => {
  const it = await store()
  const { course } = it.opened
  const leave = (id: string) => course.unsubscribe({ id, enrolment: 1, now: NOW + 1 })
  const undo = (id: string) => course.undoUnsubscribe({ id, enrolment: 1, now: NOW + 3 })
  await leave('ada')
  await it.backup('b.sqlite')
  await undo('ada')
  const claims = await course.claimDue({ now: NOW + 3, limit: 9, retries: 0, leaseMs: 60_000, call: 'c' })
  await course.settle(
    claims.map((claim) => ({
      claim,
      now: NOW + 4,
      sent: true,
      nextAttemptAt: NOW + 5,
      failures: 0,
      problem: undefined,
      end: false,
    })),
  )
  // A copy of the replaced store that is older than the last entries of the journal.
  await leave('grace')
  await it.backup('copy.sqlite')
  await undo('grace')
  await leave('joan')
  await it.opened.close()
  const restored = await it.restore('platform.sqlite', { force: true, sentFrom: it.at('copy.sqlite') })
  expect(restored).toMatchObject({ taken: 2, repeats: 0, replayed: { unsubscribed: 1 } })
  const again = await it.open()
  const due = await again.course.claimDue({ now: NOW + 9, limit: 9, retries: 9, leaseMs: 1, call: 'd' })
  expect(due.map(({ id, day }) => [id, day]).sort()).toEqual([
    ['ada', 2],
    ['grace', 2],
  ])
})

test('who left the replaced store stays out although an older file is named for what was sent, and the journal is older', async () => {
  const it = await store()
  const leave = (id: string) => it.opened.course.unsubscribe({ id, enrolment: 1, now: NOW + 1 })
  await it.backup('b.sqlite')
  await leave('grace')
  await it.backup('kept.sqlite')
  const older = await readFile(it.journal)
  await leave('ada')
  await it.opened.close()
  await writeFile(it.journal, older)
  const restored = await it.restore('platform.sqlite', { force: true, sentFrom: it.at('kept.sqlite') })
  expect(restored.replayed).toMatchObject({ unsubscribed: 2 })
})
