import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { get, type RequestListener } from 'node:http'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { openInbox } from '../../src/cli/demo/inbox.ts'
import { runProgram } from '../../src/cli/program.ts'
import { HOUR_MS } from '../../src/core/durations.ts'
import { type Log, silentLog, systemClock, systemRandom } from '../../src/core/host.ts'
import { createAlertLanes, webhookChannel } from '../../src/core/incidents/channels.ts'
import { secret } from '../../src/core/secret.ts'
import { openHistory } from '../../src/core/store/open.ts'
import {
  parseWitnessSecrets,
  proofOf,
  publicKeyOf,
  readSnapshot,
  readToken,
  sign,
  signingKey,
  tokenOf,
} from '../../src/core/witness.ts'
import { nodeListener } from '../../src/daemon/node-listener.ts'
import { handlersOf, openPlatform } from '../../src/daemon/platform.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { readVote } from '../../src/witness/ask.ts'
import { publisher } from '../../src/witness/files.ts'
import { followOutages, outageText } from '../../src/witness/outages.ts'
import { serveWitness } from '../../src/witness/serve.ts'
import { NOTHING_SEEN, type Round, type Voting } from '../../src/witness/votes.ts'
import { otherPlatform, startWitness } from '../../src/witness/witness.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder } from '../support/folder.ts'
import { channelOf, hostAt, incidentWith, openIncident } from '../support/incidents.ts'
import { S3_KEY, s3Storage } from '../support/s3.ts'
import { recordLearningDays } from '../support/sample-health.ts'
import { serve, serveBodies } from '../support/servers.ts'
import { standingClock } from '../support/standing-clock.ts'
import { addressOf, openTestStore } from '../support/stores.ts'
import { testTransport } from '../support/test-transport.ts'

const SECRETS = {
  a: 'secret-of-a-0123456789abcdef',
  b: 'secret-of-b-0123456789abcdef',
  c: 'secret-of-c-0123456789abcdef',
}
type Name = keyof typeof SECRETS
const WITNESS_SECRET = Object.entries(SECRETS)
  .map(([name, value]) => `${name}:${value}`)
  .join(', ')

/** A platform behind a door that a test can shut, bend or replace. */
async function platform(
  env: Record<string, string> = { WITNESS_SECRET },
  more: Partial<Parameters<typeof openPlatform>[0]> = {},
) {
  const opened = openPlatform({ env, platform: learning, ...more })
  onTestFinished(() => opened.close())
  const { web } = handlersOf(opened)
  if (!web) throw new Error('the platform has no web service')
  const real: RequestListener = nodeListener(web)
  const door: { answer: RequestListener } = { answer: real }
  const url = await serve((request, response) => door.answer(request, response))
  const shut: RequestListener = (request) => void request.socket.destroy()
  return {
    url,
    web,
    open: () => (door.answer = real),
    shut: () => (door.answer = shut),
    bend: (to: RequestListener) => (door.answer = to),
    real,
  }
}

async function newHistory() {
  const history = await openHistory(undefined)
  onTestFinished(() => history.close())
  return history
}

/** Alerts that arrive, in order. */
async function receiver() {
  const titles: string[] = []
  const texts: string[] = []
  const url = await serveBodies((body, response) => {
    const { data } = JSON.parse(body) as { data: { title: string; text: string } }
    titles.push(data.title)
    texts.push(data.text)
    response.end()
  })
  return { url, titles, texts }
}

/** Where a peer is asked for its vote; without one it answers 503. */
const voting = (of: () => { vote(nonce: string): unknown } | undefined) =>
  serve((request, response) => {
    const nonce = new URL(request.url ?? '', 'http://x').searchParams.get('nonce') ?? ''
    const witness = of()
    if (witness) response.end(JSON.stringify(witness.vote(nonce)))
    else response.writeHead(503).end()
  })

/** Virtual time for all witnesses of a test: rounds happen only when it asks for them. */
function clockAt(now: number) {
  return {
    at: now,
    now() {
      return this.at
    },
    monotonic: () => performance.now(),
    sleep: (_: number, signal?: AbortSignal) =>
      new Promise<void>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
  }
}

interface Started {
  readonly name: Name
  readonly platform: string
  readonly clock: ReturnType<typeof clockAt>
  readonly alerts?: string
  readonly peers?: readonly string[]
  readonly folder?: string
  readonly publish?: ReturnType<typeof publisher>
  readonly secretText?: string
  readonly warn?: Log['warn']
}

async function witness({
  name,
  platform,
  clock,
  alerts,
  peers = [],
  folder,
  publish,
  secretText = SECRETS[name],
  warn = silentLog.warn,
}: Started) {
  const dataFolder = folder ?? (await emptyFolder())
  const host = { clock, timer: systemClock, random: systemRandom, log: { ...silentLog, warn } }
  const started = await startWitness(host, {
    own: { name, secret: secret(secretText) },
    platform,
    peers,
    dataFolder,
    channels:
      alerts === undefined
        ? []
        : [
            webhookChannel(clock, { url: secret(alerts), secret: undefined }, (incident, kind) =>
              outageText(incident, kind, 'kiln.example'),
            ),
          ],
    publish,
  })
  let stopped: Promise<void> | undefined
  const stop = () => (stopped ??= started.stop())
  onTestFinished(stop)
  await started.round()
  /** So many rounds, thirty seconds apart. */
  const rounds = async (count: number) => {
    for (let round = 0; round < count; round += 1) {
      clock.at += 30_000
      await started.round()
    }
  }
  const database = new Database(path.join(dataFolder, 'witness.sqlite'))
  onTestFinished(() => void database.close())
  return { ...started, stop, dataFolder, database, rounds }
}

/** A platform, its one witness, and what that tells. */
async function watched() {
  const home = await platform()
  const inbox = await receiver()
  const clock = clockAt(Date.now())
  const it = await witness({ name: 'a', platform: home.url, clock, alerts: inbox.url })
  return { home, inbox, clock, it }
}

const SNAPSHOT = { html: 'h', kept: '', json: '{}', atom: 'a', badge: 'b', badgeUnreachable: '' }

