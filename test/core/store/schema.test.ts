import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { POSTGRES_STEPS, SQLITE_STEPS } from '../../../src/core/store/migrations.ts'
import { openMaintenance, openStore, readSchema } from '../../../src/core/store/open.ts'
import { createPool } from '../../../src/core/store/postgres/connection.ts'
import { migrate } from '../../../src/core/store/postgres/sql.ts'
import { atOnce } from '../../../src/core/store/schema.ts'
import { connect } from '../../../src/core/store/sqlite/connection.ts'
import { migrateFile } from '../../../src/core/store/sqlite/sql.ts'
import { emptyFolder } from '../../support/folder.ts'
import { newDatabase } from '../../support/stores.ts'

test('the schema of a PostgreSQL store is read without making or migrating it', async () => {
  const { address, query } = await newDatabase()
  expect(await readSchema(address)).toBeUndefined()
  expect((await query(`SELECT to_regnamespace('platformctl') AS name`)).rows).toEqual([{ name: null }])
  await (await openStore(address)).close()
  const found = await readSchema(address)
  expect(found?.version).toBe(found?.latest)
  await query('UPDATE platformctl.schema_version SET version = 1')
  expect(await readSchema(address)).toMatchObject({ version: 1 })
})

test('whoever opens a PostgreSQL store that an older build made hears of its versions, once', async () => {
  const { address } = await newDatabase()
  const pool = createPool({ url: address.url, size: 1 })
  await migrate(pool, POSTGRES_STEPS.slice(0, -1))
  await pool.end()
  const heard: unknown[] = []
  const onMigrate = (from: number, to: number) => void heard.push([from, to])
  for (const again of [address, address, (await newDatabase()).address])
    await (await openStore(again, { onMigrate })).close()
  expect(heard).toEqual([[POSTGRES_STEPS.length - 1, POSTGRES_STEPS.length]])
})

test('a new SQLite store has to the letter the schema that its steps make one after the other', () => {
  const objects = (...scripts: readonly string[]) => {
    const database = new Database(':memory:')
    for (const script of scripts) database.exec(script)
    const found = database.prepare<[], { sql: string }>('SELECT type, name, tbl_name, sql FROM sqlite_schema')
    return found.all().map((one) => ({ ...one, sql: one.sql?.replace(/\s+/g, ' ') }))
  }
  const whole = atOnce(SQLITE_STEPS)
  expect(whole).not.toContain('ALTER TABLE')
  expect(objects(whole)).toEqual(objects(...SQLITE_STEPS))
})

test('a new PostgreSQL store has the columns, indexes, constraints and triggers that its steps make one after the other', async () => {
  const objects = async (...scripts: readonly string[]) => {
    const { query } = await newDatabase()
    for (const script of ['CREATE SCHEMA platformctl', ...scripts]) await query(script)
    return (
      await query(
        `SELECT table_name, ordinal_position::text, concat_ws(' ', column_name, data_type, is_nullable, column_default) AS text
        FROM information_schema.columns WHERE table_schema = 'platformctl'
        UNION ALL SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'platformctl'
        UNION ALL SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'platformctl'::regnamespace
        UNION ALL SELECT tgrelid::regclass::text, tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
        ORDER BY 1, 2, 3`,
      )
    ).rows
  }
  const whole = await objects(atOnce(POSTGRES_STEPS))
  expect(whole.length).toBeGreaterThan(200)
  expect(whole).toEqual(await objects(...POSTGRES_STEPS))
})

test.each(['sqlite', 'postgres'] as const)(
  'a store of the build before courses, on %s, is verified before it is migrated, and not said to be damaged',
  async (kind) => {
    const isFile = kind === 'sqlite'
    const { address, query } = await newDatabase()
    const file = path.join(await emptyFolder(), 'platform.sqlite')
    const row = `subscription (id, identity, address, state, enrolment, created_at, confirmed_at, next_attempt_at)
      VALUES ('ada', 'ada@example.com', 'ada@example.com', 'confirmed', 1, 0, 0, 0)`
    if (isFile) {
      const database = connect({ file })
      await migrateFile(database, file, SQLITE_STEPS.slice(0, 11))
      database.exec(`INSERT INTO ${row}`)
      database.close()
    } else {
      const pool = createPool({ url: address.url, size: 1 })
      await migrate(pool, POSTGRES_STEPS.slice(0, 11)).finally(() => pool.end())
      await query(`INSERT INTO platformctl.${row}`)
    }
    const maintenance = await openMaintenance(isFile ? { kind, file } : address)
    onTestFinished(() => maintenance.close())
    expect(await maintenance.verify(0)).toMatchObject({ ok: true, damaged: false, faults: [] })
    const steps = await maintenance.pending()
    expect([steps[0]?.version, steps.at(-1)?.version]).toEqual([12, SQLITE_STEPS.length])
    await maintenance.migrate()
    expect(await maintenance.verify(0)).toMatchObject({ ok: true, checked: 1 })
  },
)
