import { accessSync, constants, readFileSync, writeSync } from 'node:fs'
import { createRequire, type LoadHookSync, registerHooks, stripTypeScriptTypes } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { types } from 'node:util'
import { compileFunction, runInThisContext } from 'node:vm'
import { codeOf, faultOf } from '../core/errors.ts'
import { within } from '../core/host.ts'
import { attempt } from '../core/is-record.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import { statsOf } from './files.ts'
import { refuse } from './find.ts'
import { resolvePlatform } from './resolve.ts'

export async function loadPlatform(options: LoadDefinitionOptions): Promise<ResolvedPlatform> {
  const { exported, file, folder } = await loadDefinition(options)
  return resolvePlatform(exported, { folder, file })
}

interface LoadDefinitionOptions {
  /** Where a relative `file` starts. */
  readonly folder: string
  readonly file: string
  readonly deadlineMs?: number
  /** Module that `platformctl/config` resolves to if the package is not installed beside the definition. */
  readonly configModule?: string
}

type Fail = (cause: string, fix: string) => never

/** Gives what a definition exports, unchecked, and the folder where its paths start. Rejects with a DefinitionError. */
export async function loadDefinition(options: LoadDefinitionOptions) {
  const { file } = options
  const full = path.resolve(options.folder, file)
  const fail: Fail = (...fault) => refuse(file, ...fault)
  if (file.trim() === '')
    fail('The name of the definition is empty.', 'Name a file. Is the shell variable unset?')
  const kind = statsOf(full)
  if (kind === undefined) fail('There is no such file.', 'Check the path.')
  if (kind?.isDirectory())
    fail('This is a folder.', `Name the file in it, as ${path.join(file, 'platform.config.ts')}.`)
  if (!kind?.isFile()) fail('This is a pipe or a device.', 'Name a file.')
  if (faultOf(() => accessSync(full, constants.R_OK)) !== undefined)
    fail('The file cannot be read.', 'Check who owns it.')
  const exported = full.endsWith('.json') ? parseJson(full, fail) : await evaluate(full, fail, options)
  return { file, folder: path.dirname(full), exported }
}

