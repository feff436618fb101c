import type { Core } from './core.ts'
import type { Fault } from './provider.ts'
import { seeded } from './seeded.ts'
import { type Run, type Scenario, simulate } from './world.ts'

const FAULTS: readonly Fault[] = [
  'crash',
  'lost-response',
  'transient',
  'too-many',
  'permanent',
  'bounce',
  'slow',
  'duplicate-request',
  'store-error',
  'silent',
  'clock-step',
  'unsubscribe',
  'freeze',
  'lock',
  'long-answer',
  'clock-skew',
  'broken-texts',
  'refuses-us',
  'rotate-secret',
  'erase',
  'hours',
]

/** Shortly before clocks change: in Europe and Chile, in New York, and in Berlin and on Lord Howe in autumn. */
const SEASONS = ['2026-03-27T22:30Z', '2026-03-05T09:00Z', '2026-10-22T22:30Z', '2026-09-30T14:00Z'] as const

/** A seed's scenario: which provider, how many people and dispatchers, which courses, which faults. */
export function scenarioOf(seed: number): Scenario {
  const random = seeded(seed ^ 0x5eed)
  return {
    seed,
    provider: seed % 2 === 0 ? 'api' : 'smtp',
    subscribers: random.pick([20, 100, 400, 1000]),
    days: random.between(8, 14),
    dispatchers: random.between(1, 3),
    // Most scenarios have all faults; some lack a few, so that one cannot hide another.
    faults: [
      ...(random.oneIn(3) ? FAULTS.filter(() => !random.oneIn(3)) : FAULTS),
      // A store in a file, whose rows a hand can damage, is slower than one in memory.
      ...(random.oneIn(5) ? (['poison'] as const) : []),
      // Drawn apart, so that the other faults of a seed stay as they are. People whom a report ended hide other faults.
      ...(seeded(seed ^ 0x3a11).oneIn(2) ? (['messages'] as const) : []),
      ...(seeded(seed ^ 0xfeed).oneIn(2) ? (['feedback'] as const) : []),
      // Courses that pause for hours hide other faults too.
      ...(seeded(seed ^ 0xb4ea).oneIn(4) ? (['feedback', 'breaker'] as const) : []),
      ...(seeded(seed ^ 0x01d).oneIn(4) ? (['older-build'] as const) : []),
      ...(seeded(seed ^ 0x5afe).oneIn(3) ? (['restore'] as const) : []),
      ...(seed % 4 === 2 ? (['wakes'] as const) : []),
      ...(seed % 3 === 0 ? (['pace'] as const) : []),
      ...(seed % 3 === 1 ? (['standstill'] as const) : []),
      ...(seed % 3 === 2 ? (['alerts'] as const) : []),
    ],
    rarity: random.pick([1, 20]),
    courses: random.pick([0, 1, 2, 3, 5]),
    season: random.pick(SEASONS),
  }
}

export interface Failure {
  readonly scenario: Scenario
  readonly run: Run
}

/** Smaller scenarios that still break the same invariant: fewer people, courses, faults and days, one dispatcher. */
export async function shrink(core: Core, failure: Failure): Promise<Failure> {
  const invariant = failure.run.violations[0]?.invariant
  let smallest = failure
  for (let again = true; again; ) {
    again = false
    for (const smaller of smallerThan(smallest.scenario)) {
      const found = await breaks(core, smaller, invariant)
      if (found) {
        smallest = found
        again = true
        break
      }
    }
  }
  return smallest
}

/** Other draws may break it where these do not: a few seeds for each size. */
async function breaks(
  core: Core,
  scenario: Scenario,
  invariant: string | undefined,
): Promise<Failure | undefined> {
  for (let seed = scenario.seed; seed < scenario.seed + 8; seed += 1) {
    const tried = { ...scenario, seed }
    const run = await simulate(core, tried)
    if (run.violations[0]?.invariant === invariant) return { scenario: tried, run }
  }
  return undefined
}

function* smallerThan(scenario: Scenario): Generator<Scenario> {
  if (scenario.subscribers > 1) {
    yield { ...scenario, subscribers: 1 }
    yield { ...scenario, subscribers: Math.ceil(scenario.subscribers / 4) }
  }
  if (scenario.subscribers > 4) yield { ...scenario, subscribers: Math.ceil(scenario.subscribers / 2) }
  for (const fault of scenario.faults)
    yield { ...scenario, faults: scenario.faults.filter((one) => one !== fault) }
  if (scenario.courses > 1) yield { ...scenario, courses: 1 }
  if (scenario.courses > 0) yield { ...scenario, courses: 0 }
  if (scenario.dispatchers > 1) yield { ...scenario, dispatchers: 1 }
  if (scenario.days > 2) yield { ...scenario, days: Math.ceil(scenario.days / 2) }
}

/** A failure as a person reads it: what broke, how to see it again, and what happened to that one subscription. */
export function tell({ scenario, run }: Failure): string {
  const violation = run.violations[0]
  const about = violation?.about.split('.').slice(0, 2).join('.') ?? ''
  const lines = run.trace
    .filter(
      (event) => event.about === '' || violation?.about.startsWith(event.about) || event.about === about,
    )
    .slice(-40)
    .map(({ at, what }) => `  ${clock(at)}  ${what}`)
  return `VIOLATION: ${violation?.invariant}\n${JSON.stringify(scenario)}\n${lines.join('\n')}\ntrace ${run.digest}\n`
}

function clock(ms: number): string {
  const day = Math.floor(ms / 86_400_000)
  return `day ${day} ${new Date(ms % 86_400_000).toISOString().slice(11, 23)}`
}
