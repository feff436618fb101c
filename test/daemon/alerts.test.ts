import { existsSync, statSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openInbox } from '../../src/cli/demo/inbox.ts'
import { auditEntry } from '../../src/core/audit.ts'
import { HOUR_MS } from '../../src/core/durations.ts'
import { readSettings } from '../../src/core/env/settings.ts'
import type { HealthReport, ProbeState } from '../../src/core/health/probe.ts'
import { systemClock, type Timer } from '../../src/core/host.ts'
import type { Channel } from '../../src/core/incidents/channels.ts'
import type { SendOutcome } from '../../src/core/mail/mailer.ts'
import type { ResolvedPlatform } from '../../src/core/platform.ts'
import type { Store } from '../../src/core/store/store.ts'
import { alertChannels, startAlerts } from '../../src/daemon/alerts.ts'
import { keptAlerts, openSpareAlerts } from '../../src/daemon/spare-alerts.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { emptyFolder } from '../support/folder.ts'
import { channelOf, hostAt, incidentWith, openIncident } from '../support/incidents.ts'
import { serveBodies } from '../support/servers.ts'
import { addressOf, KEPT, openTestStore } from '../support/stores.ts'
import { audited } from '../support/subscribers.ts'

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
type States = Readonly<Record<string, ProbeState>>

