import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { DAY_MS, HOUR_MS } from '../../src/core/durations.ts'
import { silentLog, systemClock } from '../../src/core/host.ts'
import { DAYS_KEPT, type History, WHOLE_SERVICE } from '../../src/core/status/history.ts'
import { openHistory } from '../../src/core/store/open.ts'
import { handlersOf, openPlatform } from '../../src/daemon/platform.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { startLearningDaemon } from '../support/daemon.ts'
import { emptyFolder } from '../support/folder.ts'
import { manyServices } from '../support/many-services.ts'
import { asking, opened } from '../support/opened.ts'
import { recordLearningDays } from '../support/sample-health.ts'
import { serve } from '../support/servers.ts'
import { keepingTransport } from '../support/test-transport.ts'

const NOW = Date.UTC(2026, 10, 21, 7, 26, 34)
const TOKEN = 'a-health-token-of-thirty-two-bytes'

type Recorded = NonNullable<Parameters<typeof recordLearningDays>[2]>['state']

/** Ninety days take a second to record, and tests that end in the same state only read them. */
const records = new Map<Recorded, Promise<History>>()
function recorded(state: Recorded = 'ok'): Promise<History> {
  const known = records.get(state) ?? newHistory((history) => recordLearningDays(history, NOW, { state }))
  records.set(state, known)
  return known
}

const histories: History[] = []
afterAll(async () => {
  for (const history of histories) await history.close()
})

async function newHistory(record: (history: History) => Promise<void>): Promise<History> {
  const history = await openHistory(undefined)
  histories.push(history)
  await record(history)
  return history
}

function site({
  env = {},
  history,
  now = NOW,
}: {
  env?: Record<string, string>
  history?: History
  now?: number
} = {}) {
  const { ask } = opened({ env, clock: { ...systemClock, now: () => now }, ...(history && { history }) })
  return (target: string, headers: Record<string, string> = {}) => ask(target, { headers })
}

const text = async (response: Promise<Response>) => (await response).text()
const json = async (response: Promise<Response>) => (await (await response).json()) as Record<string, unknown>

test('a failing service shows for how long, its incident comes before the services, and the favicon shows it', {
  timeout: 60_000,
}, async () => {
  const page = await text(site({ history: await recorded('failing') })('/'))
  expect(page).toMatch(/is failing <small>for 15 minutes · /)
  expect(page.indexOf('<article class="incident failing"')).toBeLessThan(page.indexOf('class="service"'))
  const icon = /<link rel="icon" href="data:image\/svg\+xml,([^"]+)">/.exec(page)?.[1] ?? ''
  expect(decodeURIComponent(icon)).toContain('#b3261e')
  const calm = await text(site({ history: await recorded() })('/'))
  expect(calm.indexOf('<h2>Incidents</h2>')).toBeGreaterThan(calm.indexOf('class="service"'))
})

test('visitors read the verdict, its age, each part, incidents, response times and what is off, and no internals', async () => {
  const ask = site({ history: await recorded() })
  const page = await text(ask('/'))
  for (const said of [
    'Everything works',
    />24 seconds ago<\/time>/,
    'Job store',
    'The last 90 days: 79 ok, 1 failing, 10 without data',
    'was failing for 40 minutes</a>',
    '· felt by Web and Agent',
    /Response times, last 24 hours: half within \d+ ms, 95 of 100 within \d+ ms"/,
    '<details class="fold" id="off"><summary>',
    'Analytics is off: your activity stays on your device.',
    '<link rel="alternate" type="application/atom+xml"',
  ])
    typeof said === 'string' ? expect(page).toContain(said) : expect(page).toMatch(said)
  expect(page.slice(page.indexOf('<main'), page.indexOf('</main'))).not.toMatch(
    /p50|4\.2\.0|in this process|SDK|Operator view|kept in memory/,
  )
  // The page loads nothing from another origin.
  expect(page).not.toMatch(/http-equiv|src=|@import/)
  expect(page).toContain('<meta name="theme-color"')
  expect(page).toContain('<meta property="og:image" content="http://localhost:3000/preview.png">')
  expect(Buffer.byteLength(page)).toBeLessThan(60 * 1024)
})

