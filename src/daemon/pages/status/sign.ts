import type { CurrentState } from '../../../core/status/summary.ts'

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
