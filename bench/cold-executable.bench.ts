import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Benchmark } from './harness.ts'
import { wholeProcess } from './process.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const args = ['preflight', '--no-config']

export const benchmark: Benchmark = {
  name: 'cold-executable',
  title: 'Cold start: preflight by the executable',
  unit: 'ms',
  better: 'lower',
  notes: 'The executable holds Node, and serves its modules from itself; both have V8’s compile cache.',
  promises: [{ against: 'the package', ratio: 1.2 }],
  rounds: 20,
  open: async () => {
    await promisify(execFile)(process.execPath, ['scripts/executable.ts'], { cwd: root })
    return {
      contenders: [
        {
          name: 'the executable',
          role: 'ours',
          measure: () => wholeProcess({ program: `${root}build/platformctl`, args }),
        },
        {
          name: 'the package',
          role: 'peer',
          measure: () => wholeProcess({ args: [`${root}bin/platformctl.js`, ...args] }),
        },
        { name: 'node -e 0', role: 'floor', measure: () => wholeProcess({ args: ['-e', '0'] }) },
      ],
    }
  },
}
