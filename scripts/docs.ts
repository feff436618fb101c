import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import packageJson from '../package.json' with { type: 'json' }
import { allNodes } from '../src/cli/command.ts'
import { documentedTree } from './command-tree.ts'
import { docFaults } from './doc-faults.ts'

/** Holds every page of the repository to what is there: `npm run check` runs it. */
const root = fileURLToPath(new URL('..', import.meta.url))
// As npm decides it; what the package's scripts would build is not looked at.
const packed = JSON.parse(
  execFileSync('npm', ['pack', '--dry-run', '--ignore-scripts', '--json'], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    shell: process.platform === 'win32',
  }),
) as readonly [{ readonly files: readonly { readonly path: string }[] }]
const faults = docFaults({
  root,
  packed: packed[0].files.map(({ path }) => path),
  files: execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  }).split('\n'),
  commands: allNodes(await documentedTree()),
  scripts: packageJson.scripts,
})
for (const fault of faults) console.log(fault)
process.exitCode = faults.length === 0 ? 0 : 1
