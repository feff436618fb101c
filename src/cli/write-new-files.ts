import { closeSync, mkdirSync, openSync, rmdirSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { CommandError, EXIT } from './exit.ts'

interface NewFile {
  /** From the folder. */
  readonly file: string
  readonly text: string
}

/** Writes files that are not there yet, with their folders: all of them, or none and a CommandError that names what cannot be made. */
export function writeNewFiles(folder: string, files: readonly NewFile[]): void {
  const made: (() => void)[] = []
  try {
    for (const { file, text } of files) {
      const full = path.join(folder, file)
      makeFolders(folder, path.dirname(full), made)
      const descriptor = openSync(full, 'wx')
      made.push(() => unlinkSync(full))
      try {
        writeFileSync(descriptor, text)
      } finally {
        closeSync(descriptor)
      }
    }
  } catch (error) {
    for (const remove of made.reverse()) attempt(remove)
    throw refusal(folder, error)
  }
}

function makeFolders(root: string, folder: string, made: (() => void)[]): void {
  if (folder === root || statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return
  makeFolders(root, path.dirname(folder), made)
  mkdirSync(folder)
  made.push(() => rmdirSync(folder))
}

/** Undoes one step. A folder that somebody has put a file into cannot be removed, and stays. */
function attempt(remove: () => void): void {
  try {
    remove()
  } catch {}
}

const REASONS: Readonly<Record<string, string>> = {
  EEXIST: 'something else has this name. Move it away',
  EACCES: 'permission denied. Check who owns the folder',
  EPERM: 'permission denied. Check who owns the folder',
  EROFS: 'the disk is read-only. Choose another folder',
  ENOSPC: 'the disk is full. Free some space',
}

function refusal(folder: string, error: unknown): CommandError {
  const { code = '', path: full } = (error ?? {}) as NodeJS.ErrnoException
  const name = full === undefined ? 'the files' : path.relative(folder, full)
  const reason = REASONS[code] ?? `the system says ${code || 'no more'}. Check the folder`
  return new CommandError(
    EXIT.usage,
    `cannot write ${name}: ${reason}, then try again. Nothing was written.`,
    { cause: error },
  )
}
