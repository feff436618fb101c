import { type Element, isTag, isText } from 'domhandler'
import { blend, type Colour, contrast, parseColour } from '../../colour.ts'
import { cascade, elements, type Scheme } from './cascade.ts'
import type { LintedMail } from './mail.ts'

/** A browser's default colors (HTML §15.3, `color-scheme`). */
const CANVAS: Record<Scheme, { ink: Colour; ground: Colour; link: Colour }> = {
  light: { ink: [0, 0, 0, 1], ground: [255, 255, 255, 1], link: [0, 0, 238, 1] },
  dark: { ink: [255, 255, 255, 1], ground: [18, 18, 18, 1], link: [158, 158, 255, 1] },
}

/** Checks the contrast of every text of the mail with its background, in both color schemes. */
export function checkContrast(mail: LintedMail): void {
  for (const scheme of ['light', 'dark'] as const) {
    const styles = cascade(mail.document, scheme)
    const declared = (element: Element, property: string) => styles.get(element)?.get(property)?.value
    for (const element of elements(mail.document)) {
      const text = element.children
        .map((child) => (isText(child) ? child.data : ''))
        .join('')
        .trim()
      const above = [element, ...ancestors(element)]
      if (text === '' || above.some(({ name }) => INVISIBLE.has(name))) continue
      if (above.some((one) => declared(one, 'display') === 'none')) continue
      const ink = inkOf(above, declared, scheme)
      const ground = groundOf(above, declared, scheme)
      if (ink === undefined || ground === undefined) continue
      const ratio = contrast(blend(ink, ground), ground)
      const needed = isLarge(above, declared) ? 3 : 4.5
      if (ratio < needed)
        mail.report(
          'contrast-low',
          `The text “${shorten(text)}” has a contrast of ${ratio.toFixed(1)}:1 in the ${scheme} scheme; the minimum is ${needed}:1.`,
          mail.place(text.slice(0, 40)),
          scheme === 'dark' ? UNDER_DARK : undefined,
        )
    }
  }
}

const UNDER_DARK = 'Increase the contrast between text and background, under prefers-color-scheme: dark.'

type Declared = (element: Element, property: string) => string | undefined

const INVISIBLE = new Set(['head', 'style', 'script', 'title'])

function inkOf(above: readonly Element[], declared: Declared, scheme: Scheme): Colour | undefined {
  for (const element of above) {
    const value = declared(element, 'color')
    if (value !== undefined && value !== 'inherit') return parseColour(value)
    if (element.name === 'a' && element.attribs.href !== undefined && value === undefined)
      return CANVAS[scheme].link
  }
  return CANVAS[scheme].ink
}

/** The first opaque background, with translucent layers above it blended in; undefined where it is an image. */
function groundOf(above: readonly Element[], declared: Declared, scheme: Scheme): Colour | undefined {
  const layers: Colour[] = []
  for (const element of above) {
    const background = declared(element, 'background')
    if (background !== undefined && /url\(|gradient\(/.test(background)) return undefined
    const colour = parseColour(declared(element, 'background-color') ?? background?.split(/\s+/)[0] ?? '')
    if (colour === undefined) continue
    layers.push(colour)
    if (colour[3] === 1) break
  }
  return layers.reduceRight((ground, layer) => blend(layer, ground), CANVAS[scheme].ground)
}

/** WCAG: 24 px, or 18.66 px and bold. */
function isLarge(above: readonly Element[], declared: Declared): boolean {
  const first = (property: string) => above.map((one) => declared(one, property)).find(Boolean)
  const size = Number.parseFloat(first('font-size') ?? '16')
  const weight =
    first('font-weight') ?? (above.some(({ name }) => /^(?:h[1-6]|b|strong|th)$/.test(name)) ? 'bold' : '400')
  return size >= 24 || (size >= 18.66 && (weight === 'bold' || Number(weight) >= 700))
}

function ancestors(element: Element): Element[] {
  const above: Element[] = []
  for (let at = element.parent; at !== null; at = at.parent) if (isTag(at)) above.push(at)
  return above
}

function shorten(text: string): string {
  const words = text.replace(/\s+/g, ' ')
  return words.length > 40 ? `${words.slice(0, 39)}…` : words
}
