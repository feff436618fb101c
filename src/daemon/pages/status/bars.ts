import { DAY_MS } from '../../../core/durations.ts'
import type { Messages } from '../../../core/messages/en.ts'
import type { CurrentState, DayState, Line } from '../../../core/status/summary.ts'

/** Width of a day in the drawing; a quarter of it is the space to the next. */
const DAY = 4
/**
 * Each state has a shape of its own, one dashed stroke or two: full, short with a dot above, broken in two, a low
 * tick. `lift` is how far above the first the second one lies.
 */
const STROKES: Readonly<
  Record<
    DayState,
    {
      readonly name: string
      readonly y: number
      readonly second?: { readonly name: string; readonly lift: number }
    }
  >
> = {
  ok: { name: 'o', y: 12 },
  degraded: { name: 'd', y: 17, second: { name: 'e', lift: 14 } },
  failing: { name: 'f', y: 19, second: { name: 'f', lift: 14 } },
  none: { name: 'n', y: 22.5 },
}
const STATES = Object.keys(STROKES) as DayState[]
/** Newest days with trouble that have a note: who points at one reads its date. */
const NOTES = 15

/** The days as one drawing of a few hundred bytes: a run of equal days is one dash pattern. */
export function bars(input: {
  readonly messages: Messages
  /** Unique on the page. */
  readonly id: string
  readonly line: Line
  /** UTC milliseconds. */
  readonly now: number
  readonly notes: boolean
}): string {
  const {
    messages: { status },
    id,
    line,
    now,
    notes,
  } = input
  const { days, service, probe } = line
  const drawn = STATES.map((state) => {
    const path = runs(days, state)
    return path === '' ? '' : strokes(state, path, `${id}${STROKES[state].name}`)
  })
  const troubled = days.flatMap((state, index) =>
    state === 'ok' || state === 'none' ? [] : [{ state, index }],
  )
  const noted = (notes ? troubled.slice(-NOTES) : []).map(
    ({ state, index }) =>
      `<rect x="${index * DAY}" width="${DAY}" height="24"><title>${dayName(now, days.length - 1 - index)}: ${status.days[state]}</title></rect>`,
  )
  return `<svg class="bars" data-line="${service}/${probe}" viewBox="0 0 ${days.length * DAY - 1} 24" preserveAspectRatio="none" role="img" aria-label="${describe(status, days)}">${drawn.join('')}${noted.join('')}</svg>`
}

function strokes(state: DayState, path: string, id: string): string {
  const { name, y, second } = STROKES[state]
  const first = `<path${second ? ` id="${id}"` : ''} d="M0 ${y}${path}"/>`
  // The second stroke is the first again, drawn higher: `use` takes its colour and width from the class here.
  return `<g class="${name}">${first}</g>${second ? `<use class="${second.name}" href="#${id}" y="-${second.lift}"/>` : ''}`
}

/** Relative moves and lines over the days of one state. */
function runs(days: readonly DayState[], state: DayState): string {
  let path = ''
  let from = 0
  for (let day = 0; day < days.length; ) {
    let end = day
    while (end < days.length && days[end] === state) end += 1
    if (end > day) {
      path += `${day > from ? `m${(day - from) * DAY} 0` : ''}h${(end - day) * DAY}`
      from = end
    }
    day = Math.max(end, day + 1)
  }
  return path
}

/** `The last 90 days: 87 ok, 2 degraded, 1 without data`. */
function describe(status: Messages['status'], days: readonly DayState[]): string {
  const counts = STATES.flatMap((state) => {
    const number = days.filter((day) => day === state).length
    return number === 0 ? [] : [`${number} ${status.days[state]}`]
  })
  return status.barsOf(days.length, counts.join(', '))
}

function dayName(now: number, daysAgo: number): string {
  return new Date(now - daysAgo * DAY_MS).toISOString().slice(0, 10)
}

/** Legend of the shapes, drawn with the same strokes. */
export function legend({ status }: Messages): string {
  const one = (state: DayState) =>
    `<li><svg class="bars" viewBox="0 0 7 24" aria-hidden="true">${strokes(state, 'h8', `key-${state}`)}</svg> ${state === 'none' ? status.noData : status.days[state]}</li>`
  return `<ul class="legend" aria-label="${status.barsMean}">${STATES.map(one).join('')}</ul>`
}

/** An icon for each state, so that none is shown by color alone: a tick, a stroke, a cross, a dash, a question mark. */
const SIGNS: Readonly<Record<CurrentState, string>> = {
  ok: '<path d="M4.6 8.4l2.4 2.4 4.6-5.2"/>',
  degraded: '<path d="M8 4v5M8 11.6v.2"/>',
  failing: '<path d="M5.2 5.2l5.6 5.6M10.8 5.2l-5.6 5.6"/>',
  skipped: '<path d="M5 8h6"/>',
  unknown: '<path d="M6 6.4a2 2 0 1 1 2.7 1.9c-.5.2-.7.6-.7 1.1M8 11.8v.2"/>',
}

/** Once a page, before the first `sign`. */
export const SIGN_SHAPES = `<svg class="shapes" aria-hidden="true">${Object.entries(SIGNS)
  .map(
    ([state, path]) =>
      `<symbol id="s-${state}" viewBox="0 0 16 16"><circle cx="8" cy="8" r="8"/>${path}</symbol>`,
  )
  .join('')}</svg>`

export function sign(state: CurrentState): string {
  return `<svg class="sign ${state}" aria-hidden="true"><use href="#s-${state}"/></svg>`
}

/** Legible on a light and on a dark tab bar. */
const ICON_COLOR: Readonly<Record<CurrentState, string>> = {
  ok: '#2e9e5e',
  degraded: '#c98a10',
  failing: '#d13b31',
  skipped: '#7a7f8a',
  unknown: '#7a7f8a',
}

/** The sign of a state as a favicon, in a data URL. */
export function stateIcon(state: CurrentState): string {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="8" fill="${ICON_COLOR[state]}"/><g fill="none" stroke="#fff" stroke-width="2" stroke-linecap="round" stroke-linejoin="round">${SIGNS[state]}</g></svg>`
  return `data:image/svg+xml,${encodeURIComponent(svg)}`
}
