import { existsSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { readSettings } from '../../core/env/settings.ts'
import { codeOf } from '../../core/error-code.ts'
import type { AfterRestoreOptions } from '../../core/store/postgres/after-restore.ts'
import type { Replayed } from '../../core/store/replay.ts'
import type { RestoreResult } from '../../core/store/sqlite/restore.ts'
import { type Context, operatorOf } from '../context.ts'
import { readTextFile } from '../environment.ts'
import { CommandError, EXIT, type ExitCode, wrongUsage } from '../exit.ts'
import { sizeText } from '../output/text.ts'
import { printJson, printText } from '../print.ts'
import { type Job, rowsText } from './store.ts'

export async function backup(job: Job, name: string): Promise<ExitCode> {
  const { context, options } = job
  const recipients = await recipientsOf(context, options.recipient)
  if (!/\.(?:zst|gz|sqlite)(?:\.age)?$/.test(name))
    throw wrongUsage(
      `the name of a backup selects its format: end it in .sqlite.zst, .sqlite.gz or .sqlite, not as in ${name}; add .age to encrypt it.`,
    )
  const folder = path.dirname(path.resolve(context.cwd, name))
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() === false)
    throw new CommandError(EXIT.failed, `${folder} is a file, not a folder: name another place.`)
  const now = context.clock.now()
  const result = await (await job.maintenance()).backup(path.resolve(context.cwd, name), now, { recipients })
  const analytics = await backupAnalytics(job, name, recipients)
  if (options.format === 'json')
    return printJson(context, 'db backup', { result, ...(analytics && { analytics: analytics.result }) })
  const beside = analytics
    ? `${analytics.name}: ${sizeText(analytics.result.bytes)}, events of visitors, rows: ${rowsText(analytics.result.counts)}\n`
    : ''
  return printText(
    context,
    `${name}: ${sizeText(result.bytes)}, schema ${result.version}, rows: ${rowsText(result.counts)}\n${beside}checked, ${name.includes('.sqlite.') ? 'packed, ' : ''}${recipients.length > 0 ? 'encrypted, ' : ''}read back and compared\n`,
  )
}

/** The file of analytics beside the store's, into a file beside the backup's. */
async function backupAnalytics(
  { context, options, analyticsMaintenance }: Job,
  store: string,
  recipients: readonly string[],
) {
  const maintenance = options.analytics === false ? undefined : await analyticsMaintenance()
  if (maintenance === undefined) return undefined
  const { analyticsBackup } = await import('../../core/store/open.ts')
  const name = analyticsBackup(store)
  const result = await maintenance
    .backup(path.resolve(context.cwd, name), context.clock.now(), { recipients })
    .catch((error: unknown) => {
      if (!(error instanceof Error && error.name === 'StoreMaintenanceError')) throw error
      throw new CommandError(
        EXIT.failed,
        `${store} is complete, but the events of visitors were not backed up: ${error.message}`,
      )
    })
  return { name, result }
}

/** Public keys of age, named as they are or by files with one a line. */
async function recipientsOf(context: Context, named: readonly string[]): Promise<readonly string[]> {
  const keys = named.map((one) => (one.startsWith('age1') ? [one] : keysIn(context, one, 'age1')))
  return (await Promise.all(keys)).flat()
}

/** The secret keys in a file as age-keygen writes it. */
async function identitiesOf(context: Context, file: string | undefined): Promise<readonly string[]> {
  return file === undefined ? [] : keysIn(context, file, 'AGE-SECRET-KEY-')
}

async function keysIn(context: Context, file: string, prefix: string): Promise<readonly string[]> {
  const keys = (await readTextFile(context, file))
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line.startsWith(prefix))
  if (keys.length === 0)
    throw wrongUsage(`${file} has no line with a key of age (${prefix}…): is it the right file?`)
  return keys
}

export async function restore({ context, options, address }: Job, name: string): Promise<ExitCode> {
  if (!existsSync(path.resolve(context.cwd, name)))
    throw wrongUsage(`cannot read ${name}: there is no such file; check the path.`)
  if (statSync(path.resolve(context.cwd, name)).isDirectory())
    throw wrongUsage(`cannot read ${name}: it is a folder; name the backup in it.`)
  const { analyticsBackup, restoreStore } = await import('../../core/store/open.ts')
  const { analytics, ...result } = await restoreStore(address, {
    from: path.resolve(context.cwd, name),
    force: options.force === true,
    now: context.clock.now(),
    identities: await identitiesOf(context, options.identity),
    journal: options.journal && path.resolve(context.cwd, options.journal),
    withoutJournal: options.withoutJournal,
    sentFrom: options.sentFrom && path.resolve(context.cwd, options.sentFrom),
    audit: await auditOf({ context }, path.basename(name)),
  })
  for (const fault of result.faults) context.stderr.write(`restored as it was: ${fault}\n`)
  if (options.format === 'json')
    return printJson(context, 'db restore', { result, ...(analytics && { analytics }) })
  const kept = (what: string, where: string | undefined) =>
    where === undefined ? '' : `${what} before it is kept as ${where}\n`
  const events = analytics
    ? `restored ${analyticsBackup(name)}: events of visitors, rows: ${rowsText(analytics.counts)}\n${kept('the file', analytics.kept)}`
    : ''
  return printText(
    context,
    `restored ${name}: schema ${result.version}, rows: ${rowsText(result.counts)}\n${coveredText(result)}${sentText(result)}${kept('the store', result.kept)}${events}`,
  )
}

