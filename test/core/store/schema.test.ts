import { expect, test } from 'vitest'
import { secret } from '../../../src/core/secret.ts'
import { openStore, readSchema } from '../../../src/core/store/open.ts'
import { postgresServer } from '../../support/stores.ts'

const server = await postgresServer()

test('the schema of a PostgreSQL store is read without making or migrating it', async () => {
  const url = await server.createDatabase()
  const address = { kind: 'postgres', url: secret(url) } as const
  expect(await readSchema(address)).toBeUndefined()
  expect((await server.query(url, `SELECT to_regnamespace('platformctl') AS name`)).rows).toEqual([
    { name: null },
  ])
  await (await openStore(address)).close()
  const found = await readSchema(address)
  expect(found?.version).toBe(found?.latest)
  await server.query(url, 'UPDATE platformctl.schema_version SET version = 1')
  expect(await readSchema(address)).toMatchObject({ version: 1 })
})

test('a PostgreSQL that accepts no writes is refused, though its schema can be read', async () => {
  const url = await server.createDatabase()
  await (await openStore({ kind: 'postgres', url: secret(url) })).close()
  const name = new URL(url).pathname.slice(1)
  await server.query(url, `ALTER DATABASE ${name} SET default_transaction_read_only = on`)
  await expect(readSchema({ kind: 'postgres', url: secret(url) })).rejects.toThrow(
    /^The PostgreSQL of STORE_URL can only be read: name the primary/,
  )
})

test('a PostgreSQL that refuses the password says so, without the address', async () => {
  const url = secret((await server.createDatabase()).replace('only-for-tests', 'canary'))
  await expect(readSchema({ kind: 'postgres', url })).rejects.toThrow(
    /^The PostgreSQL of STORE_URL refused the user or the password\.$/,
  )
})
