import { afterAll, expect, test } from 'vitest'
import { secret } from '../../src/core/secret.ts'
import { openStore } from '../../src/core/store/open.ts'
import { startPgBouncer } from '../support/pgbouncer.ts'
import { hasProgram } from '../support/programs.ts'
import { onlyPostgresBy, openTestStore, postgresServer } from '../support/stores.ts'

if (hasProgram(['pgbouncer', '--version'], 'pgbouncer')) {
  const server = await postgresServer()
  const bouncer = await startPgBouncer(server.port)
  afterAll(() => bouncer.stop())
  const by = (url: string) => url.replace(/:\d+\//, `:${bouncer.port}/`)
  onlyPostgresBy(by)

  test('a parameter of the address that PgBouncer refuses is named, with what to do about it', async () => {
    const url = `${by(await server.createDatabase())}?options=-c%20work_mem%3D8MB`
    await expect(openStore({ kind: 'postgres', url: secret(url) })).rejects.toThrow(
      /behind a PgBouncer that refuses the start-up parameter "options": remove it from STORE_URL, or add it to ignore_startup_parameters/,
    )
  })

  test('limits are of one transaction, and leave nothing on the connections of others', async () => {
    const url = await server.createDatabase()
    const store = await openTestStore({ kind: 'postgres', url: secret(by(url)) })
    await store.course.find('nobody')
    const { rows } = await server.query(by(url), 'SHOW statement_timeout')
    expect(rows).toEqual([{ statement_timeout: '0' }])
  })

  // The behavioral suites, over this one way to a store.
  await import('../core/course/course.test.ts')
  await import('../core/store/sent-mail.test.ts')
  await import('../core/store/account.test.ts')
} else test.skip('PgBouncer in transaction mode: pgbouncer is not installed')