async function pages(of: Awaited<ReturnType<typeof witness>>, clock: ReturnType<typeof clockAt>) {
  const server = await serveWitness({ clock }, of, 'a', { host: '127.0.0.1', port: 0 })
  onTestFinished(() => server.close())
  const ask = async (page: string, init?: RequestInit) => {
    const response = await fetch(`http://127.0.0.1:${server.port}${page}`, init)
    return { status: response.status, text: await response.text(), headers: response.headers }
  }
  return Object.assign(ask, { port: server.port })
}

const healthOf = async (...given: Parameters<typeof pages>): Promise<unknown> =>
  JSON.parse((await (await pages(...given))('/health')).text)

function rawStatus(port: number, path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path }, (response) => {
      response.resume()
      resolve(response.statusCode)
    }).once('error', reject)
  })
}

const START = Date.UTC(2026, 10, 23, 12)

test('a witness serves what the platform shows, and goes on when it is gone and after a restart', async () => {
  const { home, clock, it: first } = await watched()
  const ask = await pages(first, clock)
  const shown = async (page: string) =>
    (await home.web.fetch(new Request(`http://any.example${page}`))).text()
  const page = await ask('/')
  expect(page.text).toContain('id="stale" class="note" role="status" hidden')
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
  const heading = /<h1>[^<]*/
  expect(heading.exec(page.text)?.[0]).toBe(heading.exec(await shown('/'))?.[0])
  expect((await ask('/badge.svg')).text).toBe(await shown('/badge.svg'))
  expect((await ask('/status.atom')).text).toContain('<feed')
  for (const [file, type] of [
    ['', 'text/html'],
    ['status.json', 'application/json'],
    ['status.atom', 'application/atom+xml'],
    ['status.ics', 'text/calendar'],
    ['badge.svg', 'image/svg+xml'],
  ])
    expect((await ask(`/${file}`)).headers.get('content-type')).toBe(`${type}; charset=utf-8`)
  const { headers } = await ask('/badge.svg')
  expect(headers.get('cross-origin-resource-policy')).toBe('cross-origin')
  expect(JSON.parse((await ask('/status.json')).text)).toMatchObject({
    version: 1,
    witness: { name: 'a', platform: 'reachable', ageSeconds: 0, state: 'ok' },
  })

  // Confirmed anew, though nothing in it changed.
  clock.at += 60_000
  await first.round()
  expect(JSON.parse((await ask('/health')).text)).toMatchObject({ ageSeconds: 0 })
  expect((await stat(path.join(first.dataFolder, 'witness.json'))).mode & 0o777).toBe(0o600)

  home.shut()
  clock.at += 10 * 60_000
  await first.round()
  expect((await ask('/')).text).toMatch(
    /<strong>The platform cannot be reached\. This page shows its status as of .*<\/strong>/,
  )
  await first.stop()
  const second = await witness({ name: 'a', platform: home.url, clock, folder: first.dataFolder })
  const again = await pages(second, clock)
  expect((await again('/')).text).toContain(heading.exec(page.text)?.[0] ?? 'no heading')
  expect(JSON.parse((await again('/health')).text)).toMatchObject({ ageSeconds: 600 })
})

test('a platform of hundreds of probes that had trouble every day is reached, and its status is kept', async () => {
  const now = Date.now()
  const today = Math.floor(now / 86_400_000) * 86_400_000
  const none = { ok: 0, degraded: 0, failing: 60_000, skipped: 0 }
  const days = Array.from({ length: 90 }, (_, day) => {
    return {
      start: today - (89 - day) * 86_400_000,
      ms: none,
      seen: ['failing' as const],
      latency: new Map(),
    }
  })
  const series = Array.from({ length: 500 }, (_, index) => {
    const last = { at: now, state: 'ok' as const, reason: undefined }
    return { service: 'web', probe: index === 0 ? '' : `probe_${index}`, firstAt: now, last, days, hours: [] }
  })
  const incidents = Array.from({ length: 500 }, (_, index) => {
    const [beganAt, endedAt] = [now - index * 3_600_000 - 60_000, now - index * 3_600_000]
    return {
      service: 'web',
      probe: `probe_${index}`,
      state: 'failing' as const,
      reason: 'x',
      beganAt,
      endedAt,
    }
  })
  const history = await newHistory()
  const read = async () => ({ series, incidents, builds: [] })
  const home = await platform({ WITNESS_SECRET }, { history: { ...history, read } })
  const clock = clockAt(now)
  const it = await witness({ name: 'a', platform: home.url, clock })
  expect(it.known()).toMatchObject({ view: 'reachable', reason: undefined })
  expect((await (await pages(it, clock))('/')).text).toContain('Probe 499')
})

test('a page that a witness keeps has no form, as forms work on the platform alone', async () => {
  const history = await newHistory()
  const mailer = testTransport(async ({ key }) => ({ kind: 'sent', id: key }))
  const home = await platform({ WITNESS_SECRET }, { history, mailer })
  const shown = await (await home.web.fetch(new Request('http://any.example/'))).text()
  expect(shown.match(/<form/g)).toHaveLength(2)
  const clock = clockAt(Date.now())
  const ask = await pages(await witness({ name: 'a', platform: home.url, clock }), clock)
  expect((await ask('/')).text).not.toContain('<form')
})

test('the platform and the other witnesses may be behind a path', async () => {
  const home = await platform()
  const asked: string[] = []
  home.bend((request, response) => {
    asked.push(request.url ?? '')
    request.url = request.url?.replace('/school', '')
    home.real(request, response)
  })
  const peer = await serve((request, response) => {
    asked.push(request.url?.replace(/\?.*/, '') ?? '')
    response.end()
  })
  const clock = clockAt(Date.now())
  const it = await witness({ name: 'a', platform: `${home.url}/school/`, peers: [`${peer}/b`], clock })
  await it.round()
  expect(it.known().view).toBe('reachable')
  expect([...new Set(asked)].toSorted()).toEqual(['/b/vote', '/school/api/witness'])
})

