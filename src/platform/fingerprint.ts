import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { isTemplateFile } from '../core/mail/mail-path.ts'

const DIGITS = 12

/**
 * A short name for what a definition describes, its mails and lessons included: the same on every machine that has the
 * same files, wherever they are. It is only shown, never compared.
 */
export function fingerprintOf(definition: object, folders: readonly string[]): string {
  const texts = [...new Set(folders)].flatMap(textsIn)
  // Not imported: an import reads all of the module's properties, which loads what they need.
  return process
    .getBuiltinModule('node:crypto')
    .hash('sha256', [describe(definition), ...texts].join('\0'))
    .slice(0, DIGITS)
}

function describe(definition: object): string {
  const seen = new Set<unknown>()
  return JSON.stringify({ ...definition, folder: undefined }, (_, value: unknown) => {
    if (typeof value === 'function' || typeof value === 'bigint' || value instanceof RegExp)
      return String(value)
    if (typeof value !== 'object' || value === null) return value
    // Another library's schema can be large, and can hold itself.
    if ('~standard' in value || seen.has(value)) return undefined
    seen.add(value)
    return value
  })
}

/** Names and contents; a file that cannot be read is left out, as the compiler reports it. */
function textsIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
      .filter(isTemplateFile)
      .sort()
      .flatMap((name) => [name, readFileSync(path.join(folder, name), 'utf8')])
  } catch {
    return []
  }
}
