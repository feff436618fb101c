import { fileURLToPath } from 'node:url'
import type { Benchmark } from './harness.ts'
import { wholeProcess } from './process.ts'

const bin = fileURLToPath(new URL('../bin/platformctl.js', import.meta.url))
const cwd = fileURLToPath(new URL('../examples/ceramics', import.meta.url))

export const benchmark: Benchmark = {
  name: 'cold-definition',
  title: 'Cold preflight with a definition in TypeScript',
  unit: 'ms',
  better: 'lower',
  promises: [{ against: 'the same without a definition', ratio: 1.35 }],
  rounds: 20,
  notes:
    'The definition is that of examples/ceramics; without it, in the same folder, the default platform is checked. No variable is set.',
  open: async () => ({
    contenders: [
      {
        name: 'platformctl preflight',
        role: 'ours',
        measure: () => wholeProcess({ args: [bin, 'preflight'], cwd }),
      },
      {
        name: 'the same without a definition',
        role: 'peer',
        measure: () => wholeProcess({ args: [bin, 'preflight', '--no-config'], cwd }),
      },
      { name: 'node -e 0', role: 'floor', measure: () => wholeProcess({ args: ['-e', '0'] }) },
    ],
  }),
}