test('what operators announce, add to it and withdraw again is on the page of a witness with its next round', async () => {
  const clock = clockAt(Date.now())
  const store = await openTestStore(await addressOf('postgres'))
  const home = await platform({ WITNESS_SECRET }, { store, clock: { ...systemClock, now: () => clock.at } })
  const it = await witness({ name: 'a', platform: home.url, clock })
  const ask = await pages(it, clock)
  const shows = async (text = 'The kiln is moved') => {
    clock.at += 30_000
    await it.round()
    return (await ask('/')).text.includes(text)
  }
  const announcement = { id: 'a1', text: 'The kiln is moved', from: clock.at, until: undefined, by: 'ops' }
  expect(await shows()).toBe(false)
  await store.incidents.announce(announcement, clock.at)
  expect(await shows()).toBe(true)
  const update = { id: 'u1', subject: 'a1', text: 'It is up the stairs', state: undefined, by: 'ops' }
  await store.incidents.update({ ...update, at: clock.at })
  expect(await shows(update.text)).toBe(true)
  await store.incidents.withdraw({ id: 'a1', now: clock.at })
  expect(await shows()).toBe(false)
  await openIncident(store.incidents, incidentWith({ id: 'mail-1', openedAt: clock.at }))
  await shows()
  const other = { ...update, id: 'u2', subject: 'mail-1', text: 'A new line is laid' }
  await store.incidents.update({ ...other, at: clock.at })
  expect(await shows(other.text)).toBe(true)
  // Where nothing has changed, the status is signed again after a while, so that its ages stay right.
  const told = () => it.known().snapshot?.at
  const before = told()
  await shows()
  expect(told()).toBe(before)
  clock.at += 5 * 60_000
  await shows()
  expect(told()).toBe(clock.at)
})

test('a witness answers GET and HEAD alone, keeps nothing secret to show, and says so before it knows anything', async () => {
  const clock = clockAt(START)
  const it = await witness({ name: 'a', platform: 'http://127.0.0.1:1', clock })
  const ask = await pages(it, clock)
  const early = await ask('/')
  expect([early.status, early.headers.get('retry-after')]).toEqual([503, '60'])
  expect((await ask('/health', { method: 'HEAD' })).status).toBe(200)
  const posted = await ask('/', { method: 'POST', body: 'x' })
  expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  expect((await ask('/elsewhere')).status).toBe(404)
  expect((await ask('/vote')).status).toBe(400)
  // fetch would mend this address.
  expect(await rawStatus(ask.port, '//[')).toBe(400)
  expect(JSON.parse((await ask('/health')).text)).toMatchObject({
    ...{ state: 'degraded', platform: 'unknown', ageSeconds: null },
  })
  // A wrong address or secret is no outage.
  await it.rounds(4)
  expect(it.known()).toMatchObject({ view: 'unknown', isOutage: false })
  expect(readFileSync(path.join(it.dataFolder, 'witness.json'), 'utf8')).not.toContain(SECRETS.a)
})

test('a witness that has never reached the platform, or hears no peer, says so in its log, once for each cause', async () => {
  const home = await platform()
  const clock = clockAt(Date.now())
  const logged: unknown[] = []
  const warn: Log['warn'] = (event, _, facts) => void logged.push({ event, ...facts })
  const peer = 'http://127.0.0.1:1'
  const given = { name: 'a', clock, warn, peers: [peer] } as const
  const it = await witness({ ...given, platform: home.url, secretText: SECRETS.b })
  await it.rounds(3)
  const refused = { address: home.url, reason: 'it refuses the WITNESS_SECRET of this witness' }
  const silent = { event: 'peer_not_heard', address: peer, reason: expect.stringContaining('refused') }
  expect(logged).toHaveLength(2)
  expect(logged).toEqual(expect.arrayContaining([{ event: 'platform_never_reached', ...refused }, silent]))
  await it.stop()
  logged.length = 0
  const heard = await witness({ ...given, platform: home.url })
  home.shut()
  await heard.rounds(4)
  expect(logged).toEqual([silent, expect.objectContaining({ event: 'platform_unreachable' })])
})

test('nobody between the two can put another status in place: a forged, a repeated and an edited one are refused', async () => {
  const { home, clock, it } = await watched()
  const { snapshot } = it.known()
  for (const authorization of ['', 'Bearer e30.x', 'Bearer .', 'Bearer bnVsbA.']) {
    const asked = new Request('http://any.example/api/witness', { headers: { authorization } })
    expect((await home.web.fetch(asked)).status).toBe(401)
  }
  let taped = ''
  home.bend(async (request, response) => {
    const asked = new Request(`http://any.example${request.url}`, {
      headers: { authorization: request.headers.authorization ?? '' },
    })
    const text = await (await home.web.fetch(asked)).text()
    taped ||= text
    response.end(taped)
  })
  await it.round()
  await it.round()
  expect(it.known().reason).toBe('something repeats an older answer')
  home.bend((_, response) => response.end(taped.replace('current', 'currenT')))
  await it.round()
  expect(it.known().reason).toBe('something else answers in its place')
  home.bend((_, response) => response.writeHead(502).end('<html>Bad gateway</html>'))
  await it.round()
  expect(it.known()).toMatchObject({ view: 'unreachable', reason: expect.stringContaining('502') })
  expect(it.known().snapshot).toEqual(snapshot)
  // What lies in the data folder is verified as well.
  await it.stop()
  const file = path.join(it.dataFolder, 'witness.json')
  writeFileSync(file, readFileSync(file, 'utf8').replace('<h1>', '<h1>All is lost'))
  const after = await witness({ name: 'a', platform: home.url, clock, folder: it.dataFolder })
  expect(after.known().snapshot).toBeUndefined()
})

test('the platform gives its status to those it lists, by a proof and never by the secret', async () => {
  const home = await platform()
  const clock = clockAt(Date.now())
  const other = await witness({ name: 'a', platform: home.url, clock, secretText: SECRETS.b })
  expect(other.known()).toMatchObject({
    view: 'unknown',
    reason: 'it refuses the WITNESS_SECRET of this witness',
  })
  const without = await platform({})
  const none = await witness({ name: 'a', platform: without.url, clock })
  expect(none.known().view).toBe('unknown')
})

