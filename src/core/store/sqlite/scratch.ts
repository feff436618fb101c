import { closeSync, lstatSync, mkdtempSync, openSync, readdirSync, rmSync } from 'node:fs'
import { hostname } from 'node:os'
import path from 'node:path'
import { codeOf } from '../../error-code.ts'

const PREFIX = '.platformctl-'

export interface Scratch {
  readonly file: (name: string) => string
  readonly remove: () => void
}

/**
 * A folder for copies that are not finished: for its owner only, under a name that nobody can guess or make first, and
 * on the same disk as `folder`, so that a finished file is only renamed. Removes what a killed process left there.
 */
export function makeScratch(folder: string): Scratch {
  removeAbandoned(folder)
  const made = mkdtempSync(path.join(folder, `${ownPrefix()}${process.pid}-`))
  return {
    file: (name) => path.join(made, name),
    remove: () => rmSync(made, { recursive: true, force: true }),
  }
}

/** Makes an empty file for its owner only; fails where there is anything of that name, links included. */
export function makePrivateFile(file: string): void {
  closeSync(openSync(file, 'wx', 0o600))
}

/** Process numbers mean something on one machine (or in one container) only. */
const ownPrefix = () => `${PREFIX}${hostname().replace(/[^\w.]/g, '_')}-`

function removeAbandoned(folder: string): void {
  for (const name of readdirSync(folder)) {
    const pid = name.startsWith(ownPrefix())
      ? Number.parseInt(name.slice(ownPrefix().length), 10)
      : Number.NaN
    if (Number.isNaN(pid) || isRunning(pid)) continue
    const file = path.join(folder, name)
    // Not through a link, and nothing that another user put there.
    const found = lstatSync(file, { throwIfNoEntry: false })
    if (found?.isDirectory() && found.uid === (process.geteuid?.() ?? found.uid))
      rmSync(file, { recursive: true, force: true })
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
}
