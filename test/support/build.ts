import { execFileSync } from 'node:child_process'

/** Builds the package once before the tests: those that run the bin run what users get. */
export function setup(): void {
  execFileSync(process.execPath, ['scripts/build.ts'], { stdio: 'inherit' })
}
