import { type CsvRow, cellValue, csvLine, readCsv } from '../../csv.ts'
import { bounceKind, enhancedCode } from './event.ts'
import type { SuppressionCause } from './mailbox.ts'
import type { SuppressedAddress } from './store.ts'

/** A file that is no list of suppressed addresses: one sentence with the fix. */
export class SuppressionCsvError extends Error {
  override readonly name = 'SuppressionCsvError'
}

export interface CsvSuppression {
  readonly address: string
  readonly cause: SuppressionCause
  /** UTC milliseconds; undefined when the file does not say. */
  readonly at: number | undefined
  readonly reason: string
}

export interface CsvReading {
  readonly suppressions: readonly CsvSuppression[]
  /** Lines about mail that may arrive later, or about a message that was refused: no reason to suppress. */
  readonly passing: number
}

const COLUMNS = {
  address: ['address', 'email', 'email address', 'emailaddress', 'recipient'],
  said: ['cause', 'suppressionreason', 'type', 'status', 'code', 'reason', 'error', 'description'],
  at: [
    'at',
    'created',
    'created_at',
    'createdat',
    'created at',
    'last update',
    'lastupdatetime',
    'date',
    'bounced at',
  ],
} as const

/** Matched against whole cells, because the text of a bounce may contain any word. */
const SAID: readonly (readonly [RegExp, SuppressionCause])[] = [
  [/^(?:spam[ _-]?(?:complaint|report)s?|complain(?:t|ed))$/i, 'complaint'],
  [/^(?:hard[ _-]?bounced?|bounced?|bad ?email ?address|invalid(?: email)?(?: address)?)$/i, 'hard-bounce'],
  [/^(?:manual(?: ?suppression)?|unsubscribed?)$/i, 'manual'],
]

/**
 * Reads a provider's export of suppressed addresses, or our own: any CSV whose first line names a column of addresses.
 * A cause comes from the words or status codes of a line. A line without either is an error unless `cause` says what
 * all lines are: a hard bounce is never guessed.
 */
export function readSuppressionCsv(text: string, cause: SuppressionCause | undefined): CsvReading {
  const lines: Iterator<CsvRow, undefined> = readCsv(text)
  const names = (lines.next().value?.cells ?? []).map((name) => name.trim().toLowerCase())
  const columnsOf = (known: readonly string[]) =>
    known.flatMap((name) => (names.includes(name) ? [names.indexOf(name)] : []))
  const [address] = columnsOf(COLUMNS.address)
  if (address === undefined)
    throw new SuppressionCsvError(
      `the first line names no column of addresses. Name one of its columns ${COLUMNS.address[0]} or ${COLUMNS.address[1]}.`,
    )
  const [said, [at]] = [columnsOf(COLUMNS.said), columnsOf(COLUMNS.at)]
  let passing = 0
  const suppressions: CsvSuppression[] = []
  // Line by line, because a file may hold millions.
  for (let row = lines.next(); !row.done; row = lines.next()) {
    const { line: number, cells: line, fault } = row.value
    if (fault !== undefined) throw new SuppressionCsvError(`line ${number}: ${fault}. Correct it.`)
    const cells = said.map((column) => (line[column] ?? '').trim()).filter((cell) => cell !== '')
    const found = cause ?? causeOf(cells)
    if (found === undefined)
      throw new SuppressionCsvError(
        `line ${number} does not say why the address is suppressed. Say it for all lines with --cause.`,
      )
    if (found === 'passing') {
      passing += 1
      continue
    }
    suppressions.push({
      address: cellValue(line[address] ?? ''),
      cause: found,
      at: timeOf(at === undefined ? '' : (line[at] ?? '')),
      reason: REASONS[found],
    })
  }
  return { suppressions, passing }
}

/** Our own reasons. The provider's text is not kept, because it can contain anything, even an address. */
const REASONS: Readonly<Record<SuppressionCause, string>> = {
  'hard-bounce': 'the provider lists the address as bounced',
  complaint: 'the provider lists the address as one that complained',
  manual: 'the provider lists the address as suppressed',
}

function causeOf(cells: readonly string[]): SuppressionCause | 'passing' | undefined {
  for (const cell of cells) {
    const word = SAID.find(([pattern]) => pattern.test(cell))
    if (word) return word[1]
  }
  const code = cells.map((cell) => enhancedCode(cell)).find((one) => one !== undefined)
  if (code !== undefined) return bounceKind(code) === 'hard-bounce' ? 'hard-bounce' : 'passing'
  return undefined
}

/** Unix seconds or a date; a date without a zone is taken as UTC. */
function timeOf(text: string): number | undefined {
  const trimmed = text.trim()
  if (/^\d{9,11}$/.test(trimmed)) return Number(trimmed) * 1000
  const zoned = /^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?$/.test(trimmed)
    ? `${trimmed.replace(' ', 'T')}Z`
    : trimmed
  const at = Date.parse(zoned)
  return Number.isNaN(at) ? undefined : at
}

/** The suppression list as CSV, as `readSuppressionCsv` reads it. */
export function suppressionCsv(addresses: readonly SuppressedAddress[]): string {
  const lines = addresses.map(({ identity, cause, at, source, reason }) =>
    csvLine([identity, cause, new Date(at).toISOString(), source, reason]),
  )
  return [csvLine(['address', 'cause', 'at', 'source', 'reason']), ...lines].join('')
}
