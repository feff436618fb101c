import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { optionsOf, refuse, wholeNumber } from '../../scripts/options.ts'
import { progressOn } from '../../scripts/progress.ts'
import { NOTICES } from '../../src/core/course/definition.ts'
import { secret } from '../../src/core/secret.ts'
import { openStore } from '../../src/core/store/open.ts'
import { seeded } from '../simulation/seeded.ts'
import { closeIncident, openIncident } from '../support/incidents.ts'
import { startPostgres } from '../support/postgres.ts'
import { apiSink } from './sinks.ts'

const USAGE = `npm run torture:alerts [-- --kills 100] [--seed 1] [--store sqlite|postgres]
  The built daemon under SIGKILL while it sends alerts to a webhook and to a mail API, and mails incidents to subscribers:
  as a message arrives, after it is answered, and at random. Exit 1 if a message was lost, or came twice to a receiver
  that knows its id.`
const { values } = optionsOf(USAGE, {
  options: {
    kills: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    store: { type: 'string', multiple: true, default: ['sqlite', 'postgres'] },
  },
})
const kills = wholeNumber(USAGE, '--kills', values.kills, 1)
const seed = wholeNumber(USAGE, '--seed', values.seed)

const BIN = fileURLToPath(new URL('../../bin/platformctl.js', import.meta.url))
const AHEAD = new URL('ahead.mjs', import.meta.url).href
/** Longer than a lease: what one life left claimed, the next may take at once. */
const NEXT_LIFE_MS = 100_000
const LIFE_MS = 10_000
/** So many daemons at the most send what is left at the end. */
const LAST_LIVES = 10
const BATCH = 20
/** Probes that visitors get notices about; the daemon itself finds these well. */
const PUBLIC = ['payments', 'datastore', 'models'] as const
const SUBSCRIBERS = Array.from({ length: 5 }, (_, n) => `subscriber-${n}@example.com`)

