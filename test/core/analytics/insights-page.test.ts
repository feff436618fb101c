import { expect, onTestFinished, test, vi } from 'vitest'
import type { InsightsColumn, InsightsSection } from '../../../src/core/analytics/insights.ts'
import { messagesOf } from '../../../src/core/messages/messages.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { opened } from '../../support/opened.ts'

// The browser's files need the types of the DOM, which tests of servers do without: they are imported by name.
const load = (name: string) => import(`../../../src/browser/insights/${name}.ts`)

/** An element, or whatever else a script wants of a browser: it keeps what is set, and does nothing. */
function anything(kept: Record<PropertyKey, unknown> = {}): Record<string, unknown> {
  return new Proxy(
    Object(function nothing() {}),
    {
      get(_, name) {
        if (name === Symbol.toPrimitive) return () => 0
        if (!(name in kept) && typeof name === 'string' && name !== 'then') kept[name] = anything()
        return kept[name]
      },
      set: (_, name, value) => Reflect.set(kept, name, value),
      apply: () => anything(),
      construct: () => anything(),
    },
  )
}
// The chart looks for a browser as it is loaded.
for (const name of ['window', 'document', 'matchMedia']) vi.stubGlobal(name, anything())
vi.stubGlobal('devicePixelRatio', 1)
const { localDay, sectionTable } = await load('tables')
vi.unstubAllGlobals()

test('the page counts and charts all that the browser holds, also what was sent', async () => {
  onTestFinished(() => void vi.unstubAllGlobals())
  const now = Date.now()
  const stored = [
    ['page.viewed', now, {}],
    ['page.viewed', now, {}, 1],
    ['of.before', now, {}, 1],
  ]
  const items = stored.map((event, at) => [`platform.event.${at}`, JSON.stringify(event)])
  const localStorage = Object.create({ getItem: (name: string) => localStorage[name] ?? null })
  Object.assign(localStorage, Object.fromEntries(items))
  const { events, insights } = learning
  const texts = messagesOf('en').insights.script
  const data = { events, sections: insights.sections, sample: [], texts, language: 'en' }
  const [total, kept, filter] = [anything(), anything(), anything({ value: '' })]
  const parts = anything({ total, kept, range: filter, kind: filter })
  const document = anything({
    querySelector: () => ({ textContent: JSON.stringify(data) }),
    getElementById: (id: string) => parts[id],
    documentElement: anything({ lang: 'en' }),
  })
  const [none, HTMLElement] = [anything(), class {}]
  const functions = { addEventListener: none, getComputedStyle: none, matchMedia: none }
  const classes = { HTMLElement, Option: none, Path2D: none, ResizeObserver: none }
  for (const [name, value] of Object.entries({ document, localStorage, ...functions, ...classes }))
    vi.stubGlobal(name, value)
  await load('main')
  expect([total.textContent, kept.textContent]).toEqual(['2', 'This browser holds 3 events.'])
})

test('the page carries its sample as times before the moment at which a browser shows it', async () => {
  const { sample } = JSON.parse(
    /"application\/json"[^>]*>(.*)<\/script>/.exec(await opened().page('/insights'))?.[1] ?? '',
  )
  const times = sample.map(({ at }: { at: number }) => at)
  expect(Math.max(...times)).toBeLessThanOrEqual(0)
  expect(Math.min(...times)).toBeGreaterThan(-30 * 86_400_000)
})

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
