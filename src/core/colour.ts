/** Red, green and blue from 0 to 255, and opacity from 0 to 1. */
export type Colour = readonly [number, number, number, number]

const NAMED: Readonly<Record<string, Colour>> = {
  black: [0, 0, 0, 1],
  white: [255, 255, 255, 1],
  red: [255, 0, 0, 1],
  green: [0, 128, 0, 1],
  blue: [0, 0, 255, 1],
  gray: [128, 128, 128, 1],
  grey: [128, 128, 128, 1],
  silver: [192, 192, 192, 1],
  navy: [0, 0, 128, 1],
  maroon: [128, 0, 0, 1],
  yellow: [255, 255, 0, 1],
  orange: [255, 165, 0, 1],
  transparent: [0, 0, 0, 0],
}

/** Parses a color as a mail's CSS writes it; undefined for anything else (`inherit`, a gradient, a system color). */
export function parseColour(text: string): Colour | undefined {
  const value = text.trim().toLowerCase()
  const hex = /^#([\da-f]{3,4}|[\da-f]{6}|[\da-f]{8})$/.exec(value)?.[1]
  if (hex !== undefined) {
    const full = hex.length < 5 ? hex.replace(/./g, '$&$&') : hex
    const at = (index: number) => Number.parseInt(full.slice(index, index + 2), 16)
    return [at(0), at(2), at(4), full.length === 8 ? at(6) / 255 : 1]
  }
  const [, red, green, blue, alpha] =
    /^rgba?\(\s*(\d+)[\s,]+(\d+)[\s,]+(\d+)(?:[\s,/]+([\d.]+%?))?\s*\)$/.exec(value) ?? []
  if (red !== undefined)
    return [Number(red), Number(green), Number(blue), alpha === undefined ? 1 : share(alpha)]
  return NAMED[value]
}

/** `over` painted on an opaque ground. */
export function blend(over: Colour, ground: Colour): Colour {
  const [red, green, blue] = [0, 1, 2].map(
    (index) => (over[index] ?? 0) * over[3] + (ground[index] ?? 0) * (1 - over[3]),
  )
  return [red ?? 0, green ?? 0, blue ?? 0, 1]
}

/** Contrast ratio from 1 to 21 (WCAG 2.2, §1.4.3). */
export function contrast(a: Colour, b: Colour): number {
  const [light = 0, dark = 0] = [luminance(a), luminance(b)].sort((one, other) => other - one)
  return (light + 0.05) / (dark + 0.05)
}

function luminance([red, green, blue]: Colour): number {
  const [r = 0, g = 0, b = 0] = [red, green, blue].map((value) => {
    const part = value / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

const share = (text: string) => (text.endsWith('%') ? Number(text.slice(0, -1)) / 100 : Number(text))

/** A platform's color in shades that can be read: links and buttons on light and on dark ground. */
type BrandColors = Readonly<Record<'accent' | 'onAccent' | 'accentInDark' | 'onAccentInDark', string>>

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

const textOn = (ground: Colour): Colour => (contrast(WHITE, ground) >= contrast(INK, ground) ? WHITE : INK)

const hex = ([red, green, blue]: Colour) =>
  `#${[red, green, blue].map((channel) => Math.round(channel).toString(16).padStart(2, '0')).join('')}`
