import { type Audited, auditEntry } from '../core/audit.ts'
import type { Course } from '../core/course/open.ts'
import { type Environment, readSettings, type StoreAddress } from '../core/env/settings.ts'
import { newId } from '../core/host.ts'
import type { Channel } from '../core/incidents/channels.ts'
import type { SendOutcome } from '../core/mail/mailer.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import type { AnalyticsMaintenance, StoreMaintenance } from '../core/store/maintenance.ts'
import type { Store } from '../core/store/store.ts'
import type { OpenedPlatform } from '../daemon/platform.ts'
import { type Context, type ExitCode, failure, operatorOf } from './context.ts'
import type { DocumentedCommand, DocumentOf } from './documents/documents.ts'
import { loadEnvironment } from './environment.ts'
import { format, type Input, type Inputs, STORE, type Values } from './inputs.ts'
import { compact, sentence } from './output/text.ts'

/** A result as `--format` writes it, and how the command ends. */
export interface Answer<Document extends DocumentedCommand> {
  /** The compiler holds it to the schema that is published for the command. */
  readonly json: Unversioned<DocumentOf<Document>>
  readonly text: string
  readonly exit?: ExitCode
  /** Why the command fails although it has a result. */
  readonly fault?: string | undefined
}

/** Applies to each form of a document separately. */
type Unversioned<Form> = Form extends unknown ? Omit<Form, 'version'> : never

/** What the help, the reference, the manual and completion say of a command. */
interface Described {
  /** In the list of commands; absent for those of the program, whose list is in `program.ts`. */
  readonly summary?: string
  /** The summary as a sentence when left out. */
  readonly description?: string
  readonly notes?: string
  readonly exits?: string
  /** Each as it follows the command, or a whole line that names the program. */
  readonly examples?: readonly string[]
  readonly commands?: Readonly<Record<string, CommandData>>
}

/** A command with its sub-commands, as data: the program, completion and the reference are made from it. */
export interface CommandData extends Described {
  readonly inputs?: Inputs
  /** `values` is what was parsed for `inputs`. Gives the result, or the exit code if it has written itself. */
  readonly run?: (context: Context, values: unknown) => Promise<Answer<DocumentedCommand> | string | ExitCode>
}

/** Describes a command for the platform of the context; `tree` loads every command. */
export type Define = (context: Context, tree: () => Promise<CommandNode>) => CommandData

type StoreValues = Values<typeof STORE>
type Documented = DocumentedCommand | undefined
type None = Record<never, never>

export interface Typed<
  Of extends Inputs,
  Document extends Documented,
  More extends Inputs,
  Given extends unknown[],
> extends Described {
  /** Under this name the schema of its JSON is published; it takes `--format text` and `json` then. */
  readonly document?: Document
  readonly inputs?: Of
  readonly run: (
    context: Context,
    values: Values<Of & More>,
    ...given: Given
  ) => Promise<ExitCode | string | (Document extends DocumentedCommand ? Answer<Document> : never)>
}

export function command<const Of extends Inputs = None, Document extends Documented = undefined>(
  typed: Typed<Of, Document, None, []>,
): CommandData {
  const { document, inputs, run, ...described } = typed
  return {
    ...described,
    inputs: { ...inputs, ...(document !== undefined && format('text', 'json')) },
    // The program parses `values` by these same inputs.
    run: run as NonNullable<CommandData['run']>,
  }
}

/** The form of commands that take the inputs of a store, and whose `run` gets what `open` opens for them. */
export function commandOn<Given>(
  open: <T>(context: Context, values: StoreValues, work: (given: Given) => Promise<T>) => Promise<T>,
) {
  return <const Of extends Inputs = None, Document extends Documented = undefined>({
    inputs,
    run,
    ...data
  }: Typed<Of, Document, typeof STORE, [Given]>): CommandData =>
    command<Of & typeof STORE, Document>({
      ...data,
      inputs: { ...STORE, ...inputs } as Of & typeof STORE,
      run: (context, values) => open(context, values as StoreValues, (given) => run(context, values, given)),
    })
}

export interface CommandNode {
  /** `['db', 'backup']`; empty for the program itself. */
  readonly path: readonly string[]
  readonly summary: string
  readonly description: string
  /** `platformctl db backup [options] <file>` */
  readonly usage: string
  readonly args: readonly InputNode[]
  readonly options: readonly InputNode[]
  /** Help text after the options: notes, exit codes, examples. */
  readonly after: string
  readonly commands: readonly CommandNode[]
}

export type InputNode = ReturnType<typeof inputNode>[number]

export function nodeOf(path: readonly string[], data: CommandData, platform: ResolvedPlatform): CommandNode {
  const inputs = Object.entries(data.inputs ?? {}).flatMap(([flags, input]) =>
    inputNode(flags, inputOf(input), platform),
  )
  const args = inputs.filter(({ flags }) => !flags.startsWith('-'))
  const below = Object.entries(data.commands ?? {})
  return {
    path,
    summary: data.summary ?? descriptionOf(data),
    description: descriptionOf(data),
    usage: compact(
      ...['platformctl', ...path, '[options]'],
      below.length > 0 && '[command]',
      ...args.map(({ flags }) => flags),
    ).join(' '),
    args,
    options: inputs.filter((one) => !args.includes(one)),
    after: afterHelp(path, data).trim(),
    commands: below.map(([name, one]) => nodeOf([...path, name], one, platform)),
  }
}

export const allNodes = (node: CommandNode): readonly CommandNode[] => [
  node,
  ...node.commands.flatMap(allNodes),
]

