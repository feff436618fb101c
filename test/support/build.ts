import { execFileSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import path from 'node:path'

/** The build writes this one last. */
const LAST = 'dist/THIRD-PARTY-NOTICES.txt'
const SOURCES = ['src', 'templates', 'scripts', 'package.json', 'package-lock.json']

/** Builds the package once before the tests, if a source is newer: those that run the bin run what users get. */
export function setup(): void {
  if (Math.max(...SOURCES.map(changedAt)) > (statSync(LAST, { throwIfNoEntry: false })?.mtimeMs ?? 0))
    execFileSync(process.execPath, ['scripts/build.ts'], { stdio: 'inherit' })
}

/** The newest change of a file or of a folder with all in it; a removed file changes its folder. */
function changedAt(place: string): number {
  const files = statSync(place).isDirectory() ? readdirSync(place, { recursive: true, encoding: 'utf8' }) : []
  return Math.max(...['', ...files].map((file) => statSync(path.join(place, file)).mtimeMs))
}
