import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { TMPDIR } from './test/support/tmpdir.ts'

// Nothing may depend on a machine in UTC. In Nuuk, midnight UTC is the day before, and clocks change in the week that
// most tests of courses take place in; Lord Howe is ahead by ten hours and a half, and by eleven in summer.
const NUUK = { NODE_EXTRA_CA_CERTS: '', TMPDIR, TZ: 'America/Nuuk' }
const LORD_HOWE = { ...NUUK, TZ: 'Australia/Lord_Howe' }

// One project a kind of need: `main` runs anywhere with Node and npm; the others say aloud what they need.
const project = (
  name: string,
  include: string[],
  exclude: string[] = [],
  {
    env = { NODE_EXTRA_CA_CERTS: '', TMPDIR },
    isolate = true,
    ...rest
  }: {
    env?: Record<string, string>
    isolate?: boolean
    maxWorkers?: number
    execArgv?: string[]
    experimental?: { viteModuleRunner: boolean }
  } = {},
) => ({
  test: {
    name,
    include,
    exclude,
    testTimeout: 20_000,
    hookTimeout: 60_000,
    env,
    isolate,
    ...rest,
    // Projects of another number of workers must not share a group.
    sequence: { groupOrder: rest.maxWorkers === undefined ? 1 : 0 },
    // A poll ends when what it waits for is there: only a failure takes as long, on however slow a machine.
    expect: { poll: { timeout: 10_000 } },
  },
})

/** Tests that look at their whole process get one of their own: what it holds open, or when nothing in it is left to do. */
const ALONE = [
  'test/core/reporting/sdk.test.ts',
  'test/core/course/leases.test.ts',
  'test/daemon/leaves-nothing.test.ts',
  // They load modules anew.
  'test/{core/analytics/device,daemon/pages/status-script}.test.ts',
]

/** Tests that take ten seconds or more each, or are of our tools: `npm run test:load` runs them, so that `npm test` stays short. */
const LONG = [
  'test/simulation/**/*.test.ts',
  'test/{daemon/postgres-outage,daemon/job-store-postgres,e2e/moving-day}.test.ts',
  'test/scripts/{mutants,options,proof}.test.ts',
  'test/security/growth.test.ts',
]

/**
 * Short files that take long. Vitest begins with the largest files where it has no times of an earlier run: these would come
 * late, and the last of them would run alone.
 */
const FIRST =
  /(?:emergency-stop|postgres-faults|env-files|alarms|interleaving|leaks|cli\/definition|hostile-report|env-verify|lifecycle|pace|daemon\/notices|oracle)\.test\.ts$/

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    // Between files of `main`, one of another project would end the worker, and the next would load all modules anew.
    const rank = ({ project, moduleId }: TestSpecification) =>
      project.name === 'alone' ? 0 : FIRST.test(moduleId) ? 1 : 2
    return sorted.toSorted((a, b) => rank(a) - rank(b))
  }
}

/** More workers than processors, because most tests wait for a process, a socket or a database. */
const maxWorkers = availableParallelism() + 2

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    globalSetup: ['test/support/build.ts', 'test/support/shared-postgres.ts'],
    projects: [
      // A worker runs many of these files, one after the other: a test leaves the process as it was.
      project(
        'main',
        ['test/**/*.test.ts'],
        ['test/{pack,browser,servers,load,examples}/**', ...ALONE, ...LONG],
        { env: NUUK, isolate: false, maxWorkers, experimental: { viteModuleRunner: false } },
      ),
      project('alone', ALONE, [], { env: LORD_HOWE, maxWorkers }),
      // These two install from the registry, which may need the machine's own certificates.
      // One after the other: each builds the package anew.
      project('pack', ['test/pack/**/*.test.ts'], [], { env: {}, maxWorkers: 1 }),
      project('examples', ['test/examples/**/*.test.ts'], [], { env: {}, maxWorkers: 1 }),
      project('browser', ['test/browser/**/*.test.ts']),
      project('servers', ['test/servers/**/*.test.ts']),
      // Room for what one measurement makes: a collection of garbage in the middle looks like growth that is not linear.
      project('load', ['test/load/**/*.test.ts', ...LONG], [], { execArgv: ['--max-semi-space-size=256'] }),
    ],
  },
})
