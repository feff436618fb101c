import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { VARIABLES } from '../test/support/learning.ts'
import { ALL_LINES, SOUND_LINES } from './filled-env.ts'
import type { Benchmark, Contender } from './harness.ts'
import { wholeProcess } from './process.ts'

const here = fileURLToPath(new URL('.', import.meta.url))
const bin = path.join(here, '../bin/platformctl.js')
const peers = path.join(here, 'peers')
const modules = path.join(peers, 'node_modules')

export const benchmark: Benchmark = {
  name: 'cold-preflight',
  title: `Cold preflight on ${ALL_LINES.length} variables`,
  unit: 'ms',
  better: 'lower',
  promises: [{ against: 'node -e 0', ratio: 2.2, first: 1.9 }],
  rounds: 20,
  notes: `All are set, which breaks rules and makes the report longest; “all well” sets ${SOUND_LINES.length}. envalid and t3-env are ten-line scripts with the same names; varlock and dotenvx are their own commands with such a schema. 1.9 was promised; \`platformctl --version\`, which judges nothing, takes 1.50 of it. Of eight flags of V8 the best saves 1 %; compiling in advance just the functions that a recorded run calls saves 2 %; shorter names save 1 to 2 %; compiling nested functions in advance saves nothing.`,
  open: async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'bench-preflight-'))
    const file = path.join(folder, 'all.env')
    const sound = path.join(folder, 'sound.env')
    await writeFile(file, ALL_LINES.join('\n'))
    await writeFile(sound, SOUND_LINES.join('\n'))
    const process = (
      name: string,
      role: Contender['role'],
      args: string[],
      more: { codes?: number[]; cwd?: string } = {},
    ): Contender => ({
      name,
      role,
      measure: () => wholeProcess({ args, ...more }),
    })
    return {
      contenders: [
        // Exit code 1 is the right answer to broken rules.
        process('platformctl preflight', 'ours', [bin, 'preflight', '--env-file', file], { codes: [1] }),
        process('platformctl preflight, all well', 'peer', [bin, 'preflight', '--env-file', sound]),
        process('node -e 0', 'floor', ['-e', '0']),
        process('platformctl --version', 'floor', [bin, '--version']),
        process('envalid script', 'peer', [path.join(peers, 'envalid.mjs'), file]),
        process('t3-env script with zod', 'peer', [path.join(peers, 't3-env.mjs'), file]),
        process('varlock load', 'peer', [
          path.join(modules, 'varlock/bin/cli.js'),
          'load',
          '--path',
          await varlockFolder(folder),
        ]),
        process('dotenvx check', 'peer', [DOTENVX, 'check'], { cwd: await dotenvxFolder(folder) }),
      ],
      close: () => rm(folder, { recursive: true, force: true }),
    }
  },
}

async function varlockFolder(folder: string): Promise<string> {
  const own = path.join(folder, 'varlock')
  await mkdir(own)
  const schema = VARIABLES.map(({ name, kind }) => `# @type=${kind === 'url' ? 'url' : 'string'}\n${name}=`)
  await writeFile(path.join(own, '.env.schema'), `# @defaultRequired=false\n# ---\n${schema.join('\n')}\n`)
  await writeFile(path.join(own, '.env'), ALL_LINES.join('\n'))
  return `${own}/`
}

const DOTENVX = path.join(modules, '@dotenvx/dotenvx/src/cli/dotenvx.js')

async function dotenvxFolder(folder: string): Promise<string> {
  const own = path.join(folder, 'dotenvx')
  await mkdir(own)
  await writeFile(path.join(own, '.env'), ALL_LINES.join('\n'))
  // Its own command writes the rules from the file.
  execFileSync(process.execPath, [DOTENVX, 'spec'], { cwd: own, stdio: 'ignore' })
  return own
}
