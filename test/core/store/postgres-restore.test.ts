import { readFile } from 'node:fs/promises'
import { expect, onTestFinished, test } from 'vitest'
import { auditEntry, PROGRAM } from '../../../src/core/audit.ts'
import { systemRandom } from '../../../src/core/random.ts'
import { secret } from '../../../src/core/secret.ts'
import { TABLES } from '../../../src/core/store/copy.ts'
import { openMaintenance, openStore } from '../../../src/core/store/open.ts'
import { begin } from '../../support/learning.ts'
import { postgresServer } from '../../support/stores.ts'

const NOW = Date.UTC(2026, 10, 21)
const SQL = new URL('../../../runbooks/postgresql-after-restore.sql', import.meta.url)

test('after an older dump was restored into PostgreSQL, what people and operators ended since stays ended', async () => {
  const server = await postgresServer()
  const url = await server.createDatabase()
  const sql = (text: string) => server.query(url, text)
  const store = await openStore({ kind: 'postgres', url: secret(url) })
  onTestFinished(() => store.close())
  const { course } = store
  for (const name of ['ada', 'grace', 'joan', 'mary']) {
    const identity = `${name}@example.com`
    await course.requestConfirmation({
      course: 'quantum',
      identity,
      address: identity,
      id: name,
      tokenHash: name,
      now: NOW,
    })
    await course.confirm({ begin, tokenHash: name, now: NOW })
  }
  await course.unsubscribe({ id: 'mary', enrolment: 1, now: NOW })
  await sql(`INSERT INTO platformctl.login_request VALUES ('l', 'joan@example.com', 'https://x', 5)`)
  // The dump, and later the schema that it replaces: copies of the tables under other names.
  const keep = async (schema: string) => {
    await sql(`CREATE SCHEMA ${schema}`)
    for (const table of TABLES) await sql(`CREATE TABLE ${schema}.${table} AS TABLE platformctl.${table}`)
  }
  await keep('dump')
  await course.claimDue({ now: NOW, limit: 1, retries: 1, leaseMs: 60_000, call: 'c' })
  await course.unsubscribe({ id: 'ada', enrolment: 1, now: NOW + 1 })
  await course.erase({
    identity: 'joan@example.com',
    spellings: ['joan@example.com'],
    recipients: [],
    suppressionHash: 'suppressed-joan',
    now: NOW + 1,
    audit: auditEntry({ action: 'erase', operator: PROGRAM, now: NOW + 1, random: systemRandom }),
  })
  await sql(
    `INSERT INTO platformctl.mailbox (identity, cause, suppressed_at) VALUES ('grace@example.com', 'complaint', 1)`,
  )
  await keep('platformctl_before')
  await sql('ALTER TABLE platformctl.audit DISABLE TRIGGER ALL')
  for (const table of [...TABLES].reverse()) await sql(`DELETE FROM platformctl.${table}`)
  await sql('ALTER TABLE platformctl.audit ENABLE TRIGGER ALL')
  for (const table of TABLES) await sql(`INSERT INTO platformctl.${table} SELECT * FROM dump.${table}`)

  const state = async (name: string) => (await course.find(`${name}@example.com`))?.state
  const states = () => Promise.all(['ada', 'grace', 'joan', 'mary'].map(state))
  expect(await states()).toEqual(['confirmed', 'confirmed', 'confirmed', 'unsubscribed'])
  const text = await readFile(SQL, 'utf8')
  for (let twice = 0; twice < 2; twice += 1) {
    await sql(`BEGIN; ${text}; COMMIT`)
    expect(await states()).toEqual(['unsubscribed', 'confirmed', undefined, 'unsubscribed'])
    expect(await course.isSuppressed('suppressed-joan')).toBe(true)
    expect((await store.audit.list(10)).map(({ action }) => action)).toEqual(['erase'])
    expect((await sql('SELECT identity FROM platformctl.mailbox')).rows).toEqual([
      { identity: 'grace@example.com' },
    ])
    expect((await sql('SELECT id FROM platformctl.login_request')).rows).toEqual([])
  }
  const maintenance = await openMaintenance({ kind: 'postgres', url: secret(url) })
  onTestFinished(() => maintenance.close())
  expect(await maintenance.verify(NOW + 2)).toMatchObject({ ok: true, checked: 3 })
})
