import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { ResolvedPlatform } from '../core/platform.ts'
import { evaluate } from './evaluate.ts'
import { statsOf } from './files.ts'
import { DefinitionError } from './find.ts'
import { resolvePlatform } from './resolve.ts'

/** Loads the definition that `file` names and makes its platform. Rejects with a DefinitionError. */
export async function loadPlatform(
  options: LoadDefinitionOptions & { readonly file: string },
): Promise<ResolvedPlatform> {
  const { exported, file, folder } = await loadDefinition(options)
  return resolvePlatform(exported, { folder, file })
}

export interface LoadDefinitionOptions {
  /** Where a relative `file` starts. */
  readonly folder: string
  readonly file: string
  readonly deadlineMs?: number
  /** Module that `platformctl/config` resolves to if the package is not installed beside the definition. */
  readonly configModule?: string
}

/** A definition as it was exported: not checked yet. */
export interface LoadedDefinition {
  /** As a person would name it. */
  readonly file: string
  /** Where its relative paths start. */
  readonly folder: string
  readonly exported: unknown
}

/** Loads a definition: TypeScript, JavaScript or JSON. Rejects with a DefinitionError. */
export async function loadDefinition(options: LoadDefinitionOptions): Promise<LoadedDefinition> {
  const { file } = options
  const full = path.resolve(options.folder, file)
  const fail = (cause: string, fix: string): never => {
    throw new DefinitionError(file, [{ path: '', cause, fix }])
  }
  if (file.trim() === '')
    fail('The name of the definition is empty.', 'Name a file. Is the shell variable unset?')
  const kind = statsOf(full)
  if (kind === undefined) fail('There is no such file.', 'Check the path.')
  if (kind?.isDirectory())
    fail('This is a folder.', `Name the file in it, as ${path.join(file, 'platform.config.ts')}.`)
  const exported = full.endsWith('.json')
    ? parseJson(full, fail)
    : await evaluate({
        full,
        fail,
        deadlineMs: options.deadlineMs ?? 5000,
        configModule: options.configModule,
      })
  return { file, folder: path.dirname(full), exported }
}

function parseJson(full: string, fail: (cause: string, fix: string) => never): unknown {
  let text: string
  try {
    text = readFileSync(full, 'utf8').replace(/^\uFEFF/, '')
  } catch {
    return fail('The file cannot be read.', 'Check who owns it.')
  }
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    // The message of the parser quotes the file, so only its position is taken.
    const position = /position (\d+)/.exec(error instanceof Error ? error.message : '')?.[1]
    const at = position === undefined ? text.length : Number(position)
    const before = text.slice(0, at)
    const line = before.split('\n').length
    const column = at - before.lastIndexOf('\n')
    if (/,\s*$/.test(before) && /^\s*[}\]]/.test(text.slice(at)))
      return fail(
        `Line ${line}, column ${column}: JSON allows no comma before a closing bracket.`,
        'Remove the comma.',
      )
    if (/^\s*\/[/*]/.test(text.slice(at)))
      return fail(
        `Line ${line}, column ${column}: JSON allows no comments.`,
        'Remove it, or rename the file to platform.config.ts and export the object.',
      )
    return fail(
      `Line ${line}, column ${column}: this is not JSON.`,
      'Correct it, or write the definition as platform.config.ts.',
    )
  }
}