/** Kills one daemon after the other over a store of this kind; false if anything was lost or came twice. */
async function torture(kind: 'sqlite' | 'postgres'): Promise<boolean> {
  const random = seeded(seed)
  const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-alerts-'))
  const server = kind === 'postgres' ? await startPostgres() : undefined
  const databaseUrl = await server?.createDatabase()
  const address =
    databaseUrl === undefined
      ? ({ kind: 'sqlite', file: path.join(folder, 'platform.sqlite') } as const)
      : ({ kind: 'postgres', url: secret(databaseUrl) } as const)

  /** The ids that each message had, by channel and subject; and how often the webhook got each id. */
  const ids = new Map<string, Set<string>>()
  const taken = new Map<string, number>()
  const note = (about: string, id: string) => ids.set(about, (ids.get(about) ?? new Set()).add(id))
  let onStep = (_step: 'arrived' | 'answered') => {}
  const receiver = createServer(async (request, response) => {
    onStep('arrived')
    const chunks: Uint8Array[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { type, data } = JSON.parse(Buffer.concat(chunks).toString()) as {
      type: string
      data: { incident: string }
    }
    const id = String(request.headers['webhook-id'])
    taken.set(id, (taken.get(id) ?? 0) + 1)
    // Each reminder of a long incident is a message of its own.
    if (type !== 'incident.reminder') note(`webhook ${data.incident} ${type.replace('incident.', '')}`, id)
    response.end(() => onStep('answered'))
  }).listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  const mail = await apiSink()
  mail.onStep = (step) => {
    if (step !== 'taken') onStep(step)
  }
  /** `…: 3 17 (web) is failing` is of the incident 3-17. */
  const noteMails = () => {
    for (const { key, to, subject } of mail.deliveries) {
      const alert = /: (\d+) (\d+) \(web\) (is failing|works again)$/.exec(subject)
      if (to === 'ops@example.com' && alert)
        note(`mail ${alert[1]}-${alert[2]} ${alert[3] === 'is failing' ? 'opened' : 'closed'}`, key)
    }
  }

  const wanted = new Set<string>()
  let batch: readonly string[] = []
  let life = 0
  const ahead = () => Date.now() + life * NEXT_LIFE_MS
  const waiting = () => {
    noteMails()
    return [...wanted].filter((about) => !ids.has(about))
  }

  /**
   * Some incidents open; once all were sent they end, and once that was sent, others open. In the life between, only
   * subscribers are to be mailed: elsewhere nearly every kill comes before their turn.
   */
  let subscribersTurn = false
  async function moreToSend(): Promise<void> {
    if (waiting().length > 0) return
    subscribersTurn = !subscribersTurn && wanted.size > 0
    if (subscribersTurn) return
    const store = await openStore(address)
    const now = ahead()
    const ends = batch.length > 0
    if (!ends) batch = Array.from({ length: BATCH }, (_, index) => `${life}-${index}`)
    for (const id of [...batch, ...PUBLIC]) {
      if (ends) await closeIncident(store.incidents, id, now)
      else
        await openIncident(store.incidents, {
          id: batch.includes(id) ? id : `${id}-${life}`,
          cause: id,
          service: 'web',
          reason: 'no answer in time',
          affected: [],
          openedAt: now,
          seenAt: now,
          closedAt: undefined,
          acknowledgedAt: undefined,
          acknowledgedBy: undefined,
        })
      if (batch.includes(id))
        for (const channel of ['webhook', 'mail'])
          wanted.add(`${channel} ${id} ${ends ? 'closed' : 'opened'}`)
    }
    if (ends) batch = []
    await store.close()
  }

  async function subscribe(): Promise<void> {
    const store = await openStore(address)
    const begin = () => ({ lessons: 0, dueAt: undefined })
    for (const [n, identity] of SUBSCRIBERS.entries())
      await store.course.enrol({
        begin,
        identity,
        mailboxKey: identity,
        address: identity,
        course: NOTICES,
        id: `subscriber-${n}`,
        now: ahead(),
      })
    await store.close()
  }

  /** PostgreSQL measures leases by its own clock: there, the time between two lives passes in the rows. */
  async function passLeases(): Promise<void> {
    if (databaseUrl === undefined) return
    const client = new pg.Client({ connectionString: databaseUrl })
    await client.connect()
    await client.query(
      `UPDATE platformctl.message SET lease_until = lease_until - ${NEXT_LIFE_MS} WHERE lease_until IS NOT NULL`,
    )
    await client.end()
  }

  function start(): ChildProcess {
    const ports = ['--service', 'web', '--web-port', '0', '--no-schedule', '--data', folder]
    return spawn(process.execPath, ['--import', AHEAD, BIN, 'daemon', ...ports], {
      env: {
        PATH: process.env.PATH,
        HOME: folder,
        CLOCK_AHEAD_MS: String(life * NEXT_LIFE_MS),
        LOG_LEVEL: 'error',
        ALERT_WEBHOOK_URL: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
        ALERT_EMAIL_TO: 'ops@example.com',
        // Its links must not change with the port of each life.
        NEXT_PUBLIC_SITE_URL: 'https://www.example.com',
        ...mail.env,
        ...(databaseUrl !== undefined && { STORE_URL: databaseUrl }),
      },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  }

  /**
   * Compares the notices sent to each subscriber with those published: each end once, and each beginning at most once.
   */
  async function noticeFaults(): Promise<readonly string[]> {
    const store = await openStore(address)
    const incidents = new Map((await store.incidents.list(10_000)).map(({ id, cause }) => [id, cause]))
    const notices = (await store.incidents.messages([...incidents.keys()])).filter(
      ({ channel }) => channel === 'subscribers',
    )
    await store.close()
    const faults: string[] = []
    for (const who of SUBSCRIBERS) {
      const own = mail.deliveries.filter(({ to }) => to === who)
      for (const cause of PUBLIC) {
        const of = (kind: string) =>
          notices.filter((one) => one.kind === kind && incidents.get(one.incident) === cause).length
        const got = (words: string) =>
          new Set(
            own.flatMap(({ key, subject }) =>
              subject.toLowerCase().includes(`${TITLES[cause]} ${words}`) ? key : [],
            ),
          ).size
        if (got('works again') !== of('closed'))
          faults.push(`${who}: ${got('works again')} ends of ${cause} for ${of('closed')}`)
        if (got('is not working') > of('opened'))
          faults.push(`${who}: ${got('is not working')} beginnings of ${cause} for ${of('opened')}`)
      }
    }
    return faults
  }

  const isDone = async () => waiting().length === 0 && (await noticeFaults()).length === 0
  const mailed = () => mail.deliveries.filter(({ to }) => SUBSCRIBERS.includes(to)).length

  const began = performance.now()
  const faults: string[] = []
  const at = { arrived: 0, answered: 0, random: 0 }
  const progress = progressOn()
  try {
    await subscribe()
    for (let kill = 0; kill < kills; kill += 1, life += 1) {
      await passLeases()
      await moreToSend()
      const daemon = start()
      const ended = once(daemon, 'close')
      const where = random.pick(['arrived', 'answered', 'random'] as const)
      let left = random.between(1, 20)
      onStep = (step) => {
        if (where === 'random') setTimeout(() => daemon.kill('SIGKILL'), random.between(0, 30))
        else if (step === where) left -= 1
        if (left === 0) daemon.kill('SIGKILL')
      }
      const timer = setTimeout(() => daemon.kill('SIGKILL'), LIFE_MS)
      const [code] = await ended
      // One that ends by itself is no kill, and what it did is no proof.
      if (code !== null) faults.push(`a daemon ended by itself with ${code}`)
      clearTimeout(timer)
      at[where] += 1
      progress.tell(`${kind}: ${kill + 1} of ${kills} kills, ${taken.size + mail.deliveries.length} messages`)
    }
    onStep = () => {}
    const amidKills = mailed()
    // Finish the claims of the last life, and the notices that follow them.
    for (let round = 0; round < 3 || (round < LAST_LIVES && !(await isDone())); round += 1, life += 1) {
      await passLeases()
      const last = start()
      const ended = once(last, 'close')
      for (let waited = 0; waited < 60_000; waited += 500) {
        await new Promise((resolve) => setTimeout(resolve, 500))
        if (waited >= LIFE_MS && waiting().length === 0) break
      }
      last.kill('SIGTERM')
      await ended
    }
    faults.push(...mail.faults, ...(await noticeFaults()))
    const lost = waiting()
    const twice = [...ids].flatMap(([about, { size }]) => (size > 1 ? [about] : []))
    const repeated = [...taken.values()].reduce((sum, times) => sum + times - 1, 0)
    progress.end()
    for (const about of [...lost, ...twice, ...faults].slice(0, 20)) process.stdout.write(`  ${about}\n`)
    process.stdout.write(
      `${kind}: ${kills} kills (${at.arrived} as a message arrived, ${at.answered} after its answer, ${at.random} at random), ${wanted.size} alerts by webhook and mail, ${mailed()} mails to subscribers (${amidKills} of them amid the kills), ${lost.length} lost, ${twice.length} twice, ${repeated} repeated to the webhook under the same id, ${faults.length} faults, ${((performance.now() - began) / 1000).toFixed(0)} s\n`,
    )
    return lost.length + twice.length + faults.length === 0
  } finally {
    receiver.closeAllConnections()
    receiver.close()
    await mail.close()
    await server?.stop()
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** As their mails name them. */
const TITLES = { payments: 'payments', datastore: 'data store', models: 'models' } as const

// At the same time: most of a life is waiting.
const passed = await Promise.all(
  values.store.map((store) =>
    store === 'sqlite' || store === 'postgres' ? torture(store) : refuse(USAGE, `there is no store ${store}`),
  ),
)
if (passed.includes(false)) process.exitCode = 1
