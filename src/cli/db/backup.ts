import { statSync } from 'node:fs'
import path from 'node:path'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import { sizeText } from '../output/amounts.ts'
import { printJson, printText } from '../print.ts'
import type { Job } from './job.ts'
import { recipientsOf } from './keys.ts'
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
