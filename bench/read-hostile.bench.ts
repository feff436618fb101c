import { portability } from '../src/core/env/portability.ts'
import { parseEnvFile } from '../src/core/env/reader.ts'
import { contract } from '../test/support/learning.ts'
import type { Benchmark, Contender } from './harness.ts'

const MEGABYTE = 1024 * 1024

/** Texts on which a reader that looks back or ahead without bound costs the square of their length. */
const HOSTILE: Readonly<Record<string, string>> = {
  'quotes that nothing closes': 'A="x\n',
  'quotes in one line': `A='"`,
  backslashes: 'A="\\',
  'white space': '    \t ',
  'dollars and braces': 'A=${B:-',
  'a name given again and again': 'LOG_LEVEL=info\n',
  'nearly an assignment': 'A A A\n',
}

const texts = (size: number) =>
  Object.values(HOSTILE).map((unit) => unit.repeat(Math.ceil(size / unit.length)).slice(0, size))

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
