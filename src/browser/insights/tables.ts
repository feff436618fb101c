import type { Insights } from '../../core/analytics/insights.ts'
import { learningEvents } from '../../presets/learning/events.ts'
import { longDay } from './chart.ts'

const LABELS = new Map(learningEvents.map(({ name, label = name }) => [name, label]))

interface Table {
  readonly head: readonly string[]
  /** The first cell names the row. */
  readonly rows: readonly (readonly (string | number)[])[]
  /** The column that is drawn as a bar as well. */
  readonly bar?: number
  readonly empty: string
}

export function activityTable({ days }: Insights): Table {
  return {
    head: ['Day', 'Events'],
    rows: days.filter(({ count }) => count > 0).map(({ day, count }) => [longDay(day), count]),
    empty: 'No event in this range.',
  }
}

export function kindsTable({ kinds }: Insights): Table {
  return {
    head: ['What', 'Events'],
    rows: kinds.map(({ kind, count }) => [LABELS.get(kind) ?? kind, count]),
    bar: 1,
    empty: 'No event in this range.',
  }
}

export function lessonsTable({ lessons }: Insights): Table {
  return {
    head: ['Lesson', 'Viewed', 'Completed'],
    rows: lessons.map(({ lesson, viewed, completed }) => [lesson, viewed, completed]),
    bar: 1,
    empty: 'No lesson in this range.',
  }
}

export function examsTable({ exams }: Insights): Table {
  return {
    head: ['Exam', 'Started', 'Done', 'Passed', 'Best'],
    rows: exams.map(({ exam, started, completed, passed, best }) => [
      exam,
      started,
      completed,
      passed,
      best ?? '–',
    ]),
    empty: 'No exam in this range.',
  }
}

export function devicesTable({ devices }: Insights): Table {
  return {
    head: ['Device', 'Chosen'],
    rows: devices.map(({ device, count }) => [device, count]),
    bar: 1,
    empty: 'No device chosen in this range.',
  }
}

export function tutorTable({ tutor }: Insights): Table {
  return {
    head: ['Tutor', 'Number'],
    rows:
      tutor.asked + tutor.rated === 0
        ? []
        : [
            ['Questions asked', tutor.asked],
            ['Answers rated', tutor.rated],
            ['Average rating', tutor.rating === undefined ? '–' : tutor.rating.toFixed(1)],
          ],
    empty: 'The tutor was not asked in this range.',
  }
}

/** Fills `host` with the table; values are set as text, so nothing in them is markup. */
export function showTable(host: HTMLElement, { head, rows, bar, empty }: Table, caption: string): void {
  if (rows.length === 0) {
    host.replaceChildren(element('p', { className: 'quiet', textContent: empty }))
    return
  }
  const most = bar === undefined ? 0 : Math.max(...rows.map((row) => Number(row[bar])))
  const table = element('table', { className: 'data' })
  table.append(
    element('caption', { className: 'unseen', textContent: caption }),
    element('thead', {}, [
      element(
        'tr',
        {},
        head.map((text, column) =>
          element('th', { scope: 'col', textContent: text, className: column > 0 ? 'number' : '' }),
        ),
      ),
    ]),
    element(
      'tbody',
      {},
      rows.map((row) =>
        element(
          'tr',
          {},
          row.map((value, column) => {
            if (column === 0) return element('th', { scope: 'row', textContent: String(value) })
            const cell = element('td', { className: 'number' })
            if (column === bar) {
              const length = element('span', { className: 'bar', ariaHidden: 'true' })
              length.style.setProperty('--share', `${(Number(value) / most) * 100}%`)
              cell.append(length)
            }
            const text = typeof value === 'number' ? value.toLocaleString() : value
            cell.append(element('span', { className: 'value', textContent: text }))
            return cell
          }),
        ),
      ),
    ),
  )
  host.replaceChildren(table)
}

function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Partial<HTMLElementTagNameMap[Name]>,
  children: readonly Node[] = [],
): HTMLElementTagNameMap[Name] {
  const made = Object.assign(document.createElement(name), properties)
  made.append(...children)
  return made
}
