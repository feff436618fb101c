import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { auditEntry, PROGRAM } from '../../src/core/audit.ts'
import { silentLog, systemRandom } from '../../src/core/host.ts'
import { readPackageFile } from '../../src/core/package-files.ts'
import { openStore } from '../../src/core/store/open.ts'
import { startDaemon } from '../../src/daemon/start.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { emptyFolder } from '../support/folder.ts'
import { enrolIn } from '../support/learning.ts'
import { healthBody, serveBodies, serveTls } from '../support/servers.ts'
import { standingClock } from '../support/standing-clock.ts'

const START = Date.UTC(2026, 10, 21, 9, 30)
const MINUTE_MS = 60_000
const GB = 1024 ** 3
const tls = (name: string) => readFileSync(new URL(`../fixtures/tls/${name}`, import.meta.url), 'utf8')

async function stoppable(
  body: () => string,
  status = () => 200,
): Promise<{ readonly server: Server; readonly url: string }> {
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(request.method === 'POST' ? status() : 200).end(body())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const close = (server: Server) =>
  new Promise((resolve) => {
    server.close(resolve)
    server.closeAllConnections()
  })

interface Told {
  readonly cause: string
  readonly type: string
  readonly text: string
  readonly at: number
}

test('each fault of a bare install raises an alert within 90 seconds, with cause, time, meaning, command and runbook', async () => {
  const told: Told[] = []
  const hook = await serveBodies((body, response) => {
    const { type, timestamp, data } = JSON.parse(body)
    told.push({ type, cause: data.cause, text: data.text, at: Date.parse(timestamp) })
    response.end()
  })
  let [agentBuild, freeBytes] = ['b2', 5 * GB]
  const api = await stoppable(() => healthBody({ service: 'api', build: 'b2' }))
  const agent = await stoppable(() => healthBody({ service: 'agent', build: agentBuild }))
  let mailStatus = 200
  const mail = await stoppable(
    () => '{}',
    () => mailStatus,
  )
  // Signed by nobody that this machine trusts.
  const badCertificate = await serveTls(
    { cert: tls('loopback.crt'), key: tls('loopback.key') },
    (_, response) => response.end(),
  )
  const { clock, waits, pass } = standingClock(START)
  const dataFolder = await emptyFolder()
  const file = path.join(dataFolder, 'platform.sqlite')
  const store = await openStore({ kind: 'sqlite', file })
  // A lesson due at eight, which the run of nine should have sent at the latest.
  const then = START - 90 * MINUTE_MS
  await enrolIn(store, 'ada', then)
  // Late five minutes after the start: an hour and a tenth of it after this.
  await store.heartbeats.expect({ name: 'backup', now: START + 5 * MINUTE_MS - 66 * MINUTE_MS })
  await store.close()
  const options = {
    env: {
      ALERT_WEBHOOK_URL: hook,
      BUILD_STAMP: 'b2',
      API_URL: api.url,
      AGENT_URL: agent.url,
      MAILER_API_KEY: 'a-key-of-the-mail-provider',
      MAILER_API_URL: mail.url,
      MAILER_FROM: 'Kiln <kiln@example.com>',
      NEXT_PUBLIC_DATASTORE_URL: badCertificate,
      NEXT_PUBLIC_DATASTORE_ANON_KEY: 'anon-key-of-the-data-store',
    },
    platform: resolvePlatform(
      { preset: 'learning', heartbeats: { backup: { every: '1h' } } },
      { folder: '/' },
    ),
    services: ['web'] as const,
    host: '127.0.0.1',
    ports: { web: 0 },
    dataFolder,
    schedule: false,
    freeSpace: async (folder: string) => {
      if (folder !== dataFolder) throw new Error('another folder')
      return { freeBytes, bytes: 10 * GB }
    },
    clock,
    random: systemRandom,
    log: silentLog,
  }
  // A deploy that lost half of a group: nothing starts, and the process that ends says so.
  const half = { ...options, env: { ...options.env, PAYMENTS_SECRET_KEY: 'sk_test_0123456789abcdef' } }
  for (let start = 0; start < 2; start += 1)
    await expect(startDaemon(half)).rejects.toThrow('half-configured')
  expect(told.map(({ cause, type }) => `${cause} ${type}`)).toEqual(['half_configured incident.opened'])
  const daemon = await startDaemon(options)
  onTestFinished(() => daemon.close())
  const untilTold = async (causes: readonly string[], type: string, from: number) => {
    const missing = () =>
      causes.filter((cause) => !told.some((one) => one.cause === cause && one.type === type))
    while (missing().length > 0 && clock.now() - from <= 90_000) {
      await expect.poll(waits, { timeout: 15_000, interval: 10 }).toBe(true)
      // The messages of this check are on their way.
      await new Promise((resolve) => setTimeout(resolve, 50))
      pass(5000)
    }
    expect(missing()).toEqual([])
    for (const { cause, type: kind, at } of told)
      if (causes.includes(cause) && kind === type) expect(at - from, cause).toBeLessThanOrEqual(90_000)
  }

  const fromTheStart = ['lessons_late', 'certificate_expiring']
  await untilTold(fromTheStart, 'incident.opened', START)
  // The provider no longer takes the key, which shows with the first message.
  mailStatus = 401
  const asked = fetch(`${daemon.urls.web}/api/email/subscribe`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ email: 'grace@example.com' }),
  })
  await untilTold(['mail_refused'], 'incident.opened', clock.now())
  expect(await (await asked).json()).toMatchObject({ status: 'pending' })
  const broken = clock.now()
  agentBuild = 'b1'
  freeBytes = 0.1 * GB
  await Promise.all([close(api.server), close(mail.server)])
  await untilTold(['api', 'mail', 'build_skew', 'disk_nearly_full'], 'incident.opened', broken)
  pass(START + 5 * MINUTE_MS - clock.now())
  await untilTold(['heartbeat-backup'], 'incident.opened', START + 5 * MINUTE_MS)
  // Another process of this store hears the complaints that pause the courses.
  const beside = await openStore({ kind: 'sqlite', file })
  const count = (kind: 'sent' | 'complaint', many: number) =>
    ({ at: clock.now(), kind, source: 'ses', domain: 'other', count: many }) as const
  await beside.sending.count([count('sent', 60), count('complaint', 5)])
  await beside.sending.check(clock.now())
  await untilTold(['courses_paused'], 'incident.opened', clock.now())
  const now = clock.now()
  const audit = auditEntry(
    { clock: { now: () => now }, random: systemRandom },
    { action: 'resume', operator: PROGRAM },
  )
  await beside.sending.resume({ streams: ['course'], now, audit })
  await beside.close()
  await untilTold(['courses_paused'], 'incident.closed', clock.now() + 150_000)

  // The store cannot be written: the news of that is kept in memory and sent from there.
  const other = new Database(file)
  onTestFinished(() => void other.close())
  const tables = ['meta', 'incident', 'alert_message']
  for (const table of tables)
    for (const change of ['INSERT', 'UPDATE'])
      other.exec(
        `CREATE TRIGGER ${table}_${change} BEFORE ${change} ON ${table} BEGIN SELECT RAISE(ABORT, 'read-only'); END`,
      )
  await untilTold(['store'], 'incident.opened', clock.now())
  for (const table of tables)
    for (const change of ['INSERT', 'UPDATE']) other.exec(`DROP TRIGGER ${table}_${change}`)
  freeBytes = 5 * GB
  // The end of what began while nothing could be written is told too; what was told before is not told again.
  await untilTold(['store', 'disk_nearly_full'], 'incident.closed', clock.now() + 150_000)

  const opened = told.filter(({ type }) => type === 'incident.opened')
  expect(opened.map(({ cause }) => cause).sort()).toEqual(
    [...new Set(opened.map(({ cause }) => cause))].sort(),
  )
  for (const { cause, text } of opened) {
    expect(text, cause).toMatch(
      /^Cause: .+\.\nSince: 2026-11-21 \d\d:\d\d UTC\.\n(?:Also .+\n)?What it means: .+\.\nStart with: platformctl .+\nRunbook: platformctl runbook [a-z-]+/,
    )
    // Nothing can be recorded while the store is down.
    const acknowledge = /\nAcknowledge: platformctl alert ack \S+ --data \//
    if (cause === 'store') expect(text).not.toMatch(acknowledge)
    else expect(text, cause).toMatch(acknowledge)
    const [, runbook = ''] = /platformctl runbook (.+)/.exec(text) ?? []
    // Most of it is commands that a test runs.
    expect(await readPackageFile(`runbooks/${runbook}.md`), runbook).toContain('```console')
  }
}, 60_000)
