import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'

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
