import { execFileSync } from 'node:child_process'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import { auditEntry, type Operator } from '../../../src/core/audit.ts'
import { systemRandom } from '../../../src/core/host.ts'
import { openMaintenance, openStore, restoreStore } from '../../../src/core/store/open.ts'
import type { Store } from '../../../src/core/store/store.ts'
import { emptyFolder } from '../../support/folder.ts'
import { begin, nextAfter } from '../../support/learning.ts'
import { addressOf, openTestStore, postgresServer, STORES } from '../../support/stores.ts'

const NOW = Date.UTC(2026, 10, 21)
const OPERATOR: Operator = { name: 'ops', place: 'box-1' }

const entry = (action: 'erase' | 'resolve' | 'restore' | 'suppress', at = NOW, details?: string) =>
  auditEntry({
    action,
    operator: OPERATOR,
    now: at,
    random: systemRandom,
    subject: 'id-ada',
    ...(details !== undefined && { details }),
  })

async function subscribed({ course }: Store): Promise<void> {
  const address = 'ada@example.com'
  await course.requestConfirmation({
    course: 'quantum',
    identity: address,
    address,
    id: 'id-ada',
    tokenHash: 'hash',
    now: NOW,
  })
  await course.confirm({ begin, tokenHash: 'hash', now: NOW })
}

const erasure = {
  identity: 'ada@example.com',
  spellings: ['ada@example.com'],
  recipients: [],
  suppressionHash: 'keyed-hash',
  now: NOW,
}

describe.each(STORES)('%s', (kind) => {
  test('lists what operators did, the newest first, and no more than asked for', async () => {
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
  })

  test('an erasure leaves an entry, and a decision only when there was something to decide', async () => {
    const store = await openTestStore(await addressOf(kind))
    await subscribed(store)
    await store.course.resolve({
      id: 'id-ada',
      as: 'retry',
      now: NOW,
      next: nextAfter,
      audit: entry('resolve'),
    })
    expect(await store.audit.list(10)).toEqual([])
    const [claim] = await store.course.claimDue({ now: NOW, limit: 1, retries: 1, leaseMs: 1000, call: 'c' })
    if (claim === undefined) throw new Error('nothing was due')
    await store.course.settle([
      {
        claim,
        now: NOW,
        sent: false,
        nextAttemptAt: undefined,
        failures: 1,
        problem: { kind: 'parked', reason: 'refused', since: NOW },
        end: false,
      },
    ])
    await store.course.resolve({
      id: 'id-ada',
      as: 'retry',
      now: NOW,
      next: nextAfter,
      audit: entry('resolve', NOW, 'retry'),
    })
    await store.course.erase({ ...erasure, audit: entry('erase', NOW + 1) })
    expect((await store.audit.list(10)).map(({ action, details }) => [action, details])).toEqual([
      ['erase', undefined],
      ['resolve', 'retry'],
    ])
  })
})

test('no entry holds an address, however its details spell it', () => {
  for (const details of ['for ada@example.com, by mail', '"ada l"@example.com', 'ada%40example.com.sqlite'])
    expect(entry('restore', NOW, details).details).toContain('[address]')
  expect(JSON.stringify(entry('restore', NOW, '"ada l"@example.com ada%40example.com'))).not.toMatch(
    /ada l|ada%/,
  )
})

test('in an SQLite store an action and its entry are one transaction, and no entry can be changed', async () => {
  const address = await addressOf('sqlite')
  const store = await openTestStore(address)
  await subscribed(store)
  await store.audit.record(entry('suppress'))
  const beside = new Database(address?.kind === 'sqlite' ? address.file : '')
  onTestFinished(() => void beside.close())
  expect(() => beside.exec(`UPDATE audit SET who = 'nobody'`)).toThrow('append-only')
  expect(() => beside.exec('DELETE FROM audit')).toThrow('append-only')
  beside.exec('DROP TABLE audit')
  await expect(store.course.erase({ ...erasure, audit: entry('erase') })).rejects.toThrow()
  expect(await store.course.findById('id-ada')).toBeDefined()
})

test('in a PostgreSQL store an action and its entry are one transaction, and no entry can be changed', async () => {
  const address = await addressOf('postgres')
  const store = await openTestStore(address)
  await subscribed(store)
  await store.audit.record(entry('suppress'))
  const { query } = await postgresServer()
  const sql = (text: string) => query(address?.kind === 'postgres' ? address.url.reveal() : '', text)
  for (const change of [
    `UPDATE platformctl.audit SET who = 'nobody'`,
    'DELETE FROM platformctl.audit',
    'TRUNCATE platformctl.audit',
  ])
    await expect(sql(change)).rejects.toThrow('append-only')
  await sql('DROP TABLE platformctl.audit')
  await expect(store.course.erase({ ...erasure, audit: entry('erase') })).rejects.toThrow()
  expect(await store.course.findById('id-ada')).toBeDefined()
})

test('a restore keeps what operators did after the backup, and is in the log itself', async () => {
  const folder = await emptyFolder()
  const file = `${folder}/platform.sqlite`
  const store = await openStore({ kind: 'sqlite', file })
  await subscribed(store)
  await store.audit.record(entry('suppress', NOW))
  const maintenance = await openMaintenance({ kind: 'sqlite', file })
  await maintenance.backup(`${folder}/b.sqlite`, NOW)
  await maintenance.close()
  await store.course.erase({ ...erasure, audit: entry('erase', NOW + 1) })
  await store.close()
  const restored = async (at: number) => {
    await restoreStore(
      { kind: 'sqlite', file },
      { from: `${folder}/b.sqlite`, force: true, now: at, audit: entry('restore', at, 'b.sqlite') },
    )
    const again = await openMaintenance({ kind: 'sqlite', file })
    onTestFinished(() => again.close())
    const entries = await again.audit(10)
    await again.close()
    return entries.map(({ action }) => action)
  }
  expect(await restored(NOW + 5000)).toEqual(['restore', 'erase', 'suppress'])
  expect(await restored(NOW + 9000)).toEqual(['restore', 'restore', 'erase', 'suppress'])
  expect(String(execFileSync('sh', ['-c', `cat "${folder}"/platform-journal.jsonl`]))).not.toContain('ada@')
})