test('operators read builds, percentiles and what is not configured on a marked page with a way back', async () => {
  const ask = site({ env: { HEALTH_DEEP_TOKEN: TOKEN }, history: await recorded() })
  const page = await text(ask('/', { Authorization: `Bearer ${TOKEN}` }))
  for (const said of [
    /Operator view\..*<a href="\/">Back to the public page<\/a>/,
    'build 4.2.0',
    / · p50 · p95 · p99: \d+ · \d+ · \d+ ms</,
    'Rate limits count in this process only.',
    'The history is kept in memory and ends with the process: its file cannot be written.',
  ])
    typeof said === 'string' ? expect(page).toContain(said) : expect(page).toMatch(said)
  // A browser sends the password with every later request: without `?details` the page is the public one.
  const basic = { Authorization: `Basic ${btoa(`anyone:${TOKEN}`)}` }
  expect(await text(ask('/', basic))).not.toContain('Operator view')
  expect(await text(ask('/?details', basic))).toContain('Operator view')
})

test('incidents are an Atom feed whose entries keep their ids', async () => {
  const ask = site({
    env: { NEXT_PUBLIC_SITE_URL: 'https://learn.example' },
    history: await recorded('failing'),
  })
  const response = await ask('/status.atom')
  expect(response.headers.get('content-type')).toBe('application/atom+xml; charset=utf-8')
  const feed = await response.text()
  const entries = [...feed.matchAll(/<entry>\s<id>(.*?)<\/id>\s<title>(.*?)<\/title>/g)].map(
    ([, id, title]) => [id, title],
  )
  expect(entries[0]).toEqual([
    expect.stringMatching(/^https:\/\/learn\.example\/#incident-web-mail-\d+$/),
    'Mail (Web) has been failing since 21 Nov 2026, 07:11 UTC',
  ])
  expect(entries.at(-1)?.[1]).toBe('Job store (API) was failing for 40 minutes')
  // Every link leads to an incident of the page, and no reason is told.
  const page = await text(ask('/'))
  for (const [id] of entries) expect(page).toContain(`id="${id?.split('#')[1]}"`)
  expect(feed).not.toContain('no answer in time')
  expect((await ask('/status.ics')).headers.get('content-type')).toBe('text/calendar; charset=utf-8')
})

test('fifty services stand in one line each, trouble first and open', async () => {
  const html = manyServices(NOW).page.html
  const folds = [
    ...html.matchAll(/<details class="service" id="service-service-([^"]+)"( open data-trouble)?>/g),
  ]
  expect(folds).toHaveLength(50)
  expect(folds.filter(([, , open]) => open).map(([, name]) => name)).toEqual(['31'])
  expect(folds[0]?.[1]).toBe('31')
})

test('after hours without a check the page still shows what is not configured, and claims nothing else', async () => {
  const ask = site({
    env: { HEALTH_DEEP_TOKEN: TOKEN },
    history: await recorded(),
    now: NOW + 5 * HOUR_MS,
  })
  const page = await text(ask('/', { Authorization: `Bearer ${TOKEN}` }))
  expect(page).toContain('<h1>Nothing has been recorded for 5 hours')
  const [services = '', off] = page.split('<h2>Not configured</h2>')
  expect(off).toContain('Rate limits count in this process only.')
  expect(services).toContain('no data')
  expect(services).not.toMatch(/Shared store|Cloud QPU/)
})

test('the page stays within 60 KB when every day is another state and incidents never end', async () => {
  const ask = site({
    history: await newHistory(async (history) => {
      const states = ['ok', 'degraded', 'failing'] as const
      const services = { web: 10, api: 6, agent: 6 } as const
      for (let day = DAYS_KEPT; day >= 0; day -= 1) {
        const at = NOW - day * DAY_MS - 1000
        const observations = (['web', 'api', 'agent'] as const).flatMap((service) =>
          Array.from({ length: services[service] + 1 }, (_, index) => {
            const state = states[(day + index) % 3] ?? 'ok'
            const credit = { state, from: at - 1000, to: at }
            const probe = index === 0 ? WHOLE_SERVICE : `dependency_${index}`
            return { service, probe, state, reason: 'cannot be reached from here', latencyMs: 10, credit }
          }),
        )
        await history.record({ at, observations, builds: { web: 'b'.repeat(100), api: 'c'.repeat(100) } })
      }
    }),
    env: { HEALTH_DEEP_TOKEN: TOKEN },
  })
  const [all, details] = [await text(ask('/')), await text(ask('/', { Authorization: `Bearer ${TOKEN}` }))]
  expect(Buffer.byteLength(all)).toBeLessThan(60 * 1024)
  expect(Buffer.byteLength(details)).toBeLessThan(60 * 1024)
  // Two builds: only operators read which.
  expect(all).toContain('The services run different versions at the moment.')
  expect(all).not.toMatch(/b{9}|c{9}/)
  expect(details).toMatch(/The services run different builds: [^<]*b{9}[^<]*c{9}/)
})

