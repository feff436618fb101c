import { isLanguage } from '../../core/course/definition.ts'
import { knownFieldsAt, type Place, quoted, textAt } from './fault.ts'

export const BRAND_FIELDS = ['color', 'logo', 'language'] as const

export function checkBrand(place: Place, value: unknown): void {
  if (value === undefined) return
  const fields = knownFieldsAt(place, value, 'a brand', BRAND_FIELDS)
  const color = textAt(place.at('color'), fields?.color)
  if (color !== undefined && !/^#(?:[\da-f]{3}|[\da-f]{6})$/i.test(color))
    place.at('color').fault(`${quoted(color)} is not a color.`, "Write it as color: '#9a3412'.")
  const logo = textAt(place.at('logo'), fields?.logo)
  if (logo !== undefined && !/\.(?:png|svg|jpe?g|webp)$/i.test(logo))
    place
      .at('logo')
      .fault('The logo is not an image that every browser shows.', 'Use a PNG, SVG, JPEG or WebP file.')
  const language = textAt(place.at('language'), fields?.language)
  if (language !== undefined && !isLanguage(language))
    place.at('language').fault(`${quoted(language)} is not a language tag.`, "Write it as language: 'de'.")
}
