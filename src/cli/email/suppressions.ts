import type { Command } from 'commander'
import { SUPPRESSION_CAUSES, type SuppressionCause } from '../../core/mail/feedback/mailbox.ts'
import type { SuppressedAddress } from '../../core/mail/feedback/store.ts'
import type { SuppressionList } from '../../core/mail/feedback/suppressions.ts'
import { type Context, operatorOf } from '../context.ts'
import { CommandError, EXIT, type ExitCode, wrongUsage } from '../exit.ts'
import {
  choiceOption,
  formatOption,
  reason,
  type StoreOptions,
  storeSubcommand,
  withPlatform,
} from '../options.ts'
import { printJson, printText } from '../print.ts'

interface Options extends StoreOptions {
  readonly cause?: SuppressionCause
  readonly reason: string
}

/** `platformctl email suppressions`: the addresses that get no mail. */
export function configureSuppressions(
  email: Command,
  context: Context,
  settle: (code: ExitCode) => void,
): void {
  const command = email
    .command('suppressions')
    .summary('the addresses that get no mail: list, add, remove, import, export')
    .description(
      'The addresses that get no mail. Hard bounces and complaints are added by themselves; sign-in mail stops for hard bounces only.',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  platformctl email suppressions list\n  platformctl email suppressions remove ada@example.com --reason "new mailbox, asked by phone"',
    )
  const plain = (name: string, summary: string, ...examples: string[]) =>
    storeSubcommand(command, { name, summary, examples })
  const add = (...like: Parameters<typeof plain>) => plain(...like).addOption(formatOption(['text', 'json']))
  const run = async (options: Options, work: (list: SuppressionList) => Promise<ExitCode>) =>
    settle(await withPlatform(context, options, async (platform) => work(await platform.suppressionList())))
  const cause = () =>
    choiceOption('--cause <cause>', 'why: hard-bounce stops sign-in mail too', {
      kind: 'cause',
      choices: [...SUPPRESSION_CAUSES],
    })
  add('list', 'every suppressed address with cause, time, source and reason', '', ' --format json').action(
    (options: Options) => run(options, (found) => list(context, found, options)),
  )
  add('add', 'suppress an address and end its subscriptions', ' ada@example.com --reason "asked by phone"')
    .argument('<address>', 'the address')
    .addOption(cause().default('manual'))
    .requiredOption('--reason <text>', 'why, for the history and the audit log', reason)
    .action((address: string, options: Options) =>
      run(options, (found) => addOne(context, found, address, options)),
    )
  add(
    'remove',
    'let an address be mailed again; its ended subscriptions stay ended until it subscribes anew',
    ' ada@example.com --reason "new mailbox"',
  )
    .argument('<address>', 'the address')
    .requiredOption('--reason <text>', 'why, for the history and the audit log', reason)
    .action((address: string, options: Options) =>
      run(options, (found) => remove(context, found, address, options)),
    )
  add(
    'import',
    'add the addresses of a provider’s CSV export; a cause comes from the words and status codes of each line',
    ' bounces.csv',
    ' complaints.csv --cause complaint',
  )
    .argument('<file>', 'the CSV file; its first line names the columns')
    .addOption(cause())
    .action((file: string, options: Options) =>
      run(options, (found) => importFile(context, found, file, options)),
    )
  plain('export', 'print the list as CSV, as import reads it', ' > suppressed.csv').action(
    (options: Options) => run(options, (found) => exportAll(context, found)),
  )
}

async function allOf(found: SuppressionList): Promise<readonly SuppressedAddress[]> {
  const { suppressedAddresses } = await import('../../core/mail/feedback/suppressions.ts')
  const all: SuppressedAddress[] = []
  for await (const one of suppressedAddresses(found.store)) all.push(one)
  return all
}

async function list(context: Context, found: SuppressionList, { format }: Options): Promise<ExitCode> {
  const addresses = await allOf(found)
  const time = (at: number) => new Date(at).toISOString()
  if (format === 'json')
    return printJson(context, 'email suppressions list', {
      suppressions: addresses.map(({ identity, at, ...rest }) => ({
        address: identity,
        at: time(at),
        ...rest,
      })),
    })
  if (addresses.length === 0) context.stdout.write('no address is suppressed\n')
  for (const { identity, cause, at, source, reason } of addresses)
    context.stdout.write(`${time(at)}  ${cause.padEnd(11)}  ${identity}  (${source}: ${reason})\n`)
  return EXIT.passed
}

async function addOne(
  context: Context,
  found: SuppressionList,
  address: string,
  { cause = 'manual', reason, format }: Options,
): Promise<ExitCode> {
  const { suppressAddress } = await import('../../core/mail/feedback/suppressions.ts')
  const outcome = await suppressAddress(found, { ...(await changeOf(context, address)), cause, reason })
  if (format === 'json') return printJson(context, 'email suppressions add', { outcome })
  const sentences = {
    added: 'suppressed; its subscriptions have ended',
    known: 'it is suppressed already, by this cause or one that stops as much mail',
    erased: 'this address was erased: it is not mailed, and nothing is kept of it',
  }
  return printText(context, `${sentences[outcome]}\n`)
}

async function remove(
  context: Context,
  found: SuppressionList,
  address: string,
  { reason, format }: Options,
): Promise<ExitCode> {
  const { releaseAddress } = await import('../../core/mail/feedback/suppressions.ts')
  if (!(await releaseAddress(found, { ...(await changeOf(context, address)), reason })))
    throw new CommandError(
      EXIT.failed,
      'this address is not suppressed: platformctl email suppressions list shows all that are.',
    )
  if (format === 'json') return printJson(context, 'email suppressions remove', { outcome: 'removed' })
  return printText(context, 'it can be mailed again; a course starts when it subscribes anew\n')
}

async function importFile(
  context: Context,
  found: SuppressionList,
  file: string,
  { cause, format }: Options,
): Promise<ExitCode> {
  const { LARGEST_LIST, readTextFile } = await import('../environment.ts')
  const { readSuppressionCsv, SuppressionCsvError } = await import(
    '../../core/mail/feedback/suppression-csv.ts'
  )
  const { importSuppressions } = await import('../../core/mail/feedback/suppressions.ts')
  const text = await readTextFile(context, file, LARGEST_LIST)
  try {
    const { suppressions, passing } = readSuppressionCsv(text, cause)
    const counts = await importSuppressions(found, { ...by(context), rows: suppressions, file })
    if (format === 'json') return printJson(context, 'email suppressions import', { ...counts, passing })
    return printText(
      context,
      `${counts.added} added, ${counts.known} known, ${counts.skipped} skipped (malformed or erased), ${passing} left out because the address may exist\n`,
    )
  } catch (error) {
    if (error instanceof SuppressionCsvError) throw wrongUsage(`${file}: ${error.message}`)
    throw error
  }
}

async function exportAll(context: Context, found: SuppressionList): Promise<ExitCode> {
  const { suppressionCsv } = await import('../../core/mail/feedback/suppression-csv.ts')
  return printText(context, suppressionCsv(await allOf(found)))
}

const by = (context: Context) => ({
  operator: operatorOf(context),
  clock: context.clock,
  random: context.random,
})

async function changeOf(context: Context, address: string) {
  const { parseAddress } = await import('../../core/address.ts')
  const parsed = parseAddress(address)
  if (!parsed.ok) throw wrongUsage(`${parsed.reason}.`)
  return { ...by(context), identity: parsed.identity }
}
