import { spawn } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { optionsOf, wholeNumber } from '../../scripts/options.ts'
import { MUTATIONS, type Mutation, misfits } from './planted.ts'

const USAGE = `npm run simulate:mutations [-- --first N | --last N | --only TEXT]
  Plants bugs into copies of the course, one at a time, and shows that the simulation finds each: all of them, the first
  N, the last N, or those whose name or file contains TEXT.
  A mutation whose text is no longer in the source fails as well: it would prove nothing.`

const project = fileURLToPath(new URL('../../', import.meta.url))
const { values } = optionsOf(USAGE, {
  options: {
    first: { type: 'string', default: String(MUTATIONS.length) },
    last: { type: 'string', default: String(MUTATIONS.length) },
    only: { type: 'string', default: '' },
  },
})
const planted = MUTATIONS.slice(0, wholeNumber(USAGE, '--first', values.first, 1))
  .slice(-wholeNumber(USAGE, '--last', values.last, 1))
  .filter(({ name, file }) => `${file} ${name}`.includes(values.only))
const [misfit] = await misfits(project)
if (misfit !== undefined) throw new Error(misfit)

const missed: string[] = []
const left = [...planted]
// Each in a process of its own, as many at once as there are processors.
await Promise.all(
  Array.from({ length: availableParallelism() }, async () => {
    for (let mutation = left.shift(); mutation !== undefined; mutation = left.shift()) {
      const { caught, found } = await simulateWith(mutation)
      process.stdout.write(`${caught ? 'caught' : 'MISSED'}  ${mutation.name}: ${found}\n`)
      if (!caught) missed.push(mutation.name)
    }
  }),
)
process.stdout.write(`${planted.length - missed.length} of ${planted.length} mutations caught\n`)
process.exitCode = missed.length === 0 ? 0 : 1

async function simulateWith({ file, find, replace }: Mutation): Promise<{ caught: boolean; found: string }> {
  const root = await mkdtemp(path.join(tmpdir(), 'platformctl-mutation-'))
  try {
    await cp(path.join(project, 'src/core'), path.join(root, 'src/core'), { recursive: true })
    await cp(path.join(project, 'templates'), path.join(root, 'templates'), { recursive: true })
    await cp(path.join(project, 'package.json'), path.join(root, 'package.json'))
    await symlink(path.join(project, 'node_modules'), path.join(root, 'node_modules'))
    const mutated = path.join(root, 'src/core', file)
    const source = await readFile(mutated, 'utf8')
    await writeFile(
      mutated,
      source.replace(find, () => replace),
    )
    return await simulateAt(root)
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}

/** Caught is only what broke an invariant: a program that merely crashes says nothing about the simulation. */
function simulateAt(root: string): Promise<{ caught: boolean; found: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      [
        fileURLToPath(new URL('main.ts', import.meta.url)),
        ...['--root', root, '--no-shrink', '--jobs', '1', '--subscriber-days', '400000'],
      ],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    )
    let [output, errors] = ['', '']
    child.stdout.on('data', (chunk) => {
      output += chunk
    })
    child.stderr.on('data', (chunk) => {
      errors = `${errors}${chunk}`.slice(-2000)
    })
    child.on('error', reject)
    child.on('close', () => {
      const [first = ''] = output.split('\n')
      const caught = first.startsWith('VIOLATION: ')
      resolve({ caught, found: first.replace('VIOLATION: ', '') || `it crashed: ${errors}` })
    })
  })
}
