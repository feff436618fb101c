import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { optionsOf, wholeNumber } from '../../scripts/options.ts'
import { progressOn } from '../../scripts/progress.ts'
import { secret } from '../../src/core/secret.ts'
import { openMaintenance } from '../../src/core/store/open.ts'
import { seeded } from '../simulation/seeded.ts'
import { type Pair, startPair } from '../support/pair.ts'
import { addressOf, DAY_MS, deliveryCounts, SECRET, startLife } from './crashes.ts'
import { apiSink, type Sink } from './sinks.ts'

const USAGE = `npm run torture:failover [-- --kills 200] [--seed 1]
  The built daemon dispatches from a PostgreSQL with a synchronous standby. The primary is killed at a random moment, the
  standby promoted, and the killed one comes back as a standby. Exit 1 if a lesson was lost or came twice under its key,
  or if dispatch took more than 30 s to go on.`
const { values } = optionsOf(USAGE, {
  options: { kills: { type: 'string', default: '200' }, seed: { type: 'string', default: '1' } },
})
const kills = wholeNumber(USAGE, '--kills', values.kills, 1)
const random = seeded(wholeNumber(USAGE, '--seed', values.seed))
const MOST_PAUSE_MS = 30_000
/** The provider's time for a message: there must be something left to send at the last kill. */
const ANSWER_MS = 300
const people = 200 + kills * 230

const pair = await startPair()
const sink = await apiSink()
sink.hold = () => sleep(ANSWER_MS)
const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-failover-'))
const progress = progressOn()
const began = performance.now()
const pauses: number[] = []
const refused = new Map<string, number>()
try {
  const store = { kind: 'postgres', url: secret(pair.url) } as const
  const maintenance = await openMaintenance(store)
  await maintenance.migrate()
  await maintenance.close()
  await fill(pair)
  const env = {
    ...sink.env,
    EMAIL_DISPATCH_SECRET: SECRET,
    NEXT_PUBLIC_SITE_URL: 'https://www.example.com',
    LOG_LEVEL: 'error',
    STORE_URL: pair.url,
  }
  const daemon = await startLife(folder, env, 0)
  const ended = once(daemon.process, 'close')
  let running = true
  const dispatching = (async () => {
    while (running) {
      const answer = await daemon.call()
      const { remaining = 0, code } = (await answer.json()) as { remaining?: number; code?: string }
      if (code !== undefined) refused.set(code, (refused.get(code) ?? 0) + 1)
      if (remaining === 0) await sleep(100)
    }
  })()
  await more(sink)
  for (let kill = 1; kill <= kills; kill += 1) {
    await sleep(random.between(0, 400))
    await pair.killPrimary()
    const at = performance.now()
    await sleep(random.between(0, 300))
    await pair.promote()
    await more(sink)
    pauses.push(performance.now() - at)
    await pair.rejoin()
    progress.tell(`${kill} of ${kills} kills, ${sink.deliveries.length} of ${people * 7} lessons`)
  }
  // Claims from before the last kill wait for their leases to end.
  sink.hold = undefined
  for (let left = 1; left > 0; await sleep(500)) {
    const { rows } = await pair.query(
      'SELECT count(*)::int AS left FROM platformctl.subscription WHERE jsonb_array_length(sent_days) < 7',
    )
    left = rows[0].left
    progress.tell(`${left} people have lessons left`)
  }
  running = false
  await dispatching
  daemon.process.kill('SIGTERM')
  await ended
  const looked = await openMaintenance(store)
  const { faults } = await looked.verify(Date.now())
  await looked.close()
  progress.end()
  const { lessons, lost, twice } = deliveryCounts(sink, { people, provider: 'api' })
  const wrong = [...lost, ...twice, ...sink.faults, ...faults]
  for (const line of wrong.slice(0, 20)) process.stdout.write(`  ${line}\n`)
  pauses.sort((a, b) => a - b)
  const seconds = (ms: number | undefined) => `${((ms ?? 0) / 1000).toFixed(1)} s`
  process.stdout.write(
    `${kills} kills of the primary, ${lessons} lessons: ${lost.length} lost, ${twice.length} twice, ${sink.faults.length + faults.length} faults; dispatch went on after ${seconds(pauses[pauses.length >> 1])} (median), ${seconds(pauses.at(-1))} (longest); calls refused meanwhile: ${JSON.stringify(Object.fromEntries(refused))}; ${seconds(performance.now() - began)}\n`,
  )
  if (wrong.length > 0 || (pauses.at(-1) ?? 0) > MOST_PAUSE_MS) process.exitCode = 1
} finally {
  await sink.close()
  await pair.stop()
  await rm(folder, { recursive: true, force: true, maxRetries: 3 })
}

/** People whose seven lessons are all due. */
async function fill({ query }: Pair): Promise<void> {
  const confirmed = Date.now() - 8 * DAY_MS
  const mail = addressOf(0).replace('0', `' || n || '`)
  await query(
    `INSERT INTO platformctl.subscription (id, identity, address, state, enrolment, created_at, confirmed_at, next_attempt_at)
     SELECT 'person-' || n, '${mail}', '${mail}', 'confirmed', 1, ${confirmed}, ${confirmed}, ${confirmed}
     FROM generate_series(0, ${people - 1}) AS n`,
  )
}

/** Until a lesson arrives that had not before. */
async function more({ deliveries }: Sink): Promise<void> {
  const before = deliveries.length
  const until = performance.now() + 4 * MOST_PAUSE_MS
  while (deliveries.length === before) {
    if (performance.now() > until) throw new Error('dispatch did not go on in two minutes')
    await sleep(10)
  }
}
