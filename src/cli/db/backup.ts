import { existsSync, statSync } from 'node:fs'
import path from 'node:path'
import type { RestoreResult } from '../../core/store/sqlite/restore.ts'
import { operatorOf } from '../context.ts'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import { sizeText } from '../output/amounts.ts'
import { printJson, printText } from '../print.ts'
import type { Job } from './job.ts'
import { identitiesOf, recipientsOf } from './keys.ts'
import { rowsText } from './text.ts'

export async function backup(job: Job, name: string): Promise<ExitCode> {
  const { context, options } = job
  const recipients = await recipientsOf(context, options.recipient)
  if (!/\.(?:zst|gz|sqlite)(?:\.age)?$/.test(name))
    throw new CommandError(
      EXIT.usage,
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

export async function restore({ context, options, address }: Job, name: string): Promise<ExitCode> {
  if (!existsSync(path.resolve(context.cwd, name)))
    throw new CommandError(EXIT.usage, `cannot read ${name}: there is no such file; check the path.`)
  if (statSync(path.resolve(context.cwd, name)).isDirectory())
    throw new CommandError(EXIT.usage, `cannot read ${name}: it is a folder; name the backup in it.`)
  const { auditEntry } = await import('../../core/audit.ts')
  const { analyticsBackup, restoreStore } = await import('../../core/store/open.ts')
  const { analytics, ...result } = await restoreStore(address, {
    from: path.resolve(context.cwd, name),
    force: options.force === true,
    now: context.clock.now(),
    identities: await identitiesOf(context, options.identity),
    audit: auditEntry({
      action: 'restore',
      operator: operatorOf(context),
      now: context.clock.now(),
      random: context.random,
      details: path.basename(name),
    }),
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
    `restored ${name}: schema ${result.version}, rows: ${rowsText(result.counts)}\n${replayedText(result.replayed)}${kept('the store', result.kept)}${events}`,
  )
}

/** Lists the changes made after the backup that the restore replayed. */
function replayedText({
  unsubscribed,
  undone,
  erased,
  suppressed,
  released,
}: RestoreResult['replayed']): string {
  const parts = [
    [unsubscribed, 'unsubscribed'],
    [undone, 'subscribed again'],
    [erased, 'erased'],
    [suppressed, 'suppressed'],
    [released, 'taken off the suppression list'],
  ] as const
  const happened = parts.flatMap(([count, what]) => (count > 0 ? [`${count} ${what}`] : []))
  return happened.length === 0
    ? 'the journal beside the store has no changes after the backup\n'
    : `replayed from the journal, because it happened after the backup: ${happened.join(', ')}\n`
}
