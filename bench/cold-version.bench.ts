import { fileURLToPath } from 'node:url'
import type { Benchmark } from './harness.ts'
import { wholeProcess } from './process.ts'

const bin = fileURLToPath(new URL('../bin/platformctl.js', import.meta.url))

export const benchmark: Benchmark = {
  name: 'cold-version',
  title: 'Cold start: platformctl --version',
  unit: 'ms',
  better: 'lower',
  promises: [],
  rounds: 20,
  open: async () => ({
    contenders: [
      {
        name: 'platformctl --version',
        role: 'ours',
        measure: () => wholeProcess({ args: [bin, '--version'] }),
      },
      { name: 'node -e 0', role: 'floor', measure: () => wholeProcess({ args: ['-e', '0'] }) },
    ],
  }),
}
