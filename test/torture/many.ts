import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { optionsOf, wholeNumber } from '../../scripts/options.ts'
import { progressOn } from '../../scripts/progress.ts'
import { secret } from '../../src/core/secret.ts'
import { openStore } from '../../src/core/store/open.ts'
import { seeded } from '../simulation/seeded.ts'
import { startPostgres } from '../support/postgres.ts'
import { apiSink } from './sinks.ts'

const USAGE = `npm run torture:many [-- --due 100000] [--dispatchers 16] [--seed 1]
  So many built commands dispatch the lessons of one PostgreSQL, first undisturbed, then with one of them killed every
  second. Each time every lesson must go out exactly once, and what was claimed by the killed be taken over in two minutes.`
const { values } = optionsOf(USAGE, {
  options: {
    due: { type: 'string', default: '100000' },
    dispatchers: { type: 'string', default: '16' },
    seed: { type: 'string', default: '1' },
  },
})
const MOST_KILLS = 60
/** A lease is 90 s long: so long may one that ran out wait for the next dispatcher. */
const MOST_OVERDUE_S = 30
const BIN = fileURLToPath(new URL('../../bin/platformctl.js', import.meta.url))
const number = (name: keyof typeof values, least: number) =>
  wholeNumber(USAGE, `--${name}`, values[name], least)
const [due, dispatchers] = [number('due', 1), number('dispatchers', 1)]
const random = seeded(number('seed', 0))
const server = await startPostgres(['max_connections=200'])
try {
  for (const killing of [false, true]) {
    const result = await run(killing)
    process.stdout.write(
      `${dispatchers} dispatchers${killing ? `, ${result.kills} of them killed, one a second` : ''}: ${due} due, ${result.sent} sent, ${result.twice} twice, ${result.missing} missing, ${result.seconds.toFixed(0)} s${killing ? `; a lease that ran out was taken over within ${result.overdue.toFixed(0)} s` : ''}\n`,
    )
    if (result.twice + result.missing > 0 || result.sent !== due) process.exitCode = 1
    if (result.overdue > MOST_OVERDUE_S) process.exitCode = 1
  }
} finally {
  await server.stop()
}

async function run(killing: boolean) {
  const url = await server.createDatabase()
  const store = await openStore({ kind: 'postgres', url: secret(url) })
  // Set-based, because a hundred thousand sign-ups are not what is tried here.
  await server.query(
    url,
    `INSERT INTO platformctl.subscription (id, identity, address, state, enrolment, created_at, confirmed_at, next_attempt_at)
     SELECT 'person-' || n, 'p' || n || '@example.com', 'p' || n || '@example.com', 'confirmed', 1, 0, ${Date.now()}, ${Date.now()}
     FROM generate_series(1, ${due}) AS n`,
  )
  const sink = await apiSink()
  const began = performance.now()
  let [kills, overdue] = [0, 0]
  const running = new Set<ChildProcess>()
  const start = () => {
    const child = spawn(process.execPath, [BIN, 'dispatch', '--local', '--drain', '--limit', '1000'], {
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        STORE_URL: url,
        STORE_POOL_SIZE: '4',
        NEXT_PUBLIC_SITE_URL: 'https://www.example.com',
        ...sink.env,
      },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    running.add(child)
    child.on('close', () => running.delete(child))
  }
  for (let n = 0; n < dispatchers; n += 1) start()
  const killer = setInterval(() => {
    if (!killing || kills >= MOST_KILLS || sink.deliveries.length >= due * 0.9) return
    const victims = [...running]
    const victim = victims[random.between(0, Math.max(0, victims.length - 1))]
    if (victim === undefined) return
    victim.kill('SIGKILL')
    kills += 1
    start()
  }, 1000)
  const progress = progressOn()
  const look = async () => {
    progress.tell(`${sink.deliveries.length} of ${due} sent`)
    const { rows } = await server.query(
      url,
      'SELECT min(next_attempt_at) AS end FROM platformctl.subscription WHERE claimed_at IS NOT NULL',
    )
    const end = rows[0]?.end as string | null
    if (end !== null) overdue = Math.max(overdue, (Date.now() - Number(end)) / 1000)
  }
  let looking = Promise.resolve()
  const telling = setInterval(() => {
    looking = looking.then(look)
  }, 1000)
  // Claims of killed processes return when their leases end: until then a drain finds nothing and ends.
  for (;;) {
    await Promise.all([...running].map((child) => once(child, 'close')))
    const { due: left } = await store.course.backlog(Date.now() + 10 * 60_000)
    if (left === 0) break
    await new Promise((resolve) => setTimeout(resolve, 1000))
    if (running.size === 0) start()
  }
  clearInterval(killer)
  clearInterval(telling)
  await looking
  progress.end()
  const seconds = (performance.now() - began) / 1000
  const addresses = new Set(sink.deliveries.map(({ to }) => to))
  await store.close()
  await sink.close()
  return {
    kills,
    sent: sink.deliveries.length,
    twice: sink.deliveries.length - addresses.size,
    missing: due - addresses.size,
    seconds,
    overdue,
  }
}