function inputNode(flags: string, input: Input<unknown>, platform: ResolvedPlatform) {
  const { help, words = [], offers, byDefault, shown, hidden } = input
  if (hidden) return []
  const preset = shown ?? (byDefault === undefined ? undefined : String(byDefault))
  return [
    {
      /** `-e, --env-file <file>` */
      flags,
      /** `--env-file`; of an argument, `file`. */
      name: /--[\w-]+/.exec(flags)?.[0] ?? flags.replace(/^\W|\W+$/g, ''),
      takesValue: / [<[]/.test(flags),
      help,
      words,
      // A shell that completes would run what is in a word with its own characters.
      offers: (offers?.(platform) ?? words).filter((word) =>
        /^[\p{L}\p{N}_][\p{L}\p{N}\p{M}_.:/@+-]*$/u.test(word),
      ),
      /** As one would type it. */
      byDefault: preset === 'none' ? undefined : preset,
    },
  ]
}

export const inputOf = (given: string | Input<unknown>): Input<unknown> =>
  typeof given === 'string' ? { help: given } : given

export const descriptionOf = ({ summary = '', description = sentence(summary) }: Described) => description

export function afterHelp(path: readonly string[], { notes, exits, examples }: Described): string {
  const own = ['platformctl', ...path].join(' ')
  const lines = examples?.map(
    (one) => `\n  ${/(?:^|[ "|(])platformctl [a-z]/.test(one) ? one : `${own} ${one}`.trimEnd()}`,
  )
  return compact(
    notes && `\n${notes}\n`,
    exits && `\nExit codes: ${exits}\n`,
    lines && `\nExamples:${lines.join('')}`,
  ).join('')
}

export const camel = (name: string) => name.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())

/** Opens the platform over the store of the env files or the data folder, works with it, and closes it. */
export async function withPlatform<T>(
  context: Context,
  { envFile, data }: StoreValues,
  work: (platform: OpenedPlatform) => Promise<T>,
): Promise<T> {
  const { openLocal } = await import('./local.ts')
  const { env } = await loadEnvironment(context, envFile)
  const { platform, close } = await openLocal(context, env, data)
  return work(platform).finally(close)
}

export async function withStore<T>(
  context: Context,
  { envFile, data }: StoreValues,
  work: (opened: { readonly store: Store; readonly env: Environment }) => Promise<T>,
): Promise<T> {
  const { openLocalStore } = await import('./local.ts')
  const { env } = await loadEnvironment(context, envFile)
  const store = await openLocalStore(context, env, data, true)
  return work({ store, env }).finally(() => store.close())
}

export const platformCommand = commandOn(withPlatform)
export const courseCommand = commandOn<{ readonly platform: OpenedPlatform; readonly course: Course }>(
  (context, values, work) =>
    withPlatform(context, values, async (platform) => work({ platform, course: await platform.course() })),
)
export const storeCommand = commandOn(withStore)

const placeCommand = (mustExist: boolean) =>
  commandOn<{
    readonly env: Environment
    readonly address: StoreAddress
    /** Opens the store without migrating it; closed when the command ends. */
    readonly maintenance: () => Promise<StoreMaintenance>
    /** The same for the file of analytics; undefined when there is none. */
    readonly analyticsMaintenance: () => Promise<AnalyticsMaintenance | undefined>
  }>(async (context, { envFile, data }, work) => {
    const { assertExists, storeAddress, storeFaultError } = await import('./local.ts')
    const { openAnalyticsMaintenance, openMaintenance } = await import('../core/store/open.ts')
    const { env } = await loadEnvironment(context, envFile)
    const address = storeAddress(context, env, data, !mustExist)
    if (mustExist) await assertExists(context, address)
    let opened: StoreMaintenance | undefined
    let openedAnalytics: AnalyticsMaintenance | undefined
    try {
      return await work({
        env,
        address,
        maintenance: async () => (opened ??= await openMaintenance(address)),
        analyticsMaintenance: async () => (openedAnalytics ??= await openAnalyticsMaintenance(address)),
      })
    } catch (error) {
      if (error instanceof Error && error.name === 'StoreMaintenanceError') throw failure(error.message)
      throw storeFaultError(address, error)
    } finally {
      await opened?.close()
      await openedAnalytics?.close()
    }
  })
/** A command that maintains a store that is there already. */
export const onStore = placeCommand(true)
/** A command that maintains a store, and may make it. */
export const onPlace = placeCommand(false)

export const auditOf = (context: Context, entry: Audited) =>
  auditEntry(context, { ...entry, operator: operatorOf(context) })

/** Sends a test alert on a channel, which says that nothing is wrong. */
export function alertTester(context: Context, env: Environment): (name: string) => Promise<SendOutcome> {
  const now = context.clock.now()
  const id = newId(context.random, 9)
  return async (name) => {
    const { alertId } = await import('../core/incidents/channels.ts')
    const { UNATTENDED } = await import('../core/incidents/incident.ts')
    const about = { cause: 'test', service: 'web', affected: [], reason: undefined }
    const incident = { id, ...about, openedAt: now, seenAt: now, ...UNATTENDED }
    const channel = (await alertChannelsOf(context, env)).find((one) => one.name === name)
    if (channel === undefined) throw new TypeError(`there is no channel ${name}`)
    return channel.tell({ id: alertId(id, 'test'), kind: 'test', incident, at: now })
  }
}

export async function alertChannelsOf(context: Context, env: Environment): Promise<readonly Channel[]> {
  const { alertChannels } = await import('../daemon/alerts.ts')
  const { platform, clock } = context
  return alertChannels(clock, platform, readSettings(platform, env))
}
