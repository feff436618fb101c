import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openInbox } from '../../src/cli/demo/inbox.ts'
import { systemClock } from '../../src/core/clock.ts'
import { readSettings } from '../../src/core/env/read-settings.ts'
import type { HealthReport, ProbeState } from '../../src/core/health/probe.ts'
import { silentLog } from '../../src/core/log.ts'
import { systemRandom } from '../../src/core/random.ts'
import { openStore } from '../../src/core/store/open.ts'
import type { Store } from '../../src/core/store/store.ts'
import { alertChannels, startAlerts } from '../../src/daemon/alerts.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { emptyFolder } from '../support/folder.ts'

interface Event {
  readonly type: string
  readonly data: { readonly title: string; readonly cause: string; readonly affected: readonly string[] }
}

/** A receiver of Standard Webhooks that answers with the next of `answers`, then 200. */
async function receiver(...answers: number[]) {
  const events: Event[] = []
  const ids: string[] = []
  const server = createServer(async (request, response) => {
    const chunks: Uint8Array[] = []
    for await (const chunk of request) chunks.push(chunk)
    ids.push(String(request.headers['webhook-id']))
    const status = answers.shift() ?? 200
    if (status === 200) events.push(JSON.parse(Buffer.concat(chunks).toString()))
    response.writeHead(status).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, events, ids }
}

const report = (service: string, states: Readonly<Record<string, ProbeState>>): HealthReport => ({
  service,
  state: 'ok',
  build: null,
  startedAt: '',
  time: '',
  latencyMs: 1,
  probes: Object.fromEntries(
    Object.entries(states).map(([probe, state]) => [probe, { state, checked: true }]),
  ),
})

async function openFile(): Promise<{ open: () => Promise<Store> }> {
  const file = path.join(await emptyFolder(), 'platform.sqlite')
  return {
    async open() {
      const store = await openStore({ kind: 'sqlite', file })
      onTestFinished(() => store.close())
      return store
    },
  }
}

function alertsOf(store: Store, env: Readonly<Record<string, string>>) {
  const time = { now: Date.UTC(2026, 10, 21, 9) }
  const clock = { ...systemClock, now: () => time.now }
  const alerts = startAlerts({
    store,
    channels: alertChannels({ platform: learning, settings: readSettings(learning, env), clock }),
    clock,
    random: systemRandom,
    log: silentLog,
  })
  onTestFinished(() => alerts.stop())
  /** A round, and everything that it tells. */
  const round = async (...reports: HealthReport[]) => {
    time.now += 60_000
    const again = await alerts.follow(reports)
    await alerts.told()
    return again
  }
  return { round, time }
}

test('the second failing round tells one message for one cause, the second good one its end', async () => {
  const { url, events } = await receiver()
  const { round } = alertsOf(await (await openFile()).open(), { ALERT_WEBHOOK_URL: url })
  const failing = [report('web', { api: 'failing', mail: 'ok' }), report('api', { job_store: 'failing' })]
  const well = [report('web', { api: 'ok', mail: 'ok' }), report('api', { job_store: 'ok' })]
  // A new failure is checked again soon.
  expect(await round(...failing)).toBe(true)
  expect(events).toEqual([])
  expect(await round(...failing)).toBe(false)
  for (const reports of [failing, well]) await round(...reports)
  expect(events.map(({ type }) => type)).toEqual(['incident.opened'])
  expect(events[0]?.data).toMatchObject({ cause: 'job_store', affected: ['web'] })
  await round(...well)
  await round(...well)
  expect(events.map(({ type }) => type)).toEqual(['incident.opened', 'incident.closed'])
})

test('two machines with one store report an incident once', async () => {
  const { url, events } = await receiver()
  const { open } = await openFile()
  const machines = [
    alertsOf(await open(), { ALERT_WEBHOOK_URL: url }),
    alertsOf(await open(), { ALERT_WEBHOOK_URL: url }),
  ]
  for (let look = 0; look < 4; look += 1)
    await Promise.all(machines.map(({ round }) => round(report('web', { mail: 'failing' }))))
  expect(events.map(({ type }) => type)).toEqual(['incident.opened'])
})

test('sends a failed message to its receiver again later, under the same id', async () => {
  const { url, events, ids } = await receiver(503, 500)
  const { round, time } = alertsOf(await (await openFile()).open(), { ALERT_WEBHOOK_URL: url })
  for (let look = 0; look < 5; look += 1) await round(report('web', { mail: 'failing' }))
  expect(events).toHaveLength(1)
  expect(new Set(ids).size).toBe(1)
  expect(ids).toHaveLength(3)
  time.now += 4 * 60 * 60 * 1000
  await round(report('web', { mail: 'failing' }))
  expect(events.map(({ type }) => type)).toEqual(['incident.opened', 'incident.reminder'])
})

test('a fault of the store itself raises an alert too', async () => {
  const { url, events } = await receiver()
  const store = await (await openFile()).open()
  const { round } = alertsOf(store, { ALERT_WEBHOOK_URL: url })
  await round(report('web', { store: 'ok' }))
  await store.close()
  await round(report('web', { store: 'failing' }))
  await round(report('web', { store: 'failing' }))
  expect(events.map(({ data }) => data.title)).toEqual(['platformctl: Store (web) is failing'])
})

test('alerts go out by mail, through the platform’s own mailer', async () => {
  const inbox = await openInbox({ pagePort: 0 })
  onTestFinished(() => inbox.close())
  const { round } = alertsOf(await (await openFile()).open(), {
    ALERT_EMAIL_TO: 'ops@example.com',
    MAILER_API_KEY: 'a-key-of-the-mail-provider',
    MAILER_SMTP_URL: inbox.smtpUrl,
    MAILER_FROM: 'Kiln <kiln@example.com>',
  })
  await round(report('web', { payments: 'failing' }))
  await round(report('web', { payments: 'failing' }))
  const [mail, ...others] = inbox.mails
  expect(others).toEqual([])
  expect(mail).toMatchObject({ to: 'ops@example.com', subject: 'platformctl: Payments (web) is failing' })
  expect(mail?.text).toContain('What it means: nobody can pay.\nStart with: platformctl billing smoke')
  await round(report('web', { agent: 'failing' }))
  await round(report('web', { agent: 'failing' }))
  expect(inbox.mails.at(-1)?.text).toContain('What it means: nothing that asks Agent works.')
})
