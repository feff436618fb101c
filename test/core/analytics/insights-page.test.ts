import { expect, test } from 'vitest'
import type { InsightsColumn, InsightsSection } from '../../../src/core/analytics/insights.ts'
import { messagesOf } from '../../../src/core/messages/messages.ts'

// The browser's files need the types of the DOM, which tests of servers do without: they are imported by name.
const load = (name: string) => import(`../../../src/browser/insights/${name}.ts`)
const { localDay, sectionTable } = await load('tables')

test('a day is the one of the visitor, at each hour', () => {
  const day = new Intl.DateTimeFormat('sv-SE')
  for (let hour = 0; hour < 48; hour += 1) {
    const at = Date.UTC(2026, 10, 21, hour, 30)
    expect(localDay(at)).toBe(day.format(at))
  }
})

test('a table writes means with one digit and a dash where there is nothing, also if its columns are the rows', () => {
  const texts = messagesOf('en').insights.script
  const columns = (['count', 'mean', 'max'] as const).map(
    (compute): InsightsColumn => ({ head: compute, kind: 'kiln.booked', compute, property: 'cones' }),
  )
  const section: InsightsSection = {
    ...{ id: 'kilns', heading: '', caption: '', empty: 'none', rowHead: 'Kiln', columns },
  }
  const cells = [3, 10 / 3, undefined]
  const shown = [3, 3.3, '–']
  const rowsOf = (of: InsightsSection, name: string) =>
    sectionTable({ section: of, rows: [{ name, cells }] }, texts).rows
  expect(rowsOf({ ...section, by: ['kiln'] }, 'a')).toEqual([['a', ...shown]])
  expect(rowsOf({ ...section, by: ['kiln'] }, '')).toEqual([[texts.unnamed, ...shown]])
  expect(rowsOf(section, '')).toEqual(columns.map(({ head }, index) => [head, shown[index]]))
  expect(sectionTable({ section, rows: [] }, texts)).toMatchObject({ rows: [], empty: 'none' })
})
