interface CsvRow {
  readonly line: number
  readonly cells: readonly string[]
  /** Why the file is not read any further. */
  readonly fault?: string
}

/** More than any export has: what is beyond is no list, and would fill the memory. */
const MOST_CELLS = 1000
const LONGEST_CELL = 64 * 1024
const LONGEST_HEAD = 16 * 1024

/** Rows of RFC 4180: fields in quotes hold commas, line ends and doubled quotes. Also with semicolons or tabs. Empty rows are left out. */
export function* readCsv(file: string): Generator<CsvRow, undefined> {
  const text = file.replace(/^\ufeff/, '')
  const [first = ''] = text.slice(0, LONGEST_HEAD).split(/[\r\n]/, 1)
  const [separator = ','] = [',', ';', '\t'].sort((a, b) => first.split(b).length - first.split(a).length)
  const plain = new RegExp(`[^"\\r\\n${separator}]+`, 'y')
  const inQuotes = /[^"\n]+/y
  let cells: string[] = []
  let cell = ''
  let quoted = false
  let line = 1
  let begun = 1
  for (let index = 0; index <= text.length; ) {
    const run = quoted ? inQuotes : plain
    run.lastIndex = index
    const [part] = run.exec(text) ?? [text.charAt(index)]
    index += Math.max(1, part.length)
    if (part === '\n') line += 1
    if (part === '"' && quoted && text.charAt(index) === '"') {
      cell += part
      index += 1
    } else if (part === '"' && (quoted || cell === '')) quoted = !quoted
    else if (part === '' || (part === '\n' && !quoted)) {
      const fault = quoted && 'a quote that begins on this line does not end'
      const row = { line: begun, cells: [...cells, cell], ...(fault && { fault }) }
      if (row.cells.some((one) => one.trim() !== '')) yield row
      cells = []
      cell = ''
      begun = line
    } else if (part === separator && !quoted) {
      cells.push(cell)
      cell = ''
    } else if (part !== '\r' || quoted) cell += part
    const fault =
      cells.length >= MOST_CELLS
        ? `this line has more than ${MOST_CELLS} columns`
        : cell.length > LONGEST_CELL && `a cell of this line has more than ${LONGEST_CELL / 1024} KB`
    if (fault) return yield { line: begun, cells: [], fault }
  }
}

/** What a spreadsheet would run as a formula, and what looks as if it had been made harmless already. */
const ACTIVE = /^[=+\-@\t\r']/

/** A row as spreadsheets read it: nothing in it is run as a formula. */
export const csvLine = (cells: readonly string[]) => `${cells.map(quotedCell).join(',')}\r\n`

function quotedCell(cell: string): string {
  const inert = ACTIVE.test(cell) ? `'${cell}` : cell
  return /[",\r\n]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert
}

/** The value of a cell, without what `csvLine` puts before one that a spreadsheet would run. */
export function cellValue(cell: string): string {
  return (cell.startsWith("'") && ACTIVE.test(cell.slice(1)) ? cell.slice(1) : cell).trim()
}
