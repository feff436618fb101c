import { escapeHtml } from '../../../core/mail/render.ts'
import type { Messages } from '../../../core/messages/en.ts'
import type { CurrentState } from '../../../core/status/summary.ts'
import { STATE_COLORS } from './bars.ts'

/** Mean width of a letter of the font at 11 px; `textLength` makes the drawing keep to it everywhere. */
const LETTER = 6.4

/** The verdict as a picture for a README: the word says the state, the colour only repeats it. */
export function badge({ status }: Messages, service: string | undefined, state: CurrentState): string {
  const [label, message] = [escapeHtml(service ?? status.badge.label), status.badge[state]]
  const [left, right] = [label, message].map((text) => Math.round(text.length * LETTER) + 14) as [
    number,
    number,
  ]
  const text = (words: string, from: number, width: number) =>
    `<text x="${from + width / 2}" y="14" textLength="${width - 14}" lengthAdjust="spacingAndGlyphs">${words}</text>`
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${left + right}" height="20" role="img" aria-label="${label}: ${message}"><title>${label}: ${message}</title><clipPath id="c"><rect width="${left + right}" height="20" rx="4"/></clipPath><g clip-path="url(#c)"><path fill="#3a3f4a" d="M0 0h${left}v20H0z"/><path fill="${STATE_COLORS[state]}" d="M${left} 0h${right}v20H${left}z"/></g><g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">${text(label, 0, left)}${text(message, left, right)}</g></svg>`
}
