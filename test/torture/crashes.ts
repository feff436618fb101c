import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import type { StoreAddress } from '../../src/core/env/settings.ts'
import { secret } from '../../src/core/secret.ts'
import { openStore } from '../../src/core/store/open.ts'
import { seeded } from '../simulation/seeded.ts'
import { startPostgres } from '../support/postgres.ts'
import { subscribe } from '../support/subscribers.ts'
import { enrolEverywhere, LONGEST_SPACING_MS, misplaced, type School, writeSchool } from './school.ts'
import { apiSink, type Sink, type Step, smtpSink } from './sinks.ts'

const BIN = fileURLToPath(new URL('../../bin/platformctl.js', import.meta.url))
const AHEAD = new URL('ahead.mjs', import.meta.url).href
export const SECRET = 'dispatch-secret-for-torture-only'
export const DAY_MS = 24 * 60 * 60 * 1000
/** Longer than a lease: what one life left claimed, the next may take at once. */
const NEXT_LIFE_MS = 100_000
const LIFE_MS = 10_000
const TRIES = 10
const LIVES_A_SPACING = Math.ceil(LONGEST_SPACING_MS / NEXT_LIFE_MS) + 1

export interface CrashPlan {
  readonly store: 'sqlite' | 'postgres'
  readonly provider: 'api' | 'smtp'
  readonly kills: number
  /** The number of courses of a platform of its own; 0: the default platform, with its course. */
  readonly courses: number
  readonly people: number
  readonly seed: number
  readonly onKill: (kills: number, delivered: number) => void
}

export interface CrashResult {
  readonly kills: number
  readonly at: Readonly<Record<Step | 'random', number>>
  readonly lessons: number
  readonly lost: readonly string[]
  readonly twice: readonly string[]
  /** Over SMTP: messages that were in flight when their sender was killed, and went out again. */
  readonly repeated: number
  /** The most messages repeated after one kill. */
  readonly mostRepeated: number
  /** Kills that repeated more messages than there were connections. */
  readonly unbounded: readonly string[]
  readonly faults: readonly string[]
  readonly seconds: number
}

/**
 * Kills the built daemon (SIGKILL) while it dispatches a backlog to a real server: at random moments, and when a message
 * arrived, was taken, was answered. Then lets it finish, and counts what every address was sent.
 */
