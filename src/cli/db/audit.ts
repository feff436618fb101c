import type { AuditEntry } from '../../core/audit.ts'
import { EXIT, type ExitCode } from '../exit.ts'
import type { Job } from './job.ts'

export async function audit({ context, options, maintenance }: Job): Promise<ExitCode> {
  const entries = await (await maintenance()).audit(options.limit)
  if (options.format === 'json') {
    const dated = entries.map((entry) => ({ ...entry, at: new Date(entry.at).toISOString() }))
    context.stdout.write((await import('../output/json.ts')).jsonText({ version: 1, entries: dated }))
    return EXIT.passed
  }
  context.stdout.write(entries.length === 0 ? 'no operator has changed anything yet\n' : table(entries))
  return EXIT.passed
}

function table(entries: readonly AuditEntry[]): string {
  const rows = [
    ['when', 'who', 'from', 'action', 'what', 'details'],
    ...entries.map(({ at, who, place, action, subject = '', details = '' }) => [
      new Date(at).toISOString(),
      who,
      place,
      action,
      subject,
      details,
    ]),
  ]
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, n) => cell.padEnd(widths[n] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}
