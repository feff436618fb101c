import { type Context, listColumns } from '../context.ts'
import { beside } from '../output/wrap.ts'

/** `subscription 3, confirmation 2`: tables with rows, the fullest first. */
export function rowsText(counts: Readonly<Record<string, number>>): string {
  const filled = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a)
  return filled.map(([table, count]) => `${table} ${count}`).join(', ') || 'none'
}

export function writeLines(context: Context, lines: readonly (readonly [string, string])[]): void {
  const columns = listColumns(context.stdout)
  context.stdout.write(
    `${lines.map(([name, value]) => beside(name.padEnd(10), value, columns)).join('\n')}\n`,
  )
}