test.each([
  ['all of them', 0],
  ['those that are left when the one that told is gone', 1],
])(
  'three witnesses tell an outage once, with where it is seen; %s tell its end once, and how long it was',
  async (_, gone) => {
    const home = await platform()
    const inbox = await receiver()
    const clock = clockAt(Date.now())
    const names: readonly Name[] = ['a', 'b', 'c']
    const heard = new Map<Name, Awaited<ReturnType<typeof witness>>>()
    const urls = await Promise.all(names.map((name) => voting(() => heard.get(name))))
    for (const [at, name] of names.entries()) {
      const peers = urls.toSpliced(at, 1)
      heard.set(name, await witness({ name, platform: home.url, clock, alerts: inbox.url, peers }))
    }
    const all = [...heard.values()]
    const rounds = async (count: number) => {
      for (let round = 0; round < count; round += 1) {
        clock.at += 30_000
        await Promise.all(all.map((it) => it.round()))
      }
    }
    await rounds(1)
    expect(all.map((it) => Object.values(it.known().peers))).toEqual(all.map(() => [undefined, undefined]))
    home.shut()
    await rounds(6)
    expect(inbox.titles).toEqual(['kiln.example is unreachable'])
    expect(inbox.texts[0]).toMatch(/unreachable from a, b.*; seen by [23] of 3; from /)
    // The first in line is the one that told.
    for (const name of names.slice(0, gone)) heard.delete(name)
    all.splice(0, gone)
    home.open()
    await rounds(gone === 0 ? 7 : 16)
    expect(inbox.titles).toEqual(['kiln.example is unreachable', 'kiln.example is reachable again'])
    expect(inbox.texts[1]).toMatch(/^It was unreachable for \d+ minutes?/)
  },
)

test('a witness alone says that it is alone, and a restart neither repeats the alert nor forgets the end', async () => {
  const home = await platform({ WITNESS_SECRET: SECRETS.a })
  const inbox = await receiver()
  const clock = clockAt(Date.now())
  const given = {
    name: 'witness' as Name,
    secretText: SECRETS.a,
    platform: home.url,
    clock,
    alerts: inbox.url,
  }
  let it = await witness(given)
  home.shut()
  const restarted = async () => {
    await it.stop()
    clock.at += 60_000
    it = await witness({ ...given, folder: it.dataFolder })
  }
  const shown = async (file: string) => (await (await pages(it, clock))(file)).text
  expect(await shown('/badge.svg')).not.toContain('failing')
  await it.rounds(5)
  expect(inbox.texts[0]).toContain('seen by 1 of 1')
  expect(await shown('/badge.svg')).toContain('failing')
  // Minutes before the status would be old.
  expect(await shown('/')).toContain('<strong>The platform cannot be reached.')
  await restarted()
  await it.rounds(5)
  expect(it.known().view).toBe('unreachable')
  home.open()
  await restarted()
  await it.rounds(5)
  expect(inbox.titles).toEqual(['kiln.example is unreachable', 'kiln.example is reachable again'])
})

test('rounds that fail now and then are no outage: two have to agree in a row', async () => {
  const { home, inbox, it } = await watched()
  for (let time = 0; time < 2; time += 1) {
    home.shut()
    await it.rounds(1)
    home.open()
    await it.rounds(1)
  }
  expect([it.known().view, inbox.titles]).toEqual(['reachable', []])
})

test('an outage that lasts is told again every four hours', async () => {
  const { home, inbox, clock, it } = await watched()
  home.shut()
  await it.rounds(5)
  for (let hour = 1; hour < 9; hour += 1) {
    clock.at += 3_600_000
    await it.round()
  }
  const still = 'kiln.example is still unreachable'
  expect(inbox.titles).toEqual(['kiln.example is unreachable', still, still])
})

test('the page of a witness says in the language of the platform that it cannot be reached', async () => {
  const home = await platform({ WITNESS_SECRET }, { platform: { ...learning, language: 'de' } })
  const clock = clockAt(Date.now())
  const it = await witness({ name: 'a', platform: home.url, clock })
  home.shut()
  await it.rounds(11)
  const ask = await pages(it, clock)
  expect((await ask('/')).text).toMatch(/<html lang="de".*<strong>Die Plattform ist nicht erreichbar\./s)
})

test('the platform hears of an outage once from each witness, even if one could not report it at first or has another time', async () => {
  const reports: unknown[] = []
  const warn = (event: string, _: string, fields: unknown) => {
    if (event === 'witness_outage') reports.push(fields)
  }
  const home = await platform(undefined, { log: { ...silentLog, warn } })
  const clock = clockAt(Date.now())
  const behind = clockAt(clock.at - 5000)
  const all = [
    await witness({ name: 'a', platform: home.url, clock }),
    await witness({ name: 'b', platform: home.url, clock: behind }),
  ]
  const rounds = async (count: number) => {
    for (let round = 0; round < count; round += 1) {
      clock.at += 100
      behind.at += 100
      for (const one of all) await one.round()
    }
  }
  home.shut()
  await rounds(2)
  home.open()
  await rounds(2)
  home.shut()
  await rounds(1)
  expect(reports).toEqual([])
  home.open()
  await rounds(2)
  expect(reports).toEqual(
    ['a', 'b'].map((name) => ({ witness: name, seconds: expect.any(Number), reason: expect.any(String) })),
  )
})

test('a copy of an older report is none, also after the platform has started again', async () => {
  const reports: string[] = []
  const warn = (event: string) => reports.push(event)
  const home = await platform(undefined, { log: { ...silentLog, warn } })
  const now = Date.now()
  const report = async (ago: number) => {
    const outage = { seconds: 60, reason: 'nothing listens there' }
    const text = JSON.stringify({ name: 'a', nonce: 'n'.repeat(24), at: now - ago, outage })
    const authorization = `Bearer ${tokenOf(text, secret(SECRETS.a))}`
    return (await fetch(`${home.url}/api/witness`, { headers: { authorization } })).status
  }
  expect([await report(10 * 60_000), await report(-10 * 60_000)]).toEqual([200, 200])
  expect(reports).not.toContain('witness_outage')
  expect([await report(0), await report(0)]).toEqual([200, 200])
  expect(reports.filter((event) => event === 'witness_outage')).toHaveLength(1)
})

