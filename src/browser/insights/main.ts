import { OPT_OUT_KEY } from '../../core/analytics/events.ts'
import { type Insights, type InsightsPageData, insightsOf } from '../../core/analytics/insights.ts'
import { createSanitiser } from '../../core/analytics/sanitise.ts'
import { type Buffer, deviceStorage, hasOptedOut, isAllowed, openBuffer, setOptOut } from '../device.ts'
import { pageData } from '../page-data.ts'
import { BATCH_KEY } from '../sender.ts'
import { barChart } from './chart.ts'
import * as tables from './tables.ts'

const { events: definitions, sections, sample, texts: T, language } = pageData<InsightsPageData>()

function fill(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? '')
}

function plural(count: number): string {
  return count === 1 ? T.event : fill(T.events, { count: count.toLocaleString(language) })
}

const storage = deviceStorage()
const buffer: Buffer | undefined = storage && openBuffer(storage)
const part = (id: string) => {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`the page has no part ${id}`)
  return found
}
const range = part('range') as HTMLSelectElement
const kind = part('kind') as HTMLSelectElement
const recording = part('record') as HTMLInputElement
const asking = part('asking') as HTMLDialogElement
const drawChart = barChart(part('activity-chart'), part('activity-readout'), language, plural)
/** Visitors without events see the sample first, to show what the page can do. */
let showsSample = true

const labels = new Map(definitions.map(({ name, label = name }) => [name, label]))
const sanitise = createSanitiser(definitions)
/** Also events of kinds that the platform does not know: they are the visitor's too. */
const heldEvents = () => buffer?.events(buffer.keys()) ?? []
for (const [name, label] of labels) kind.append(new Option(label, name))

function show(): void {
  // The last message may no longer be true.
  say('')
  performance.mark('insights-begin')
  const held = heldEvents()
  if (held.length > 0) showsSample = false
  const now = Date.now()
  const insights = insightsOf({
    // Sanitized again, because every script of the site can write to local storage.
    events: showsSample
      ? sample.map((event) => ({ ...event, at: now + event.at }))
      : held.flatMap((event) => sanitise(event, () => {}) ?? []),
    now,
    range: Number(range.value) || undefined,
    kind: kind.value || undefined,
    sections,
    dayOf: tables.localDay,
  })
  part('fresh').hidden = held.length > 0 || showsSample
  part('sample').hidden = !showsSample
  document.body.classList.toggle('sampled', showsSample)
  showTiles(insights)
  drawChart(insights.days)
  part('activity-chart').ariaLabel = chartLabel(insights)
  const caption = (text: string) => (showsSample ? fill(T.sampled, { caption: text }) : text)
  tables.showTable(part('activity-table'), tables.activityTable(insights, T, language), caption(T.byDay))
  tables.showTable(part('kinds'), tables.kindsTable(insights, labels, T), caption(T.byKind))
  for (const table of insights.tables)
    tables.showTable(part(table.section.id), tables.sectionTable(table, T), caption(table.section.caption))
  showConsent(held.length)
  performance.measure('insights', 'insights-begin')
}

function showTiles({ total, days, streak, tables: shown }: Insights): void {
  const values: Record<string, number> = {
    total,
    'active-days': days.filter(({ count }) => count > 0).length,
    'current-streak': streak.current,
    'longest-streak': streak.longest,
  }
  for (const { section, rows } of shown) {
    const column = section.columns.findIndex(({ head }) => head === section.tile?.column)
    if (section.tile) values[`${section.id}-tile`] = rows.filter(({ cells }) => cells[column]).length
  }
  for (const [id, value] of Object.entries(values)) part(id).textContent = value.toLocaleString(language)
}

function chartLabel({ total, days }: Insights): string {
  const first = days[0]?.day
  const last = days.at(-1)?.day
  const between = first && last ? fill(T.chartDays, { first, last }) : ''
  return fill(T.chart, { count: String(total) }) + between + T.chartTable
}

function showConsent(count: number): void {
  recording.checked = isAllowed()
  // Global Privacy Control is decided in the browser's own settings.
  recording.disabled = storage === undefined || !(isAllowed() || hasOptedOut())
  part('recording').textContent =
    storage === undefined ? T.noStorage : hasOptedOut() ? T.off : isAllowed() ? T.on : T.gpc
  part('kept').textContent = count === 0 ? T.none : fill(T.some, { events: plural(count) })
  for (const id of ['export', 'delete']) (part(id) as HTMLButtonElement).disabled = count === 0
}

function say(text: string): void {
  part('said').textContent = text
}

function exportEvents(): void {
  const events = heldEvents()
  const text = JSON.stringify({ version: 1, exportedAt: new Date().toISOString(), events }, null, 1)
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }))
  link.download = `insights-${tables.localDay(Date.now())}.json`
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
  say(fill(T.exported, { events: plural(events.length) }))
}

function deleteEvents(): void {
  buffer?.clear()
  storage?.removeItem(BATCH_KEY)
  showsSample = false
  show()
  say(T.deleted)
}

range.addEventListener('change', show)
kind.addEventListener('change', show)
for (const id of ['show-sample', 'hide-sample'])
  part(id).addEventListener('click', () => {
    showsSample = id === 'show-sample'
    show()
    part(showsSample ? 'hide-sample' : 'show-sample').focus()
  })
part('export').addEventListener('click', exportEvents)
part('delete').addEventListener('click', () => asking.showModal())
asking.addEventListener('close', () => {
  if (asking.returnValue === 'delete') deleteEvents()
  asking.returnValue = ''
})
recording.addEventListener('change', () => {
  setOptOut(!recording.checked)
  show()
})
// Other tabs record, delete and object; many events in a row are shown once.
let _waiting: ReturnType<typeof setTimeout> | undefined
addEventListener('storage', ({ key }) => {
  if (key === OPT_OUT_KEY && storage?.getItem(key) === null) setOptOut(false)
  _waiting ??= setTimeout(() => {
    _waiting = undefined
    show()
  }, 300)
})

show()
