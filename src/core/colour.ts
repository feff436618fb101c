import { type Colord, colord, extend } from 'colord'
import a11y from 'colord/plugins/a11y'
import names from 'colord/plugins/names'

extend([a11y, names])

export type Colour = Colord

/** Parses a color as a mail's CSS writes it; undefined for anything else (`inherit`, a gradient, a system color). */
export function parseColour(text: string): Colour | undefined {
  const colour = colord(text.trim().toLowerCase())
  return colour.isValid() ? colour : undefined
}

/** `over` painted on an opaque ground; `opacity` from 0 to 1. */
export function blend(over: Colour, ground: Colour, opacity = over.alpha()): Colour {
  const above = over.toRgb()
  const below = ground.toRgb()
  const part = (channel: 'r' | 'g' | 'b') =>
    Math.round(above[channel] * opacity + below[channel] * (1 - opacity))
  return colord({ r: part('r'), g: part('g'), b: part('b') })
}

/** A platform's color in shades that can be read: links and buttons on light and on dark ground. */
type BrandColors = Readonly<Record<'accent' | 'onAccent' | 'accentInDark' | 'onAccentInDark', string>>

const DEFAULT_COLORS: BrandColors = {
  accent: '#3147a8',
  onAccent: '#ffffff',
  accentInDark: '#a9b9ff',
  onAccentInDark: '#14171d',
}

/** The darker of the two light backgrounds of text, and the lighter of the two dark ones. */
const LIGHT = colord('#f2f1ee')
const DARK = colord('#1d212a')
const WHITE = colord('#ffffff')
const INK = colord('#14171d')
/** The least contrast of text at its usual size (WCAG 2.2, 1.4.3). */
const LEGIBLE = 4.5

/** Keeps the hue of a brand, and makes it darker on light ground or lighter on dark until it can be read there. */
export function brandColors(color: string | undefined): BrandColors {
  const brand = color === undefined ? undefined : parseColour(color)
  if (brand === undefined) return DEFAULT_COLORS
  const accent = legible(brand, INK, LIGHT)
  const accentInDark = legible(brand, WHITE, DARK)
  return {
    accent: accent.toHex(),
    onAccent: textOn(accent).toHex(),
    accentInDark: accentInDark.toHex(),
    onAccentInDark: textOn(accentInDark).toHex(),
  }
}

function legible(brand: Colour, towards: Colour, ground: Colour): Colour {
  for (let share = 0; share < 1; share += 0.05) {
    const mixed = blend(towards, brand, share)
    if (mixed.contrast(ground) >= LEGIBLE) return mixed
  }
  return towards
}

const textOn = (ground: Colour) => (ground.contrast(WHITE) >= ground.contrast(INK) ? WHITE : INK)