test('what a platform signs is kept only in the form of a status, so that one that was broken into writes no other file of its witness and does not end it', () => {
  const key = signingKey(secret(SECRETS.a), 'platform')
  const read = (said: object) => {
    const snapshot = JSON.stringify({
      ...SNAPSHOT,
      platform: 'p',
      language: 'en',
      at: START,
      witnesses: {},
      ...said,
    })
    return readSnapshot({ snapshot, key: publicKeyOf(key), signature: sign(snapshot, key) })
  }
  const page = { title: 't', main: 'm' }
  const at = (name: string, what: unknown = page) => ({ incidents: { shell: 's', pages: { [name]: what } } })
  for (const good of [{}, { calendar: 'c' }, at('incidents/index.html'), at('incidents/web-mail-1.2.html')])
    expect(read(good)).toMatchObject(good)
  for (const bad of [
    ...['../x', 'a/../../x', '/etc/x', '.ssh/x', 'a//b', 'a/', '', 'a\\..\\x', '%2e%2e/x', 'a?b'].map(
      (name) => at(name),
    ),
    ...[at('a.html', null), at('a.html', { title: 't' }), { incidents: { pages: {} } }, { incidents: [] }],
    ...Object.keys(SNAPSHOT).map((name) => ({ [name]: undefined })),
    ...[{ json: '[]' }, { json: '{' }, { calendar: 1 }, { witnesses: [] }, { witnesses: { a: 1 } }],
  ])
    expect(read(bad), JSON.stringify(bad)).toBeUndefined()
  expect(readSnapshot({ snapshot: '{', key: publicKeyOf(key), signature: sign('{', key) })).toBeUndefined()
})

test('a vote counts once, for its question, and only with the signature of a witness that the platform lists', () => {
  const key = signingKey(secret(SECRETS.a), 'witness')
  const said = (content: object, by = key) => {
    const vote = JSON.stringify(content)
    return { vote, signature: sign(vote, by) }
  }
  const keys = { a: keyText(SECRETS.a) }
  const good = { name: 'a', nonce: 'n1', view: 'unreachable', closers: {}, closed: [] }
  expect(readVote(said(good), { nonce: 'n1', keys })).toEqual(good)
  for (const [what, value] of [
    ['something repeats an older vote', said({ ...good, nonce: 'n0' })],
    ['its signature is wrong', said(good, signingKey(secret(SECRETS.b), 'witness'))],
    ['its signature is wrong', { ...said(good), vote: JSON.stringify({ ...good, view: 'reachable' }) }],
    ['the platform lists no witness of its name', said({ ...good, name: 'toString' })],
    ['it is no witness', said({ ...good, closed: 'b-1' })],
    ['it is no witness', said({ ...good, outage: { id: 'x'.repeat(99), by: 'a', phase: 'open', since: 1 } })],
    ['it is no witness', said({ ...good, outage: { id: 'x', by: 'a', phase: 'open', since: -1 } })],
    ['it is no witness', said({ ...good, outage: { id: 'x', by: 'a', phase: 'open', since: '1' } })],
    ['it is no witness', { vote: 7 }],
    ['it is no witness', { vote: '{', signature: '' }],
    ['it is no witness', null],
  ] as const)
    expect(readVote(value, { nonce: 'n1', keys })).toEqual({ reason: what })
})

function keyText(of: string): string {
  return publicKeyOf(signingKey(secret(of), 'witness'))
}

test.each([
  [SECRETS.a, ['witness']],
  [WITNESS_SECRET, ['a', 'b', 'c']],
  [`a:${SECRETS.a}`, ['a']],
  ['short', undefined],
  [`${SECRETS.a},b:${SECRETS.b}`, undefined],
  [`a:${SECRETS.a},a:${SECRETS.b}`, undefined],
  [`A:${SECRETS.a}`, undefined],
  ['', undefined],
])('a list of secrets is read as a whole or not at all (%#)', (value, names) => {
  expect(parseWitnessSecrets(value)?.map(({ name }) => name)).toEqual(names)
})

test('the status is kept as files at every change, with a page for each incident, says when the platform is gone, and claims nothing in its title', async () => {
  const history = await newHistory()
  const now = Date.now()
  await recordLearningDays(history, now, { state: 'failing' })
  const home = await platform({ WITNESS_SECRET }, { history })
  const clock = clockAt(now)
  const folder = await emptyFolder()
  const it = await witness({ name: 'a', platform: home.url, clock, publish: publisher(clock, folder) })
  const text = (name: string) => readFile(path.join(folder, name), 'utf8')
  await expect.poll(() => text('index.html')).toContain('is failing')
  const [link = ''] = /incidents\/web-mail-[\d.]+html/.exec(await text('index.html')) ?? []
  expect(await text(link)).toMatch(/<title>Mail \(Web\) has been failing.*<main.*<h2>Timeline<\/h2>/s)
  expect(await text('incidents/index.html')).toContain('Job store (API) was failing')
  expect(await text('status.ics')).toContain('BEGIN:VCALENDAR')
  expect(JSON.parse(await text('status.json'))).toMatchObject({ state: 'failing' })
  // Forms and the pages of the platform itself are on the platform.
  expect(await text('index.html')).not.toMatch(/<form|href="\/insights"/)
  expect((await stat(path.join(folder, 'badge.svg'))).mode & 0o777).toBe(0o644)
  const ask = await pages(it, clock)
  const served = await ask(`/${link}`)
  expect(served.text).toBe(await text(link))
  const nonce = /<script type="module" nonce="([^"]+)"/.exec(served.text)?.[1]
  expect(served.headers.get('content-security-policy')).toContain(`script-src 'nonce-${nonce}'`)
  home.shut()
  clock.at += 10 * 60_000
  await it.rounds(4)
  await expect.poll(() => text('index.html')).toContain('<strong>The platform cannot be reached.')
  expect(await text(link)).toContain('<strong>The platform cannot be reached.')
  expect(await text('badge.svg')).toContain('failing')
  expect(await text('index.html')).toMatch(/<title>Status · [^<]*<.*og:title" content="Status"/s)
})

