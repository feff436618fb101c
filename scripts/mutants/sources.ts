import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { type Mutant, mutantsOf } from './plant.ts'

/** A folder of src/core, or daemon, cli or platform: sources with tests of their own. */
export interface Room {
  readonly name: string
  readonly source: string
  /** Folders and files of its tests. */
  readonly tests: readonly string[]
  /** The part of its mutants, in percent, that its tests should notice. */
  readonly goal: number
}

/** Tests of a room that are in the folder of another. */
const ALSO: Readonly<Record<string, readonly string[]>> = {
  store: ['test/core/course', 'test/core/incidents', 'test/core/mail/feedback', 'test/core/status'],
  network: ['test/core/health/adversarial.test.ts'],
  status: ['test/daemon/status.test.ts'],
  payments: ['test/cli/billing.test.ts', 'test/daemon/payments.test.ts'],
  incidents: ['test/daemon/alerts.test.ts'],
  daemon: ['test/core/status/shared-history.test.ts'],
}

/** Rooms in which a fault loses mail, data or a secret. */
const STRICT = ['course', 'store', 'mail', 'env', 'access', 'reporting']

/** Files that hold nothing but texts, styles or scripts of pages. */
const TEXTS = /^src\/core\/messages\/(?:de|en)\.ts$|\/(?:texts|style|pages-style|script)\.ts$/

/** Whether a source is nothing but text, in which there are no bugs to plant. */
export const isText = (file: string): boolean => TEXTS.test(file)

/** The room of a source file or folder, if it has one. */
export function roomOf(place: string): Room | undefined {
  const [, source, name] =
    /^(src\/core\/([^/.]+))(?:\/|$)/.exec(place) ?? /^(src\/(daemon|cli|platform))(?:\/|$)/.exec(place) ?? []
  if (source === undefined || name === undefined || !statSync(source, { throwIfNoEntry: false })) return
  const tests = [source.replace(/^src/, 'test'), ...(ALSO[name] ?? [])].filter((one) => existsSync(one))
  return { name, source, tests, goal: STRICT.includes(name) ? 85 : 75 }
}

/** Whether a test file is one of the room's. */
export function isTestOf(room: Room, file: string): boolean {
  return room.tests.some((one) => file === one || file.startsWith(`${one}/`))
}

/** A mutant with its place, and the lines that it changes. */
export interface Planned {
  readonly file: string
  readonly room: Room
  readonly source: string
  readonly mutant: Mutant
  readonly line: number
  readonly before: string
  readonly after: string
  /** A key that changes when the source or the room's tests change. */
  readonly id: string
}

const digest = (...texts: readonly string[]) =>
  createHash('sha256').update(texts.join('\0')).digest('base64url')

const digests = new Map<string, string>()

/** Every mutant of a source file; of a file of texts, none. */
export function plannedOf(file: string, room: Room): Planned[] {
  if (isText(file)) return []
  const source = readFileSync(file, 'utf8')
  const tests = digests.get(room.name) ?? digestOfTests(room)
  digests.set(room.name, tests)
  return mutantsOf(file, source).map((mutant) => {
    const line = source.slice(0, mutant.start).split('\n').length
    const from = source.lastIndexOf('\n', mutant.start - 1) + 1
    const to = source.indexOf('\n', mutant.end)
    const before = source.slice(from, to).trim()
    const after = (source.slice(from, mutant.start) + mutant.text + source.slice(mutant.end, to)).trim()
    const id = digest(tests, source, String(mutant.start), String(mutant.end), mutant.text)
    return { file, room, source, mutant, line, before, after, id }
  })
}

/** Some of them, in an order by the seed: the same ones as long as the sources are the same. */
export function shuffled(all: readonly Planned[], seed: string): Planned[] {
  return all
    .map((one) => ({
      one,
      key: digest(seed, one.file, String(one.mutant.start), String(one.mutant.end), one.mutant.text),
    }))
    .sort((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ one }) => one)
}

function digestOfTests({ tests }: Room): string {
  return digest(
    ...globSync(tests.map((one) => (one.endsWith('.ts') ? one : `${one}/**/*.ts`)))
      .sort()
      .map((file) => readFileSync(file, 'utf8')),
  )
}

/** Source files that have changed, with the commit that they are compared with; or why that cannot be told. */
export type Changed =
  | { readonly since: string; readonly files: readonly string[] }
  | { readonly since?: undefined; readonly why: string }

/** How far back we look when we are on main, where there is no branch to compare with. */
const COMMITS = 20

/** The sources that have changed since a commit; without one, since this branch left main, or in main's last commits. */
export function changedSources(since?: string, folder = '.'): Changed {
  const git = gitIn(folder)
  const base =
    since ?? branchPoint(git) ?? git('rev-parse', '--verify', '--quiet', `HEAD~${COMMITS}^{commit}`)
  if (base === undefined)
    return {
      why: `The history has fewer than ${COMMITS} commits (a shallow clone?), so nothing says what has changed. Fetch more, or name a commit with --since.`,
    }
  const names = git('diff', '--name-only', '--diff-filter=d', base, '--', 'src')
  if (names === undefined) return { why: `There is no commit ${base} here (a shallow clone?). Fetch it.` }
  const unknownToGit = git('ls-files', '--others', '--exclude-standard', '--', 'src') ?? ''
  const files = [...names.split('\n'), ...unknownToGit.split('\n')]
  return {
    since: base,
    files: files.filter((one) => one.endsWith('.ts') && existsSync(path.join(folder, one))),
  }
}

function branchPoint(git: ReturnType<typeof gitIn>): string | undefined {
  for (const main of ['origin/main', 'main']) {
    const point = git('merge-base', 'HEAD', main)
    if (point !== undefined && point !== git('rev-parse', 'HEAD')) return point
  }
  return undefined
}

/** Runs git in this folder and gives its output; undefined if it fails. */
function gitIn(folder: string): (...args: readonly string[]) => string | undefined {
  return (...args) => {
    try {
      return execFileSync('git', args, {
        cwd: folder,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }).trim()
    } catch {
      return undefined
    }
  }
}
