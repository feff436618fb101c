import type { Context } from './context.ts'
import type { DocumentedCommand, DocumentOf } from './documents/documents.ts'
import { EXIT, type ExitCode } from './exit.ts'

/** Writes a command's result as text, and gives the exit code of success. */
export function printText({ stdout }: Pick<Context, 'stdout'>, text: string): ExitCode {
  stdout.write(text)
  return EXIT.passed
}

/**
 * Writes a command's result as its one JSON document, and gives the exit code of success. The compiler
 * holds the result to the schema that is published for the command.
 */
export function printJson<Command extends DocumentedCommand>(
  context: Pick<Context, 'stdout'>,
  _command: Command,
  result: Unversioned<DocumentOf<Command>>,
): ExitCode {
  return printText(context, jsonText({ version: 1, ...result }))
}

/** Applies to each form of a document by itself. */
type Unversioned<Form> = Form extends unknown ? Omit<Form, 'version'> : never

/** Rows as columns, each as wide as its widest cell; `numbers` end below each other in all but the first. */
export function table(rows: readonly (readonly string[])[], { numbers = false } = {}): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  const line = (row: readonly string[]) =>
    row.map((cell, column) => {
      const width = widths[column] ?? 0
      return numbers && column > 0 ? cell.padStart(width) : cell.padEnd(width)
    })
  return rows.map((row) => `${line(row).join('  ').trimEnd()}\n`).join('')
}

/** One JSON document and a line end: the whole of standard output in JSON mode. */
export function jsonText(document: unknown): string {
  return `${JSON.stringify(document, null, 2)}\n`
}
