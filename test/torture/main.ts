import { parseArgs } from 'node:util'
import { progressOn } from '../../scripts/progress.ts'
import { crashes } from './crashes.ts'

/**
 * `npm run torture -- --kills 10000`: the built daemon under SIGKILL, on SQLite and PostgreSQL, against a mail API that
 * honours keys and a mail server that knows none. A quarter of the kills for each; exit 1 if a lesson was lost or came twice.
 */
const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
    store: { type: 'string', multiple: true, default: ['sqlite', 'postgres'] },
    provider: { type: 'string', multiple: true, default: ['api', 'smtp'] },
  },
})
const stores = values.store.filter((store) => store === 'sqlite' || store === 'postgres')
const providers = values.provider.filter((provider) => provider === 'api' || provider === 'smtp')
const kills = Math.ceil(Number(values.kills) / (stores.length * providers.length))
if (!(kills > 0)) {
  process.stderr.write('usage: --kills N [--seed S] [--store sqlite|postgres] [--provider api|smtp]\n')
  process.exit(2)
}
for (const store of stores) {
  for (const provider of providers) {
    const progress = progressOn()
    const result = await crashes({
      store,
      provider,
      kills,
      // Enough that a life seldom works the whole backlog off: about a hundred lessons a kill.
      people: Math.min(20_000, Math.max(200, kills * 20)),
      seed: Number(values.seed),
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
