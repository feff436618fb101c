import path from 'node:path'
import { createVitest, type TestModule, type Vitest } from 'vitest/node'

export interface Planted {
  /** The file that is changed, as an absolute path, and its whole text with the mutant in it. */
  readonly file: string
  readonly source: string
}

export interface RoomTests {
  /** The room's test files that import a source file, directly or not, the quickest first. */
  readonly reaching: (file: string) => readonly string[]
  /** True when a test fails with this in the place of the source. */
  readonly fail: (planted: Planted, files: readonly string[]) => Promise<boolean>
  readonly close: () => Promise<void>
}

/** The tests of a room in this process, run once as they are; sources are changed on their way to them, never on disk. */
export async function openTests(folders: readonly string[]): Promise<RoomTests> {
  let planted: Planted | undefined
  const vitest = await createVitest(
    'test',
    {
      config: false,
      watch: false,
      include: folders.map((folder) => `${folder}{,/**/*.test.ts}`),
      globalSetup: ['test/support/build.ts', 'test/support/shared-postgres.ts'],
      env: { NODE_EXTRA_CA_CERTS: '' },
      testTimeout: 20_000,
      isolate: false,
      maxWorkers: 1,
      bail: 1,
      // A cache of what files became would not see a change that is not on disk.
      fsModuleCache: false,
      reporters: [{}],
    },
    {
      plugins: [
        {
          name: 'mutant',
          enforce: 'pre',
          load: (id) => (planted?.file === id ? planted.source : undefined),
        },
      ],
    },
  )
  const specifications = await vitest.globTestSpecifications()
  const first = await vitest.runTestSpecifications(specifications)
  const failed = first.testModules.filter((one) => !one.ok())
  if (failed.length > 0 || first.unhandledErrors.length > 0) {
    await vitest.close()
    throw new Error(
      `Tests fail without a mutant: ${[...failed.map(nameOf), ...first.unhandledErrors].join(', ')}`,
    )
  }
  const took = new Map(first.testModules.map((one) => [one.moduleId, one.diagnostic().duration]))
  const quickestFirst = (a: string, b: string) => (took.get(a) ?? 0) - (took.get(b) ?? 0)
  const inRoom = new Set(specifications.map(({ moduleId }) => moduleId))
  return {
    reaching: (file) =>
      importersOf(vitest, file)
        .filter((one) => inRoom.has(one))
        .sort(quickestFirst),
    async fail(change, files) {
      planted = change
      vitest.invalidateFile(change.file)
      try {
        const specs = specifications.filter(({ moduleId }) => files.includes(moduleId))
        const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specs)
        return unhandledErrors.length > 0 || testModules.some((one) => !one.ok())
      } finally {
        planted = undefined
        vitest.invalidateFile(change.file)
      }
    },
    close: () => vitest.close(),
  }
}

const nameOf = (module: TestModule) => path.relative(process.cwd(), module.moduleId)

/** Every file from which imports lead to this one. */
function importersOf(vitest: Vitest, file: string): string[] {
  const graph = vitest.vite.environments.ssr?.moduleGraph
  const found = new Set<string>()
  const left = [...(graph?.getModulesByFile(file) ?? [])]
  for (let next = left.pop(); next; next = left.pop()) {
    for (const importer of next.importers) {
      if (importer.file === null || found.has(importer.file)) continue
      found.add(importer.file)
      left.push(importer)
    }
  }
  return [...found]
}
