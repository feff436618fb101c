import type { AuditEntry } from '../../core/audit.ts'
import type { ExitCode } from '../exit.ts'
import { printJson, printText, table } from '../print.ts'
import type { Job } from './job.ts'

export async function audit({ context, options, maintenance }: Job): Promise<ExitCode> {
  const entries = await (await maintenance()).audit(options.limit)
  if (options.format === 'json') {
    const dated = entries.map((entry) => ({ ...entry, at: new Date(entry.at).toISOString() }))
    return printJson(context, 'db audit', { entries: dated })
  }
  return printText(
    context,
    entries.length === 0 ? 'no operator has changed anything yet\n' : auditText(entries),
  )
}

function auditText(entries: readonly AuditEntry[]): string {
  return table([
    ['when', 'who', 'from', 'action', 'what', 'details'],
    ...entries.map(({ at, who, place, action, subject = '', details = '' }) => [
      new Date(at).toISOString(),
      who,
      place,
      action,
      subject,
      details,
    ]),
  ])
}
