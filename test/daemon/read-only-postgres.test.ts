import { expect, onTestFinished, test } from 'vitest'
import { silentLog } from '../../src/core/log.ts'
import { systemRandom } from '../../src/core/random.ts'
import { startDaemon } from '../../src/daemon/start.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { emptyFolder } from '../support/folder.ts'
import { startPostgres } from '../support/postgres.ts'
import { serve } from '../support/servers.ts'
import { standingClock } from '../support/standing-clock.ts'

const START = Date.UTC(2026, 10, 21, 9, 30, 5)
const SERVICES = ['web', 'api', 'agent'] as const

interface Told {
  readonly id: string
  readonly what: string
  readonly text: string
}

/** Daemons on a PostgreSQL of their own, which the test makes read-only as an operator or a failover does. */
async function daemonsOn(daemons: number) {
  const server = await startPostgres()
  onTestFinished(() => server.stop())
  const url = await server.createDatabase()
  const told: Told[] = []
  const hook = await serve(async (request, response) => {
    const chunks: Uint8Array[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { type, data } = JSON.parse(Buffer.concat(chunks).toString())
    told.push({
      id: String(request.headers['webhook-id']),
      what: `${data.cause} ${type}`,
      text: `${data.title}\n${data.text}`,
    })
    response.end()
  })
  const running = await Promise.all(
    Array.from({ length: daemons }, async () => {
      const time = standingClock(START)
      const daemon = await startDaemon({
        env: { STORE_URL: url, ALERT_WEBHOOK_URL: hook },
        platform: learning,
        services: SERVICES,
        host: '127.0.0.1',
        ports: { web: 0, api: 0, agent: 0 },
        dataFolder: await emptyFolder(),
        schedule: false,
        clock: time.clock,
        random: systemRandom,
        log: silentLog,
      })
      onTestFinished(() => daemon.close())
      return { ...time, daemon }
    }),
  )
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 5000)
      for (const { waits, pass: step } of running) {
        await expect.poll(waits, { timeout: 30_000, interval: 10 }).toBe(true)
        step(5000)
      }
    for (const { waits } of running) await expect.poll(waits, { timeout: 30_000, interval: 10 }).toBe(true)
  }
  const readOnly = async (state: 'on' | 'off') => {
    await server.query(url, `ALTER SYSTEM SET default_transaction_read_only = ${state}`)
    await server.query(url, 'SELECT pg_reload_conf()')
    await expect
      .poll(async () => (await server.query(url, 'SHOW default_transaction_read_only')).rows[0])
      .toEqual({ default_transaction_read_only: state })
  }
  const web = running[0]?.daemon.urls.web ?? ''
  /** Each message once: a receiver recognizes a repeat by its id. */
  const received = () => [...new Map(told.map((one) => [one.id, one])).values()]
  return { told, received, pass, readOnly, web }
}

test.each([1, 2])(
  'a PostgreSQL that becomes read-only under %i daemons is one alert, says what is true of it, and ends without a restart',
  async (daemons) => {
    const { received, pass, readOnly, web } = await daemonsOn(daemons)
    await pass(60_000)
    await readOnly('on')
    await pass(180_000)
    expect(received().map(({ what }) => what)).toEqual(['store incident.opened'])
    const text = received()[0]?.text ?? ''
    expect(text).toContain('Cause: its server accepts no writes: it is a replica, or was set to read-only.')
    expect(text).not.toMatch(/\bfile\b|remount/)
    const health = await fetch(`${web}/api/health?deep=1`)
    expect(health.status).toBe(503)
    expect(JSON.stringify(await health.json())).not.toMatch(/\bfile\b|remount/)
    const subscribe = () =>
      fetch(`${web}/api/email/subscribe`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ email: 'ada@example.com' }),
      })
    expect((await subscribe()).status).toBe(503)
    await readOnly('off')
    expect((await subscribe()).status).toBe(202)
    await pass(300_000)
    expect((await fetch(`${web}/api/health?deep=1`)).status).toBe(200)
    expect(received().map(({ what }) => what)).toEqual(['store incident.opened', 'store incident.closed'])
  },
  120_000,
)
