import { existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { pointerFolders, recordFile } from '../core/daemon-record.ts'
import { attempt } from '../core/is-record.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import { findDefinition, refuseForeignDefinition } from '../platform/find.ts'
import { learning } from '../presets/learning/platform.ts'
import type { Context } from './context.ts'

export type ConfigWords = ReturnType<typeof takeConfigWords>

/** Takes `--config FILE`, where empty text is a fault, and `--no-config` out of a command line; the later one wins. */
export function takeConfigWords(argv: readonly string[]) {
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
const INDIFFERENT = [undefined, '--help', '-h', '--version', '-V', 'init', 'runbook']

/** Commands that start something of their own, whatever else runs on the machine. */
const STARTING = ['daemon', 'demo']

export type Choice = Pick<Context, 'platform' | 'searched' | 'daemon' | 'unused'>

type Machine = Pick<Context, 'cwd' | 'env'> & { readonly say: (sentence: string) => void }

/**
 * Finds the definition: the file named, else in the working directory, beside an env file, or where the folder's daemon had it; else
 * that of the one daemon that runs here.
 */
export async function choosePlatform(words: ConfigWords, machine: Machine): Promise<Choice> {
  const { ignored, rest } = words
  if (ignored || INDIFFERENT.includes(rest[0] === 'help' ? rest[1] : rest[0])) return { platform: learning }
  return choose(words, machine).catch((error: unknown) => {
    // A broken definition must not break --help, a shell that starts, or `beat`, which wraps other people's jobs.
    if (isAboutCommands(rest) || rest[0] === 'beat') return { platform: learning }
    throw error
  })
}

async function choose({ file, rest }: ConfigWords, { cwd, env, say }: Machine): Promise<Choice> {
  const { envFiles, data } = placesIn(rest)
  const searched = [...new Set([cwd, ...envFiles.map((one) => path.dirname(path.resolve(cwd, one)))])]
  const folder = path.resolve(cwd, data ?? '.platformctl')
  const asksUrl = ownWords(rest).some((word) => word === '--url' || word.startsWith('--url='))
  const isNamed = asksUrl || envFiles.length > 0 || data !== undefined || Boolean(env.STORE_URL?.trim())
  const pointers =
    isNamed || isAboutCommands(rest) || STARTING.includes(rest[0] ?? '') ? [] : pointerFolders(env)
  // Looking for daemons loads much, so first see whether one may be there.
  const mayRun = pointers.some((folder) => (attempt(() => readdirSync(folder)) ?? []).length > 0)
  const own = file ?? definitionIn(searched, cwd)
  if (own !== undefined) {
    if (mayRun) (await import('./running-daemons.ts')).tellOfOthers(pointers, folder, say)
    return { platform: await load(cwd, own) }
  }
  const isKnown = existsSync(recordFile(folder))
  if (!isKnown && !mayRun) return { platform: learning, searched }
  const { definitionOfDaemon, findRunningDaemon } = await import('./running-daemons.ts')
  let unused: string | undefined
  const skip = (why: string) => {
    unused = why
    say(why)
  }
  const daemon = findRunningDaemon(pointers, isKnown ? folder : undefined, rest, { say, skip })
  const recorded = daemon === undefined ? definitionOfDaemon(folder, skip) : daemon.definition
  return {
    ...(recorded ? { platform: await load(cwd, recorded) } : { platform: learning, searched }),
    ...(daemon && { daemon }),
    ...(unused && { unused }),
  }
}

function definitionIn(folders: readonly string[], cwd: string): string | undefined {
  for (const folder of folders) {
    const name = findDefinition(folder)
    if (name === undefined) continue
    refuseForeignDefinition(folder, name)
    return folder === cwd ? name : path.join(folder, name)
  }
  return undefined
}

/** What is behind `--` belongs to another program. */
export const ownWords = (words: readonly string[]) => words.slice(0, [...words, '--'].indexOf('--'))

const isAboutCommands = (words: readonly string[]) =>
  ['completion', 'help'].includes(words[0] ?? '') ||
  ownWords(words).some((word) => word === '--help' || word === '-h')

async function load(folder: string, file: string): Promise<ResolvedPlatform> {
  const [{ loadPlatform }, { packageRoot }] = await Promise.all([
    import('../platform/load-platform.ts'),
    import('../core/package-files.ts'),
  ])
  return loadPlatform({ folder, file, configModule: path.join(packageRoot(), 'dist', 'config.js') })
}

/** The env files and the data folder that the words name; the command itself parses them later, with all else. */
export function placesIn(words: readonly string[]) {
  const { values, positionals } = parseArgs({
    // Of the short options, that of env files alone: the words of others may begin with a dash too.
    args: words.filter((word) => !/^-[^-e]/.test(word)),
    strict: false,
    options: {
      'env-file': { type: 'string', short: 'e', multiple: true },
      data: { type: 'string', multiple: true },
    },
  })
  // One at the end of the line has no value.
  const isText = (value: string | boolean) => typeof value === 'string'
  const { 'env-file': envFiles = [], data = [] } = values
  const files = /^env (?:check|dialects|diff)$/.test(words.slice(0, 2).join(' ')) ? positionals.slice(2) : []
  return { envFiles: [...envFiles.filter(isText), ...files], data: data.filter(isText).at(-1) }
}
