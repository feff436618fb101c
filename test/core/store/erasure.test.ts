import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { storeWith } from '../../support/restoring.ts'
import { subscribe } from '../../support/subscribers.ts'

/** How often the text occurs in the bytes of the files of a store. */
function occurrences(folder: string, text: string): number {
  return readdirSync(folder)
    .filter((name) => name.startsWith('platform') && !name.includes('before'))
    .reduce((sum, name) => sum + readFileSync(path.join(folder, name), 'latin1').split(text).length - 1, 0)
}

test('no byte of an erased address stays in the file or its log, related rows included', async () => {
  const it = await storeWith()
  // Enough rows that SQLite splits pages, which leaves copies behind.
  for (let n = 0; n < 300; n += 1) await subscribe(it.store, `person-${n}`)
  const beside = new Database(it.file)
  beside.exec(`
    INSERT INTO organisation (id, name) VALUES ('o', 'Org');
    INSERT INTO organisation_invite (id, organisation, address, url) VALUES ('i', 'o', 'Person-150@Example.com', '/i');
    INSERT INTO login_request (id, address, url, expires_at) VALUES ('l', 'person-150@example.com', '/l', 1);
    INSERT INTO sent_mail (key, first_attempt_at, recipient) VALUES ('k', 1, 'recipient-person-150');`)
  beside.close()
  expect(occurrences(it.folder, 'erson-150@')).toBeGreaterThan(0)
  const gone = await it.erase('person-150', { recipients: ['recipient-person-150'] })
  expect(gone).toEqual({ existed: true, related: 3, bytesGone: true })
  expect(occurrences(it.folder, 'erson-150@')).toBe(0)
  expect(occurrences(it.folder, 'recipient-person-150')).toBe(0)
  expect(occurrences(it.folder, 'person-151@')).toBeGreaterThan(0)
})

test('an erasure leaves nothing of what a killed restore left beside the store', async () => {
  const it = await storeWith()
  await subscribe(it.store, 'ada')
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
  const it = await storeWith()
  await subscribe(it.store, 'ada')
  const reader = new Database(it.file)
  reader.exec(`INSERT INTO login_request VALUES ('l', 'Grace@Example.com', '/l', 1); BEGIN`)
  reader.prepare('SELECT count(*) FROM subscription').get()
  expect(await it.erase('grace')).toMatchObject({ related: 1, bytesGone: false })
  expect(await it.erase('ada')).toMatchObject({ existed: true, bytesGone: false })
  reader.exec('COMMIT')
  reader.close()
  expect(await it.erase('ada')).toMatchObject({ existed: false, bytesGone: true })
  expect(occurrences(it.folder, 'ada@example')).toBe(0)
}, 30_000)
