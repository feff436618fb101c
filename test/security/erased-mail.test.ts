import { createHash } from 'node:crypto'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { openPlatform } from '../../src/daemon/platform.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { accountPlatform, bodyOf, clock, token } from '../support/accounts.ts'
import { openTestStore } from '../support/stores.ts'

test('an erasure leaves nothing in the store that an address could be tried on, before it or after', async () => {
  const { post, file } = await accountPlatform()
  const sent = await post('/api/email', { template: 'welcome', inputs: {} }, await token())
  expect(await bodyOf(sent)).toMatchObject({ sent: true })
  const database = new Database(file)
  onTestFinished(() => void database.close())
  const tables = ['sent_mail', 'suppression', 'audit']
  const rows = () => JSON.stringify(tables.map((name) => database.prepare(`SELECT * FROM ${name}`).all()))
  const [recipient, ...others] = database.prepare('SELECT recipient FROM sent_mail').pluck().all()
  expect(others).toEqual([])
  expect(recipient).toMatch(/^[\w-]{43}$/)
  const nobodyFindsAda = () => {
    for (const encoding of ['hex', 'base64', 'base64url'] as const)
      for (const before of ['', 'other ', 'recipient:other ', 'suppression:'])
        expect(rows()).not.toContain(createHash('sha256').update(`${before}ada@example.com`).digest(encoding))
  }
  nobodyFindsAda()
  // The mail has left, and is recorded soon after the answer.
  await expect.poll(() => database.prepare('SELECT count(*) FROM message').pluck().get()).toBe(0)
  const store = await openTestStore({ kind: 'sqlite', file })
  const again = openPlatform({ platform: learning, env: {}, store, clock })
  expect(await (await again.course()).erase('ada@example.com')).toMatchObject({ existed: false, related: 1 })
  expect(rows()).not.toContain(String(recipient))
  nobodyFindsAda()
})
