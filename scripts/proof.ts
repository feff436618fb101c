import { execFileSync, spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, release, totalmem, type } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { writePages } from '../bench/pages.ts'
import { durationText } from '../src/core/durations.ts'
import { optionsOf, refuse } from './options.ts'
import { partsOf, typed } from './proof/parts.ts'
import { knownOf, prove } from './proof/prove.ts'
import { proven, report } from './proof/report.ts'

const USAGE = `npm run proof [-- OPTIONS]
  Everything that is promised, at its full size, in parts that each fit an hour; what has passed with this code is not
  run again. Writes one dated report. Exit 0 when all is as promised, 1 when not, 130 when stopped.
  --part NAME    only this part, or this group (torture, bench); may be given again
  --fresh        runs again what has passed
  --list         says what there is, and what is known of it
  --report       only writes the report, of what is known
  --scale 0.001  a trial: everything so much smaller, to see that it works; its report stays in .proof`
const LIMIT_MS = 60 * 60_000
const root = fileURLToPath(new URL('..', import.meta.url))

const { values: options } = optionsOf(USAGE, {
  options: {
    part: { type: 'string', multiple: true },
    fresh: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    report: { type: 'boolean', default: false },
    scale: { type: 'string', default: '1' },
  },
})
const scale = Number(options.scale)
if (!(scale > 0 && scale <= 1)) refuse(USAGE, '--scale is above 0 and at most 1')
// Results are committed: another machine goes on where this one ended.
const folder = scale === 1 ? 'bench/results/proof' : path.join('.proof', `scale-${scale}`)
const all = partsOf({ root, scale, trial: path.join(folder, 'bench') })
const wanted = options.part ?? []
const unknown = wanted.filter((name) => !all.some((part) => belongs(part.name, name)))
if (unknown.length > 0) refuse(USAGE, `no part ${unknown.join(', ')}; npm run proof -- --list names them`)
const parts =
  wanted.length === 0 ? all : all.filter((part) => wanted.some((name) => belongs(part.name, name)))

if (options.list) await list()
else if (options.report) process.exitCode = (await writeReport()) ? 0 : 1
else process.exitCode = await run()

function belongs(part: string, name: string): boolean {
  return part === name || part.startsWith(`${name}/`)
}

async function list(): Promise<void> {
  for (const { part, result, stale } of await knownOf(parts, root, path.join(root, folder)))
    console.log(
      `${part.name.padEnd(30)} ${(result?.verdict ?? (stale ? 'stale' : 'not run')).padEnd(8)} ${(result === undefined ? '' : `${result.began.slice(0, 16).replace('T', ' ')}, ${durationText(1000 * Math.round(result.seconds))}`).padEnd(30)} ${typed(part)}`,
    )
}

async function run(): Promise<number> {
  const benchmarks = parts.flatMap(({ name, result }) =>
    result === undefined ? [] : [name.replace('bench/', '')],
  )
  // Now, and not hours later when their turn has come.
  if (benchmarks.length > 0) {
    const check = spawnSync(process.execPath, ['bench/run.ts', '--check', ...benchmarks], {
      cwd: root,
      stdio: 'inherit',
    })
    if (check.status !== 0) return 2
  }
  const stopping = new AbortController()
  // A terminal and npm may each send one: the second asks for nothing more.
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => stopping.abort())
  const outcome = await prove({
    parts,
    root,
    folder: path.join(root, folder),
    fresh: options.fresh,
    commit: commit(),
    limitMs: LIMIT_MS,
    signal: stopping.signal,
    say: (line) => void process.stderr.write(`${line}\n`),
  })
  if (outcome === 'stopped') return 130
  if (wanted.length > 0) return outcome === 'passed' ? 0 : 1
  return (await writeReport()) ? 0 : 1
}

/** True when all is as promised. */
async function writeReport(): Promise<boolean> {
  const date = new Date().toISOString().slice(0, 10)
  const into = path.join(root, scale === 1 ? 'bench/results' : folder)
  const known = await knownOf(all, root, path.join(root, folder))
  const memory = `${Math.round(totalmem() / 2 ** 30)} GB`
  await mkdir(into, { recursive: true })
  for (const older of globSync('proof-*.md', { cwd: into })) await rm(path.join(into, older))
  const file = path.join(into, `proof-${date}.md`)
  await writeFile(
    file,
    report(known, {
      date,
      commit: commit(),
      machine: `${cpus()[0]?.model.trim() ?? 'a processor without a name'}, ${availableParallelism()} cores, ${memory}, ${type()} ${release()}`,
      node: process.version,
      scale,
    }),
  )
  // It links to the newest report.
  if (scale === 1) await writePages()
  process.stderr.write(`${path.relative(process.cwd(), file)}\n`)
  return proven(known)
}

/** The commit being proved. Files that the proof itself writes do not count as changes. */
function commit(): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
  try {
    const changed =
      git('status', '--porcelain', '--', '.', ':!docs', ':!bench/results', ':!bench/README.md') !== ''
    return `${git('rev-parse', '--short=12', 'HEAD')}${changed ? ' with changes that are not committed' : ''}`
  } catch {
    return 'none: this is no checkout of git'
  }
}