export async function crashes(plan: CrashPlan): Promise<CrashResult> {
  const random = seeded(plan.seed)
  const began = performance.now()
  const sink = plan.provider === 'api' ? await apiSink() : await smtpSink()
  const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-torture-'))
  const server = plan.store === 'postgres' ? await startPostgres() : undefined
  try {
    const address: StoreAddress = server
      ? { kind: 'postgres', url: secret(await server.createDatabase()) }
      : { kind: 'sqlite', file: path.join(folder, 'platform.sqlite') }
    const school = plan.courses > 0 ? await writeSchool(folder, plan.courses) : undefined
    if (school) {
      // Once: a start compiles mails only when there is no fresh build.
      execFileSync(process.execPath, [BIN, 'email', 'build', '--config', school.file], { stdio: 'pipe' })
      await enrolEverywhere(school, { address, people: plan.people, addressOf })
    } else await fill(address, plan.people)
    const env = {
      ...sink.env,
      EMAIL_DISPATCH_SECRET: SECRET,
      NEXT_PUBLIC_SITE_URL: 'https://www.example.com',
      LOG_LEVEL: 'error',
      ...(address.kind === 'postgres' && { STORE_URL: address.url.reveal() }),
    }
    const at = { arrived: 0, taken: 0, answered: 0, random: 0 }
    const life = async () => {
      await passLeases(server && address.kind === 'postgres' ? address.url.reveal() : undefined)
      return startLife(folder, env, sink.life * NEXT_LIFE_MS, school ? ['--config', school.file] : [])
    }
    await fillCompileCache(await life())
    let kills = 0
    /** Connections that were open when each life was ended. */
    const open: number[] = []
    while (kills < plan.kills) {
      const daemon = await life()
      const kill = () => {
        open[sink.life] ??= sink.connections?.() ?? 0
        daemon.process.kill('SIGKILL')
      }
      const where = random.pick(['arrived', 'taken', 'answered', 'random'] as const)
      // The step's first message is often the first of a group: any of the first hundred may be the one.
      if (where === 'random') setTimeout(kill, random.between(1, 250))
      else killAt(sink, where, random.between(1, 100), kill)
      const ended = once(daemon.process, 'close')
      const answer = daemon.dispatch()
      const timer = setTimeout(kill, LIFE_MS)
      // A backlog that is worked off before the kill came is no kill.
      await Promise.race([ended, answer.then((done) => (done ? kill() : undefined))])
      await ended
      clearTimeout(timer)
      // Messages from the killed process are read to the end, and counted as its own.
      while (sink.connections?.()) await new Promise((resolve) => setImmediate(resolve))
      sink.onStep = () => {}
      sink.life += 1
      kills += 1
      at[where] += 1
      plan.onKill(kills, sink.deliveries.length)
    }
    await finish(sink, life)
    const faults = [...sink.faults, ...(await verify(address)), ...(school ? misplacedIn(school, sink) : [])]
    return {
      ...deliveryCounts(sink, { ...plan, ...(school && { lessons: school.lessons }) }),
      ...repeats(sink, open),
      kills,
      at,
      faults,
      seconds: (performance.now() - began) / 1000,
    }
  } finally {
    await sink.close()
    await server?.stop()
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** Each life starts faster by it. Node writes it as a process ends, and none that is killed writes it. */
async function fillCompileCache(daemon: Awaited<ReturnType<typeof startLife>>): Promise<void> {
  const ended = once(daemon.process, 'close')
  daemon.process.kill('SIGTERM')
  await ended
}

/** PostgreSQL measures leases by its own clock: there, the time between two lives passes in the rows. */
async function passLeases(url: string | undefined): Promise<void> {
  if (url === undefined) return
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(
    `UPDATE platformctl.subscription SET lease_until = lease_until - ${NEXT_LIFE_MS} WHERE lease_until IS NOT NULL`,
  )
  await client.end()
}

function killAt(sink: Sink, step: Step, nth: number, kill: () => void): void {
  let seen = 0
  sink.onStep = (now) => {
    if (now === step) seen += 1
    if (seen === nth) kill()
  }
}

/** People whose seven lessons are all due: one a call goes out to each. */
async function fill(address: StoreAddress, people: number): Promise<void> {
  const store = await openStore(address)
  const confirmed = Date.now() - 8 * DAY_MS
  for (let n = 0; n < people; n += 1) await subscribe(store, `p${n}`, confirmed)
  await store.close()
}

export const addressOf = (n: number) => `p${n}@example.com`

const misplacedIn = (school: School, { deliveries }: Sink) =>
  misplaced(school, deliveries, {
    numberOf: (to) => Number(/\d+/.exec(to)?.[0]),
    lifeMs: NEXT_LIFE_MS,
  })

export async function startLife(
  folder: string,
  env: Readonly<Record<string, string>>,
  ahead: number,
  options: readonly string[] = [],
) {
  const process_ = spawn(
    process.execPath,
    [
      '--import',
      AHEAD,
      BIN,
      'daemon',
      '--service',
      'web',
      '--web-port',
      '0',
      '--no-schedule',
      '--data',
      folder,
      ...options,
    ],
    {
      env: { PATH: process.env.PATH, HOME: folder, CLOCK_AHEAD_MS: String(ahead), ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const lines = createInterface({ input: process_.stdout })
  const url = await new Promise<string>((resolve, reject) => {
    process_.once('close', (code) => reject(new Error(`the daemon ended with ${code} before it listened`)))
    lines.on('line', (line) => {
      const { event, web } = JSON.parse(line) as { event?: string; web?: string }
      if (event === 'listening' && web !== undefined) resolve(web)
    })
  })
  const call = () =>
    fetch(`${url}/api/email/dispatch?limit=1000`, {
      method: 'POST',
      headers: { authorization: `Bearer ${SECRET}` },
    })
  return {
    process: process_,
    call,
    /** The remaining lessons after one call; undefined when the daemon died in it. */
    async dispatch(): Promise<{ remaining: number } | undefined> {
      try {
        let response = await call()
        // A busy machine may keep PostgreSQL from answering in time, and the answer says to try again.
        for (let n = 1; response.status === 503 && n < TRIES; n += 1) {
          await sleep(1000)
          response = await call()
        }
        if (!response.ok) throw new Error(`dispatch answered ${response.status}: ${await response.text()}`)
        return (await response.json()) as { remaining: number }
      } catch (error) {
        if (error instanceof TypeError) return undefined
        throw error
      }
    },
  }
}

/** Lives without a kill, each a spacing after the one before, until one finds nothing more to send. */
async function finish(sink: Sink, life: () => ReturnType<typeof startLife>): Promise<void> {
  for (let before = -1; before < sink.deliveries.length; sink.life += LIVES_A_SPACING) {
    before = sink.deliveries.length
    const daemon = await life()
    const ended = once(daemon.process, 'close')
    for (let left = 1; left > 0; ) left = (await daemon.dispatch())?.remaining ?? 0
    daemon.process.kill('SIGTERM')
    await ended
  }
}

async function verify(address: StoreAddress): Promise<string[]> {
  if (address.kind === 'postgres') return []
  const { maintenanceOfSqlite } = await import('../../src/core/store/sqlite/maintenance.ts')
  const maintenance = maintenanceOfSqlite(address.file)
  const { faults } = await maintenance.verify(Date.now() + 365 * DAY_MS)
  await maintenance.close()
  return [...faults]
}

export function deliveryCounts(
  sink: Sink,
  {
    people,
    provider,
    lessons: each = 7,
  }: Pick<CrashPlan, 'people' | 'provider'> & { readonly lessons?: number },
) {
  const lessons = new Map<string, Map<string, number[]>>()
  for (const { to, key, life } of sink.deliveries) {
    const ofPerson = lessons.get(to) ?? new Map<string, number[]>()
    ofPerson.set(key, [...(ofPerson.get(key) ?? []), life])
    lessons.set(to, ofPerson)
  }
  const lost: string[] = []
  const twice: string[] = []
  for (let n = 0; n < people; n += 1) {
    const ofPerson = lessons.get(addressOf(n)) ?? new Map<string, number[]>()
    if (ofPerson.size !== each) lost.push(`${addressOf(n)} was sent ${ofPerson.size} of ${each} lessons`)
    for (const [key, lives] of ofPerson) {
      // Over SMTP a message in flight at a kill may go out again: in the next lives, never twice in one.
      if (provider === 'api' ? lives.length > 1 : new Set(lives).size < lives.length)
        twice.push(`${addressOf(n)} was sent ${key} in lives ${lives.join(', ')}`)
    }
  }
  return { lessons: people * each, lost, twice }
}

/** Messages that a kill repeated: delivered in the life that it ended, and again in a later one. */
function repeats(sink: Sink, open: readonly number[]) {
  const last = new Map<string, number>()
  const after = open.map(() => 0)
  for (const { key, life } of sink.deliveries) {
    const before = last.get(key)
    if (before !== undefined && before < life) after[before] = (after[before] ?? 0) + 1
    last.set(key, life)
  }
  return {
    repeated: after.reduce((sum, count) => sum + count, 0),
    mostRepeated: Math.max(0, ...after),
    unbounded: after.flatMap((count, life) =>
      count > (open[life] ?? 0)
        ? [`kill ${life + 1} repeated ${count} messages, with ${open[life]} connections open`]
        : [],
    ),
  }
}
