import { parseEnvFile } from '../src/core/env/reader.ts'
import { validateAll } from '../src/env.ts'
import { contract, VARIABLES } from '../test/support/learning.ts'
import type { Benchmark } from './harness.ts'
import { peer } from './peers.ts'

const RUNS = 500

const env = Object.fromEntries(
  VARIABLES.map(({ name, example }) => [name, example || 'a-value-that-is-long-enough-0123456789']),
)
const text = Object.entries(env)
  .map(([name, value]) => `${name}=${value}`)
  .join('\n')

interface Envalid {
  readonly cleanEnv: (env: object, specs: object) => object
  readonly str: (options: object) => object
  readonly url: (options: object) => object
}

/** Milliseconds of one run, over many. */
async function each(run: () => unknown): Promise<number> {
  const started = performance.now()
  for (let count = 0; count < RUNS; count += 1) run()
  return (performance.now() - started) / RUNS
}

export const benchmark: Benchmark = {
  name: 'validate',
  title: 'In process: validating 66 variables for three services',
  unit: 'ms',
  better: 'lower',
  promises: [],
  rounds: 20,
  notes: `Means of ${RUNS} runs in a warm process; promised below 0.5 ms. The floor reads the names and values of the same file without judging them; envalid checks types, and knows no rules between variables.`,
  open: async () => {
    const { cleanEnv, str, url } = peer<Envalid>('envalid')
    const specs = Object.fromEntries(
      VARIABLES.map(({ name, kind }) => [name, (kind === 'url' ? url : str)({ default: undefined })]),
    )
    return {
      contenders: [
        { name: 'validateAll', role: 'ours', measure: () => each(() => validateAll(env)) },
        {
          name: 'reading the file',
          role: 'floor',
          measure: () => each(() => parseEnvFile(contract, text, '.env')),
        },
        { name: 'envalid', role: 'peer', measure: () => each(() => cleanEnv(env, specs)) },
      ],
    }
  },
}