test('files that could not be written are written the next time', async () => {
  const now = Date.now()
  const folder = path.join(await emptyFolder(), 'site')
  const publish = publisher(clockAt(now), folder)
  const status = { snapshot: { ...SNAPSHOT, calendar: 'c' }, confirmedAt: now, isOutage: false }
  await writeFile(folder, 'in the way')
  await expect(publish(status)).rejects.toThrow()
  await rm(folder)
  await publish(status)
  expect((await readdir(folder)).toSorted()).toEqual([
    'badge.svg',
    'index.html',
    'status.atom',
    'status.ics',
    'status.json',
  ])
})

test('a bucket takes what has changed, signed, and one that refuses delays no round', async () => {
  const home = await platform()
  const clock = clockAt(Date.now())
  const storage = await s3Storage()
  const key = { id: S3_KEY.S3_KEY, secret: secret(S3_KEY.S3_SECRET), region: S3_KEY.S3_REGION }
  const to = (id: string) => publisher(clock, `${storage.url}/status/kiln/`, { ...key, id })
  const it = await witness({ name: 'a', platform: home.url, clock, publish: to(key.id) })
  await expect.poll(() => storage.objects.size).toBe(6)
  expect([...storage.objects.keys()].at(-1)).toBe('/status/kiln/index.html')
  const { snapshot } = it.known()
  expect(storage.objects.get('/status/kiln/index.html')?.toString()).toBe(snapshot?.html)
  storage.objects.clear()
  await it.round()
  await it.stop()
  expect(storage.objects.size).toBe(0)
  const logged: unknown[] = []
  const warn: Log['warn'] = (event, _, facts) => void logged.push({ event, ...facts })
  const publish = to('AKIANOBODY')
  const refused = await witness({ name: 'b', platform: home.url, clock, publish, warn })
  await refused.round()
  const reason = 'the bucket answers with 403 for incidents/index.html'
  await expect.poll(() => logged).toContainEqual({ event: 'publish_failed', reason })
  await expect(publish({ ...refused.known(), snapshot: snapshot as never })).rejects.toThrow(reason)
})

test('a bucket that is elsewhere has taken nothing', async () => {
  const clock = clockAt(Date.now())
  const elsewhere = await serve((_, response) => response.writeHead(301, { location: '/' }).end())
  const key = { id: S3_KEY.S3_KEY, secret: secret(S3_KEY.S3_SECRET), region: S3_KEY.S3_REGION }
  const publish = publisher(clock, `${elsewhere}/status`, key)
  await expect(publish({ snapshot: SNAPSHOT, confirmedAt: clock.at, isOutage: false })).rejects.toThrow(
    'the bucket answers with 301 for status.json',
  )
})

test.each([
  ['is its own peer', ['a'], 'unreachable from a; seen by 1 of 1'],
  ['has two copies, of its name and secret', ['a', 'a'], 'unreachable from a; seen by 1 of 1'],
  ['has a peer at two addresses', ['b', 'b'], 'unreachable from a, b; seen by 2 of 2'],
])(
  'a witness that %s counts each witness once, alerts, and names the copies in its health',
  async (_, listed, said) => {
    const home = await platform()
    const inbox = await receiver()
    const clock = clockAt(Date.now())
    const heard = new Map<string, Awaited<ReturnType<typeof witness>>>()
    const peers = await Promise.all(listed.map((name) => voting(() => heard.get(name))))
    const it = await witness({ name: 'a', platform: home.url, clock, alerts: inbox.url, peers })
    heard.set('a', it)
    // One of three, which hears nobody: alone it claims nothing.
    const nowhere = ['http://127.0.0.1:1', 'http://127.0.0.1:2']
    if (listed.includes('b'))
      heard.set('b', await witness({ name: 'b', platform: home.url, clock, peers: nowhere }))
    home.shut()
    for (let count = 0; count < 6; count += 1) {
      clock.at += 30_000
      for (const one of new Set([it, ...heard.values()])) await one.round()
    }
    expect(inbox.texts[0]).toContain(said)
    const copies = listed.flatMap((name, at) => {
      const isCopy = name === 'a' || listed.indexOf(name) < at
      const why = `it says that it is ${name}, which is counted already: give each witness its own name and secret`
      return isCopy ? [`${peers[at]}: ${why}`] : []
    })
    expect(await healthOf(it, clock)).toMatchObject({ state: 'degraded', silentPeers: copies })
  },
)

test('a peer that was a copy is counted once it has a name of its own', async () => {
  const [home, there] = [await platform(), await platform()]
  const inbox = await receiver()
  const clock = clockAt(Date.now())
  let peer: Awaited<ReturnType<typeof witness>> | undefined
  const peers = [await voting(() => peer)]
  const it = await witness({ name: 'a', platform: home.url, clock, alerts: inbox.url, peers })
  peer = it
  await it.rounds(1)
  peer = await witness({ name: 'b', platform: there.url, clock })
  await it.rounds(1)
  home.shut()
  await it.rounds(6)
  // The other one reaches it.
  expect([it.known().view, it.known().isOutage, inbox.titles]).toEqual(['unreachable', false, []])
  expect((await (await pages(it, clock))('/badge.svg')).text).not.toContain('failing')
})

test('a clock that is set back during an outage does not keep the page young', async () => {
  const { home, clock, it } = await watched()
  home.shut()
  clock.at -= 86_400_000
  await it.round()
  clock.at += 90_000
  await it.round()
  expect(await healthOf(it, clock)).toMatchObject({ ageSeconds: 90 })
})

// Node's own mkdir never ends there.
test.runIf(existsSync('/proc/self'))('a witness does not start in a folder that cannot be made', async () => {
  await expect(
    witness({ name: 'a', platform: 'http://127.0.0.1:1', clock: clockAt(0), folder: '/proc/nowhere' }),
  ).rejects.toThrow('cannot be opened for writing')
})

test('a witness whose folder cannot be written alerts all the same, once each way, and its health says so', async () => {
  const { home, inbox, clock, it } = await watched()
  it.database.exec('ALTER TABLE incident RENAME TO lost')
  rmSync(path.join(it.dataFolder, 'witness.json'))
  mkdirSync(path.join(it.dataFolder, 'witness.json'))
  home.shut()
  await it.rounds(6)
  expect(inbox.titles).toEqual(['kiln.example is unreachable'])
  expect(await healthOf(it, clock)).toMatchObject({
    state: 'degraded',
    outage: true,
    fault: expect.stringContaining('the data folder cannot be written'),
  })
  home.open()
  await it.rounds(6)
  expect(inbox.titles).toEqual(['kiln.example is unreachable', 'kiln.example is reachable again'])
})

