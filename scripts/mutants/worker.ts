import path from 'node:path'
import { BaseSequencer, createVitest, type TestModule, type TestSpecification } from 'vitest/node'

export interface Planted {
  /** The file that is changed, and its whole text with the mutant in it. */
  readonly file: string
  readonly source: string
}

/** The first test file that failed, if one did, and the milliseconds that each took that passed. */
export interface Ran {
  readonly failed?: string | undefined
  readonly took: Readonly<Record<string, number>>
}

interface OpenTests {
  /** Runs these test files in this order until one fails, with this in the place of its source if it is given. */
  readonly run: (files: readonly string[], planted?: Planted) => Promise<Ran>
  readonly close: () => Promise<void>
}

/** Vitest would begin with the files that take longest. */
class AsGiven extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files
  }
}

/** The tests in these folders and files, run in this process; sources are changed on their way to them, never on disk. */
async function openTests(places: readonly string[]): Promise<OpenTests> {
  let planted: Planted | undefined
  const vitest = await createVitest(
    'test',
    {
      config: false,
      watch: false,
      include: places.map((place) => `${place}{,/**/*.test.ts}`),
      globalSetup: ['test/support/build.ts', 'test/support/shared-postgres.ts'],
      env: { NODE_EXTRA_CA_CERTS: '', TZ: 'America/Nuuk' },
      testTimeout: 20_000,
      hookTimeout: 60_000,
      expect: { poll: { timeout: 5_000 } },
      isolate: false,
      maxWorkers: 1,
      bail: 1,
      sequence: { sequencer: AsGiven },
      // A cache of what files became would not see a change that is not on disk.
      fsModuleCache: false,
      reporters: [{}],
    },
    {
      plugins: [
        {
          name: 'mutant',
          enforce: 'pre',
          load: (id) => (planted && id === path.resolve(planted.file) ? planted.source : undefined),
        },
      ],
    },
  )
  const all = new Map((await vitest.globTestSpecifications()).map((one) => [nameOf(one), one]))
  return {
    async run(files, change) {
      planted = change
      if (change) vitest.invalidateFile(path.resolve(change.file))
      try {
        const { testModules, unhandledErrors } = await vitest.runTestSpecifications(
          files.flatMap((file) => all.get(file) ?? []),
        )
        // The result also holds modules from earlier runs.
        const ran = testModules.filter((one) => files.includes(nameOf(one)))
        const failed = ran.filter((one) => one.state() === 'failed').map(nameOf)[0]
        return {
          failed: failed ?? (unhandledErrors.length > 0 ? files[0] : undefined),
          took: Object.fromEntries(
            ran
              .filter((one) => one.state() === 'passed')
              .map((one) => [nameOf(one), one.diagnostic().duration]),
          ),
        }
      } finally {
        planted = undefined
        if (change) vitest.invalidateFile(path.resolve(change.file))
      }
    },
    close: () => vitest.close(),
  }
}

const nameOf = ({ moduleId }: Pick<TestModule, 'moduleId'>) =>
  path.relative(process.cwd(), moduleId).split(path.sep).join('/')

/** Requests from the runner to this process: open the tests in these places, then run some of them. */
export type Ask =
  | { readonly kind: 'open'; readonly places: readonly string[] }
  | { readonly kind: 'run'; readonly tests: readonly string[]; readonly planted?: Planted }

let tests: OpenTests | undefined

async function answer(ask: Ask): Promise<Ran | undefined> {
  if (ask.kind === 'run') return tests?.run(ask.tests, ask.planted)
  tests = await openTests(ask.places)
  return { took: {} }
}

process.on('message', async (ask: Ask) => {
  try {
    process.send?.({ answer: await answer(ask) })
  } catch (error) {
    process.send?.({ fault: error instanceof Error ? error.message : String(error) })
  }
})
process.on('disconnect', async () => {
  await tests?.close()
  process.exit(0)
})
