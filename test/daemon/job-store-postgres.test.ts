import { expect, onTestFinished, test } from 'vitest'
import { openPlatform } from '../../src/daemon/index.ts'
import { startPostgres } from '../support/postgres.ts'

test('a job store in PostgreSQL is written and read, and fails in time once it is gone', async () => {
  const server = await startPostgres()
  let running = true
  const stop = async () => {
    if (running) await server.stop()
    running = false
  }
  onTestFinished(stop)
  const url = await server.createDatabase()
  const platform = openPlatform({ env: { JOB_STORE_URL: url } })
  onTestFinished(() => platform.close())
  const jobStore = async () => (await platform.health('api')).probes.job_store
  // The first look also opens the store and makes its tables.
  await expect.poll(jobStore, { timeout: 10_000 }).toMatchObject({ state: 'ok', checked: true })
  const mark = async () =>
    (await server.query(url, `SELECT value FROM platformctl.meta WHERE name = 'ping'`)).rows[0] as unknown
  const before = await mark()
  await jobStore()
  expect(await mark()).not.toEqual(before)

  await stop()
  const began = performance.now()
  const gone = await jobStore()
  expect(gone).toMatchObject({ state: 'failing', checked: true })
  expect(gone?.reason).not.toMatch(/127\.0\.0\.1|postgres|E[A-Z]{5,}/)
  expect(performance.now() - began).toBeLessThan(2000)
})
