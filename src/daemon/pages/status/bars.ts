import type { Messages } from '../../../core/messages/en.ts'
import type { CurrentState, DayState, Line } from '../../../core/status/summary.ts'

/** Width of a day in the drawing; a quarter of it is the space to the next. */
const DAY = 4
/** Each state has a class, and a shape of its own in a height of 24: full, short with a dot above, broken in two, a low tick. */
const STATES = [
  ['ok', 'o', 'M0 0h4v24H0z'],
  ['degraded', 'd', 'M0 0h4v6H0zM0 10h4v14H0z'],
  ['failing', 'f', 'M0 0h4v10H0zM0 14h4v10H0z'],
  ['none', 'n', 'M0 21h4v3H0z'],
] as const satisfies readonly (readonly [DayState, string, string])[]

/** The days as one drawing of a few hundred bytes: a run of equal days is one dash pattern. */
export function bars({ status }: Messages, { service, probe, days }: Line): string {
  const drawn = STATES.map(([state, name]) => {
    const path = runs(days, state)
    return path === '' ? '' : `<path class="${name}" d="M0 12${path}"/>`
  })
  return `<svg class="bars" data-line="${service}/${probe}" viewBox="0 0 ${days.length * DAY - 1} 24" preserveAspectRatio="none" role="img" aria-label="${describe(status, days)}">${drawn.join('')}</svg>`
}

function runs(days: readonly DayState[], state: DayState): string {
  const marks = days.map((day) => (day === state ? '#' : ' ')).join('')
  let path = ''
  let from = 0
  for (const { index, 0: run } of marks.matchAll(/#+/g)) {
    path += `${index > from ? `m${(index - from) * DAY} 0` : ''}h${run.length * DAY}`
    from = index + run.length
  }
  return path
}

/** `The last 90 days: 87 ok, 2 degraded, 1 without data` */
function describe(status: Messages['status'], days: readonly DayState[]): string {
  const counts = STATES.flatMap(([state]) => {
    const number = days.filter((day) => day === state).length
    return number === 0 ? [] : [`${number} ${status.days[state]}`]
  })
  return status.barsOf(days.length, counts.join(', '))
}

/** Legend of the shapes, drawn with the same strokes. */
export function legend({ status }: Messages): string {
  const items = STATES.map(
    ([state, name]) =>
      `<li><svg class="bars" viewBox="0 0 7 24" aria-hidden="true"><path class="${name}" d="M0 12h8"/></svg> ${state === 'none' ? status.states.unknown : status.days[state]}</li>`,
  )
  return `<ul class="legend" aria-label="${status.barsMean}">${items.join('')}</ul>`
}

/** The strokes of each state's sign in a square of 16, so that none is shown by color alone: a tick, an exclamation mark, a cross, a dash, a question mark. */
export const SIGNS: Readonly<Record<CurrentState, string>> = {
  ok: 'M4.6 8.4L7 10.8L11.6 5.6',
  degraded: 'M8 4L8 9M8 11.7L8 11.8',
  failing: 'M5.2 5.2L10.8 10.8M10.8 5.2L5.2 10.8',
  skipped: 'M5 8L11 8',
  unknown: 'M6 6.2L6.8 4.8L8 4.4L9.3 4.9L9.9 6.1L9.2 7.6L8 8.4L8 9.4M8 11.7L8 11.8',
}

/** Once a page, before the first sign and the first bars. */
export const SHAPES = `<svg class="shapes" aria-hidden="true">${[
  ...Object.entries(SIGNS).map(
    ([state, path]) =>
      `<symbol id="s-${state}" viewBox="0 0 16 16"><circle cx="8" cy="8" r="8"/><path d="${path}"/></symbol>`,
  ),
  ...STATES.map(
    ([state, name, path]) =>
      `<pattern id="p-${name}" class="p-${state}" patternUnits="userSpaceOnUse" width="4" height="24"><path d="${path}"/></pattern>`,
  ),
].join('')}</svg>`

export function sign(state: CurrentState): string {
  return `<svg class="sign ${state}" aria-hidden="true"><use href="#s-${state}"/></svg>`
}

/** Legible on light and dark, and white on each reads at 4.5:1 or more. */
export const STATE_COLORS: Readonly<Record<CurrentState, string>> = {
  ok: '#1e7a46',
  degraded: '#8a5a00',
  failing: '#b3261e',
  skipped: '#565c6b',
  unknown: '#565c6b',
}

export function stateIcon(state: CurrentState): string {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="8" fill="${STATE_COLORS[state]}"/><g fill="none" stroke="#fff" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"><path d="${SIGNS[state]}"/></g></svg>`
  return `data:image/svg+xml,${encodeURIComponent(svg)}`
}
