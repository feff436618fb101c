import { portability } from '../src/core/env/portability.ts'
import { parseEnvFile } from '../src/core/env/reader.ts'
import { HOSTILE } from '../test/support/hostile-env.ts'
import { contract } from '../test/support/learning.ts'
import type { Benchmark, Contender } from './harness.ts'

const MEGABYTE = 1024 * 1024

const texts = (size: number) => Object.values(HOSTILE).map((text) => text(size))

function reading(name: string, role: Contender['role'], megabytes: number): Contender {
  const all = texts(megabytes * MEGABYTE)
  return {
    name,
    role,
    measure: async () => {
      const started = performance.now()
      for (const text of all)
        portability(contract, text, '.env', parseEnvFile(contract, text, '.env').assignments)
      return performance.now() - started
    },
  }
}

export const benchmark: Benchmark = {
  name: 'read-hostile',
  title: `Reading and comparing ${Object.keys(HOSTILE).length} hostile files`,
  unit: 'ms',
  better: 'lower',
  promises: [{ against: '1 MB each', ratio: 2.4 }],
  notes: `Double the input, double the time. Each file is read with positions and then as four other readers would read it: ${Object.keys(HOSTILE).join(', ')}.`,
  open: async () => ({ contenders: [reading('2 MB each', 'ours', 2), reading('1 MB each', 'floor', 1)] }),
}