const report = (service: string, states: States): HealthReport => ({
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

/** Machines on one store that tell one webhook, which answers with the next of `answers`, then 200. */
async function scene({
  kind = 'sqlite',
  answers = [],
  platform = learning,
}: {
  readonly kind?: (typeof KEPT)[number]
  readonly answers?: number[]
  readonly platform?: ResolvedPlatform
} = {}) {
  const events: Event[] = []
  const ids: string[] = []
  const url = await serveBodies((body, response, request) => {
    ids.push(String(request.headers['webhook-id']))
    const status = answers.shift() ?? 200
    if (status === 200) events.push(JSON.parse(body))
    response.writeHead(status).end()
  })
  const address = await addressOf(kind)
  const { store, state } = breakable(await openTestStore(address))
  const machine = ({
    on = store,
    env = { ALERT_WEBHOOK_URL: `${url}/hook` },
    files = [],
    timer = systemClock,
    channels,
    dataFolder = '/data',
    now = Date.UTC(2026, 10, 21, 9),
  }: {
    readonly on?: Store
    readonly env?: Readonly<Record<string, string>>
    readonly files?: readonly string[]
    readonly timer?: Timer
    readonly channels?: readonly Channel[]
    readonly dataFolder?: string
    readonly now?: number
  } = {}) => {
    const time = { now }
    const host = hostAt(() => time.now, {}, timer)
    const settings = readSettings(platform, env)
    const told = channels ?? alertChannels(host.clock, platform, settings)
    const alerts = startAlerts(host, { store: on, platform, settings, channels: told, files, dataFolder })
    onTestFinished(() => alerts.stop())
    const round = async (...reports: HealthReport[]) => {
      time.now += 60_000
      return alerts.follow(reports)
    }
    return {
      ...alerts,
      time,
      round,
      /** So many rounds, and everything that they tell. */
      async rounds(many: number, ...states: readonly (States | HealthReport)[]) {
        const reports = states.map((one) => ('probes' in one ? (one as HealthReport) : report('web', one)))
        let again = false
        for (let n = 0; n < many; n += 1) {
          again = await round(...reports)
          await alerts.told()
        }
        return again
      },
    }
  }
  return {
    url,
    events,
    ids,
    store,
    state,
    machine,
    another: async () => machine({ on: await openTestStore(address) }),
    /** Each alert that arrived, as its cause and what became of it. */
    told: () => events.map(({ type, data }) => `${data.cause} ${type.split('.')[1]}`),
    /** The incidents that were told so, in order of their ids. */
    incidents: (type: string) =>
      events.flatMap((one) => (one.type === `incident.${type}` ? one.data.incident : [])).toSorted(),
  }
}

/** A store whose incidents cannot be written, or not even be read, while it is broken; `once`: after one more transaction. */
function breakable(store: Store) {
  const state: { broken: 'no' | 'writes' | 'once' | 'all' } = { broken: 'no' }
  const writes = ['follow', 'claimAlerts', 'keepAlerts', 'settleAlerts']
  const incidents = new Proxy(store.incidents, {
    get: (from, name: keyof Store['incidents']) => {
      const isAway = state.broken === 'all' || (state.broken === 'writes' && writes.includes(name))
      if (state.broken === 'once' && name === 'follow') state.broken = 'all'
      return isAway ? () => Promise.reject(new Error('the store is away')) : from[name]
    },
  })
  return { store: { ...store, incidents }, state }
}

test('the id of an incident never begins with a hyphen, which alert ack would take for an option', async () => {
  const { store } = await scene()
  const bytes = (count: number) => new Uint8Array(count).fill(0xfb)
  const alerts = startAlerts(
    { ...hostAt(Date.now), random: { bytes, fraction: () => 0 } },
    { store, platform: learning, settings: readSettings(learning, {}), channels: [], dataFolder: '/data' },
  )
  onTestFinished(() => alerts.stop())
  for (let look = 0; look < 2; look += 1) await alerts.follow([report('web', { mail: 'failing' })])
  expect((await store.incidents.list(1)).map(({ id }) => id)).toEqual(['0_v7-_v7-_v7'])
})

test('a store that hangs raises one alert, and none for each probe that waits for it', async () => {
  const definition = { preset: 'learning', heartbeats: { backup: { every: '1d' } } } as const
  const it = await scene({ platform: resolvePlatform(definition, { folder: '/' }) })
  const { rounds } = it.machine()
  const late = { configuration: 'failing', 'heartbeat-backup': 'failing' } as const
  const told = () => it.told().map((one, n) => `${one} ${it.events[n]?.data.affected.join()}`)
  await rounds(2, { store: 'failing', ...late })
  expect(told()).toEqual(['store opened configuration,heartbeat-backup'])
  await rounds(4, { store: 'ok', ...late })
  expect(told().slice(1).toSorted()).toEqual([
    'configuration opened ',
    'heartbeat-backup opened ',
    'store closed configuration,heartbeat-backup',
  ])
  const missed = it.events.find(({ data }) => data.cause === 'heartbeat-backup')
  expect(missed?.data.text).toContain('Runbook: platformctl runbook heartbeat-late')
})

const OF_MAIL = ['alerts_unheard', 'lessons_late', 'mail_failing']
const OF_REQUESTS = ['calls_refused', 'requests_failing']

test.each<[cause: string, affected: readonly string[]]>([
  [
    'store',
    [...OF_MAIL, ...OF_REQUESTS, 'disk_slow', 'job_store', 'lessons_undecided', 'mail_refused']
      .concat('schedule_stalled', 'store_busy')
      .toSorted(),
  ],
  ['mail', [...OF_MAIL, ...OF_REQUESTS, 'mail_refused'].toSorted()],
  ['mail_refused', OF_MAIL],
  ['store_busy', OF_REQUESTS],
  ...['datastore', 'job_store', 'payments'].map((one) => [one, OF_REQUESTS] as [string, string[]]),
  ['requests_failing', ['calls_refused']],
])('%s raises one alert, which lists all that waits for it: %j', async (cause, affected) => {
  const { machine, told, events } = await scene()
  const states = Object.fromEntries([cause, ...affected].map((name) => [name, 'failing'] as const))
  await machine().rounds(3, states)
  expect([told(), events[0]?.data.affected]).toEqual([[`${cause} opened`], affected])
})

test('the incident of a probe that is no longer in the definition ends, unless another machine still sees it', async () => {
  const { machine, told, events } = await scene()
  const before = machine()
  await before.rounds(2, { store: 'failing', 'heartbeat-gone': 'failing' })
  const { rounds, time } = machine({ now: before.time.now })
  expect(told().toSorted()).toEqual(['heartbeat-gone opened', 'store opened'])
  await rounds(2, { mail: 'ok' })
  expect(told()).toHaveLength(2)
  // The other machine has the definition of before.
  before.time.now = time.now
  await before.rounds(1, { 'heartbeat-gone': 'failing' })
  await rounds(6, { mail: 'ok' })
  expect(told().slice(2)).toEqual(['heartbeat-gone closed'])
  expect(events.at(-1)?.data.title).toMatch(/Heartbeat gone \(web\) is no longer checked$/)
  // `store` is in the definition: another process checks it.
  await rounds(3, { mail: 'ok' })
  expect(told()).toHaveLength(3)
})

test.each(['no', 'writes'] as const)(
  'a check that has lost its settings is not told as working again: %s',
  async (broken) => {
    const { machine, state, store, events } = await scene()
    const { rounds } = machine()
    state.broken = broken
    await rounds(2, { mail: 'failing' })
    await rounds(6, { mail: 'skipped' })
    expect(events.map(({ data }) => data.title)).toEqual([
      'platformctl: Mail (web) is failing',
      'platformctl: Mail (web) is no longer checked',
    ])
    state.broken = 'no'
    await rounds(1, { mail: 'skipped' })
    expect(await store.incidents.list(1)).toMatchObject([{ resolvedReason: 'is no longer checked' }])
    // Its settings are back, and it fails and works again: now it is checked.
    await rounds(2, { mail: 'failing' })
    await rounds(4, { mail: 'ok' })
    expect(events.at(-1)?.data.title).toMatch(/works again$/)
  },
)

test('a breaker that trips before the alert of the last pause has closed gets an alert, though somebody acknowledged that one', async () => {
  const { machine, told, store } = await scene()
  const { rounds, time } = machine()
  const { incidents, sending } = store
  const asked = { streams: ['course'], audit: audited('pause', time.now) } as const
  await sending.pause({ ...asked, reason: 'a typo', now: time.now })
  await rounds(2, { courses_paused: 'failing' })
  const [{ id } = { id: '' }] = await incidents.list(1)
  await incidents.acknowledge({ id, now: time.now, by: 'ada' })
  await rounds(1, { courses_paused: 'failing' })
  await sending.resume({ ...asked, now: time.now })
  await rounds(1, { courses_paused: 'ok' })
  const counted = { at: time.now, source: 'ses', domain: 'other' }
  await sending.count([
    { ...counted, kind: 'sent', count: 80 },
    { ...counted, kind: 'complaint', count: 6 },
  ])
  expect(await sending.check(time.now)).toBeDefined()
  await rounds(2, { courses_paused: 'failing' })
  const words = ['opened', 'acknowledged', 'closed', 'opened']
  expect(told()).toEqual(words.map((word) => `courses_paused ${word}`))
})

test('the second failing round tells one message for one cause, the second good one its end', async () => {
  const { machine, told, events } = await scene()
  const { rounds } = machine()
  const failing = [report('web', { api: 'failing', mail: 'ok' }), report('api', { job_store: 'failing' })]
  const well = [report('web', { api: 'ok', mail: 'ok' }), report('api', { job_store: 'ok' })]
  // A new failure is checked again soon.
  expect(await rounds(1, ...failing)).toBe(true)
  expect(told()).toEqual([])
  expect(await rounds(1, ...failing)).toBe(false)
  await rounds(1, ...failing)
  await rounds(1, ...well)
  expect(told()).toEqual(['job_store opened'])
  expect(events[0]?.data.affected).toEqual(['web'])
  // Without the address of the site nobody can open its status page.
  expect(events[0]?.data.text).not.toContain('Status page')
  await rounds(2, ...well)
  expect(told()).toEqual(['job_store opened', 'job_store closed'])
})

test('what worked again before it could not be looked at any more ends as working again', async () => {
  const { machine, events } = await scene()
  const { rounds } = machine()
  await rounds(2, { lessons_late: 'failing' })
  await rounds(2, { lessons_late: 'ok' })
  await rounds(6, { mail: 'ok' })
  expect(events.map(({ data }) => data.title)).toEqual([
    'platformctl: Lessons are late',
    'platformctl: Lessons go out again',
  ])
})

test('a probe that one process has no settings for, and another sees working, ends as working again', async () => {
  const { machine, events, another } = await scene()
  const [skips, checks] = [machine(), await another()]
  for (const mail of ['failing', 'failing', 'failing', 'ok', 'ok', 'ok', 'ok', 'ok'] as const) {
    await skips.rounds(1, { mail: 'skipped' })
    await checks.rounds(1, { mail })
  }
  expect(events.map(({ data }) => data.title)).toEqual([
    'platformctl: Mail (web) is failing',
    'platformctl: Mail (web) works again',
  ])
})

test('an alert sent while the store cannot be written names who resolved its incident, and the store gets the reason of each end later', async () => {
  const { machine, events, store, state } = await scene({ answers: [200, 500, 500] })
  const { rounds, time } = machine()
  await rounds(2, { mail: 'failing' })
  const [{ id } = { id: '' }] = await store.incidents.list(1)
  const by = { operator: { name: 'bob', place: 'here' }, action: 'resolve-incident', subject: id } as const
  const audit = auditEntry(
    hostAt(() => time.now),
    { ...by, details: '' },
  )
  await store.incidents.resolve({ id, now: time.now, by: 'bob', reason: 'a test', audit })
  await rounds(1, { mail: 'ok' })
  state.broken = 'writes'
  await rounds(12, { mail: 'ok' })
  expect(events.at(-1)?.data.title).toBe('platformctl: Mail (web): resolved by bob')
  await rounds(2, { mail: 'failing' })
  await rounds(6, { mail: 'skipped' })
  await rounds(2, { mail: 'failing' })
  await rounds(5, { mail: 'ok' })
  state.broken = 'no'
  await rounds(2, { mail: 'ok' })
  const ends = (await store.incidents.list(3)).map(({ resolvedReason }) => resolvedReason)
  expect(ends).toEqual([undefined, 'is no longer checked', 'a test'])
})

test('an alert of a platform in German is in English throughout, as its commands and runbooks are', async () => {
  const platform = resolvePlatform({ preset: 'base', brand: { language: 'de' } }, { folder: '/' })
  const { machine, events } = await scene({ platform })
  await machine().rounds(2, { mail: 'failing' })
  expect(events[0]?.data.title).toMatch(/: Mail \(web\) is failing$/)
  expect(JSON.stringify(events[0])).not.toMatch(/E-Mail|Links|[äöüß]/)
})

test('two machines with one store report an incident once', async () => {
  const { machine, another, told } = await scene()
  const machines = [machine(), await another()]
  for (let look = 0; look < 4; look += 1)
    await Promise.all(machines.map(({ rounds }) => rounds(1, { mail: 'failing' })))
  expect(told()).toEqual(['mail opened'])
})

test('where each service has a process of its own, one that fails because of another is listed under that one', async () => {
  const { machine, another, told, store } = await scene()
  const [web, agent] = [machine(), await another()]
  const round = async (api: ProbeState, ofAgent: ProbeState) => {
    await web.rounds(1, { api, agent: ofAgent })
    await agent.rounds(1, report('agent', { api }))
  }
  for (let n = 0; n < 3; n += 1) await round('failing', 'failing')
  expect(told()).toEqual(['api opened'])
  expect((await store.incidents.list(0)).map(({ affected }) => affected)).toEqual([['agent']])
  // The agent goes on to fail for a reason of its own.
  for (let n = 0; n < 4; n += 1) await round('ok', 'failing')
  expect(told().slice(1).toSorted()).toEqual(['agent opened', 'api closed'])
})

test('sends a failed message to its receiver again later, under the same id', async () => {
  const { machine, told, ids } = await scene({ answers: [503, 500] })
  const { rounds, time } = machine()
  await rounds(5, { mail: 'failing' })
  expect(told()).toEqual(['mail opened'])
  expect([ids.length, new Set(ids).size]).toEqual([3, 1])
  time.now += 4 * HOUR_MS
  await rounds(1, { mail: 'failing' })
  expect(told()).toEqual(['mail opened', 'mail reminder'])
})

test('a fault of the store itself raises an alert too', async () => {
  const { machine, store, events } = await scene()
  const { rounds } = machine()
  await rounds(1, { store: 'ok' })
  await store.close()
  await rounds(2, { store: 'failing' })
  expect(events.map(({ data }) => data.title)).toEqual(['platformctl: Store (web) is failing'])
})

test('alerts go out by mail, through the platform’s own mailer', async () => {
  const inbox = await openInbox({ pagePort: 0 })
  onTestFinished(() => inbox.close())
  const { rounds } = (await scene()).machine({
    env: {
      NEXT_PUBLIC_SITE_URL: 'https://kiln.example',
      ALERT_EMAIL_TO: 'ops@example.com',
      MAILER_API_KEY: 'a-key-of-the-mail-provider',
      MAILER_SMTP_URL: inbox.smtpUrl,
      MAILER_FROM: 'Kiln <kiln@example.com>',
    },
  })
  await rounds(2, { payments: 'failing' })
  expect(inbox.mails).toEqual([
    expect.objectContaining({ to: 'ops@example.com', subject: 'platformctl: Payments (web) is failing' }),
  ])
  expect(inbox.mails[0]?.text).toContain(
    'What it means: nobody can pay.\nStart with: platformctl billing smoke',
  )
  expect(inbox.mails[0]?.text).toMatch(/^Status page: https:\/\/kiln\.example\/$/m)
  await rounds(2, { agent: 'failing' })
  expect(inbox.mails.at(-1)?.text).toContain('What it means: nothing that asks Agent works.')
})

test.each(['writes', 'all'] as const)(
  'alerts go on while %s of the store fail: none twice, and all is in the store afterwards',
  async (broken) => {
    const { machine, store, state, ids, told } = await scene()
    const { rounds, time } = machine()
    await rounds(2, { mail: 'failing' })
    state.broken = broken
    const worse = { mail: 'failing', payments: 'failing' } as const
    await rounds(3, worse)
    expect(told()).toEqual(['mail opened', 'payments opened'])
    const tenMinutes = Math.floor(Date.UTC(2026, 10, 21, 9, 4) / 600_000)
    expect(ids[1]).toMatch(new RegExp(`^alert\\.payments-${tenMinutes}-[0-9a-f]{8}\\.opened$`))
    state.broken = 'no'
    await rounds(1, worse)
    const known = await store.incidents.list(9)
    expect(known.map(({ cause }) => cause).toSorted()).toEqual(['mail', 'payments'])
    expect(known.filter(({ id }) => !ids.includes(`alert.${id}.opened`))).toEqual([])
    const before = await store.incidents.messages(known.map(({ id }) => id))
    const isSent = before.map(({ outcome, at }) => outcome === 'sent' && at > time.now - 600_000)
    expect(isSent).toEqual([true, true])
    await rounds(4, { mail: 'ok', payments: 'ok' })
    expect(told().sort()).toEqual(['mail closed', 'mail opened', 'payments closed', 'payments opened'])
  },
)

const postgres = (database: string) => ({ STORE_URL: `postgres://ada:pass@db.example/${database}` })
const NAMED = { platform: resolvePlatform({ preset: 'base', name: 'Kiln' }, { folder: '/' }) }
interface Place {
  readonly platform?: ResolvedPlatform
  readonly store?: Readonly<Record<string, string>>
  readonly dataFolder?: string
}

test.each<[what: string, incidents: number, one: Place, other: Place]>([
  ['two processes of a data folder', 1, {}, {}],
  ['two data folders', 2, {}, { dataFolder: '/other' }],
  ['two machines on one PostgreSQL', 1, { store: postgres('a') }, { store: postgres('a'), dataFolder: '/b' }],
  ['two databases', 2, { store: postgres('a') }, { store: postgres('b') }],
  ['two platforms with the same path in their containers', 2, {}, NAMED],
])(
  'while the store of %s fails, a receiver hears of this many incidents: %i',
  async (_, incidents, ...places) => {
    const heard: (string | undefined)[] = []
    for (const { platform = learning, store, dataFolder = '/data' } of places) {
      const { machine, state, events, url } = await scene({ platform })
      state.broken = 'all'
      const env = { ALERT_WEBHOOK_URL: url, ...store }
      await machine({ dataFolder, env }).rounds(2, { store: 'failing' })
      heard.push(events[0]?.data.incident)
    }
    expect(heard).toEqual([0, 1].map(() => expect.stringMatching(/^store-/)))
    expect(new Set(heard).size).toBe(incidents)
  },
)

test('a store that is back while an alert is in flight hears of it once it is sent, and nobody gets it twice', async () => {
  const { machine, state, store } = await scene()
  const held = Promise.withResolvers<void>()
  const kinds: string[] = []
  const channel = channelOf('webhook', async ({ id, kind }) => {
    kinds.push(kind)
    await held.promise
    return { kind: 'sent', id }
  })
  const { round, told } = machine({ channels: [channel] })
  const rounds = async (many: number) => {
    for (let n = 0; n < many; n += 1) await round(report('web', { mail: 'failing' }))
  }
  state.broken = 'all'
  await rounds(2)
  await expect.poll(() => kinds).toEqual(['opened'])
  state.broken = 'no'
  await rounds(2)
  held.resolve()
  await told()
  await rounds(2)
  await told()
  expect(kinds).toEqual(['opened'])
  const [{ id } = { id: '' }, ...others] = await store.incidents.list(9)
  expect(others).toEqual([])
  expect(await store.incidents.messages([id])).toMatchObject([{ kind: 'opened', outcome: 'sent' }])
})

test('a message that failed before the store did is sent from memory', async () => {
  const { machine, state, told } = await scene({ answers: [503] })
  const { rounds } = machine()
  await rounds(2, { mail: 'failing' })
  expect(told()).toEqual([])
  state.broken = 'writes'
  await rounds(1, { mail: 'failing' })
  expect(told()).toEqual(['mail opened'])
})

test('a silence holds while the store fails, and what still fails after it is told', async () => {
  const { machine, store, state, told } = await scene()
  const { rounds, time } = machine()
  await store.incidents.silence({ from: time.now, until: time.now + 5 * 60_000, reason: 'deploy', by: 'ci' })
  state.broken = 'writes'
  await rounds(4, { mail: 'failing' })
  expect(told()).toEqual([])
  await rounds(1, { mail: 'failing' })
  expect(told()).toHaveLength(1)
})

test.each([
  ['began', 0],
  ['ended', 1],
])(
  'a silence that %s seconds before the whole store was stopped counts: %i alert leaves',
  async (change, heard) => {
    const { machine, store, state, told } = await scene()
    const [silenced, stopped] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let asked = 0
    const sleep: Timer['sleep'] = (ms, signal) => {
      if (ms !== 7000) return systemClock.sleep(ms, signal)
      asked += 1
      return [silenced, stopped][asked - 1]?.promise ?? systemClock.sleep(ms, signal)
    }
    const { rounds, time } = machine({ timer: { ...systemClock, sleep } })
    const silence = (ms: number) =>
      store.incidents.silence({ from: time.now, until: time.now + ms, reason: 'a new PostgreSQL', by: 'ada' })
    if (change === 'ended') await silence(600_000)
    await rounds(1, { mail: 'ok' })
    await silence(change === 'ended' ? 0 : 600_000)
    silenced.resolve()
    await expect.poll(() => asked).toBe(2)
    state.broken = 'all'
    // A store that cannot be asked says nothing new of it.
    stopped.resolve()
    await expect.poll(() => asked).toBe(3)
    await rounds(3, { mail: 'failing' })
    expect(told()).toHaveLength(heard)
  },
)

test.each([-72, 72])(
  'a cause that another machine sees failing stays open when the clock is set by %i hours',
  async (hours) => {
    const { machine, another, told } = await scene()
    const [here, there] = [machine(), await another()]
    const look = async () => {
      for (let n = 0; n < 3; n += 1) {
        await here.rounds(1, { mail: 'ok' })
        await there.rounds(1, { mail: 'failing' })
      }
    }
    await look()
    for (const { time } of [here, there]) time.now += hours * HOUR_MS
    await look()
    expect(told()).not.toContain('mail closed')
  },
)

test('a machine that runs does not end what another tells that is refused a start again and again', async () => {
  const { machine, another, told } = await scene()
  const [runs, refused] = [machine(), await another()]
  for (let start = 0; start < 6; start += 1) {
    refused.time.now = runs.time.now - 60_000
    await refused.rounds(2, { start_refused: 'failing' })
    await runs.rounds(5, { start_refused: 'ok' })
  }
  expect(told()).toEqual(['start_refused opened'])
  await runs.rounds(10, { start_refused: 'ok' })
  expect(told()).toEqual(['start_refused opened', 'start_refused closed'])
})

test('a cause that another machine saw fail 150 seconds ago or later stays open', async () => {
  const { machine, another, told } = await scene()
  const [here, there] = [machine(), await another()]
  for (const { rounds } of [here, there]) await rounds(2, { mail: 'failing' })
  const seen = there.time.now
  const well = async (at: number) => {
    here.time.now = at - 60_000
    await here.rounds(1, { mail: 'ok' })
    return told().filter((one) => one === 'mail closed').length
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
    const { machine, state } = await scene()
    state.broken = broken
    const mail = channelOf('mail', async ({ id, kind, incident }) => {
      told.push(`${incident.cause} ${kind}`)
      return { kind: 'sent', id }
    })
    const { round } = machine({ channels: [channelOf('webhook', () => hanging), mail] })
    onTestFinished(() => release({ kind: 'sent', id: 'x' }))
    const rounds = async (states: States) => {
      for (let n = 0; n < 3; n += 1) await round(report('web', states))
    }
    await rounds({ store: 'failing', mail: 'ok' })
    await expect.poll(() => told).toEqual(['store opened'])
    await rounds({ store: 'ok', mail: 'failing' })
    await expect.poll(() => told.toSorted()).toEqual(['mail opened', 'store closed', 'store opened'])
  },
)

test('a stop waits for the message in flight, and no round is taken after it', async () => {
  const { machine, store } = await scene()
  const [held, asked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const channel = channelOf('webhook', async ({ id }) => {
    asked.resolve()
    await held.promise
    return { kind: 'sent', id }
  })
  const { round, stop } = machine({ channels: [channel] })
  for (let look = 0; look < 2; look += 1) await round(report('web', { mail: 'failing' }))
  await asked.promise
  let stopped = false
  const stopping = stop().then(() => {
    stopped = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(stopped).toBe(false)
  held.resolve()
  await stopping
  const [{ id } = { id: '' }] = await store.incidents.list(1)
  expect((await store.incidents.messages([id])).map(({ outcome }) => outcome)).toEqual(['sent'])
  for (let look = 0; look < 2; look += 1)
    expect(await round(report('web', { payments: 'failing' }))).toBe(false)
  expect(await store.incidents.list(9)).toHaveLength(1)
})

test.each([
  ['oven', 'nothing that needs Oven works.'],
  ['loans', 'Loans cannot be booked.'],
  ['payments_service', 'nothing that asks Payments service works.'],
])('an alert about %s says what its failure means: %s', async (probe, means) => {
  const definition = {
    preset: 'base',
    services: { web: {}, payments: { port: 4020, health: '/up' } },
    probes: {
      oven: { service: 'web', tcp: 'oven.example:80' },
      loans: { service: 'web', meaning: 'Loans cannot be booked.', check: () => ({ state: 'failing' }) },
    },
  } as const
  const { machine, events } = await scene({ platform: resolvePlatform(definition, { folder: '/' }) })
  await machine().rounds(2, { [probe]: 'failing' })
  expect(events[0]?.data.text).toContain(`\nWhat it means: ${means}\n`)
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
      kiln: { service: 'web', dns: 'kiln.example', dependsOn: ['bookings'], meaning: 'no firings' },
      oven: { service: 'workshop', dns: 'oven.example', dependsOn: ['store'] },
    },
  },
  { folder: '/' },
)

describe.each(KEPT)('on %s', (kind) => {
  test('a store and the services that need it raise one alert; a service that still fails afterwards raises its own', async () => {
    const { machine, told, events } = await scene({ kind, platform: kilns })
    const { rounds } = machine()
    await rounds(3, { store: 'failing', kiln: 'failing', bookings: 'failing' })
    expect(told()).toEqual(['store opened'])
    expect(events[0]?.data).toMatchObject({
      title: 'Platform: Store (web, bookings) is failing',
      affected: ['bookings', 'kiln'],
      text: expect.stringContaining('Also failing for this cause: bookings, kiln.'),
    })
    await rounds(3, { store: 'ok', kiln: 'failing', bookings: 'ok' })
    expect(told().slice(1)).toEqual(['kiln opened', 'store closed'])
    const fired = events.find(({ data }) => data.cause === 'kiln')
    expect(fired?.data.text).toContain('What it means: no firings.\n')
    await rounds(3, { store: 'ok', kiln: 'ok', bookings: 'ok' })
    expect(told().slice(3)).toEqual(['kiln closed'])
  })

  test('a cause that fails after what depends on it ends no incident: each end is sent once, when it is true', async () => {
    const { machine, another, told } = await scene({ kind, platform: kilns })
    const [first, second] = [machine(), await another()]
    const both = async (many: number, states: States, other = states) => {
      for (let n = 0; n < many; n += 1) {
        await first.rounds(1, states)
        await second.rounds(1, other)
      }
    }
    await both(2, { store: 'ok', kiln: 'failing' })
    await both(6, { store: 'failing', kiln: 'failing' })
    // One machine goes on to see both fail.
    await both(4, { store: 'failing', kiln: 'failing' }, { store: 'ok', kiln: 'ok' })
    expect(told()).toEqual(['kiln opened', 'store opened'])
    await both(4, { store: 'ok', kiln: 'failing' })
    expect(told().slice(2)).toEqual(['store closed'])
    await both(6, { store: 'ok', kiln: 'ok' })
    expect(told().slice(3)).toEqual(['kiln closed'])
  })

  test('two processes that serve one service each list what fails in either under one alert', async () => {
    const { machine, another, told, events, store } = await scene({ kind, platform: kilns })
    const [web, workshop] = [machine(), await another()]
    const both = async (many: number, ofStore: ProbeState, oven: ProbeState) => {
      for (let n = 0; n < many; n += 1) {
        await web.rounds(1, { store: ofStore, kiln: ofStore, workshop: oven })
        await workshop.rounds(1, report('workshop', { oven }))
      }
    }
    const affected = async () => (await store.incidents.list(0)).map((one) => [one.cause, one.affected])
    await web.rounds(1, { store: 'failing', kiln: 'failing', workshop: 'ok' })
    await both(3, 'failing', 'failing')
    expect(told()).toEqual(['store opened'])
    expect(await affected()).toEqual([['store', ['kiln', 'oven', 'workshop']]])
    await both(1, 'failing', 'ok')
    expect(await affected()).toEqual([['store', ['kiln']]])
    await both(4, 'ok', 'ok')
    expect(told()).toEqual(['store opened', 'store closed'])
    // The process of what depends on it looks first.
    await workshop.rounds(2, report('workshop', { oven: 'failing' }))
    await web.rounds(2, { store: 'failing', kiln: 'failing', workshop: 'failing' })
    await both(2, 'failing', 'failing')
    await both(4, 'ok', 'ok')
    expect(told().slice(2)).toEqual(['store opened', 'store closed'])
    events.splice(2)
    // Only the other process knows why the workshop fails. Once its cause works again, the workshop raises an alert of its own.
    await both(1, 'ok', 'ok')
    await workshop.rounds(3, report('workshop', { oven: 'failing' }))
    web.time.now = workshop.time.now
    const seen = web.time.now
    await web.rounds(2, { store: 'ok', kiln: 'ok', workshop: 'failing' })
    expect(told().slice(2)).toEqual(['oven opened'])
    expect(await affected()).toEqual([['oven', ['web']]])
    expect((await store.incidents.list(0))[0]?.seenAt).toBe(seen)
    await web.rounds(2, { store: 'ok', kiln: 'ok', workshop: 'failing' })
    expect(told().slice(3)).toEqual(['workshop opened'])
  })

  test.each([3, 72])(
    'a false incident of a clock that was %i hours ahead ends within three minutes, and the next is told',
    async (hours) => {
      const { machine, events } = await scene({ kind })
      const { rounds, time } = machine()
      const told = () => events.map(({ type }) => type.split('.')[1])
      time.now += hours * HOUR_MS
      await rounds(2, { lessons_late: 'failing' })
      time.now -= hours * HOUR_MS
      await rounds(3, { lessons_late: 'ok' })
      expect(told()).toEqual(['opened', 'closed'])
      await rounds(2, { lessons_late: 'failing' })
      expect(told()).toEqual(['opened', 'closed', 'opened'])
      // One that goes on while the clock is set back reminds and ends as any other.
      time.now -= hours * HOUR_MS
      await rounds(1, { lessons_late: 'failing' })
      time.now += 4 * HOUR_MS
      await rounds(1, { lessons_late: 'failing' })
      await rounds(4, { lessons_late: 'ok' })
      expect(told().slice(3)).toEqual(['reminder', 'closed'])
    },
  )
})

test('an incident that was told while the store failed ends too when another machine opened one for its cause', async () => {
  const { machine, state, incidents } = await scene()
  const { rounds, time } = machine()
  state.broken = 'all'
  await rounds(2, { mail: 'failing' })
  state.broken = 'no'
  await machine({ now: time.now }).rounds(2, { mail: 'failing' })
  await rounds(6, { mail: 'ok' })
  expect(incidents('opened')).toHaveLength(2)
  expect(incidents('closed')).toEqual(incidents('opened'))
})

test('of what failed twice while the store was away, the second ends where another machine opened one since', async () => {
  const { store } = await scene()
  const [first, second] = [
    incidentWith({ id: 'a', openedAt: 0, closedAt: 10 }),
    incidentWith({ id: 'b', openedAt: 20 }),
  ]
  const messages = [first, second].map(({ id: incident, openedAt: at }) => {
    const said = { outcome: 'sent', attempts: 1, reason: undefined } as const
    return { incident, kind: 'opened', channel: 'webhook', at, ...said } as const
  })
  const spare = await openSpareAlerts([], [{ incidents: [first, second], messages, silence: undefined }], 20)
  await openIncident(store.incidents, incidentWith({ id: 'c', openedAt: 30 }))
  await spare.bringBack(store.incidents, 40)
  await spare.close()
  const ends = await Promise.all(['a', 'b', 'c'].map((id) => store.incidents.find(id)))
  expect(ends.map((one) => one?.closedAt)).toEqual([10, 40, undefined])
})

test('what ended and failed again while the store was away goes on as the incident that was told last', async () => {
  const { machine, state, told, store } = await scene()
  const { rounds } = machine()
  await rounds(2, { mail: 'failing' })
  state.broken = 'all'
  await rounds(4, { mail: 'ok' })
  await rounds(2, { mail: 'failing' })
  state.broken = 'no'
  await rounds(4, { mail: 'failing' })
  expect(told()).toEqual(['mail opened', 'mail closed', 'mail opened'])
  expect(await store.incidents.list(0)).toMatchObject([
    { cause: 'mail', id: expect.stringMatching(/^mail-/) },
  ])
  await rounds(4, { mail: 'ok' })
  expect(told().slice(3)).toEqual(['mail closed'])
})

test('a store that comes back for one round and is away again has one alert for one outage', async () => {
  const it = await scene()
  const { rounds } = it.machine()
  it.state.broken = 'all'
  await rounds(4, { mail: 'failing' })
  it.state.broken = 'once'
  await rounds(1, { mail: 'failing' })
  await rounds(15, { mail: 'failing' })
  it.state.broken = 'no'
  await rounds(3, { mail: 'failing' })
  expect(it.told()).toEqual(['mail opened'])
})

test('an alert that was given up while the store failed is sent once the store is back, and its end after it', async () => {
  const { machine, state, told, ids } = await scene({ answers: [410] })
  const { rounds } = machine()
  state.broken = 'all'
  await rounds(3, { mail: 'failing' })
  expect([ids.length, told()]).toEqual([1, []])
  state.broken = 'no'
  await rounds(3, { mail: 'failing' })
  await rounds(4, { mail: 'ok' })
  expect(told()).toEqual(['mail opened', 'mail closed'])
})

/** Processes one after the other in a scene, each of which goes on from what the one before kept in its files. */
function restarts({ machine }: Awaited<ReturnType<typeof scene>>, files: readonly string[]) {
  let now: number | undefined
  return {
    pass: (ms: number) => {
      now = (now ?? 0) + ms
    },
    async run(rounds: number, states: States) {
      const process = machine({ files, ...(now && { now }) })
      await process.rounds(rounds, states)
      now = process.time.now
      await process.stop()
    },
  }
}

test.each([
  ['in its folder', ['alerts.json', 'beside/alerts.json']],
  ['beside it, where its folder has no room', ['no-such-folder/alerts.json', 'alerts.json']],
])(
  'what was told while the store failed ends once, however often the process restarts meanwhile: kept %s',
  async (_, names) => {
    const it = await scene()
    const { state, store, told, incidents } = it
    const folder = await emptyFolder()
    const file = path.join(folder, 'alerts.json')
    const { run, pass } = restarts(
      it,
      names.map((name) => path.join(folder, name)),
    )
    await run(2, { mail: 'failing', store: 'ok' })
    for (const broken of ['writes', 'all'] as const) {
      state.broken = broken
      await run(2, { mail: 'failing', store: 'failing' })
      pass(20 * 60_000)
    }
    expect(told()).toEqual(['mail opened', 'store opened'])
    // Mail recovers before the store does.
    await run(3, { mail: 'ok', store: 'failing' })
    expect(told().slice(2)).toEqual(['mail closed'])
    state.broken = 'no'
    expect(statSync(file).mode & 0o777).toBe(0o600)
    await run(1, { mail: 'ok', store: 'ok' })
    expect(existsSync(file)).toBe(false)
    // It fails anew at once: the incident that has ended does not hide that.
    await run(2, { mail: 'failing', store: 'ok' })
    expect(told().slice(3).toSorted()).toEqual(['mail opened', 'store closed'])
    await run(4, { mail: 'ok', store: 'ok' })
    expect(told().slice(5)).toEqual(['mail closed'])
    expect(incidents('closed')).toEqual(incidents('opened'))
    expect((await store.incidents.list(9)).every(({ closedAt }) => closedAt !== undefined)).toBe(true)
  },
)

test('an incident that was acknowledged before the store failed gets no reminder from a process that only has the file', async () => {
  const it = await scene()
  const { run, pass } = restarts(it, [path.join(await emptyFolder(), 'alerts.json')])
  await run(2, { mail: 'failing' })
  const [id = ''] = it.incidents('opened')
  await it.store.incidents.acknowledge({ id, now: Date.UTC(2026, 10, 21, 9, 3), by: 'ada' })
  await run(1, { mail: 'failing' })
  for (const broken of ['writes', 'all'] as const) {
    it.state.broken = broken
    await run(2, { mail: 'failing' })
    pass(5 * 3600_000)
  }
  await run(2, { mail: 'failing' })
  expect(it.told()).toEqual(['mail opened', 'mail acknowledged'])
})

test('a silence holds until its end in a process that only has the file', async () => {
  const it = await scene()
  const { run, pass } = restarts(it, [path.join(await emptyFolder(), 'alerts.json')])
  await run(1, { mail: 'ok' })
  const from = Date.UTC(2026, 10, 21, 9, 1)
  await it.store.incidents.silence({ from, until: from + 10 * 60_000, reason: 'deploy', by: 'ci' })
  for (const broken of ['writes', 'all'] as const) {
    it.state.broken = broken
    await run(2, { mail: 'failing' })
  }
  expect(it.told()).toEqual([])
  pass(10 * 60_000)
  await run(1, { mail: 'failing' })
  expect(it.told()).toEqual(['mail opened'])
})

test('what was kept of alerts stays while nothing can be written in its place, so that what was told still ends', async () => {
  const it = await scene()
  const file = path.join(await emptyFolder(), 'alerts.json')
  const { run } = restarts(it, [file])
  it.state.broken = 'all'
  await run(2, { store: 'failing' })
  // A folder where the new file would be made first.
  await mkdir(`${file}.${process.pid}@${hostname()}`)
  await run(1, { store: 'failing' })
  expect(existsSync(file)).toBe(true)
  it.state.broken = 'no'
  await run(4, { store: 'ok' })
  expect(it.told()).toEqual(['store opened', 'store closed'])
})

test('what was kept of an earlier outage hides nothing that the store has told since, if that can only be read', async () => {
  const { machine, state, told } = await scene()
  await machine().rounds(2, { mail: 'failing' })
  const file = path.join(await emptyFolder(), 'alerts.json')
  await writeFile(file, '{"incidents":[],"messages":[]}')
  state.broken = 'writes'
  await machine({ files: [file] }).rounds(3, { mail: 'failing' })
  expect(told()).toEqual(['mail opened'])
})

test('of two files of kept alerts, the first that can be read counts', async () => {
  const folder = await emptyFolder()
  const files = ['first', 'second', 'third'].map((name) => path.join(folder, name))
  for (const [index, file] of files.entries())
    await writeFile(file, index === 0 ? '{' : `{"incidents":[{"id":"${index}"}],"messages":[]}`)
  expect(keptAlerts(files)?.incidents.map(({ id }) => id)).toEqual(['1'])
})

test('what an older build told while the store failed ends under the id that it had there', async () => {
  const it = await scene()
  const file = path.join(await emptyFolder(), 'alerts.json')
  const { run } = restarts(it, [file])
  it.state.broken = 'all'
  await run(2, { store: 'failing' })
  const kept = await readFile(file, 'utf8')
  await writeFile(file, kept.replaceAll(/(store-\d+)-\w+/g, '$1'))
  await run(2, { store: 'failing' })
  it.state.broken = 'no'
  await run(4, { store: 'ok' })
  expect(it.told()).toEqual(['store opened', 'store closed'])
  expect(it.incidents('closed')).toEqual([expect.stringMatching(/^store-\d+$/)])
})

test.each([
  ...['', '{', 'null', '{"incidents":[{}],"messages":[]}'],
  ...['{"incidents":[],"messages":[null]}', '{"incidents":[],"messages":[],"silence":{}}'],
])(
  'a file of kept alerts that says %j is none, and one that cannot be written stops nothing',
  async (text) => {
    const { machine, state, told } = await scene()
    state.broken = 'all'
    const file = path.join(await emptyFolder(), 'alerts.json')
    if (text === '') await mkdir(file)
    else await writeFile(file, text)
    const { rounds } = machine({ files: [file] })
    await rounds(3, { store: 'failing' })
    state.broken = 'no'
    await rounds(4, { store: 'ok' })
    expect(told()).toEqual(['store opened', 'store closed'])
  },
)
