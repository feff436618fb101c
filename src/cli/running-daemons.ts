import { accessSync, constants, existsSync, statSync } from 'node:fs'
import {
  type DaemonRecord,
  isRunning,
  nextStep,
  pointerFolders,
  pointersIn,
  reachedUrls,
  readRecord,
  recordFile,
  shellWord,
} from '../core/daemon-record.ts'
import type { Environment } from '../core/env/settings.ts'
import { codeOf } from '../core/errors.ts'
import { attempt } from '../core/is-record.ts'
import { controlledByOthers } from '../platform/find.ts'
import { wrongUsage } from './context.ts'

type Say = (sentence: string) => void

const NAME_THEM = 'name --config, --env-file and --data'

/** The definition that the last daemon of a data folder ran; undefined if it ran none, or if another user could replace it. */
export function definitionOfDaemon(dataFolder: string, skip: Say): string | undefined {
  const file = recordFile(dataFolder)
  const definition = readRecord(dataFolder)?.platform?.definition ?? undefined
  if (definition === undefined) return undefined
  const foreign = foreignFile([file, definition])
  if (foreign === undefined) {
    assertThere(definition, file)
    return definition
  }
  skip(`${definition} is not used. ${foreign}. Name the definition with --config.`)
  return undefined
}

/** The one daemon that runs here (with `only`, on that data folder), if its files belong to root or this user; says which, or why not. */
export function findRunningDaemon(
  folders: readonly string[],
  only: string | undefined,
  words: readonly string[],
  { say, skip }: Readonly<Record<'say' | 'skip', Say>>,
) {
  const byFolder = new Map(folders.flatMap(pointersIn).map((pointer) => [pointer.dataFolder, pointer]))
  const [pointer, ...others] = byFolder.values()
  if (pointer === undefined || (only !== undefined && only !== pointer.dataFolder)) return undefined
  if (others.length > 0) {
    const all = [...byFolder.keys()]
    // No warning of the default platform if all of them run it.
    const tell = all.every((folder) => readRecord(folder)?.platform?.definition === null) ? say : skip
    tell(`several daemons run here (${all.join(', ')}), so no command assumes one: ${NAME_THEM}.`)
    return undefined
  }
  const { dataFolder, file } = pointer
  const record = readRecord(dataFolder)
  const { platform, envFiles = [], others: beside = [] } = record ?? {}
  const definition = platform?.definition ?? null
  const named = [...(definition === null ? [] : [definition]), ...envFiles]
  const foreign = foreignFile([file, recordFile(dataFolder), ...named])
  if (record === undefined || foreign !== undefined) {
    refuseAsRoot(dataFolder, pointer.pid, words)
    const why = foreign ?? `Its ${recordFile(dataFolder)} cannot be read`
    skip(`the daemon of ${dataFolder} is not used. ${why}. Run this as the daemon’s user, or ${NAME_THEM}.`)
    return undefined
  }
  if (definition !== null) assertThere(definition, recordFile(dataFolder))
  const readable = envFiles.filter(isReadable)
  for (const one of envFiles)
    if (!readable.includes(one)) say(`not read: ${one}, which the daemon was started with.`)
  const urls = Object.assign({}, ...[...beside.filter(isRunning), record].map(reachedUrls))
  const found = { definition, envFiles: readable, dataFolder, urls }
  say(`acting on the daemon that runs here: ${nextStep('', found).trim()}`)
  return found
}

/** Says that a command uses neither the settings nor the data `folder` of the daemons that run here, and how to name them. */
export function tellOfOthers(folders: readonly string[], folder: string, say: Say): void {
  const others = [...new Set(folders.flatMap(pointersIn).map(({ dataFolder }) => dataFolder))]
    .map((dataFolder) => ({ dataFolder, definition: null, envFiles: readRecord(dataFolder)?.envFiles ?? [] }))
    .filter(({ dataFolder, envFiles }) => envFiles.length > 0 || dataFolder !== folder)
    .map((places) => nextStep('', places).trim())
  if (others.length > 0)
    say(
      `the settings are this shell’s alone, without an env file. A daemon runs here with others; to act on it, add ${others.join(', or ')}`,
    )
}

/**
 * Refuses a command of root that is about the daemon of another account, such as a systemd unit's, with the line that
 * runs it as that account, in the folders that the daemon sees: acting on anything else would give a false green, and
 * root must not run what that account can write.
 */
function refuseAsRoot(dataFolder: string, pid: number, words: readonly string[]): void {
  const owner = statSync(dataFolder, { throwIfNoEntry: false })
  if (process.geteuid?.() !== 0 || !owner?.uid) return
  const command = ['platformctl', ...words].map(shellWord).join(' ')
  throw wrongUsage(
    `the daemon that runs here belongs to another user, and root does not run what that user can write. Run this as that user: nsenter --target ${pid} --mount --setuid ${owner.uid} --setgid ${owner.gid} -- ${command}. For anything else, ${NAME_THEM}.`,
  )
}

/** Refuses a record that others could write: it names env files to read, and addresses to ask with the token in them. */
export function refuseForeignRecord(dataFolder: string, record: DaemonRecord, command: string): void {
  const foreign = foreignFile([recordFile(dataFolder), ...record.envFiles])
  if (foreign === undefined) return
  if (isRunning(record)) refuseAsRoot(dataFolder, record.pid, [command, '--data', dataFolder])
  throw wrongUsage(`the daemon of ${dataFolder} is not asked. ${foreign}. Run this as the daemon’s user.`)
}

/** What to name, for a command that found nothing in its folder. */
export function dataHint(env: Environment): string {
  const found = pointerFolders(env).flatMap(pointersIn)
  const [folder, ...others] = new Set(found.map(({ dataFolder }) => dataFolder))
  return folder === undefined || others.length > 0
    ? 'name the daemon’s data folder with --data'
    : `a daemon runs here with --data ${shellWord(folder)}; name that`
}

function assertThere(definition: string, record: string): void {
  if (existsSync(definition)) return
  throw wrongUsage(
    `${record} says that ${definition} defines this platform, and there is no such file: name the definition with --config, or run the default platform with --no-config.`,
  )
}

/** Why this account cannot rely on one of the files; a file that is gone is reported by its reader. */
function foreignFile(files: readonly string[]): string | undefined {
  for (const file of files) {
    try {
      const cause = controlledByOthers(file)
      if (cause !== undefined) return `${cause} (${file})`
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') return `This user cannot read ${file}`
    }
  }
  return undefined
}

/** A pipe that was read once, as `<(…)` makes it, is not there for a second reader. */
const isReadable = (file: string): boolean =>
  attempt(() => {
    accessSync(file, constants.R_OK)
    return statSync(file).isFile()
  }) ?? false
