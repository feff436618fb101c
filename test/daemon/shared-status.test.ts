import { isDeepStrictEqual } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { openPlatform } from '../../src/daemon/index.ts'
import { startLearningDaemon } from '../support/daemon.ts'
import { emptyFolder } from '../support/folder.ts'
import { standingClock } from '../support/standing-clock.ts'
import { postgresServer } from '../support/stores.ts'

interface Page {
  readonly since: string
  readonly services: readonly unknown[]
}

const START = Date.UTC(2026, 10, 21, 9, 30)

test('two daemons on one PostgreSQL show the same page, and one that comes later shows what was before it', async () => {
  const STORE_URL = await (await postgresServer()).createDatabase()
  const { clock, waits, pass } = standingClock(START)
  const start = async () => {
    const daemon = await startLearningDaemon({ env: { STORE_URL }, dataFolder: await emptyFolder(), clock })
    onTestFinished(() => daemon.close())
    return async () => (await (await fetch(`${daemon.urls.web}/status.json`)).json()) as Page
  }
  const minute = async () => {
    for (let passed = 0; passed < 60_000; passed += 5000) {
      await expect.poll(waits, { interval: 5 }).toBe(true)
      pass(5000)
    }
    await expect.poll(waits, { interval: 5 }).toBe(true)
  }
  const first = await start()
  await minute()
  await minute()
  const second = await start()
  await expect.poll(async () => (await second()).since, { interval: 20 }).toBe('2026-11-21T09:30:00.000Z')
  await minute()
  let page: Page | undefined
  await expect
    .poll(async () => {
      // A read is cached for ten seconds.
      pass(10_000)
      page = await first()
      return isDeepStrictEqual(page, await second())
    })
    .toBe(true)
  expect(page?.services[0]).toMatchObject({ service: 'web', state: 'ok', last24Hours: { uptime: 1 } })

  // A program that records nothing itself shows what the daemons beside it record.
  const beside = openPlatform({ env: { STORE_URL }, clock })
  onTestFinished(() => beside.close())
  const shown = async () => {
    const answer = await beside.web.fetch(new Request('http://web.example/status.json'))
    return (await answer.json()) as Page & { readonly recorded: string }
  }
  // On a busy machine the first answer comes before the store's.
  await expect.poll(async () => (await shown()).recorded).toBe('file')
  const { since, services } = await shown()
  expect(since).toBe(page?.since)
  expect(services[0]).toMatchObject({ service: 'web', state: 'ok', last24Hours: { uptime: 1 } })
})

test('a program that is closed leaves no connection to its PostgreSQL', async () => {
  const { createDatabase, query } = await postgresServer()
  const STORE_URL = await createDatabase()
  const platform = openPlatform({ env: { STORE_URL } })
  onTestFinished(() => platform.close())
  await platform.courses.list({ email: 'ada@example.com' })
  await platform.web.fetch(new Request('http://web.example/status.json'))
  const connections = async () => {
    const others = 'datname = current_database() AND pid <> pg_backend_pid()'
    const { rows } = await query(STORE_URL, `SELECT count(*)::int AS n FROM pg_stat_activity WHERE ${others}`)
    return rows[0]?.n as number
  }
  // The store's, and one for what was recorded of health.
  await expect.poll(connections).toBeGreaterThan(1)
  await platform.close()
  // Idle ones would end by themselves after ten seconds.
  await expect.poll(connections, { timeout: 5000 }).toBe(0)
})
