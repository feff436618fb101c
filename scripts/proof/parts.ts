import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { COMPONENTS, IN_SCOPE } from '../drill/product.ts'

/** One command of the proof that takes at most an hour. */
export interface Part {
  /** `torture/sqlite-api`: what stands before the slash is its group. */
  readonly name: string
  /** The claim that it proves when it passes, as a sentence. */
  readonly shows: string
  readonly command: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** The files and folders that the result depends on. When one changes, the part must run again. */
  readonly inputs: readonly string[]
  /** How many of the last lines that it prints are its figures. */
  readonly figures: number
  /** Where a benchmark leaves its result. */
  readonly result?: string
}

/** The command as you would type it. */
export function typed({ command, env = {} }: Part): string {
  return [...Object.entries(env).map(([name, value]) => `${name}=${value}`), ...command].join(' ')
}

/** Files that every part depends on: the package and its build. */
const PACKAGE = ['package-lock.json', 'bin', 'src', 'templates', 'scripts/build.ts']
const SIMULATION = [...PACKAGE, 'test/simulation']
const TORTURE = [...PACKAGE, 'test/torture', 'test/simulation/seeded.ts', 'test/support/postgres.ts']
const LOAD = [...PACKAGE, 'scripts/load']
const DRILL = [...PACKAGE, 'scripts/drill', 'scripts/drill.ts', 'scripts/runbooks', 'runbooks']

/**
 * The parts of the whole proof, in the order in which they run. A scale below 1 makes each so much smaller, down to what
 * just works, and leaves the results of benchmarks in `trial`.
 */
export function partsOf({
  root,
  scale,
  trial,
}: {
  readonly root: string
  readonly scale: number
  readonly trial: string
}): readonly Part[] {
  const whole = scale === 1
  const size = (full: number, least: number) => String(Math.max(least, Math.round(full * scale)))
  const npm = (script: string, ...options: string[]) => [
    'npm',
    'run',
    '-s',
    script,
    ...(options.length > 0 ? ['--', ...options] : []),
  ]
  return [
    {
      name: 'simulation',
      shows:
        'On virtual time, with crashes and every fault of provider and store, no lesson is lost, doubled or early.',
      command: npm('simulate', '--subscriber-days', size(1_000_000, 2000)),
      inputs: SIMULATION,
      figures: 2,
    },
    {
      name: 'mutations',
      shows: 'The simulation finds each bug that is planted in the dispatcher.',
      command: npm('simulate:mutations', ...(whole ? [] : ['--first', '1'])),
      inputs: SIMULATION,
      figures: 1,
    },
    ...['sqlite', 'postgres'].flatMap((store) =>
      ['api', 'smtp'].map((provider) => ({
        name: `torture/${store}-${provider}`,
        shows: `The built daemon is killed again and again while it sends: no lesson is lost, and ${provider === 'api' ? 'none comes twice' : 'each connection repeats at most one message'}.`,
        command: npm('torture', '--kills', size(1250, 4), '--store', store, '--provider', provider),
        inputs: TORTURE,
        figures: 1,
      })),
    ),
    ...['sqlite', 'postgres'].map((store) => ({
      name: `torture/alerts-${store}`,
      shows:
        'The built daemon is killed while it sends alerts and mails subscribers of the status page: none is lost or comes twice.',
      command: npm('torture:alerts', '--kills', size(500, 4), '--store', store),
      inputs: TORTURE,
      figures: 1,
    })),
    {
      name: 'torture/failover',
      shows: 'A primary is killed under dispatch and its standby promoted: no lesson is lost or comes twice.',
      command: npm('torture:failover', '--kills', size(200, 1)),
      inputs: [...TORTURE, 'test/support/pair.ts'],
      figures: 1,
    },
    {
      name: 'torture/many',
      shows:
        'Many dispatchers of one PostgreSQL send every lesson exactly once, also with one of them killed every second.',
      command: npm('torture:many', '--due', size(100_000, 500), '--dispatchers', whole ? '16' : '4'),
      inputs: TORTURE,
      figures: 2,
    },
    {
      name: 'oracle',
      shows: 'On random definitions, the checks agree with a second implementation of their rules.',
      command: ['npx', 'vitest', 'run', '--project', 'main', 'test/platform/oracle.test.ts'],
      env: { ORACLE_RUNS: size(100_000, 100) },
      inputs: [...PACKAGE, 'test/platform', 'test/support'],
      figures: 2,
    },
    {
      name: 'drill',
      shows:
        'Each fault is found and closed on an empty machine, from its alert, with the commands of a runbook.',
      command: npm('drill', ...(whole ? ['--cells', '0'] : ['STORE_URL'])),
      inputs: DRILL,
      figures: 1,
    },
    ...COMPONENTS.map((component) => ({
      name: `cells/${component.replaceAll(' ', '-')}`,
      shows: `${component}: each of its faults is alerted in time with its cause, the printed commands run, and the alert closes.`,
      command: npm(
        'drill',
        '--cell',
        whole ? component : (IN_SCOPE.find((one) => one.component === component)?.name ?? component),
      ),
      inputs: DRILL,
      figures: 1,
    })),
    {
      name: 'fuzz',
      shows:
        'No bad request gets an answer that is not of the contract, ends the daemon or makes its memory grow.',
      command: npm('fuzz', '--requests', size(1_000_000, 2000)),
      inputs: [...LOAD, 'scripts/fuzz.ts'],
      figures: 3,
    },
    {
      name: 'restarts',
      shows: 'SIGTERM under load loses nothing that was acknowledged.',
      command: npm('restarts', '--times', size(1000, 3)),
      inputs: [...LOAD, 'scripts/restarts.ts'],
      figures: 1,
    },
    {
      name: 'soak',
      shows: 'Under mixed load memory stays flat and the event loop free, and nothing fails.',
      command: npm('soak', '--seconds', size(600, 20)),
      inputs: [...LOAD, 'scripts/soak.ts'],
      figures: 2,
    },
    {
      name: 'backups',
      shows: 'A backup that is made while another process writes has every acknowledged row, and restores.',
      command: ['node', 'scripts/backups-under-load.ts', size(1000, 3)],
      inputs: [
        ...PACKAGE,
        'scripts/backups-under-load.ts',
        'test/support/backups-under-load.ts',
        'test/support/store-writer.ts',
      ],
      figures: 1,
    },
    {
      name: 'first-mail',
      shows: 'A newcomer gets from an empty folder to the first mail of a course of their own.',
      command: npm('first-mail'),
      inputs: [...PACKAGE, 'package.json', 'scripts/first-mail.ts', 'test/pack/tarball.ts'],
      figures: 8,
    },
    ...benchmarks(root, whole ? undefined : trial),
  ]
}

