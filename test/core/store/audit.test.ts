import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { auditEntry, type Operator } from '../../../src/core/audit.ts'
import { systemRandom } from '../../../src/core/host.ts'
import { releaseChange } from '../../../src/core/mail/feedback/store.ts'
import { openMaintenance } from '../../../src/core/store/open.ts'
import { byHand } from '../../support/by-hand.ts'
import { NOW, storeWith } from '../../support/restoring.ts'
import { addressOf, openTestStore, postgresServer } from '../../support/stores.ts'
import { erasureOf, subscribe } from '../../support/subscribers.ts'

const OPERATOR: Operator = { name: 'ops', place: 'box-1' }

const entry = (action: 'erase' | 'restore' | 'suppress', at = NOW, details?: string) =>
  auditEntry(
    { clock: { now: () => at }, random: systemRandom },
    { action, operator: OPERATOR, subject: 'id-ada', details },
  )

const erasure = erasureOf('ada', 'keyed-hash', NOW)

test.each(['sqlite', 'postgres'] as const)(
  'lists what operators did on %s, the newest first, and no more than asked for',
  async (kind) => {
    const { audit } = await openTestStore(await addressOf(kind))
    for (const [at, action] of [
      [NOW, 'suppress'],
      [NOW + 2, 'restore'],
      [NOW + 1, 'erase'],
    ] as const)
      await audit.record(entry(action, at))
    expect((await audit.list(10)).map(({ action }) => action)).toEqual(['restore', 'erase', 'suppress'])
    expect(await audit.list(2)).toHaveLength(2)
    expect((await audit.list(1))[0]).toMatchObject({
      who: 'ops',
      place: 'box-1',
      subject: 'id-ada',
      details: undefined,
    })
  },
)

test('no entry holds an address, however its details spell it', () => {
  for (const details of ['for ada@example.com, by mail', '"ada l"@example.com', 'ada%40example.com.sqlite'])
    expect(entry('restore', NOW, details).details).toContain('[address]')
  expect(JSON.stringify(entry('restore', NOW, '"ada l"@example.com ada%40example.com'))).not.toMatch(
    /ada l|ada%/,
  )
})

test.each(['sqlite', 'postgres'] as const)(
  'on %s an action and its entry are one transaction, and no entry can be changed',
  async (kind) => {
    const address = await addressOf(kind)
    const store = await openTestStore(address)
    await subscribe(store, 'ada')
    await store.audit.record(entry('suppress'))
    const file = address.kind === 'sqlite' ? new Database(address.file) : undefined
    onTestFinished(() => void file?.close())
    const { query } = await postgresServer()
    const sql = async (text: string) =>
      address.kind === 'sqlite'
        ? file?.exec(text)
        : query(address.url.reveal(), `SET search_path = platformctl; ${text}`)
    const changes = [`UPDATE audit SET who = 'nobody'`, 'DELETE FROM audit']
    // SQLite has no TRUNCATE.
    for (const change of kind === 'sqlite' ? changes : [...changes, 'TRUNCATE audit'])
      await expect(sql(change)).rejects.toThrow('append-only')
    await sql('DROP TABLE audit')
    await expect(store.course.erase({ ...erasure, audit: entry('erase') })).rejects.toThrow()
    expect(await store.course.findById('ada')).toBeDefined()
  },
)

test('an address whose release is not committed stays suppressed in the journal', async () => {
  const it = await storeWith('ada')
  await it.suppress('ada')
  await byHand({ kind: 'sqlite', file: it.file }, 'DROP TABLE audit')
  const release = releaseChange('ada@example.com', { at: NOW, reason: 'asked', source: 'operator' })
  await expect(it.store.feedback.apply([release], NOW, entry('suppress'))).rejects.toThrow()
  expect(await it.journalText()).not.toContain('released')
})

test('a restore keeps what operators did after the backup, and is in the log itself', async () => {
  const it = await storeWith('ada')
  await it.store.audit.record(entry('suppress', NOW))
  await it.backup()
  await it.store.course.erase({ ...erasure, audit: entry('erase', NOW + 1) })
  await it.store.close()
  const restored = async (now: number) => {
    await it.restore({ now, audit: entry('restore', now, 'b.sqlite') })
    const maintenance = await openMaintenance({ kind: 'sqlite', file: it.file })
    const entries = await maintenance.audit(10)
    await maintenance.close()
    return entries.map(({ action }) => action)
  }
  expect(await restored(NOW + 5000)).toEqual(['restore', 'erase', 'suppress'])
  expect(await restored(NOW + 9000)).toEqual(['restore', 'restore', 'erase', 'suppress'])
  expect(await it.journalText()).not.toContain('ada@')
})
