import type { Insights, InsightsPageData, InsightsTable } from '../../core/analytics/insights.ts'
import { longDay } from './chart.ts'

type Texts = InsightsPageData['texts']

interface Table {
  readonly head: readonly string[]
  /** The first cell names the row. */
  readonly rows: readonly (readonly (string | number)[])[]
  /** The column that is drawn as a bar as well. */
  readonly bar?: number
  readonly empty: string
}

export function activityTable({ days }: Insights, texts: Texts, language: string): Table {
  return {
    head: [texts.day, texts.eventsHead],
    rows: days.filter(({ count }) => count > 0).map(({ day, count }) => [longDay(day, language), count]),
    empty: texts.emptyRange,
  }
}

export function kindsTable({ kinds }: Insights, labels: ReadonlyMap<string, string>, texts: Texts): Table {
  return {
    head: [texts.what, texts.eventsHead],
    rows: kinds.map(({ kind, count }) => [labels.get(kind) ?? kind, count]),
    bar: 1,
    empty: texts.emptyRange,
  }
}

export function sectionTable({ section, rows }: InsightsTable, texts: Texts): Table {
  const { by, rowHead, columns, empty } = section
  const lines = rows.map(({ name, cells }) => [
    name || texts.unnamed,
    ...cells.map((cell, index) => text(cell, columns[index]?.compute === 'mean')),
  ])
  if (by !== undefined)
    return {
      head: [rowHead, ...columns.map(({ head }) => head)],
      rows: lines,
      ...(section.bars && { bar: 1 }),
      empty,
    }
  // A table without row names has one row; its columns are shown as rows.
  const [only] = rows
  return {
    head: [rowHead, texts.number],
    rows: only?.cells.some((cell) => cell)
      ? columns.map(({ head }, index) => [head, lines[0]?.[index + 1] ?? ''])
      : [],
    empty,
  }
}

function text(cell: number | undefined, rounded: boolean): string | number {
  if (cell === undefined) return '–'
  return rounded ? Number(cell.toFixed(1)) : cell
}

const amount = (value: string | number | undefined) => (typeof value === 'number' ? Math.max(0, value) : 0)

/** The calendar day where the visitor is, as `2026-11-21`. */
export function localDay(time: number): string {
  const date = new Date(time)
  const two = (number: number) => String(number).padStart(2, '0')
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
}

/** Fills `host` with the table; values are set as text, so nothing in them is markup. */
export function showTable(host: HTMLElement, { head, rows, bar, empty }: Table, caption: string): void {
  if (rows.length === 0) {
    host.replaceChildren(element('p', { className: 'quiet', textContent: empty }))
    return
  }
  const most = Math.max(...rows.map((row) => amount(row[bar ?? 0])))
  const table = element('table', { className: 'data' })
  Object.assign(table.createCaption(), { className: 'unseen', textContent: caption })
  const top = table.createTHead().insertRow()
  for (const [column, text] of head.entries())
    top.append(element('th', { scope: 'col', textContent: text, className: column > 0 ? 'number' : '' }))
  const body = table.createTBody()
  for (const [name, ...values] of rows) {
    const line = body.insertRow()
    line.append(element('th', { scope: 'row', textContent: String(name) }))
    for (const [index, value] of values.entries()) {
      const cell = Object.assign(line.insertCell(), { className: 'number' })
      if (index + 1 === bar) {
        const length = element('span', { className: 'bar', ariaHidden: 'true' })
        length.style.setProperty('--share', `${(amount(value) / (most || 1)) * 100}%`)
        cell.append(length)
      }
      const text = typeof value === 'number' ? value.toLocaleString(document.documentElement.lang) : value
      cell.append(element('span', { className: 'value', textContent: text }))
    }
  }
  host.replaceChildren(table)
}

function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Partial<HTMLElementTagNameMap[Name]>,
): HTMLElementTagNameMap[Name] {
  return Object.assign(document.createElement(name), properties)
}