function benchmarks(root: string, trial: string | undefined): Part[] {
  const files = globSync('bench/{*.ts,peers/*.mjs}', { cwd: root }).sort()
  const inputs = (...from: readonly string[]) => [
    ...PACKAGE,
    ...reachedFrom(from, files, root),
    'bench/peers/package-lock.json',
  ]
  const each = files
    .filter((file) => file.endsWith('.bench.ts'))
    .map((file) => {
      const name = file.slice('bench/'.length, -'.bench.ts'.length)
      return {
        name: `bench/${name}`,
        shows: 'What is promised is measured.',
        command: [
          ...['npm', 'run', '-s', 'bench', '--'],
          ...(trial === undefined ? [] : ['--trial', trial]),
          name,
        ],
        // Ten million subscriptions, where a benchmark grows its store.
        ...(trial === undefined && { env: { BENCH_LARGE: '1' } }),
        inputs: inputs('bench/harness.ts', file),
        figures: 0,
        result: `${trial ?? 'bench/results'}/${name}.json`,
      }
    })
  // Its sizes are what it is about: there is no smaller one.
  if (trial !== undefined) return each
  return [
    ...each,
    {
      name: 'growth',
      shows: 'Nothing costs more than in step with the size of what it works on, over four decades.',
      command: ['npm', 'run', '-s', 'bench:growth'],
      inputs: inputs('bench/growth-measures.ts', 'bench/growth-report.ts'),
      figures: 20,
    },
    {
      name: 'where',
      shows: 'The profiles that stand beside the figures are of this code.',
      command: ['npm', 'run', '-s', 'bench:where'],
      inputs: inputs('bench/where.ts'),
      figures: 4,
    },
  ]
}

/** The `files` that `from` imports or starts, directly or through others. */
function reachedFrom(from: readonly string[], files: readonly string[], root: string): string[] {
  const reached = new Set<string>()
  const reach = (file: string) => {
    if (reached.has(file)) return
    reached.add(file)
    const text = readFileSync(path.join(root, file), 'utf8')
    for (const other of files)
      if (["'", '/'].some((before) => text.includes(`${before}${path.basename(other)}'`))) reach(other)
  }
  for (const file of from) reach(file)
  return [...reached].sort()
}
