import { execFileSync, spawnSync } from 'node:child_process'
import { chownSync, copyFileSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { hostname } from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { openMaintenance, openStore, restoreStore } from '../../../src/core/store/open.ts'
import { emptyFolder } from '../../support/folder.ts'
import { begin } from '../../support/learning.ts'
import { isErased } from '../../support/stores.ts'

const NOW = Date.UTC(2026, 10, 21)

async function store() {
  const folder = await emptyFolder()
  const file = path.join(folder, 'platform.sqlite')
  const opened = await openStore({ kind: 'sqlite', file })
  let open = true
  const close = async () => {
    if (open) await opened.close()
    open = false
  }
  onTestFinished(close)
  const confirmed = async (name: string, course = 'quantum', id = `id-${name}`) => {
    const address = `${name}@example.com`
    const tokenHash = `hash-${id}`
    await opened.course.requestConfirmation({
      course,
      identity: address,
      address,
      id,
      tokenHash,
      now: NOW,
    })
    await opened.course.confirm({ begin, tokenHash, now: NOW })
  }
  const erase = (name: string) =>
    opened.course.erase({
      identity: `${name}@example.com`,
      spellings: [`${name}@example.com`],
      recipients: [`recipient-${name}`],
      suppressionHash: `suppressed-${name}`,
      now: NOW,
    })
  const backup = async (to: string) => {
    const maintenance = await openMaintenance({ kind: 'sqlite', file })
    await maintenance.backup(path.join(folder, to), NOW)
    await maintenance.close()
    return path.join(folder, to)
  }
  return { folder, file, opened, close, confirmed, erase, backup }
}

/** How often the text occurs in the files of a store, as `strings` and `grep` find it. */
function occurrences(folder: string, text: string): number {
  return readdirSync(folder)
    .filter((name) => name.startsWith('platform') && !name.includes('before'))
    .reduce((sum, name) => {
      const found = execFileSync('sh', [
        '-c',
        'grep -a -o -- "$1" "$2" | wc -l',
        'sh',
        text,
        path.join(folder, name),
      ])
      return sum + Number(String(found).trim())
    }, 0)
}

test('no byte of an erased address stays in the file or its log, related rows included', async () => {
  const it = await store()
  // Enough rows that SQLite splits pages, which leaves copies behind.
  for (let n = 0; n < 300; n += 1) await it.confirmed(`person-${n}`)
  const beside = new Database(it.file)
  beside.exec(`
    INSERT INTO organisation (id, name) VALUES ('o', 'Org');
    INSERT INTO organisation_invite (id, organisation, address, url) VALUES ('i', 'o', 'Person-150@Example.com', '/i');
    INSERT INTO login_request (id, address, url, expires_at) VALUES ('l', 'person-150@example.com', '/l', 1);
    INSERT INTO sent_mail (key, first_attempt_at, recipient) VALUES ('k', 1, 'recipient-person-150');`)
  beside.close()
  expect(occurrences(it.folder, 'erson-150@')).toBeGreaterThan(0)
  expect(await it.erase('person-150')).toEqual({ existed: true, related: 3, bytesGone: true })
  expect(occurrences(it.folder, 'erson-150@')).toBe(0)
  expect(occurrences(it.folder, 'recipient-person-150')).toBe(0)
  expect(occurrences(it.folder, 'person-151@')).toBeGreaterThan(0)
})

test('an erasure leaves nothing of what a killed restore left beside the store', async () => {
  const it = await store()
  await it.confirmed('ada')
  const { pid } = spawnSync('true')
  const [abandoned, busy] = [pid, process.pid].map((one) =>
    path.join(it.folder, `.platformctl-${hostname()}-${one}-x`),
  )
  for (const made of [abandoned, busy]) mkdirSync(String(made))
  copyFileSync(it.file, path.join(String(abandoned), 'image.sqlite'))
  expect(await it.erase('ada')).toMatchObject({ existed: true, bytesGone: true })
  expect(readdirSync(it.folder).filter((name) => name.startsWith('.'))).toEqual([path.basename(String(busy))])
})

test('an erasure that another reader keeps from the file says so, and takes effect when repeated', async () => {
  const it = await store()
  await it.confirmed('ada')
  const reader = new Database(it.file)
  reader.exec('BEGIN')
  reader.prepare('SELECT count(*) FROM subscription').get()
  expect(await it.erase('ada')).toMatchObject({ existed: true, bytesGone: false })
  reader.exec('COMMIT')
  reader.close()
  expect(await it.erase('ada')).toMatchObject({ existed: false, bytesGone: true })
  expect(occurrences(it.folder, 'ada@example')).toBe(0)
}, 30_000)

test('a restore does again what happened after the backup: unsubscribes, undone ones and erasures', async () => {
  const it = await store()
  for (const name of ['ada', 'grace', 'joan', 'mary']) await it.confirmed(name)
  await it.confirmed('joan', 'pottery', 'id-joan-2')
  await it.opened.course.unsubscribe({ id: 'id-mary', enrolment: 1, now: NOW })
  const from = await it.backup('b.sqlite')
  await it.opened.course.unsubscribe({ id: 'id-ada', enrolment: 1, now: NOW + 1 })
  await it.opened.course.unsubscribe({ id: 'id-grace', enrolment: 1, now: NOW + 1 })
  await it.opened.course.undoUnsubscribe({ id: 'id-grace', enrolment: 1, now: NOW + 2 })
  await it.opened.course.undoUnsubscribe({ id: 'id-mary', enrolment: 1, now: NOW + 2 })
  await it.erase('joan')
  await it.close()

  const restored = await restoreStore({ kind: 'sqlite', file: it.file }, { from, force: true, now: NOW + 3 })
  expect(restored.replayed).toMatchObject({ unsubscribed: 1, undone: 1, erased: 1 })
  const again = await openStore({ kind: 'sqlite', file: it.file })
  onTestFinished(() => again.close())
  const state = async (name: string) => (await again.course.find(`${name}@example.com`))?.state
  expect([await state('ada'), await state('grace'), await state('joan'), await state('mary')]).toEqual([
    'unsubscribed',
    'confirmed',
    undefined,
    'confirmed',
  ])
  expect(await isErased(again, 'suppressed-joan')).toBe(true)
  for (const id of ['id-joan', 'id-joan-2']) expect(await again.course.findById(id)).toBeUndefined()
})

test('a restore ends the course of somebody who left when it had begun again after the backup', async () => {
  const it = await store()
  await it.confirmed('ada')
  const from = await it.backup('b.sqlite')
  const beside = new Database(it.file)
  beside.exec(`UPDATE subscription SET sent_days = '[1,2,3,4,5,6,7]', next_attempt_at = NULL`)
  beside.close()
  const again = { identity: 'ada@example.com', mailboxKey: 'ada@example.com', address: 'ada@example.com' }
  const enrolled = await it.opened.course.enrol({
    ...again,
    begin,
    course: 'quantum',
    id: 'new',
    now: NOW + 1,
  })
  expect(enrolled).toMatchObject({ id: 'id-ada', enrolment: 2 })
  await it.opened.course.unsubscribe({ id: 'id-ada', enrolment: 2, now: NOW + 2 })
  await it.close()

  const restored = await restoreStore({ kind: 'sqlite', file: it.file }, { from, force: true, now: NOW + 3 })
  expect(restored.replayed).toMatchObject({ unsubscribed: 1 })
  const after = await openStore({ kind: 'sqlite', file: it.file })
  onTestFinished(() => after.close())
  expect(await after.course.find('ada@example.com')).toMatchObject({ state: 'unsubscribed', enrolment: 1 })
})

test('a torn line of the journal loses no other line', async () => {
  const it = await store()
  await it.confirmed('ada')
  const from = await it.backup('b.sqlite')
  execFileSync('sh', [
    '-c',
    'printf \'{"what":"erased","at\' >> "$1"',
    'sh',
    path.join(it.folder, 'platform-journal.jsonl'),
  ])
  await it.opened.course.unsubscribe({ id: 'id-ada', enrolment: 1, now: NOW })
  await it.close()
  const { replayed } = await restoreStore({ kind: 'sqlite', file: it.file }, { from, force: true, now: NOW })
  expect(replayed).toMatchObject({ unsubscribed: 1, undone: 0, erased: 0 })
})

test.skipIf(process.getuid?.() !== 0)(
  'restored by the superuser, the store belongs to the user of the daemon',
  async () => {
    const it = await store()
    await it.confirmed('ada')
    const from = await it.backup('b.sqlite')
    await it.close()
    chownSync(it.folder, 65534, 65534)
    chownSync(it.file, 65534, 65534)
    const { kept } = await restoreStore({ kind: 'sqlite', file: it.file }, { from, force: true, now: NOW })
    expect([statSync(it.file).uid, statSync(kept ?? '').uid]).toEqual([65534, 65534])
    const fresh = path.join(it.folder, 'other.sqlite')
    await restoreStore(
      { kind: 'sqlite', file: fresh },
      { from, force: false, now: NOW, withoutJournal: true },
    )
    expect(statSync(fresh).uid).toBe(65534)
  },
)
