import path from 'node:path'
import type { ResolvedPlatform } from '../core/platform.ts'
import { findDefinition } from '../platform/find.ts'
import { learning } from '../presets/learning/platform.ts'

/** Command-line options that select the definition. */
export interface ConfigWords {
  /** `--config FILE`; empty text is a fault. */
  readonly file: string | undefined
  /** `--no-config`. */
  readonly ignored: boolean
  /** The command line without these two options, which every command takes. */
  readonly rest: readonly string[]
}

/** Takes `--config FILE` and `--no-config` out of a command line; the later one wins. */
export function takeConfigWords(argv: readonly string[]): ConfigWords {
  const rest: string[] = []
  let [file, ignored]: [string | undefined, boolean] = [undefined, false]
  for (let index = 0; index < argv.length; index += 1) {
    const word = argv[index] ?? ''
    if (word === '--') return { file, ignored, rest: [...rest, ...argv.slice(index)] }
    const value = word.startsWith('--config=') ? word.slice('--config='.length) : undefined
    if (word === '--no-config') [file, ignored] = [undefined, true]
    else if (value !== undefined) [file, ignored] = [value, false]
    // Without a file name the option stays, and the program reports the missing value.
    else if (word === '--config' && argv[index + 1] !== undefined) {
      index += 1
      ;[file, ignored] = [argv[index], false]
    } else rest.push(word)
  }
  return { file, ignored, rest }
}

/** Commands that need no platform, or create one. */
const INDIFFERENT = [undefined, 'help', '--help', '-h', '--version', '-V', 'completion', 'init']

/** The platform that a command is for: its definition's, or the default one. Rejects with a DefinitionError. */
export async function choosePlatform(
  { file, ignored, rest }: ConfigWords,
  cwd: string,
): Promise<ResolvedPlatform> {
  if (ignored || INDIFFERENT.includes(rest[0])) return learning
  try {
    const found = file ?? findDefinition(cwd)
    if (found === undefined) return learning
    const [{ loadPlatform }, { refuseForeignDefinition }, { packageRoot }] = await Promise.all([
      import('../platform/load-platform.ts'),
      import('../platform/trusted.ts'),
      import('../core/package-root.ts'),
    ])
    if (file === undefined) refuseForeignDefinition(cwd, found)
    const configModule = path.join(packageRoot(), 'dist', 'config.js')
    return await loadPlatform({ folder: cwd, file: found, configModule })
  } catch (error) {
    // A broken definition must not break --help, or `beat`, which wraps other people's jobs.
    if (rest.includes('--help') || rest.includes('-h') || rest[0] === 'beat') return learning
    throw error
  }
}
