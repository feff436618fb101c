import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { openChild } from './mutants/child.ts'
import { EQUIVALENT } from './mutants/equivalent.ts'
import { type Mutant, mutantsOf } from './mutants/plant.ts'
import { optionsOf, refuse, wholeNumber } from './options.ts'

const USAGE = `npm run mutants -- ROOM [--sample N] [--seed S] [--fresh]
  Plants small bugs into the sources of a room, one at a time, and runs the room's tests that import the file: a mutant
  that no test notices has survived. A room is a folder of src/core, or daemon, cli, platform; or a file in one.
  --sample N  plants N of them, drawn by --seed, instead of all
  --fresh     runs again what has a result; otherwise one counts until the file or the room's tests change`

const { values, positionals } = optionsOf(USAGE, {
  allowPositionals: true,
  options: {
    sample: { type: 'string' },
    seed: { type: 'string', default: '1' },
    fresh: { type: 'boolean', default: false },
  },
})
const named = positionals[0] ?? refuse(USAGE, 'Which room?')
const place =
  [`src/core/${named}`, `src/${named}`, named].find((one) => existsSync(one)) ??
  refuse(USAGE, `There is no room ${named}`)
const room = place.replace(/^src\/(core\/)?/, '').split('/')[0] ?? named
const folder = existsSync(`src/core/${room}`) ? `core/${room}` : room
/** Tests of a room that stand elsewhere. */
const ALSO: Readonly<Record<string, readonly string[]>> = {
  'core/store': ['test/core/course'],
  'core/status': ['test/daemon/status.test.ts'],
  'core/payments': ['test/cli/billing.test.ts', 'test/daemon/payments.test.ts'],
}
const folders = [`test/${folder}`, ...(ALSO[folder] ?? [])]

interface Planned {
  readonly file: string
  readonly source: string
  readonly mutant: Mutant
  readonly id: string
  readonly line: number
  readonly before: string
  readonly after: string
}

const digest = (...texts: readonly string[]) =>
  createHash('sha256').update(texts.join('\0')).digest('base64url')
const tests = digest(
  ...globSync(folders.map((one) => (one.endsWith('.ts') ? one : `${one}/**/*.ts`)))
    .sort()
    .map((file) => readFileSync(file, 'utf8')),
)

const files = statSync(place).isDirectory() ? globSync(`${place}/**/*.ts`).sort() : [place]
const all = files.flatMap((file): Planned[] => {
  const source = readFileSync(file, 'utf8')
  return mutantsOf(file, source).flatMap((mutant) => plan(file, source, mutant) ?? [])
})
const sampled =
  values.sample === undefined ? all : draw(all, wholeNumber(USAGE, '--sample', values.sample, 1))

const CACHE = `node_modules/.cache/mutants/${room}.json`
const known: Record<string, boolean> = existsSync(CACHE) ? JSON.parse(readFileSync(CACHE, 'utf8')) : {}
const child = openChild(folders)
const reaching = new Map<string, readonly string[]>()
const survivors: Planned[] = []
for (const [index, planned] of sampled.entries()) {
  const killed = values.fresh ? undefined : known[planned.id]
  if (!(killed ?? (await isKilled(planned)))) {
    survivors.push(planned)
    console.log(
      `survived ${planned.file}:${planned.line} ${planned.mutant.kind}\n  - ${short(planned.before)}\n  + ${short(planned.after)}`,
    )
  }
  if (process.stderr.isTTY) process.stderr.write(`\r${index + 1} of ${sampled.length}\r`)
}
await child.close()
const killed = sampled.length - survivors.length
console.log(
  `${room}: ${killed} of ${sampled.length} mutants killed (${((killed / sampled.length) * 100).toFixed(1)} %), of ${all.length} that there are beside those marked as equivalent`,
)

async function isKilled({ file, source, mutant, id }: Planned): Promise<boolean> {
  const absolute = path.resolve(file)
  if (!reaching.has(file))
    reaching.set(file, (await child.ask({ kind: 'reaching', file: absolute }, 60_000)) as readonly string[])
  const of = reaching.get(file) ?? []
  const changed = source.slice(0, mutant.start) + mutant.text + source.slice(mutant.end)
  const found =
    of.length > 0 &&
    (await child.ask({ kind: 'fail', file: absolute, source: changed, tests: of }, 180_000)) !== false
  known[id] = found
  mkdirSync(path.dirname(CACHE), { recursive: true })
  writeFileSync(CACHE, JSON.stringify(known))
  return found
}

function plan(file: string, source: string, mutant: Mutant): Planned | undefined {
  const line = source.slice(0, mutant.start).split('\n').length
  const from = source.lastIndexOf('\n', mutant.start - 1) + 1
  const to = source.indexOf('\n', mutant.end)
  const before = source.slice(from, to).trim()
  const after = (source.slice(from, mutant.start) + mutant.text + source.slice(mutant.end, to)).trim()
  if (EQUIVALENT.some((one) => file.endsWith(one.file) && one.before === before && one.after === after))
    return
  return {
    file,
    source,
    mutant,
    line,
    before,
    after,
    id: digest(tests, source, String(mutant.start), mutant.text),
  }
}

function short(text: string): string {
  return text.replace(/\s+/g, ' ').slice(0, 200)
}

/** The same ones for a seed, as long as the sources are the same: those whose digest is the lowest. */
function draw(from: readonly Planned[], count: number): Planned[] {
  const keyed = from.map((one) => ({
    one,
    key: digest(values.seed, one.file, String(one.mutant.start), one.mutant.text),
  }))
  return keyed
    .sort((a, b) => (a.key < b.key ? -1 : 1))
    .slice(0, count)
    .map(({ one }) => one)
    .sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : a.line - b.line))
}
