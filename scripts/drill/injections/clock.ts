import { writeFileSync } from 'node:fs'
import type { Cell } from '../product.ts'
import { HOME, type World } from '../world.ts'
import { flapping, type Injection, type Ways, wayOf } from './injection.ts'
import { store } from './store.ts'

const SHIFT = '/srv/clock-shift'
/** Node with another clock than the machine, which it reads from a file. */
const CLOCK = `import { readFileSync } from 'node:fs'
const Real = Date
let shift = 0
const read = () => { try { shift = Number(readFileSync('${SHIFT}', 'utf8')) || 0 } catch {} }
read()
setInterval(read, 200).unref()
globalThis.Date = class Date extends Real {
  constructor(...given) { given.length === 0 ? super(Real.now() + shift) : super(...given) }
  static now() { return Real.now() + shift }
}
`

export async function clock(cell: Cell, world: World): Promise<Injection> {
  const { how, when } = cell
  const { prepare = () => {} } = await store({ ...cell, when: 'drain' }, world)
  writeFileSync('/srv/clock.mjs', CLOCK)
  const set = (ms: number) => () => writeFileSync(SHIFT, String(ms), { mode: 0o644 })
  const command = `platformctl dispatch --drain --url http://127.0.0.1:3000 --env-file ${HOME}/.env`
  const cause = /seconds (?:ahead of|behind)/
  const hows: Ways = {
    slow: { cause, inject: set(-3_600_000), heal: set(0) },
    lying: { cause, inject: set(7_200_000), heal: set(0) },
    flapping: { cause, ...flapping(set(7_200_000), set(0)) },
  }
  return {
    ...wayOf(hows, how),
    alerts: true,
    moreMs: 200_000,
    prepare,
    ...(when === 'drain' && { use: () => world.run(command) }),
    daemonEnv: { NODE_OPTIONS: '--import=/srv/clock.mjs' },
    daemon: when === 'drain' ? '--no-schedule' : '',
    command,
  }
}
