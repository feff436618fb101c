import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Benchmark } from './harness.ts'
import { wholeProcess } from './process.ts'

const bin = fileURLToPath(new URL('../bin/platformctl.js', import.meta.url))
const example = fileURLToPath(new URL('../examples/ceramics', import.meta.url))

export const benchmark: Benchmark = {
  name: 'cold-definition',
  title: 'Cold preflight with a definition in TypeScript',
  unit: 'ms',
  better: 'lower',
  promises: [{ against: 'the same without a definition', ratio: 1.35 }],
  rounds: 20,
  notes:
    'The definition is that of examples/ceramics, with its mails built, as in an image; without it, in the same folder, the default platform is checked. No variable is set. The promise is older than the check that each mail compiles.',
  open: async (opened) => {
    const cwd = await mkdtemp(path.join(tmpdir(), 'platformctl-ceramics-'))
    opened.defer(() => rm(cwd, { recursive: true }))
    await cp(example, cwd, { recursive: true })
    await wholeProcess({ args: [bin, 'email', 'build'], cwd })
    return {
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
        {
          name: 'the same without built mails',
          role: 'peer',
          measure: () => wholeProcess({ args: [bin, 'preflight'], cwd: example }),
        },
        { name: 'node -e 0', role: 'floor', measure: () => wholeProcess({ args: ['-e', '0'] }) },
      ],
    }
  },
}
