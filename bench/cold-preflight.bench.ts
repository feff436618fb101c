import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { VARIABLES } from '../src/core/env/contract.ts'
import type { Benchmark } from './harness.ts'
import { wholeProcess } from './process.ts'

const bin = fileURLToPath(new URL('../bin/platformctl.js', import.meta.url))

export const benchmark: Benchmark = {
  name: 'cold-preflight',
  title: 'Cold start: platformctl preflight on a file of 66 variables',
  unit: 'ms',
  better: 'lower',
  promises: [{ against: 'node -e 0', ratio: 1.9 }],
  rounds: 20,
  open: async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'bench-preflight-'))
    const file = path.join(folder, 'all.env')
    await writeFile(
      file,
      VARIABLES.map(
        ({ name, example }) => `${name}=${example || 'a-value-that-is-long-enough-0123456789'}`,
      ).join('\n'),
    )
    return {
      contenders: [
        // Every variable set breaks the exclusive rules: exit code 1 is the right answer, and the longest report.
        {
          name: 'platformctl preflight',
          role: 'ours',
          measure: () => wholeProcess({ args: [bin, 'preflight', '--env-file', file], codes: [1] }),
        },
        { name: 'node -e 0', role: 'floor', measure: () => wholeProcess({ args: ['-e', '0'] }) },
      ],
      close: () => rm(folder, { recursive: true, force: true }),
    }
  },
}