export async function afterRestore({ context, options, address }: Job): Promise<ExitCode> {
  const { afterRestore: apply } = await import('../../core/store/open.ts')
  const result = await apply(address, {
    from: replacedStore(context, options.from),
    journal: options.journal && path.resolve(context.cwd, options.journal),
    withoutJournal: options.withoutJournal,
    now: context.clock.now(),
    audit: await auditOf({ context }, 'after-restore'),
  })
  if (options.format === 'json') return printJson(context, 'db after-restore', { result })
  const { replayed, restoredTo, coveredTo } = result
  return printText(
    context,
    coveredTo === undefined
      ? uncoveredText(restoredTo)
      : `${replayedText(replayed)}changes up to ${new Date(coveredTo).toISOString()} are covered; later ones are lost\n`,
  )
}

/** Writes who left the store into a new file, which a restore takes as `--journal`. */
export async function journal({ context, options, maintenance }: Job, name: string): Promise<ExitCode> {
  const { linesOf } = await import('../../core/store/journal.ts')
  const entries = await (await maintenance()).journal(context.clock.now())
  const file = path.resolve(context.cwd, name)
  try {
    // For its owner only: it names suppressed addresses.
    writeFileSync(file, linesOf(entries), { flag: 'wx', mode: 0o600, flush: true })
  } catch (error) {
    throw new CommandError(
      EXIT.failed,
      codeOf(error) === 'EEXIST'
        ? `${name} exists and was left as it is: give the journal a new name.`
        : `${name} cannot be written (${codeOf(error)}): name another place.`,
    )
  }
  return options.format === 'json'
    ? printJson(context, 'db journal', { file: name, entries: entries.length })
    : printText(context, `${name}: ${entries.length} changes that a restore must not undo\n`)
}

/** An address of a database, or the name of a schema. */
function replacedStore(context: Job['context'], from: string | undefined): AfterRestoreOptions['from'] {
  if (from === undefined) return undefined
  if (!from.includes(':')) return { schema: from }
  const address = readSettings(context.platform, { STORE_URL: from }).store.address
  if (address?.kind !== 'postgres')
    throw wrongUsage(
      '--from is neither the address of a PostgreSQL database (postgres://user:password@host/database) nor the name of a schema.',
    )
  return address.url
}

async function auditOf({ context }: Pick<Job, 'context'>, details: string) {
  const { auditEntry } = await import('../../core/audit.ts')
  return auditEntry({
    action: 'restore',
    operator: operatorOf(context),
    now: context.clock.now(),
    random: context.random,
    details,
  })
}

function coveredText({ replayed, uncoveredSince }: RestoreResult): string {
  return uncoveredSince === undefined ? replayedText(replayed) : uncoveredText(uncoveredSince)
}

function uncoveredText(since: number): string {
  return `no journal covers the time since ${new Date(since).toISOString()}: people who unsubscribed, bounced or were erased since then are mailed again\n`
}

function replayedText({ unsubscribed, undone, erased, suppressed, released }: Replayed): string {
  const parts = [
    [unsubscribed, 'unsubscribed'],
    [undone, 'subscribed again'],
    [erased, 'erased'],
    [suppressed, 'suppressed'],
    [released, 'taken off the suppression list'],
  ] as const
  const happened = parts.flatMap(([count, what]) => (count > 0 ? [`${count} ${what}`] : []))
  return happened.length === 0
    ? 'the journal has no changes after the backup\n'
    : `replayed from the journal, because it happened after the backup: ${happened.join(', ')}\n`
}

/** What will be sent twice, and what was taken over so that it is not. */
function sentText({ repeats, taken }: RestoreResult): string {
  const took =
    taken > 0
      ? `${lessons(taken)} sent after the backup ${taken === 1 ? 'is' : 'are'} recorded as sent\n`
      : ''
  if (repeats === undefined)
    return `${took}lessons sent after the backup are sent again: without the replaced store they cannot be counted\n`
  return repeats === 0
    ? took
    : `${took}${lessons(repeats)} sent after the backup will be sent again: restore with --sent-from and the replaced store’s file to prevent it, or use course resolve SUBSCRIPTION sent\n`
}

const lessons = (count: number) => (count === 1 ? '1 lesson' : `${count} lessons`)
