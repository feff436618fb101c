import { blend, type Colour, contrast, parseColour } from './colour.ts'

/** A platform's color in shades that can be read: links and buttons on light and on dark ground. */
export interface BrandColors {
  readonly accent: string
  readonly onAccent: string
  readonly accentInDark: string
  readonly onAccentInDark: string
}

const DEFAULT_COLORS: BrandColors = {
  accent: '#3147a8',
  onAccent: '#ffffff',
  accentInDark: '#a9b9ff',
  onAccentInDark: '#14171d',
}

/** The darker of the two light backgrounds of text, and the lighter of the two dark ones. */
const LIGHT: Colour = [0xf2, 0xf1, 0xee, 1]
const DARK: Colour = [0x1d, 0x21, 0x2a, 1]
const WHITE: Colour = [255, 255, 255, 1]
const INK: Colour = [0x14, 0x17, 0x1d, 1]
/** The least contrast of text at its usual size (WCAG 2.2, 1.4.3). */
const LEGIBLE = 4.5

/** Keeps the hue of a brand, and makes it darker on light ground or lighter on dark until it can be read there. */
export function brandColors(color: string | undefined): BrandColors {
  const brand = color === undefined ? undefined : parseColour(color)
  if (brand === undefined) return DEFAULT_COLORS
  const accent = legible(brand, INK, LIGHT)
  const accentInDark = legible(brand, WHITE, DARK)
  return {
    accent: hex(accent),
    onAccent: hex(textOn(accent)),
    accentInDark: hex(accentInDark),
    onAccentInDark: hex(textOn(accentInDark)),
  }
}

function legible(brand: Colour, towards: Colour, ground: Colour): Colour {
  for (let share = 0; share < 1; share += 0.05) {
    const [red, green, blue] = towards
    const mixed = blend([red, green, blue, share], brand)
    if (contrast(mixed, ground) >= LEGIBLE) return mixed
  }
  return towards
}

function textOn(ground: Colour): Colour {
  return contrast(WHITE, ground) >= contrast(INK, ground) ? WHITE : INK
}

function hex([red, green, blue]: Colour): string {
  return `#${[red, green, blue].map((channel) => Math.round(channel).toString(16).padStart(2, '0')).join('')}`
}