test('reasons and addresses require the health token', async () => {
  const ask = site({
    env: { HEALTH_DEEP_TOKEN: TOKEN, API_URL: 'http://api.internal.example:8000' },
    history: await recorded('failing'),
  })
  const secrets = /no answer in time|cannot be reached|api\.internal/
  const basic = (password: string) => ({
    Authorization: `Basic ${Buffer.from(`anyone:${password}`).toString('base64')}`,
  })
  for (const target of ['/', '/status.json', '/badge.svg'])
    expect(await text(ask(target))).not.toMatch(secrets)
  for (const target of ['/', '/status.json']) {
    const shown = await text(ask(target, { Authorization: `Bearer ${TOKEN}` }))
    expect(shown).toContain('no answer in time')
    expect(shown).toContain('http://api.internal.example:8000')
    expect(await text(ask(`${target}?details`, basic(TOKEN)))).toContain('no answer in time')
    for (const wrong of [{}, basic('wrong'), { Authorization: 'Bearer wrong' }]) {
      const refused = await ask(`${target}?details`, { Accept: 'text/html', ...wrong })
      expect(refused.status).toBe(401)
      // A browser asks its user for the password by itself.
      expect(refused.headers.get('www-authenticate')).toMatch(/Basic realm=/)
      expect(await refused.text()).not.toMatch(secrets)
    }
    expect((await ask(target, { Authorization: 'Bearer wrong' })).status).toBe(401)
  }
})

test('gives reasons to nobody if no health token is set', async () => {
  const ask = site({ history: await recorded() })
  for (const password of ['', 'undefined'])
    expect((await ask('/?details', { Authorization: `Basic ${btoa(`x:${password}`)}` })).status).toBe(401)
  expect(await text(ask('/'))).not.toContain('for operators')
})

test.each([
  ['ok', 'all working', 'Everything works'],
  ['failing', 'failing', 'Mail (Web) is failing'],
] as const)('page, JSON and badge agree on %s', async (state, word, verdict) => {
  const ask = site({ history: await recorded(state) })
  expect(await text(ask('/'))).toContain(`<h1>${verdict}`)
  expect(await json(ask('/status.json'))).toMatchObject({
    version: 1,
    state,
    verdict,
    checkedAt: '2026-11-21T07:26:10.000Z',
    skew: false,
    services: [{ service: 'web', state, build: '4.2.0' }, { service: 'api' }, { service: 'agent' }],
  })
  const badge = await ask('/badge.svg')
  expect(badge.headers.get('content-type')).toMatch(/^image\/svg\+xml/)
  // Other sites show it.
  expect(badge.headers.get('cross-origin-resource-policy')).toBe('cross-origin')
  expect(await badge.text()).toContain(`aria-label="status: ${word}"`)
  expect(await text(ask('/badge.svg?service=api'))).toContain('aria-label="API: all working"')
  expect(await json(ask('/badge.svg?service=db'))).toMatchObject({
    code: 'bad_request',
    issues: [{ path: 'service' }],
  })
  const picture = await ask('/preview.png')
  const fields = ['content-type', 'cross-origin-resource-policy'].map((name) => picture.headers.get(name))
  expect(fields).toEqual(['image/png', 'cross-origin'])
})

test('JSON has a letter a day, uptime by time and percentiles', async () => {
  const ask = site({ history: await recorded() })
  const { services } = (await json(ask('/status.json'))) as {
    services: { probes: Record<string, unknown> }[]
  }
  expect(services[0]?.probes.payments).toMatchObject({
    state: 'ok',
    days: {
      first: '2026-08-24',
      states: expect.stringMatching(/^-{9}o+-o+fo{13}$/),
      trouble: [{ date: '2026-11-08', degradedSeconds: 0, failingSeconds: 130 * 60 }],
    },
    last90Days: {
      uptime: expect.closeTo(0.9988, 3),
      seconds: { failing: 130 * 60 },
      latencyMs: { p50: expect.any(Number), p95: expect.any(Number), p99: expect.any(Number) },
    },
  })
})

test('a probe that fails because of another is listed under that one, and the verdict does not name it', async () => {
  const history = await newHistory(async (history) => {
    for (const [ago, state] of [
      [2, 'ok'],
      [1, 'failing'],
    ] as const) {
      const at = NOW - ago * 60_000
      const seen = { state, reason: undefined, latencyMs: undefined, credit: undefined }
      const probes = { web: ['', 'store'], api: ['', 'job_store'] }
      const observations = Object.entries(probes).flatMap(([service, all]) =>
        all.map((probe) => ({ service, probe, ...seen })),
      )
      await history.record({ at, observations, builds: {} })
    }
  })
  expect(await json(site({ history })('/status.json'))).toMatchObject({
    verdict: 'Store (Web) is failing',
    incidents: [{ service: 'web', probe: 'store', feltBy: ['api', 'job_store'] }],
  })
  // Nothing is recorded of this one.
  expect(await text(site({ history })('/badge.svg?service=agent'))).toContain('aria-label="Agent: no data"')
})