test('a page that the platform gives no more is as old as it is, though the platform answers', async () => {
  const { home, clock, it } = await watched()
  home.bend((request, response) => {
    const { text } = readToken(request.headers.authorization?.slice('Bearer '.length) ?? '')
    const { nonce } = JSON.parse(text) as { nonce: string }
    // As while its store fails, or of a newer build.
    const unreadable = { snapshot: '{"new":true}', key: 'k', signature: 's' }
    const answer = JSON.stringify({ nonce, current: 's', snapshot: unreadable })
    response.end(JSON.stringify({ answer, proof: proofOf(answer, secret(SECRETS.a), 'answers') }))
  })
  await it.rounds(4)
  expect(await healthOf(it, clock)).toMatchObject({
    state: 'degraded',
    platform: 'reachable',
    ageSeconds: 120,
    fault: expect.stringContaining('gives no status'),
  })
  home.open()
  await it.rounds(1)
  expect(await healthOf(it, clock)).toMatchObject({ state: 'ok', ageSeconds: 0, fault: null })
})

test('a witness that cannot keep the status as files, or has nobody to alert, says so in its health', async () => {
  const home = await platform()
  const clock = clockAt(Date.now())
  const folder = path.join(await emptyFolder(), 'site')
  await writeFile(folder, 'in the way')
  const inbox = await receiver()
  const publish = publisher(clock, folder)
  const it = await witness({ name: 'a', platform: home.url, clock, alerts: inbox.url, publish })
  const fault = async () => {
    await it.rounds(1)
    return ((await healthOf(it, clock)) as { fault: unknown }).fault
  }
  await expect.poll(fault).toContain('the status could not be kept as files')
  await rm(folder)
  await expect.poll(fault).toBeNull()
  const mute = await witness({ name: 'b', platform: home.url, clock })
  expect(await healthOf(mute, clock)).toMatchObject({
    state: 'degraded',
    fault: expect.stringContaining('nobody is alerted'),
  })
})

test('a witness whose alerts nobody takes says so in its health, until one is taken', async () => {
  const home = await platform()
  const clock = clockAt(Date.now())
  let takes = false
  const alerts = await serve((_, response) => response.writeHead(takes ? 200 : 500).end())
  const it = await witness({ name: 'a', platform: home.url, clock, alerts })
  home.shut()
  await it.rounds(50)
  expect(await healthOf(it, clock)).toMatchObject({
    state: 'degraded',
    fault: expect.stringMatching(/^its alerts do not arrive by webhook: /),
  })
  takes = true
  await it.rounds(150)
  expect(await healthOf(it, clock)).toMatchObject({ fault: null })
})

test('pages say that the platform is back although the end cannot be kept, and alerts once it can', async () => {
  const { home, inbox, it } = await watched()
  home.shut()
  await it.rounds(6)
  expect(it.known()).toMatchObject({ isOutage: true, fault: undefined })
  it.database.exec('ALTER TABLE incident RENAME TO lost')
  home.open()
  await it.rounds(6)
  expect(it.known()).toMatchObject({ isOutage: false, fault: expect.any(String) })
  expect(inbox.titles).toEqual(['kiln.example is unreachable'])
  it.database.exec('ALTER TABLE lost RENAME TO incident')
  await it.rounds(6)
  expect(it.known()).toMatchObject({ isOutage: false, fault: undefined })
  expect(inbox.titles).toEqual(['kiln.example is unreachable', 'kiln.example is reachable again'])
})

test('a witness that could not store an outage says that it is over also after a restart', async () => {
  const { home, inbox, clock, it } = await watched()
  it.database.exec('ALTER TABLE incident RENAME TO lost')
  home.shut()
  await it.rounds(6)
  it.database.exec('ALTER TABLE lost RENAME TO incident')
  await it.rounds(1)
  await it.stop()
  const folder = it.dataFolder
  const again = await witness({ name: 'a', platform: home.url, clock, alerts: inbox.url, folder })
  await again.rounds(6)
  expect(inbox.titles).toEqual(['kiln.example is unreachable'])
  clock.at += 5 * HOUR_MS
  await again.rounds(2)
  expect(inbox.titles.slice(1)).toEqual(['kiln.example is still unreachable'])
  home.open()
  await again.rounds(6)
  expect(inbox.titles.slice(2)).toEqual(['kiln.example is reachable again'])
})

/** An outage that this witness has announced: `pass` lets time pass under these votes, and `told` lists the messages. */
async function announced() {
  const { incidents } = await openTestStore(undefined)
  let now = Date.UTC(2026, 10, 22)
  const host = hostAt(() => now)
  const told: string[] = []
  const channels = [
    channelOf('webhook', async ({ id }) => {
      told.push(id)
      return { kind: 'sent', id }
    }),
  ]
  const lanes = createAlertLanes(host, incidents, channels)
  const follow = followOutages(host.clock, incidents, channels, 'a')
  const outage = { id: 'a-1', by: 'a', phase: 'open', since: now - 30_000 } as const
  const seen = { unreachable: ['a'], reachable: [], configured: 1 }
  const pass = async (ms: number, voting: Partial<Voting>, announces?: Round['announces']) => {
    now += ms
    const after = { ...NOTHING_SEEN, ...voting }
    await follow({ after, seen, ...(announces && { announces }) }, outage, undefined)
    await Promise.all(lanes.map((wake) => wake()))
  }
  await pass(0, { outage }, 'open')
  return { told, outage, pass }
}

test('the end of an outage is told although the clock was set back by more than the outage lasted', async () => {
  const { told, pass } = await announced()
  await pass(-60_000, { closed: ['a-1'] }, 'closed')
  for (let round = 0; round < 4; round += 1) await pass(30_000, { closed: ['a-1'] })
  expect(told).toEqual(['alert.a-1.opened', 'alert.a-1.closed'])
})

