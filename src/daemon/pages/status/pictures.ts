import { crc32, deflateSync } from 'node:zlib'
import { escapeHtml } from '../../../core/mail/template.ts'
import type { Messages } from '../../../core/messages/en.ts'
import type { CurrentState, Summary } from '../../../core/status/summary.ts'
import { SIGNS, STATE_COLORS } from './bars.ts'

/** Mean width of a letter of the font at 11 px; `textLength` makes the drawing keep to it everywhere. */
const LETTER = 6.4

/** The verdict as a picture for a README: the word says the state, the colour only repeats it. */
export function badge({ status }: Messages, service: string | undefined, state: CurrentState): string {
  const [label, message] = [escapeHtml(service ?? status.badge.label), status.badge[state]]
  const widthOf = (text: string) => Math.round(text.length * LETTER) + 14
  const [left, right] = [widthOf(label), widthOf(message)]
  const text = (words: string, from: number, width: number) =>
    `<text x="${from + width / 2}" y="14" textLength="${width - 14}" lengthAdjust="spacingAndGlyphs">${words}</text>`
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${left + right}" height="20" role="img" aria-label="${label}: ${message}"><title>${label}: ${message}</title><clipPath id="c"><rect width="${left + right}" height="20" rx="4"/></clipPath><g clip-path="url(#c)"><path fill="#3a3f4a" d="M0 0h${left}v20H0z"/><path fill="${STATE_COLORS[state]}" d="M${left} 0h${right}v20H${left}z"/></g><g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">${text(label, 0, left)}${text(message, left, right)}</g></svg>`
}

const [WIDTH, HEIGHT] = [1200, 630]
const [MIDDLE, TOP, RADIUS] = [WIDTH / 2, 110, 130]
const [GROUND, PAPER, GAP] = ['#f2f1ee', '#ffffff', '#b9b6ad']

/** The status as a PNG, for those who share a link to it: the sign of the state above the days of all services. */
export function statusPicture({ state, services }: Pick<Summary, 'state' | 'services'>) {
  const { fill, bytes } = canvas(GROUND)
  fill(STATE_COLORS[state], [0, 0, WIDTH, 16])
  const box = [MIDDLE - RADIUS, TOP, 2 * RADIUS + 1, 2 * RADIUS + 1] as const
  fill(STATE_COLORS[state], box, (x, y) => RADIUS - Math.hypot(x - MIDDLE, y - TOP - RADIUS))
  const scale = RADIUS / 8
  const strokes = SIGNS[state]
    .slice(1)
    .split('M')
    .map((stroke) =>
      stroke.split('L').map((point) => {
        const [x = 0, y = 0] = point.split(' ').map(Number)
        return [box[0] + x * scale, box[1] + y * scale] as const
      }),
    )
  fill(PAPER, box, (x, y) => scale - Math.min(...strokes.map((points) => distance(x, y, points))))
  const rows = services.slice(0, MOST_ROWS)
  const height = Math.min(40, 150 / Math.max(1, rows.length) - 6)
  for (const [row, { whole }] of rows.entries())
    for (const [day, of] of whole.days.entries()) {
      const bottom = HEIGHT - 60 - (rows.length - row - 1) * (height + 6)
      const tall = of === 'none' ? height / 4 : height
      fill(of === 'none' ? GAP : STATE_COLORS[of], [60 + day * 12, bottom - tall, 9, tall])
    }
  return png(bytes)
}

const MOST_ROWS = 8

/** From a point to the nearest part of a line through these points. */
function distance(x: number, y: number, points: readonly (readonly [number, number])[]): number {
  let nearest = Number.POSITIVE_INFINITY
  for (const [index, [x2, y2]] of points.entries()) {
    const [x1, y1] = points[index - 1] ?? [x2, y2]
    const [dx, dy] = [x2 - x1, y2 - y1]
    const share = Math.min(1, Math.max(0, ((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy || 1)))
    nearest = Math.min(nearest, Math.hypot(x - x1 - share * dx, y - y1 - share * dy))
  }
  return nearest
}

function canvas(ground: string) {
  const colorOf = (hex: string) => Buffer.from(hex.slice(1), 'hex')
  // Each row begins with the number of its filter: 0, none.
  const row = Buffer.concat([Buffer.alloc(1), Buffer.alloc(WIDTH * 3, colorOf(ground))])
  const bytes = Buffer.alloc(row.length * HEIGHT, row)
  return {
    bytes,
    /** Fills a box, or the part of it where `inside` is positive; its edge is softened where that is below one. */
    fill(
      color: string,
      box: readonly [number, number, number, number],
      inside = (_x: number, _y: number) => 1,
    ) {
      const [left, top, width, height] = box.map(Math.round) as [number, number, number, number]
      const paint = colorOf(color)
      for (let y = top; y < top + height; y += 1)
        for (let x = left; x < left + width; x += 1) {
          const share = Math.min(1, Math.max(0, inside(x, y) + 0.5))
          const at = y * row.length + 1 + x * 3
          for (let part = 0; part < 3; part += 1)
            bytes[at + part] = (paint[part] ?? 0) * share + (bytes[at + part] ?? 0) * (1 - share)
        }
    },
  }
}

/** Rows of red, green and blue as a PNG (RFC 2083). */
function png(rows: Buffer): Uint8Array<ArrayBuffer> {
  const chunk = (name: string, data: Uint8Array) => {
    const body = Buffer.concat([Buffer.from(name, 'latin1'), data])
    const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)]
    length.writeUInt32BE(data.length)
    check.writeUInt32BE(crc32(body))
    return [length, body, check]
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(WIDTH)
  header.writeUInt32BE(HEIGHT, 4)
  header.set([8, 2, 0, 0, 0], 8)
  const signature = Buffer.from('89504e470d0a1a0a', 'hex')
  return Uint8Array.from(
    Buffer.concat([
      signature,
      ...chunk('IHDR', header),
      ...chunk('IDAT', deflateSync(rows)),
      ...chunk('IEND', Buffer.alloc(0)),
    ]),
  )
}
