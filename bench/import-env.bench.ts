import { fileURLToPath } from 'node:url'
import type { Benchmark } from './harness.ts'
import { wholeProcess } from './process.ts'

const dist = new URL('../dist/', import.meta.url)
const evaluate = (code: string) => () =>
  wholeProcess({ args: ['--input-type=module', '-e', code], cwd: fileURLToPath(dist) })

export const benchmark: Benchmark = {
  name: 'import-env',
  title: 'A process that imports platformctl/env',
  unit: 'ms',
  better: 'lower',
  promises: [],
  rounds: 20,
  notes: 'At most 5 ms over a bare Node is promised.',
  open: async () => ({
    contenders: [
      { name: 'import platformctl/env', role: 'ours', measure: evaluate(`import './env.js'`) },
      { name: 'an empty module', role: 'floor', measure: evaluate('export {}') },
      {
        name: 'import and validateAll',
        role: 'peer',
        measure: evaluate(`import { validateAll } from './env.js'; validateAll(process.env)`),
      },
    ],
  }),
}
