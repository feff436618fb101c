import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { codeOf } from '../../core/error-code.ts'
import { shellWord } from '../../core/next-step.ts'
import { type Context, programName, whichPlatform } from '../context.ts'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import { writeNewFiles } from '../init-definition.ts'
import { printJson, printText } from '../print.ts'
import { deployFiles, FOLDERS, TARGETS, type Target } from './files.ts'
import { readSubject } from './subject.ts'

export interface DeployOptions {
  readonly out?: string
  readonly format: 'text' | 'json'
  /** Only of check. */
  readonly print?: string
}

/** Writes the files that are not there yet, and says which differ. */
export function initDeployment(context: Context, target: Target, options: DeployOptions): ExitCode {
  const { cwd, stdout } = context
  const files = plan(context, options)(target).map((file) => compared(context, file, 'written'))
  const missing = files.filter(({ state }) => state === 'written')
  writeNewFiles(
    cwd,
    missing.map(({ file, text }) => ({ file: path.relative(cwd, file), text })),
  )
  const differs = files.some(({ state }) => state === 'differs')
  if (options.format === 'json') printJson(context, 'deploy init', documentOf(files))
  else {
    printFiles(context, files, options)
    const first = files.find(({ file }) => path.basename(file) === FIRST[target])?.file ?? ''
    if (!differs) stdout.write(`Next: follow the first lines of ${shown(context, first)}.\n`)
  }
  return differs ? EXIT.failed : EXIT.passed
}

/** The file whose first lines say how to use the files of a target. */
const FIRST: Readonly<Record<Target, string>> = {
  systemd: 'platformctl.service',
  docker: 'Dockerfile',
  compose: 'compose.yaml',
  kubernetes: 'platform.yaml',
}

/** Compares the files that are there with what `initDeployment` would write. */
export function checkDeployment(context: Context, options: DeployOptions): ExitCode {
  const filesOf = plan(context, options)
  const planned = new Map<string, string>()
  const wanted = new Map<string, string>()
  for (const target of TARGETS) {
    const own = filesOf(target).filter(({ file }) => !planned.has(file))
    for (const { file, text } of own) planned.set(file, text)
    if (own.some(({ file }) => existsSync(file))) for (const { file, text } of own) wanted.set(file, text)
  }
  if (options.print !== undefined) {
    const text = planned.get(path.resolve(context.cwd, options.print))
    if (text !== undefined) return printText(context, text)
    const names = [...planned.keys()].map((file) => shown(context, file))
    throw new CommandError(EXIT.usage, `${options.print} is not one of these files: ${names.join(', ')}.`)
  }
  if (wanted.size === 0)
    throw new CommandError(
      EXIT.usage,
      `there are no files to check${options.out === undefined ? '' : ` in ${options.out}`}: ${programName(context.env)} deploy init writes them, and --out names another folder.`,
    )
  const files = [...wanted].map(([file, text]) => compared(context, { file, text }, 'missing'))
  if (options.format === 'json') printJson(context, 'deploy check', documentOf(files))
  else printFiles(context, files, options)
  return files.every(({ state }) => state === 'same') ? EXIT.passed : EXIT.failed
}

interface Planned {
  /** Absolute. */
  readonly file: string
  readonly text: string
}

/** Gives the files of a target, where they belong. */
function plan(context: Context, { out }: DeployOptions): (target: Target) => readonly Planned[] {
  const { cwd, platform } = context
  if (out?.trim() === '') throw new CommandError(EXIT.usage, '--out is empty. Is the shell variable unset?')
  const source = platform.definition === undefined ? cwd : path.dirname(platform.definition.file)
  const subject = readSubject(platform, source)
  return (target) => {
    const folder = out === undefined ? path.join(source, FOLDERS[target]) : path.resolve(cwd, out)
    const places = {
      folder: slashed(path.relative(source, folder)),
      up: slashed(path.relative(folder, source)),
    }
    return deployFiles(target, subject, places).map(({ path: name, text }) => ({
      file: path.join(folder, name),
      text,
    }))
  }
}

function slashed(name: string): string {
  return name.replaceAll(path.sep, '/')
}

/** Undefined: there is no such file. */
function contentOf(context: Context, file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new CommandError(
      EXIT.usage,
      `cannot read ${shown(context, file)} (${code}): move it away, or check who owns it.`,
      { cause: error },
    )
  }
}

type Compared<State> = Planned & { readonly state: State }

/** A planned file, beside what is there; `absent` is the state of one that is not. */
function compared<Absent extends string>(
  context: Context,
  planned: Planned,
  absent: Absent,
): Compared<Absent | 'same' | 'differs'> {
  const found = contentOf(context, planned.file)
  return { ...planned, state: found === undefined ? absent : found === planned.text ? 'same' : 'differs' }
}

function documentOf<State>(files: readonly Compared<State>[]) {
  return { files: files.map(({ file, state }) => ({ file, state })) }
}

/** A line for each file, and for one that differs the command that shows how. */
function printFiles(context: Context, files: readonly Compared<string>[], { out }: DeployOptions): void {
  const { platform, cwd, env, stdout } = context
  const source = platform.definition?.file
  const words = [
    `${programName(env)} deploy check`,
    ...(source === undefined || path.dirname(source) === cwd ? [] : [`--config ${shellWord(source)}`]),
    ...(out === undefined ? [] : [`--out ${shellWord(out)}`]),
  ]
  const lines = files.flatMap(({ file, state }) => {
    const name = shown(context, file)
    const compare = `${words.join(' ')} --print ${shellWord(name)} | diff ${shellWord(name)} -`
    return [`${state.padEnd(7)}  ${name}`, ...(state === 'differs' ? [`         ${compare}`] : [])]
  })
  stdout.write(`${[whichPlatform(context), ...lines].join('\n')}\n`)
}

/** A path as it would be typed in the working directory. */
function shown({ cwd }: Context, file: string): string {
  const name = path.relative(cwd, file)
  return name.startsWith('..') ? file : name
}