function parseJson(full: string, fail: Fail): unknown {
  const text = readFileSync(full, 'utf8').replace(/^\uFEFF/, '')
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

/** Evaluates a JavaScript or TypeScript definition, with Node’s own type stripping, and gives its default export. */
async function evaluate(
  full: string,
  fail: Fail,
  { deadlineMs = 5000, configModule }: LoadDefinitionOptions,
): Promise<unknown> {
  const loud = silence(path.basename(full))
  const modules = registerHooks({ load: asModule })
  const [exported] = await loaded(full, deadlineMs, configModule)
    .catch((error: unknown) => explain(error, full, deadlineMs, fail))
    .finally(() => {
      modules.deregister()
      loud()
    })
  if (exported === undefined)
    return fail('It exports no definition.', 'End it with: export default definePlatform({ … })')
  if (exported instanceof Promise)
    return fail('It exports a promise.', 'Put await before it, or export the definition itself.')
  if (typeof exported === 'function')
    return fail('It exports a function.', 'Export what it gives: export default definePlatform({ … })')
  return exported
}

/** Loads a file with `import` and `export` as an ES module even where package.json says `"type": "commonjs"`. */
const asModule: LoadHookSync = (url, context, next) => {
  const file = next(url, context)
  const { format, source } = file
  if (!format?.startsWith('commonjs') || source === null || source === undefined) return file
  if (url.includes('/node_modules/') || isCommonJs(format, String(source))) return file
  return { ...file, format: format.replace('commonjs', 'module') }
}

function isCommonJs(format: string, source: string): boolean {
  const plain = () => (format === 'commonjs' ? source : stripTypeScriptTypes(source))
  const names = ['exports', 'require', 'module', '__filename', '__dirname']
  return attempt(() => compileFunction(plain(), names)) !== undefined
}

async function loaded(full: string, deadlineMs: number, configModule: string | undefined) {
  try {
    return await defaultOf(full, deadlineMs)
  } catch (error) {
    if (configModule === undefined || !/^platformctl(?:\/|$)/.test(missingModule(error) ?? '')) throw error
    // The definition's folder has no copy of the package (npx, a global installation), so use this one.
    const hooks = registerHooks({
      resolve: (specifier, context, next) =>
        specifier === 'platformctl/config'
          ? { url: pathToFileURL(configModule).href, shortCircuit: true }
          : next(specifier, context),
    })
    return defaultOf(full, deadlineMs).finally(() => hooks.deregister())
  }
}

/** The default export of an ES module, or what a CommonJS file exports: in a list, as it may be a promise. */
async function defaultOf(full: string, deadlineMs: number): Promise<readonly [unknown]> {
  try {
    const exports = synchronously(() => createRequire(full)(full), deadlineMs)
    if (typeof exports !== 'object' || exports === null) return [undefined]
    if (types.isModuleNamespaceObject(exports)) return ['default' in exports ? exports.default : undefined]
    return [Object.keys(exports).length === 0 ? undefined : exports]
  } catch (error) {
    if (codeOf(error) !== 'ERR_REQUIRE_ASYNC_MODULE') throw error
    // The definition awaits something at its top level.
    return [(await within(deadlineMs, import(pathToFileURL(full).href), tooLong)).default]
  }
}

const STARTED = Symbol.for('platformctl.definition')

/** Runs a function that is ended when it takes too long, even in an endless loop, which no timer can interrupt. */
function synchronously(run: () => unknown, timeout: number): unknown {
  const holder = globalThis as { [STARTED]?: () => unknown }
  holder[STARTED] = run
  try {
    return runInThisContext("globalThis[Symbol.for('platformctl.definition')]()", { timeout })
  } finally {
    delete holder[STARTED]
  }
}

function tooLong(): never {
  throw Object.assign(new Error('too long'), { code: 'ERR_SCRIPT_EXECUTION_TIMEOUT' })
}

/** Describes an error that a definition threw, in one sentence, without its message, which may quote a secret. */
function explain(error: unknown, full: string, deadlineMs: number, fail: Fail): never {
  const code = codeOf(error)
  const at = placeOf(error, full)
  if (code === 'ERR_SCRIPT_EXECUTION_TIMEOUT')
    return fail(
      `It did not finish loading within ${deadlineMs / 1000} seconds.`,
      'Remove the loop or the await that never ends: a definition only describes.',
    )
  const missing = missingModule(error)
  if (missing !== undefined)
    return fail(
      `It imports ${missing}, which cannot be found.`,
      missing.startsWith('.') || path.isAbsolute(missing)
        ? 'Check the path.'
        : `Install it: npm install ${missing}`,
    )
  if (code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX')
    return fail(
      `${at}It uses TypeScript that has to be compiled, such as an enum or a namespace.`,
      'Use only types that can be erased (erasableSyntaxOnly in tsconfig.json).',
    )
  if (error instanceof SyntaxError || code === 'ERR_INVALID_TYPESCRIPT_SYNTAX')
    return fail(`${at}It has a syntax error.`, 'Correct it; tsc and the editor show the same.')
  const name =
    error instanceof Error && /^\w{1,40}$/.test(error.name) ? error.name : 'something that is no error'
  return fail(`${at}It throws ${name} while it loads.`, 'Run it with node to see the message.')
}

function missingModule(error: unknown): string | undefined {
  if (!/^(?:ERR_)?MODULE_NOT_FOUND$/.test(codeOf(error)) || !(error instanceof Error)) return undefined
  return /Cannot find (?:package|module) '([^']{1,200})'/.exec(error.message)?.[1]
}

/** `Line 3: ` when the error says where in the file it arose. */
function placeOf(error: unknown, full: string): string {
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  for (const name of [pathToFileURL(full).href, full]) {
    const start = stack.indexOf(`${name}:`)
    const line = start === -1 ? undefined : /^\d+/.exec(stack.slice(start + name.length + 1))?.[0]
    if (line !== undefined) return `Line ${line}: `
  }
  return ''
}

/**
 * Until the returned function is called: notes of the definition go to standard error, Node's remarks about how it loads
 * the file are dropped, and a process that the definition ends itself fails with a sentence and exit code 2.
 */
function silence(file: string): () => void {
  const { log, info, debug, error } = console
  Object.assign(console, { log: error, info: error, debug: error })
  const { emitWarning } = process
  process.emitWarning = () => undefined
  const onExit = () => {
    writeSync(2, `platformctl: ${file}: It ends the process while it loads. Remove process.exit.\n`)
    process.exitCode = 2
  }
  process.once('exit', onExit)
  return () => {
    Object.assign(console, { log, info, debug })
    process.emitWarning = emitWarning
    process.off('exit', onExit)
  }
}
