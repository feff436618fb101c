import { optionsOf, refuse, wholeNumber } from '../../scripts/options.ts'
import { progressOn } from '../../scripts/progress.ts'
import { crashes } from './crashes.ts'

const USAGE = `npm run torture [-- --kills 10000] [--seed 1] [--courses 3] [--store sqlite|postgres]
              [--provider api|smtp]
  The built daemon under SIGKILL, on SQLite and PostgreSQL, against a mail API that honours keys and a mail server that
  knows none. A quarter of the kills for each. Everybody is in every course, of different cadences and in two languages;
  --courses 0 takes the course of the default platform. Exit 1 if a lesson was lost, came twice under its key, in the
  wrong language, out of order, or before its spacing had passed, or if over SMTP a kill repeated more messages than there
  were connections.`
const { values } = optionsOf(USAGE, {
  options: {
    kills: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
    courses: { type: 'string', default: '3' },
    store: { type: 'string', multiple: true, default: ['sqlite', 'postgres'] },
    provider: { type: 'string', multiple: true, default: ['api', 'smtp'] },
  },
})
const stores = values.store.map((store) =>
  store === 'sqlite' || store === 'postgres' ? store : refuse(USAGE, `there is no store ${store}`),
)
const providers = values.provider.map((provider) =>
  provider === 'api' || provider === 'smtp' ? provider : refuse(USAGE, `there is no provider ${provider}`),
)
const seed = wholeNumber(USAGE, '--seed', values.seed)
const courses = wholeNumber(USAGE, '--courses', values.courses)
const kills = Math.ceil(wholeNumber(USAGE, '--kills', values.kills, 1) / (stores.length * providers.length))
for (const store of stores) {
  // Both at the same time: a daemon that was killed or waits for a lease leaves the machine to the other.
  await Promise.all(providers.map((provider) => torture(store, provider)))
}

async function torture(store: (typeof stores)[number], provider: (typeof providers)[number]): Promise<void> {
  const progress = progressOn()
  const result = await crashes({
    store,
    provider,
    kills,
    courses,
    // Enough that a life seldom works the whole backlog off: about a hundred lessons a kill.
    people: Math.ceil(Math.min(140_000, Math.max(1400, kills * 140)) / (4 * courses || 7)),
    seed,
    onKill: (done, delivered) =>
      progress.tell(`${store}, ${provider}: ${done} of ${kills} kills, ${delivered} lessons`),
  })
  const { at, lessons, lost, twice, repeated, mostRepeated, unbounded, faults, seconds } = result
  progress.end()
  for (const line of [...lost, ...twice, ...unbounded, ...faults].slice(0, 20))
    process.stdout.write(`  ${line}\n`)
  process.stdout.write(
    `${store}, ${provider}: ${result.kills} kills (${at.arrived} as a message arrived, ${at.taken} taken, ${at.answered} answered, ${at.random} at random), ${courses === 0 ? '' : `${courses} courses, `}${lessons} lessons, ${lost.length} lost, ${twice.length} twice, ${repeated} in flight repeated (${mostRepeated} at most after one kill; ${unbounded.length} times more than connections), ${faults.length} faults, ${seconds.toFixed(0)} s\n`,
  )
  if (lost.length + twice.length + unbounded.length + faults.length > 0) process.exitCode = 1
}
