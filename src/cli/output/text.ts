import { stripVTControlCharacters } from 'node:util'
import { Help } from 'commander'
import { durationText } from '../../core/durations.ts'
import { type Context, listColumns } from '../context.ts'

// Commander's wrapping knows escape sequences and is loaded anyway: packages made for it cost a cold start 20 to 70 ms.
const help = Object.assign(new Help(), { minWidthToWrap: 1 })

/** If fewer columns than this are left beside the lead, the text goes below it. */
const NARROWEST = 24

/** A command in a sentence: the name, its sub-commands, and options with their values. */
const COMMAND =
  /(?:npx )?platformctl(?: (?!(?:and|ends|goes|in|lists|or|on|shows|to|what|with|writes)\b)[a-z][a-z-]*\b){1,3}(?: --?[a-z-]+(?:[ =][^\s-]\S*)?| [A-Z]{2,}[^\s]*)*|nsenter .*? -- (?:\S+ ?)*/g
/** Of the private use area, so that nobody writes it. */
const UNBROKEN = '\ue000'

/** Lines of at most `width` columns. A longer word stays whole, and so does a command, so that both can be copied. */
export function wrap(text: string, width: number): string[] {
  const held = text.replaceAll(COMMAND, (command) => command.replaceAll(' ', UNBROKEN))
  return help.boxWrap(held, width).replaceAll(UNBROKEN, ' ').split('\n')
}

/** Writes a sentence of this program on standard error, wrapped on a terminal. */
export function complain({ stderr }: Pick<Context, 'stderr'>, sentence: string): void {
  stderr.write(`${wrap(`platformctl: ${sentence}`, listColumns(stderr)).join('\n')}\n`)
}

/** The text beside `lead`, indented to where it begins; on a terminal too narrow for that, below the lead. */
export function beside(lead: string, text: string, columns: number): string {
  const indent = stripVTControlCharacters(lead).length
  if (columns - indent < NARROWEST) {
    const below = Math.min(4, indent)
    return [lead.trimEnd(), ...wrap(text, columns - below).map((line) => ' '.repeat(below) + line)].join('\n')
  }
  return lead + wrap(text, columns - indent).join(`\n${' '.repeat(indent)}`)
}

/** From the lowest to the highest. */
export const BARS = '▁▂▃▄▅▆▇█'

/** `1.4 MB`, in powers of 1000. */
export function sizeText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  const units = ['kB', 'MB', 'GB', 'TB']
  const power = Math.min(units.length, Math.floor(Math.log10(bytes) / 3))
  return `${(bytes / 1000 ** power).toFixed(1)} ${units[power - 1]}`
}

/** `3 h ago`; the largest unit alone, because the question is "lately?". */
export function agoText(then: number, now: number): string {
  return `${durationText(1000 * Math.max(0, Math.round((now - then) / 1000)), { parts: 1 })} ago`
}

/** `1,200`. Not by `toLocaleString`, which loads ICU: 30 ms of a cold start. */
export const thousands = (count: number) => String(count).replaceAll(/\B(?=(?:\d{3})+$)/g, ',')

/** `1 mail`, `3 mails`, `1,200 deliveries`. */
export const plural = (count: number, noun: string, several = `${noun}s`) =>
  `${thousands(count)} ${count === 1 ? noun : several}`

export const compact = (...texts: readonly (string | false | undefined)[]) =>
  texts.filter((text) => text !== false && text !== undefined)

export const iso = (ms: number) => new Date(ms).toISOString()

export const sentence = (clause: string) => `${clause.charAt(0).toUpperCase()}${clause.slice(1)}.`

type Row = readonly [label: string, text: string]

export const labelled = (rows: readonly Row[], width: number, columns = Number.POSITIVE_INFINITY) =>
  rows.map(([label, text]) => `${beside(`${label.padEnd(width - 1)} `, text, columns)}\n`).join('')

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
export const jsonText = (document: unknown) => `${JSON.stringify(document, null, 2)}\n`
