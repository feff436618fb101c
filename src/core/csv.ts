/** A row of a file, with the line that it begins on. */
export interface CsvRow {
  readonly line: number
  readonly cells: readonly string[]
  /** The file ends within its quotes. */
  readonly isUnclosed: boolean
}

/** Rows of RFC 4180: fields in quotes hold commas, line ends and doubled quotes. Also with semicolons or tabs. Empty rows are left out. */
export function readCsv(file: string): readonly CsvRow[] {
  const text = file.replace(/^\ufeff/, '')
  const first = text.slice(0, text.search(/[\r\n]|$/))
  const [separator = ','] = [',', ';', '\t'].sort((a, b) => first.split(b).length - first.split(a).length)
  const rows: CsvRow[] = []
  let [row, cell, quoted]: [string[], string, boolean] = [[], '', false]
  let [line, begun] = [1, 1]
  const endRow = () => {
    const cells = [...row, cell]
    if (cells.some((one) => one.trim() !== '')) rows.push({ line: begun, cells, isUnclosed: quoted })
    row = []
    cell = ''
    begun = line
  }
  for (let index = 0; index < text.length; index += 1) {
    const char = text.charAt(index)
    if (char === '\n') line += 1
    if (quoted) {
      if (char !== '"') cell += char
      else if (text.charAt(index + 1) === '"') {
        cell += '"'
        index += 1
      } else quoted = false
    } else if (char === '"' && cell === '') quoted = true
    else if (char === separator) {
      row.push(cell)
      cell = ''
    } else if (char === '\n') endRow()
    else if (char !== '\r') cell += char
  }
  endRow()
  return rows
}

/** What a spreadsheet would run as a formula, and what looks as if it had been made harmless already. */
const ACTIVE = /^[=+\-@\t\r']/

/** A row as spreadsheets read it: nothing in it is run as a formula. */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map(quotedCell).join(',')}\r\n`
}

function quotedCell(cell: string): string {
  const inert = ACTIVE.test(cell) ? `'${cell}` : cell
  return /[",\r\n]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert
}

/** The value of a cell, without what `csvLine` puts before one that a spreadsheet would run. */
export function cellValue(cell: string): string {
  const text = cell.startsWith("'") && ACTIVE.test(cell.slice(1)) ? cell.slice(1) : cell
  return text.trim()
}
