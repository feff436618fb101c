import { spawn } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { optionsOf, wholeNumber } from '../../scripts/options.ts'
import { MUTATIONS, type Mutation, misfits } from './planted.ts'

const USAGE = `npm run simulate:mutations [-- --first N | --last N | --only TEXT] [--record]
  Plants bugs into copies of the course, one at a time, and shows that the simulation finds each: all of them, the first
  N, the last N, or those whose name or file contains TEXT. It begins with the seed that found it last time
  (seeds.json, which --record writes), and goes through all from 1 on when that one no longer does.
  A mutation whose text is no longer in the source fails as well: it would prove nothing.`
const SEEDS = new URL('seeds.json', import.meta.url)

const project = fileURLToPath(new URL('../../', import.meta.url))
const { values } = optionsOf(USAGE, {
  options: {
    first: { type: 'string', default: String(MUTATIONS.length) },
    last: { type: 'string', default: String(MUTATIONS.length) },
    only: { type: 'string', default: '' },
    record: { type: 'boolean', default: false },
  },
})
const seeds: Record<string, number> = JSON.parse(await readFile(SEEDS, 'utf8'))
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
      const began = performance.now()
      const { caught, found, seed } = await simulateWith(mutation)
      const seconds = ((performance.now() - began) / 1000).toFixed(0)
      process.stdout.write(
        `${caught ? 'caught' : 'MISSED'}  ${mutation.name}: ${found} (seed ${seed}, ${seconds} s)\n`,
      )
      if (!caught) missed.push(mutation.name)
      else if (seed !== undefined) seeds[mutation.name] = seed
    }
  }),
)
process.stdout.write(`${planted.length - missed.length} of ${planted.length} mutations caught\n`)
process.exitCode = missed.length === 0 ? 0 : 1
if (values.record) {
  const known = MUTATIONS.flatMap(({ name }) => (seeds[name] === undefined ? [] : [[name, seeds[name]]]))
  await writeFile(SEEDS, `${JSON.stringify(Object.fromEntries(known), null, 2)}\n`)
}

interface Answer {
  readonly caught: boolean
  /** The invariant that broke, or how the program crashed. */
  readonly found: string
  readonly seed?: number
}

async function simulateWith({ name, file, find, replace }: Mutation): Promise<Answer> {
  const root = await mkdtemp(path.join(tmpdir(), 'platformctl-mutation-'))
  try {
    await cp(path.join(project, 'src'), path.join(root, 'src'), { recursive: true })
    await cp(path.join(project, 'templates'), path.join(root, 'templates'), { recursive: true })
    await cp(path.join(project, 'package.json'), path.join(root, 'package.json'))
    await symlink(path.join(project, 'node_modules'), path.join(root, 'node_modules'))
    const mutated = path.join(root, 'src/core', file)
    const source = await readFile(mutated, 'utf8')
    await writeFile(
      mutated,
      source.replace(find, () => replace),
    )
    const known = seeds[name]
    const again = known === undefined ? undefined : await simulateAt(root, known, 1)
    if (again?.caught) return again
    const found = await simulateAt(root, 1, 400_000)
    if (!found.caught || found.seed === undefined) return found
    const without = await simulateAt(project, found.seed, 1)
    return without.caught
      ? { caught: false, found: `${found.found}, without the bug too`, seed: found.seed }
      : found
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}

/** Caught is only what broke an invariant: a program that merely crashes says nothing about the simulation. */
function simulateAt(root: string, from: number, subscriberDays: number): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      [
        fileURLToPath(new URL('main.ts', import.meta.url)),
        ...['--root', root, '--no-shrink', '--jobs', '1'],
        ...['--seed', String(from), '--subscriber-days', String(subscriberDays)],
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
      const [first = '', scenario = ''] = output.split('\n')
      const found = first.replace('VIOLATION: ', '') || `it crashed: ${errors}`
      if (!first.startsWith('VIOLATION: ')) resolve({ caught: false, found })
      else resolve({ caught: true, found, seed: JSON.parse(scenario).seed })
    })
  })
}