test('nobody is reminded of an outage that is over for the votes, though those who grant its end are gone', async () => {
  const { told, outage, pass } = await announced()
  for (let hour = 1; hour <= 9; hour += 1) await pass(3_600_000, { outage, clear: 2 })
  expect(told).toEqual(['alert.a-1.opened'])
  await pass(3_600_000, { outage })
  await pass(7_200_000, { outage })
  await pass(0, { closed: ['a-1'] }, 'closed')
  expect(told.slice(1)).toEqual(['alert.a-1.reminder-2', 'alert.a-1.reminder-3', 'alert.a-1.closed'])
})

test('the command listens on its host, under its name, and asks its peers; what it cannot take is wrong usage', async () => {
  const end = new AbortController()
  const malformed = { ALERT_WEBHOOK_URL: 'hooks.slack.com/services/canary', ALERT_WEBHOK_URL: 'canary' }
  const env = { WITNESS_SECRET: SECRETS.a, DATASTORE_URL: 'canary', ...malformed }
  const { context, stdout } = testContext({ cwd: await emptyFolder(), signal: end.signal, env })
  const places = [
    '--platform',
    'http://127.0.0.1:1',
    '--peer',
    'http://127.0.0.1:1/graz',
    '--host',
    '127.0.0.2',
  ]
  const running = runProgram(['witness', ...places, '--name', 'vienna', '--port', '0'], context)
  const address = () => /"witness":"(http:[^"]+)"/.exec(stdout())?.[1] ?? ''
  await expect.poll(address).toMatch(/^http:\/\/127\.0\.0\.2:\d+$/)
  await expect
    .poll(async () => (await fetch(`${address()}/health`)).json())
    .toMatchObject({
      name: 'vienna',
      silentPeers: [expect.stringMatching(/^http:\/\/127\.0\.0\.1:1\/graz: /)],
    })
  for (const [option, value, says] of [
    ['--port', new URL(address()).port, 'the witness cannot listen on port'],
    ['--name', 'Wien', '--name needs 1 to 32 of a-z'],
    ['--platform', 'kiln.example', '--platform needs an http:// or https:// address'],
    ['--peer', 'graz.example', '--peer needs an http:// or https:// address'],
  ] as const) {
    const other = testContext({ cwd: await emptyFolder(), env })
    expect(await runProgram(['witness', ...places, option, value], other.context)).toBe(2)
    expect(other.stderr()).toContain(says)
  }
  expect(stdout()).toContain('"event":"no_alert_channel"')
  const warned = stdout()
    .split('\n')
    .filter((line) => line.includes('"event":"environment_warning"'))
  expect(warned).toHaveLength(2)
  for (const name of Object.keys(malformed))
    expect(warned).toContainEqual(expect.stringContaining(`${name} `))
  expect(stdout()).not.toContain('canary')
  const both = testContext({ cwd: await emptyFolder(), env: { WITNESS_SECRET } })
  expect(await runProgram(['witness', ...places], both.context)).toBe(2)
  expect(both.stderr()).toContain('must hold the one secret of this witness')
  end.abort()
  expect(await running).toBe(0)
})

test('the command alerts by mail where mail is configured, and keeps the page in the folder that is named', async () => {
  const inbox = await openInbox({ pagePort: 0 })
  onTestFinished(() => inbox.close())
  const home = await platform({ WITNESS_SECRET })
  const { clock, pass } = standingClock(Date.now())
  const end = new AbortController()
  const env = {
    WITNESS_SECRET: SECRETS.a,
    ALERT_EMAIL_TO: 'ops@example.com',
    MAILER_API_KEY: 'a-key-of-the-mail-provider',
    MAILER_SMTP_URL: inbox.smtpUrl,
    MAILER_FROM: 'Witness <witness@example.com>',
  }
  const cwd = await emptyFolder()
  const { context, stdout } = testContext({ cwd, signal: end.signal, env, clock })
  const words = ['--platform', home.url, '--name', 'a', '--port', '0', '--out', 'site']
  const running = runProgram(['witness', ...words], context)
  await expect.poll(stdout).toContain('"event":"platform_reached"')
  await expect.poll(() => existsSync(path.join(cwd, 'site/index.html'))).toBe(true)
  home.shut()
  const mails = () => {
    pass(30_000)
    return inbox.mails.map(({ to, subject }) => `${to}: ${subject}`)
  }
  await expect.poll(mails).toEqual([`ops@example.com: ${new URL(home.url).host} is unreachable`])
  end.abort()
  expect(await running).toBe(0)
})

test('a witness whose address was a mistake starts in the same folder with the right one', async () => {
  const clock = clockAt(Date.now())
  const it = await witness({ name: 'a', platform: 'http://127.0.0.1:1', clock })
  await it.rounds(2)
  await it.stop()
  expect(otherPlatform(it.dataFolder, (await platform()).url)).toBeUndefined()
})

test('a data folder is of one platform: the witness of another is refused, which would end its outages', async () => {
  const { home, inbox, it } = await watched()
  const other = (await platform()).url
  const end = new AbortController()
  const start = async (platform: string) => {
    const env = { WITNESS_SECRET: SECRETS.a, ALERT_WEBHOOK_URL: inbox.url }
    const { context, stdout, stderr } = testContext({ cwd: it.dataFolder, signal: end.signal, env })
    const words = ['--platform', platform, '--name', 'a', '--data', '.', '--port', '0']
    return { running: runProgram(['witness', ...words], context), stdout, stderr }
  }
  home.shut()
  await it.rounds(5)
  const { running, stderr } = await start(other)
  expect(await running).toBe(2)
  expect(stderr()).toContain(`is of a witness of ${home.url}: give each its own --data`)
  await it.rounds(2)
  expect(inbox.titles).toEqual(['kiln.example is unreachable'])
  expect(otherPlatform(it.dataFolder, `${home.url}//`)).toBeUndefined()
  await it.stop()
  // As a build wrote it that kept no address.
  const file = path.join(it.dataFolder, 'witness.json')
  const { platform: _, ...kept } = JSON.parse(readFileSync(file, 'utf8'))
  writeFileSync(file, JSON.stringify(kept))
  expect(otherPlatform(it.dataFolder, other)).toBeUndefined()
  const again = await start(`${home.url}/`)
  await expect.poll(again.stdout).toContain('the witness listens')
  end.abort()
  expect(await again.running).toBe(0)
})
