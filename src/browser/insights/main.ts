import type { AnalyticsEvent } from '../../core/analytics/events.ts'
import { type Insights, insightsOf } from '../../core/analytics/insights.ts'
import { sampleEvents } from '../../core/analytics/sample.ts'
import { createSanitiser } from '../../core/analytics/sanitise.ts'
import { learningEvents } from '../../presets/learning/events.ts'
import { type Buffer, openBuffer } from '../buffer.ts'
import { deviceStorage, hasOptedOut, isAllowed, setOptOut } from '../consent.ts'
import { BATCH_KEY } from '../sender.ts'
import { barChart } from './chart.ts'
import * as tables from './tables.ts'

const storage = deviceStorage()
const buffer: Buffer | undefined = storage && openBuffer(storage)
const part = (id: string) => {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`the page has no part ${id}`)
  return found
}
const range = part('range') as HTMLSelectElement
const kind = part('kind') as HTMLSelectElement
const optedOut = part('opt-out') as HTMLInputElement
const asking = part('asking') as HTMLDialogElement
const chart = barChart(part('activity-chart'), part('activity-readout'))
/** What the page can do is seen at once: who comes with nothing of their own begins with the sample. */
let showsSample = true

const sanitise = createSanitiser(learningEvents)
for (const { name, label } of learningEvents) kind.append(new Option(label, name))

/** What the buffer holds, judged again: local storage is open to every script of the site. */
function ownEvents(): AnalyticsEvent[] {
  return (buffer?.keys() ?? []).flatMap((key) => {
    try {
      const [name, at, properties] = JSON.parse(buffer?.read(key) ?? 'null') as unknown[]
      return sanitise({ kind: name, at, properties }, () => {}) ?? []
    } catch {
      return []
    }
  })
}

function show(): void {
  performance.mark('insights-begin')
  const own = ownEvents()
  if (own.length > 0) showsSample = false
  const now = Date.now()
  const insights = insightsOf({
    events: showsSample ? sampleEvents(now) : own,
    now,
    range: Number(range.value) || undefined,
    kind: kind.value || undefined,
    dayOf: localDay,
  })
  part('fresh').hidden = own.length > 0 || showsSample
  part('sample').hidden = !showsSample
  document.body.classList.toggle('sampled', showsSample)
  showTiles(insights)
  chart.draw(insights.days)
  part('activity-chart').ariaLabel = chartLabel(insights)
  for (const [id, table, caption] of [
    ['activity-table', tables.activityTable, 'Events on each day'],
    ['kinds', tables.kindsTable, 'Events of each kind'],
    ['lessons', tables.lessonsTable, 'Lessons viewed and completed'],
    ['exams', tables.examsTable, 'Exams'],
    ['devices', tables.devicesTable, 'Devices chosen'],
    ['tutor', tables.tutorTable, 'Use of the tutor'],
  ] as const)
    tables.showTable(part(id), table(insights), showsSample ? `${caption} (sample data)` : caption)
  showConsent(own.length)
  performance.measure('insights', 'insights-begin')
}

function showTiles({ total, days, streak, lessons }: Insights): void {
  const completed = lessons.filter((lesson) => lesson.completed > 0).length
  const values = {
    total,
    'active-days': days.filter(({ count }) => count > 0).length,
    'current-streak': streak.current,
    'longest-streak': streak.longest,
    completed,
  }
  for (const [id, value] of Object.entries(values)) part(id).textContent = value.toLocaleString()
}

function chartLabel({ total, days }: Insights): string {
  const [first, last] = [days[0]?.day, days.at(-1)?.day]
  return `Bar chart of ${total} events a day${first && last ? ` from ${first} to ${last}` : ''}; the table below has the same numbers.`
}

function showConsent(count: number): void {
  optedOut.checked = hasOptedOut()
  optedOut.disabled = storage === undefined
  part('recording').textContent =
    storage === undefined
      ? 'This browser forbids storage here, so nothing is recorded.'
      : hasOptedOut()
        ? 'Nothing is recorded and nothing is reported.'
        : isAllowed()
          ? 'Events are recorded in this browser.'
          : 'Your browser sends Global Privacy Control, so nothing is recorded and nothing is reported.'
  part('kept').textContent =
    count === 0 ? 'This browser holds no event.' : `This browser holds ${count.toLocaleString()} events.`
  for (const id of ['export', 'delete']) (part(id) as HTMLButtonElement).disabled = count === 0
}

function localDay(time: number): string {
  const date = new Date(time)
  const two = (number: number) => String(number).padStart(2, '0')
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
}

function say(text: string): void {
  part('said').textContent = text
}

function exportEvents(): void {
  const events = ownEvents()
  const text = JSON.stringify({ version: 1, exportedAt: new Date().toISOString(), events }, null, 1)
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }))
  link.download = `insights-${localDay(Date.now())}.json`
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
  say(`${events.length} events were exported.`)
}

function deleteEvents(): void {
  buffer?.clear()
  storage?.removeItem(BATCH_KEY)
  showsSample = false
  say('Your data were deleted from this browser.')
  show()
}

range.addEventListener('change', show)
kind.addEventListener('change', show)
part('show-sample').addEventListener('click', () => {
  showsSample = true
  show()
  part('hide-sample').focus()
})
part('hide-sample').addEventListener('click', () => {
  showsSample = false
  show()
  part('show-sample').focus()
})
part('export').addEventListener('click', exportEvents)
part('delete').addEventListener('click', () => asking.showModal())
asking.addEventListener('close', () => {
  if (asking.returnValue === 'delete') deleteEvents()
  asking.returnValue = ''
})
optedOut.addEventListener('change', () => {
  setOptOut(optedOut.checked)
  show()
})
// Other tabs record, delete and object; many events in a row are shown once.
let _waiting: ReturnType<typeof setTimeout> | undefined
addEventListener('storage', () => {
  _waiting ??= setTimeout(() => {
    _waiting = undefined
    show()
  }, 300)
})

show()
