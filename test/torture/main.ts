import { optionsOf, refuse, wholeNumber } from '../../scripts/options.ts'
import { progressOn } from '../../scripts/progress.ts'
import { crashes } from './crashes.ts'

const USAGE = `npm run torture [-- --kills 10000] [--seed 1] [--store sqlite|postgres] [--provider api|smtp]
  The built daemon under SIGKILL, on SQLite and PostgreSQL, against a mail API that honours keys and a mail server that
  knows none. A quarter of the kills for each; exit 1 if a lesson was lost or came twice.`
const { values } = optionsOf(USAGE, {
  options: {
    kills: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
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
const kills = Math.ceil(wholeNumber(USAGE, '--kills', values.kills, 1) / (stores.length * providers.length))
for (const store of stores) {
  for (const provider of providers) {
    const progress = progressOn()
    const result = await crashes({
      store,
      provider,
      kills,
      // Enough that a life seldom works the whole backlog off: about a hundred lessons a kill.
      people: Math.min(20_000, Math.max(200, kills * 20)),
      seed,
      onKill: (done, delivered) =>
        progress.tell(`${store}, ${provider}: ${done} of ${kills} kills, ${delivered} lessons`),
    })
    const { at, lessons, lost, twice, repeated, faults, seconds } = result
    progress.end()
    for (const line of [...lost, ...twice, ...faults].slice(0, 20)) process.stdout.write(`  ${line}\n`)
    process.stdout.write(
      `${store}, ${provider}: ${result.kills} kills (${at.arrived} as a message arrived, ${at.taken} taken, ${at.answered} answered, ${at.random} at random), ${lessons} lessons, ${lost.length} lost, ${twice.length} twice, ${repeated} in flight repeated, ${faults.length} faults, ${seconds.toFixed(0)} s\n`,
    )
    if (lost.length + twice.length + faults.length > 0) process.exitCode = 1
  }
}
