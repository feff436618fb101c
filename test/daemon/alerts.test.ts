import { existsSync, statSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openInbox } from '../../src/cli/demo/inbox.ts'
import { HOUR_MS } from '../../src/core/durations.ts'
import { readSettings } from '../../src/core/env/settings.ts'
import type { HealthReport, ProbeState } from '../../src/core/health/probe.ts'
import { systemClock, type Timer } from '../../src/core/host.ts'
import type { SendOutcome } from '../../src/core/mail/mailer.ts'
import type { ResolvedPlatform } from '../../src/core/platform.ts'
import { openStore } from '../../src/core/store/open.ts'
import type { Store } from '../../src/core/store/store.ts'
import { alertChannels, startAlerts } from '../../src/daemon/alerts.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { emptyFolder } from '../support/folder.ts'
import { channelOf, hostAt } from '../support/incidents.ts'
import { serveBodies } from '../support/servers.ts'
import { addressOf, KEPT, openTestStore } from '../support/stores.ts'

interface Event {
  readonly type: string
  readonly data: {
    readonly incident: string
    readonly title: string
    readonly text: string
    readonly cause: string
    readonly affected: readonly string[]
  }
}

/** A receiver of Standard Webhooks that answers with the next of `answers`, then 200. */
async function receiver(...answers: number[]) {
  const events: Event[] = []
  const ids: string[] = []
  const url = await serveBodies((body, response, request) => {
    ids.push(String(request.headers['webhook-id']))
    const status = answers.shift() ?? 200
    if (status === 200) events.push(JSON.parse(body))
    response.writeHead(status).end()
  })
  return { url: `${url}/hook`, events, ids }
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

function alertsOf(
  store: Store,
  env: Readonly<Record<string, string>>,
  platform: ResolvedPlatform = learning,
  ...files: readonly string[]
) {
  const time = { now: Date.UTC(2026, 10, 21, 9) }
  const clock = { ...systemClock, now: () => time.now }
  const settings = readSettings(platform, env)
  const channels = alertChannels(clock, platform, settings)
  const alerts = startAlerts(hostAt(clock.now), { store, platform, settings, channels, files })
  onTestFinished(() => alerts.stop())
  /** A round, and everything that it tells. */
  const round = async (...reports: HealthReport[]) => {
    time.now += 60_000
    const again = await alerts.follow(reports)
    await alerts.told()
    return again
  }
  return { round, time, stop: alerts.stop }
}

test('the id of an incident never begins with a hyphen, which alert ack would take for an option', async () => {
  const store = await (await openFile()).open()
  const bytes = (count: number) => new Uint8Array(count).fill(0xfb)
  const alerts = startAlerts(
    { ...hostAt(Date.now), random: { bytes, fraction: () => 0 } },
    { store, platform: learning, settings: readSettings(learning, {}), channels: [] },
  )
  onTestFinished(() => alerts.stop())
  for (let look = 0; look < 2; look += 1) await alerts.follow([report('web', { mail: 'failing' })])
  expect((await store.incidents.list(1)).map(({ id }) => id)).toEqual(['0_v7-_v7-_v7'])
})

test('a store that hangs raises one alert, and none for each probe that waits for it', async () => {
  const { url, events } = await receiver()
  const store = await (await openFile()).open()
  const definition = { preset: 'learning', heartbeats: { backup: { every: '1d' } } } as const
  const platform = resolvePlatform(definition, { folder: '/' })
  const { round } = alertsOf(store, { ALERT_WEBHOOK_URL: url }, platform)
  const late = { configuration: 'failing', 'heartbeat-backup': 'failing' } as const
  for (let n = 0; n < 2; n += 1) await round(report('web', { store: 'failing', ...late }))
  const told = () => events.map(({ type, data }) => `${type} ${data.cause} ${data.affected.join()}`)
  expect(told()).toEqual(['incident.opened store configuration,heartbeat-backup'])
  for (let n = 0; n < 4; n += 1) await round(report('web', { store: 'ok', ...late }))
  expect(told().slice(1).toSorted()).toEqual([
    'incident.closed store configuration,heartbeat-backup',
    'incident.opened configuration ',
    'incident.opened heartbeat-backup ',
  ])
})

test('the incident of a probe that is no longer in the definition ends, unless another machine still sees it', async () => {
  const { url, events } = await receiver()
  const store = await (await openFile()).open()
  const before = alertsOf(store, { ALERT_WEBHOOK_URL: url })
  for (let n = 0; n < 2; n += 1)
    await before.round(report('web', { store: 'failing', 'heartbeat-gone': 'failing' }))
  const { round, time } = alertsOf(store, { ALERT_WEBHOOK_URL: url })
  time.now = before.time.now
  const told = () => events.map(({ type, data }) => `${type} ${data.cause}`)
  expect(told().toSorted()).toEqual(['incident.opened heartbeat-gone', 'incident.opened store'])
  await round(report('web', { mail: 'ok' }))
  await round(report('web', { mail: 'ok' }))
  expect(told()).toHaveLength(2)
  // The other machine has the definition of before.
  before.time.now = time.now
  await before.round(report('web', { 'heartbeat-gone': 'failing' }))
  for (let n = 0; n < 4; n += 1) await round(report('web', { mail: 'ok' }))
  expect(told().slice(2)).toEqual(['incident.closed heartbeat-gone'])
  // `store` is in the definition: another process checks it.
  for (let n = 0; n < 3; n += 1) await round(report('web', { mail: 'ok' }))
  expect(told()).toHaveLength(3)
})

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

test('an alert of a platform in German is in English throughout, as its commands and runbooks are', async () => {
  const { url, events } = await receiver()
  const german = resolvePlatform({ preset: 'base', brand: { language: 'de' } }, { folder: '/' })
  const { round } = alertsOf(await (await openFile()).open(), { ALERT_WEBHOOK_URL: url }, german)
  for (let n = 0; n < 2; n += 1) await round(report('web', { mail: 'failing' }))
  expect(events[0]?.data.title).toMatch(/: Mail \(web\) is failing$/)
  expect(JSON.stringify(events[0])).not.toMatch(/E-Mail|Links|[äöüß]/)
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

/** A store whose incidents cannot be written, or not even be read, while it is broken. */
function breakable(store: Store) {
  const state: { broken: 'no' | 'writes' | 'all' } = { broken: 'no' }
  const writes = ['follow', 'claimAlerts', 'keepAlerts', 'settleAlerts']
  const incidents = new Proxy(store.incidents, {
    get: (from, name: keyof Store['incidents']) =>
      state.broken === 'all' || (state.broken === 'writes' && writes.includes(name))
        ? () => Promise.reject(new Error('the store is away'))
        : from[name],
  })
  return { store: { ...store, incidents }, state }
}

test.each(['writes', 'all'] as const)(
  'alerts go on while %s of the store fail: none twice, and all is in the store afterwards',
  async (broken) => {
    const { url, events, ids } = await receiver()
    const { store, state } = breakable(await (await openFile()).open())
    const { round, time } = alertsOf(store, { ALERT_WEBHOOK_URL: url })
    const bad = report('web', { mail: 'failing' })
    const worse = report('web', { mail: 'failing', payments: 'failing' })
    await round(bad)
    await round(bad)
    state.broken = broken
    for (const one of [worse, worse, worse]) await round(one)
    const told = () => events.map(({ type, data }) => `${data.cause} ${type.split('.')[1]}`)
    expect(told()).toEqual(['mail opened', 'payments opened'])
    // The same on every machine, for ten minutes: a receiver tells repeats by it.
    expect(ids[1]).toBe(`alert.payments-${Math.floor(Date.UTC(2026, 10, 21, 9, 4) / 600_000)}.opened`)
    state.broken = 'no'
    await round(worse)
    expect(
      (await store.incidents.list(9)).map(({ cause, id }) => [cause, ids.includes(`alert.${id}.opened`)]),
    ).toEqual(
      expect.arrayContaining([
        ['mail', true],
        ['payments', true],
      ]),
    )
    const known = (await store.incidents.list(9)).map(({ id }) => id)
    const before = await store.incidents.messages(known)
    expect(before.map(({ outcome, at }) => outcome === 'sent' && at > time.now - 600_000)).toEqual([
      true,
      true,
    ])
    for (let look = 0; look < 4; look += 1) await round(report('web', { mail: 'ok', payments: 'ok' }))
    expect(told().sort()).toEqual(['mail closed', 'mail opened', 'payments closed', 'payments opened'])
  },
)

test('a message that failed before the store did is sent from memory', async () => {
  const { url, events } = await receiver(503)
  const { store, state } = breakable(await (await openFile()).open())
  const { round } = alertsOf(store, { ALERT_WEBHOOK_URL: url })
  for (let look = 0; look < 2; look += 1) await round(report('web', { mail: 'failing' }))
  expect(events).toEqual([])
  state.broken = 'writes'
  await round(report('web', { mail: 'failing' }))
  expect(events.map(({ type }) => type)).toEqual(['incident.opened'])
})

test('a silence holds while the store fails, and what still fails after it is told', async () => {
  const { url, events } = await receiver()
  const { store, state } = breakable(await (await openFile()).open())
  const { round, time } = alertsOf(store, { ALERT_WEBHOOK_URL: url })
  await store.incidents.silence({ from: time.now, until: time.now + 5 * 60_000, reason: 'deploy', by: 'ci' })
  state.broken = 'writes'
  for (let look = 0; look < 4; look += 1) await round(report('web', { mail: 'failing' }))
  expect(events).toEqual([])
  await round(report('web', { mail: 'failing' }))
  expect(events).toHaveLength(1)
})

test('a silence that began seconds before the whole store was stopped holds', async () => {
  const { url, events } = await receiver()
  const { store, state } = breakable(await (await openFile()).open())
  let now = Date.UTC(2026, 10, 21, 9)
  const silenced = Promise.withResolvers<void>()
  let asked = 0
  const sleep: Timer['sleep'] = (ms, signal) => {
    if (ms !== 7000) return systemClock.sleep(ms, signal)
    asked += 1
    return asked === 1 ? silenced.promise : systemClock.sleep(ms, signal)
  }
  const settings = readSettings(learning, { ALERT_WEBHOOK_URL: url })
  const channels = alertChannels({ now: () => now }, learning, settings)
  const host = hostAt(() => now, {}, { ...systemClock, sleep })
  const alerts = startAlerts(host, { store, platform: learning, settings, channels })
  onTestFinished(() => alerts.stop())
  await alerts.follow([report('web', { mail: 'ok' })])
  await alerts.told()
  const until = now + 10 * 60_000
  await store.incidents.silence({ from: now, until, reason: 'a new PostgreSQL', by: 'ada' })
  silenced.resolve()
  await expect.poll(() => asked).toBe(2)
  state.broken = 'all'
  for (let look = 0; look < 3; look += 1) {
    now += 60_000
    await alerts.follow([report('web', { mail: 'failing' })])
    await alerts.told()
  }
  expect(events).toEqual([])
})

test.each([-72, 72])(
  'a cause that another machine sees failing stays open when the clock is set by %i hours',
  async (hours) => {
    const { url, events } = await receiver()
    const { open } = await openFile()
    const [here, there] = [
      alertsOf(await open(), { ALERT_WEBHOOK_URL: url }),
      alertsOf(await open(), { ALERT_WEBHOOK_URL: url }),
    ]
    const look = async () => {
      await here.round(report('web', { mail: 'ok' }))
      await there.round(report('web', { mail: 'failing' }))
    }
    for (let n = 0; n < 3; n += 1) await look()
    for (const { time } of [here, there]) time.now += hours * HOUR_MS
    for (let n = 0; n < 3; n += 1) await look()
    expect(events.map(({ type }) => type)).not.toContain('incident.closed')
  },
)

test('a machine that runs does not end what another tells that is refused a start again and again', async () => {
  const { url, events } = await receiver()
  const { open } = await openFile()
  const runs = alertsOf(await open(), { ALERT_WEBHOOK_URL: url })
  const refused = alertsOf(await open(), { ALERT_WEBHOOK_URL: url })
  for (let start = 0; start < 6; start += 1) {
    refused.time.now = runs.time.now - 60_000
    for (let n = 0; n < 2; n += 1) await refused.round(report('web', { start_refused: 'failing' }))
    for (let n = 0; n < 5; n += 1) await runs.round(report('web', { start_refused: 'ok' }))
  }
  const told = () => events.map(({ type }) => type)
  expect(told()).toEqual(['incident.opened'])
  for (let n = 0; n < 10; n += 1) await runs.round(report('web', { start_refused: 'ok' }))
  expect(told()).toEqual(['incident.opened', 'incident.closed'])
})

test('a cause that another machine saw fail 150 seconds ago or later stays open', async () => {
  const { url, events } = await receiver()
  const { open } = await openFile()
  const [here, there] = [
    alertsOf(await open(), { ALERT_WEBHOOK_URL: url }),
    alertsOf(await open(), { ALERT_WEBHOOK_URL: url }),
  ]
  for (const { round } of [here, here, there, there]) await round(report('web', { mail: 'failing' }))
  const seen = there.time.now
  const well = async (at: number) => {
    here.time.now = at - 60_000
    await here.round(report('web', { mail: 'ok' }))
    return events.filter(({ type }) => type === 'incident.closed').length
  }
  expect(await well(seen + 60_000)).toBe(0)
  expect(await well(seen + 149_999)).toBe(0)
  expect(await well(seen + 150_000)).toBe(1)
})

test.each(['no', 'all'] as const)(
  'a channel that hangs holds up no other while %s of the store fail',
  async (broken) => {
    const { promise: hanging, resolve: release } = Promise.withResolvers<SendOutcome>()
    const told: string[] = []
    const time = { now: Date.UTC(2026, 10, 21, 9) }
    const { store, state } = breakable(await (await openFile()).open())
    state.broken = broken
    const alerts = startAlerts(
      hostAt(() => time.now),
      {
        store,
        platform: learning,
        settings: readSettings(learning, {}),
        channels: [
          channelOf('webhook', () => hanging),
          channelOf('mail', async ({ id, kind, incident }) => {
            told.push(`${incident.cause} ${kind}`)
            return { kind: 'sent', id }
          }),
        ],
      },
    )
    onTestFinished(async () => {
      release({ kind: 'sent', id: 'x' })
      await alerts.stop()
    })
    const rounds = async (states: Readonly<Record<string, ProbeState>>) => {
      for (let n = 0; n < 3; n += 1) {
        time.now += 60_000
        await alerts.follow([report('web', states)])
      }
    }
    await rounds({ store: 'failing', mail: 'ok' })
    await expect.poll(() => told).toEqual(['store opened'])
    await rounds({ store: 'ok', mail: 'failing' })
    await expect.poll(() => told.toSorted()).toEqual(['mail opened', 'store closed', 'store opened'])
  },
)

test('a stop waits for the message in flight, and no round is taken after it', async () => {
  const { store } = breakable(await (await openFile()).open())
  const held = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  const channel = channelOf('webhook', async ({ id }) => {
    asked.resolve()
    await held.promise
    return { kind: 'sent', id }
  })
  const alerts = startAlerts(hostAt(Date.now), {
    store,
    platform: learning,
    settings: readSettings(learning, {}),
    channels: [channel],
  })
  for (let look = 0; look < 2; look += 1) await alerts.follow([report('web', { mail: 'failing' })])
  await asked.promise
  let stopped = false
  const stopping = alerts.stop().then(() => {
    stopped = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(stopped).toBe(false)
  held.resolve()
  await stopping
  const [{ id } = { id: '' }] = await store.incidents.list(1)
  expect((await store.incidents.messages([id])).map(({ outcome }) => outcome)).toEqual(['sent'])
  expect(await alerts.follow([report('web', { payments: 'failing' })])).toBe(false)
  expect(await alerts.follow([report('web', { payments: 'failing' })])).toBe(false)
  expect(await store.incidents.list(9)).toHaveLength(1)
})

/** A school whose kilns and bookings need the store. */
const kilns = resolvePlatform(
  {
    preset: 'base',
    services: {
      web: {},
      workshop: { port: 0, address: 'WORKSHOP_URL' },
      bookings: { address: 'BOOKINGS_URL', format: 'status', dependsOn: ['store'] },
    },
    groups: {
      addresses: {
        unlocks: 'other services',
        absent: 'none',
        variables: { WORKSHOP_URL: { kind: 'url' }, BOOKINGS_URL: { kind: 'url' } },
      },
    },
    probes: {
      kiln: { service: 'web', dns: 'kiln.example', dependsOn: ['bookings'] },
      oven: { service: 'workshop', dns: 'oven.example', dependsOn: ['store'] },
    },
  },
  { folder: '/' },
)

describe.each(KEPT)('on %s', (kind) => {
  const toldBy = (events: readonly Event[]) =>
    events.map(({ type, data }) => `${data.cause} ${type.split('.')[1]}`)

  test('a store and the services that need it raise one alert; a service that still fails afterwards raises its own', async () => {
    const { url, events } = await receiver()
    const store = await openTestStore(await addressOf(kind))
    const { round } = alertsOf(store, { ALERT_WEBHOOK_URL: url }, kilns)
    for (let n = 0; n < 3; n += 1)
      await round(report('web', { store: 'failing', kiln: 'failing', bookings: 'failing' }))
    expect(toldBy(events)).toEqual(['store opened'])
    expect(events[0]?.data).toMatchObject({
      title: 'Platform: Store (web, bookings) is failing',
      affected: ['bookings', 'kiln'],
      text: expect.stringContaining('Also failing for this cause: bookings, kiln.'),
    })
    for (let n = 0; n < 3; n += 1)
      await round(report('web', { store: 'ok', kiln: 'failing', bookings: 'ok' }))
    expect(toldBy(events).slice(1)).toEqual(['kiln opened', 'store closed'])
    for (let n = 0; n < 3; n += 1) await round(report('web', { store: 'ok', kiln: 'ok', bookings: 'ok' }))
    expect(toldBy(events).slice(3)).toEqual(['kiln closed'])
  })

  test('a cause that fails after what depends on it ends no incident: each end is sent once, when it is true', async () => {
    const { url, events } = await receiver()
    const address = await addressOf(kind)
    const machines = [
      alertsOf(await openTestStore(address), { ALERT_WEBHOOK_URL: url }, kilns),
      alertsOf(await openTestStore(address), { ALERT_WEBHOOK_URL: url }, kilns),
    ]
    const rounds = async (many: number, states: Readonly<Record<string, ProbeState>>) => {
      for (let n = 0; n < many; n += 1) for (const { round } of machines) await round(report('web', states))
    }
    await rounds(2, { store: 'ok', kiln: 'failing' })
    await rounds(6, { store: 'failing', kiln: 'failing' })
    // One machine goes on to see both fail.
    for (let n = 0; n < 4; n += 1) {
      await machines[0]?.round(report('web', { store: 'failing', kiln: 'failing' }))
      await machines[1]?.round(report('web', { store: 'ok', kiln: 'ok' }))
    }
    expect(toldBy(events)).toEqual(['kiln opened', 'store opened'])
    await rounds(4, { store: 'ok', kiln: 'failing' })
    expect(toldBy(events).slice(2)).toEqual(['store closed'])
    await rounds(6, { store: 'ok', kiln: 'ok' })
    expect(toldBy(events).slice(3)).toEqual(['kiln closed'])
  })

  test('two processes that serve one service each list what fails in either under one alert', async () => {
    const { url, events } = await receiver()
    const address = await addressOf(kind)
    const store = await openTestStore(address)
    const web = alertsOf(store, { ALERT_WEBHOOK_URL: url }, kilns)
    const workshop = alertsOf(await openTestStore(address), { ALERT_WEBHOOK_URL: url }, kilns)
    const rounds = async (many: number, ofStore: ProbeState, oven: ProbeState, asked = oven) => {
      for (let n = 0; n < many; n += 1) {
        await web.round(report('web', { store: ofStore, kiln: ofStore, workshop: asked }))
        await workshop.round(report('workshop', { oven }))
      }
    }
    const affected = async () => (await store.incidents.list(0)).map((one) => [one.cause, one.affected])
    await web.round(report('web', { store: 'failing', kiln: 'failing', workshop: 'ok' }))
    await rounds(3, 'failing', 'failing')
    expect(toldBy(events)).toEqual(['store opened'])
    expect(await affected()).toEqual([['store', ['kiln', 'oven', 'workshop']]])
    await rounds(1, 'failing', 'ok')
    expect(await affected()).toEqual([['store', ['kiln']]])
    await rounds(4, 'ok', 'ok')
    expect(toldBy(events)).toEqual(['store opened', 'store closed'])
    // The process of what depends on it looks first.
    for (let n = 0; n < 2; n += 1) await workshop.round(report('workshop', { oven: 'failing' }))
    for (let n = 0; n < 2; n += 1)
      await web.round(report('web', { store: 'failing', kiln: 'failing', workshop: 'failing' }))
    await rounds(2, 'failing', 'failing')
    await rounds(4, 'ok', 'ok')
    expect(toldBy(events).slice(2)).toEqual(['store opened', 'store closed'])
    events.splice(2)
    // Only the other process knows why the workshop fails. Once its cause works again, the workshop raises an alert of its own.
    await rounds(1, 'ok', 'ok', 'ok')
    for (let n = 0; n < 3; n += 1) await workshop.round(report('workshop', { oven: 'failing' }))
    web.time.now = workshop.time.now
    const seen = web.time.now
    for (let n = 0; n < 2; n += 1)
      await web.round(report('web', { store: 'ok', kiln: 'ok', workshop: 'failing' }))
    expect(toldBy(events).slice(2)).toEqual(['oven opened'])
    expect(await affected()).toEqual([['oven', ['web']]])
    expect((await store.incidents.list(0))[0]?.seenAt).toBe(seen)
    for (let n = 0; n < 2; n += 1)
      await web.round(report('web', { store: 'ok', kiln: 'ok', workshop: 'failing' }))
    expect(toldBy(events).slice(3)).toEqual(['workshop opened'])
  })

  test.each([3, 72])(
    'a false incident of a clock that was %i hours ahead ends within three minutes, and the next is told',
    async (hours) => {
      const { url, events } = await receiver()
      const { round, time } = alertsOf(await openTestStore(await addressOf(kind)), { ALERT_WEBHOOK_URL: url })
      const told = () => events.map(({ type }) => type.split('.')[1])
      time.now += hours * HOUR_MS
      for (let n = 0; n < 2; n += 1) await round(report('web', { lessons_late: 'failing' }))
      time.now -= hours * HOUR_MS
      for (let n = 0; n < 3; n += 1) await round(report('web', { lessons_late: 'ok' }))
      expect(told()).toEqual(['opened', 'closed'])
      for (let n = 0; n < 2; n += 1) await round(report('web', { lessons_late: 'failing' }))
      expect(told()).toEqual(['opened', 'closed', 'opened'])
      // One that goes on while the clock is set back reminds and ends as any other.
      time.now -= hours * HOUR_MS
      await round(report('web', { lessons_late: 'failing' }))
      time.now += 4 * HOUR_MS
      await round(report('web', { lessons_late: 'failing' }))
      for (let n = 0; n < 4; n += 1) await round(report('web', { lessons_late: 'ok' }))
      expect(told().slice(3)).toEqual(['reminder', 'closed'])
    },
  )
})

test('an incident that was told while the store failed ends too when another machine opened one for its cause', async () => {
  const { url, events } = await receiver()
  const { store, state } = breakable(await (await openFile()).open())
  const { round, time } = alertsOf(store, { ALERT_WEBHOOK_URL: url })
  state.broken = 'all'
  for (let n = 0; n < 2; n += 1) await round(report('web', { mail: 'failing' }))
  state.broken = 'no'
  const other = alertsOf(store, { ALERT_WEBHOOK_URL: url })
  other.time.now = time.now
  for (let n = 0; n < 2; n += 1) await other.round(report('web', { mail: 'failing' }))
  for (let n = 0; n < 6; n += 1) await round(report('web', { mail: 'ok' }))
  const ids = (type: string) => events.filter((one) => one.type === type).map(({ data }) => data.incident)
  expect(ids('incident.opened')).toHaveLength(2)
  expect(ids('incident.closed').toSorted()).toEqual(ids('incident.opened').toSorted())
})

test('an alert that was given up while the store failed is sent once the store is back, and its end after it', async () => {
  const { url, events, ids } = await receiver(410)
  const { store, state } = breakable(await (await openFile()).open())
  const { round } = alertsOf(store, { ALERT_WEBHOOK_URL: url })
  state.broken = 'all'
  for (let n = 0; n < 3; n += 1) await round(report('web', { mail: 'failing' }))
  expect([ids.length, events]).toEqual([1, []])
  state.broken = 'no'
  for (let n = 0; n < 3; n += 1) await round(report('web', { mail: 'failing' }))
  for (let n = 0; n < 4; n += 1) await round(report('web', { mail: 'ok' }))
  expect(events.map(({ type, data }) => `${data.cause} ${type}`)).toEqual([
    'mail incident.opened',
    'mail incident.closed',
  ])
})

test.each([
  ['in its folder', ['alerts.json', 'beside/alerts.json']],
  ['beside it, where its folder has no room', ['no-such-folder/alerts.json', 'alerts.json']],
])(
  'what was told while the store failed ends once, however often the process restarts meanwhile: kept %s',
  async (_, names) => {
    const { url, events } = await receiver()
    const { store, state } = breakable(await (await openFile()).open())
    const folder = await emptyFolder()
    const files = names.map((name) => path.join(folder, name))
    const file = path.join(folder, 'alerts.json')
    let now = 0
    const start = () => {
      const process = alertsOf(store, { ALERT_WEBHOOK_URL: url }, learning, ...files)
      process.time.now = Math.max(now, process.time.now)
      return async (rounds: number, states: Readonly<Record<string, ProbeState>>) => {
        for (let n = 0; n < rounds; n += 1) await process.round(report('web', states))
        now = process.time.now
        await process.stop()
      }
    }
    const told = () => events.map(({ type, data }) => `${data.cause} ${type.split('.')[1]}`)
    await start()(2, { mail: 'failing', store: 'ok' })
    for (const broken of ['writes', 'all'] as const) {
      state.broken = broken
      await start()(2, { mail: 'failing', store: 'failing' })
      now += 20 * 60_000
    }
    expect(told()).toEqual(['mail opened', 'store opened'])
    // Mail recovers before the store does.
    await start()(3, { mail: 'ok', store: 'failing' })
    expect(told().slice(2)).toEqual(['mail closed'])
    state.broken = 'no'
    expect(statSync(file).mode & 0o777).toBe(0o600)
    await start()(1, { mail: 'ok', store: 'ok' })
    expect(existsSync(file)).toBe(false)
    // It fails anew at once: the incident that has ended does not hide that.
    await start()(2, { mail: 'failing', store: 'ok' })
    expect(told().slice(3).toSorted()).toEqual(['mail opened', 'store closed'])
    await start()(4, { mail: 'ok', store: 'ok' })
    expect(told().slice(5)).toEqual(['mail closed'])
    const ids = (type: string) =>
      events.flatMap((one) => (one.type === type ? [one.data.incident] : [])).toSorted()
    expect(ids('incident.closed')).toEqual(ids('incident.opened'))
    expect((await store.incidents.list(9)).every(({ closedAt }) => closedAt !== undefined)).toBe(true)
  },
)

test('what was kept of alerts stays while nothing can be written in its place, so that what was told still ends', async () => {
  const { url, events } = await receiver()
  const { store, state } = breakable(await (await openFile()).open())
  const file = path.join(await emptyFolder(), 'alerts.json')
  let now = 0
  const rounds = async (count: number, is: ProbeState) => {
    const { round, time, stop } = alertsOf(store, { ALERT_WEBHOOK_URL: url }, learning, file)
    time.now = Math.max(now, time.now)
    for (let n = 0; n < count; n += 1) await round(report('web', { store: is }))
    now = time.now
    await stop()
  }
  state.broken = 'all'
  await rounds(2, 'failing')
  // A folder where the new file would be made first.
  await mkdir(`${file}.${process.pid}`)
  await rounds(1, 'failing')
  expect(existsSync(file)).toBe(true)
  state.broken = 'no'
  await rounds(4, 'ok')
  expect(events.map(({ type }) => type)).toEqual(['incident.opened', 'incident.closed'])
})

test.each([
  ...['', '{', '{"incidents":3}', 'null', '{"incidents":[{}],"messages":[]}'],
  ...['{"incidents":[],"messages":[null]}', '{"incidents":[],"messages":[],"silence":{}}'],
])(
  'a file of kept alerts that says %j is none, and one that cannot be written stops nothing',
  async (text) => {
    const { url, events } = await receiver()
    const { store, state } = breakable(await (await openFile()).open())
    state.broken = 'all'
    const file = path.join(await emptyFolder(), 'alerts.json')
    if (text === '') await mkdir(file)
    else await writeFile(file, text)
    const { round } = alertsOf(store, { ALERT_WEBHOOK_URL: url }, learning, file)
    for (let n = 0; n < 3; n += 1) await round(report('web', { store: 'failing' }))
    state.broken = 'no'
    for (let n = 0; n < 4; n += 1) await round(report('web', { store: 'ok' }))
    expect(events.map(({ type }) => type)).toEqual(['incident.opened', 'incident.closed'])
  },
)