test('without a record the page says so and what is not configured, and asks nothing of any dependency', async () => {
  let asked = 0
  const url = await serve((_, response) => {
    asked += 1
    response.end()
  })
  const ask = site({ env: { API_URL: url, AGENT_URL: url } })
  const page = await text(ask('/'))
  expect(page).toContain('<h1>No history is recorded yet')
  expect(page).toContain('Payments are off: nothing can be bought.')
  // A group that is set in part is off as well.
  const env = { PAYMENTS_SECRET_KEY: 'sk_live_example' }
  expect(await text(site({ env })('/'))).toContain('Payments are off: nothing can be bought.')
  // Its probe is ok: the program takes payments by a way of its own.
  const well = site({ env, history: await recorded() })
  expect(await text(well('/'))).not.toContain('Payments are off')
  const own = { mailer: keepingTransport([]), identify: async () => undefined }
  expect(await opened(own).page('/')).not.toMatch(/Mail is off|Accounts are off/)
  expect(await json(ask('/status.json'))).toMatchObject({ state: 'unknown', recorded: 'none', services: [] })
  expect(await text(ask('/badge.svg'))).toContain('status: no data')
  expect(asked).toBe(0)
})

test('visitors and operators read what is missing of groups that web reads, also of one that no probe names', async () => {
  const group = (name: string, more: object = {}) => ({
    ...{ unlocks: name, absent: `no ${name}`, visitors: `There is no ${name}.` },
    ...{ variables: { [`${name.toUpperCase()}_URL`]: { kind: 'url' as const } }, ...more },
  })
  const groups = {
    ...{ weather: group('weather'), tide: group('tide'), charts: group('charts') },
    // Whether another service has what it alone reads is not known here.
    ...{ pumps: group('pumps', { services: ['api'] }), cranes: group('cranes', { visitors: undefined }) },
  }
  const probes = { weather: { service: 'web', group: 'weather', http: 'WEATHER_URL' } } as const
  const definition = { preset: 'base', services: { web: {}, api: { port: 8000 } }, groups, probes } as const
  const platform = resolvePlatform(definition, { folder: '/' })
  const env = { CHARTS_URL: 'https://charts.example', HEALTH_DEEP_TOKEN: TOKEN }
  const skipped = { state: 'skipped', reason: undefined, latencyMs: undefined, credit: undefined } as const
  const history = await newHistory((history) =>
    history.record({
      ...{ at: NOW - 60_000, builds: {} },
      observations: [{ service: 'web', probe: 'weather', ...skipped }],
    }),
  )
  for (const recorded of [{}, { history }]) {
    const open = openPlatform({ platform, env, clock: { ...systemClock, now: () => NOW }, ...recorded })
    onTestFinished(() => open.close())
    const { ask } = asking(handlersOf(open))
    const seen = await json(ask('/status.json', { headers: { Authorization: `Bearer ${TOKEN}` } }))
    const ours = (texts: unknown) => JSON.stringify(texts).match(/no (?:weather|tide|charts|pumps|cranes)/g)
    expect(ours(seen.off)).toEqual(['no weather', 'no tide'])
    expect(ours(seen.notConfigured)).toEqual(['no weather', 'no tide'])
    const german = await ask('/', { headers: { Accept: 'text/html', 'Accept-Language': 'de' } })
    expect(await german.text()).toContain('Zahlungen sind aus')
  }
})

test('serves without a history file that cannot be opened, and reports it', async () => {
  const dataFolder = await emptyFolder()
  await mkdir(path.join(dataFolder, 'history.sqlite'))
  const events: string[] = []
  const daemon = await startLearningDaemon({
    env: { HEALTH_DEEP_TOKEN: TOKEN },
    dataFolder,
    log: { ...silentLog, warn: (event) => void events.push(event) },
  })
  onTestFinished(() => daemon.close())
  expect(events).toContain('history_in_memory')
  const headers = { Authorization: `Bearer ${TOKEN}` }
  expect(await (await fetch(`${daemon.urls.web}/?details`, { headers })).text()).toContain(
    'kept in memory and ends with the process',
  )
})
