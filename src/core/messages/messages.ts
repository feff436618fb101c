import { de } from './de.ts'
import { en, type Messages } from './en.ts'

/** The languages in which the engine speaks; English where a platform's own is not among them. */
const LANGUAGES: readonly Messages[] = [en, de]

/** The engine's texts in a language; `de-AT` gets German. `language` of the result tells which it is. */
export const messagesOf = (language: string): Messages => spokenIn(language) ?? en

/** The engine's texts in a language, if it speaks it. */
export function spokenIn(language: string): Messages | undefined {
  const [primary] = language.toLowerCase().split('-')
  return LANGUAGES.find((one) => one.language === primary)
}

const RIGHT_TO_LEFT = ['ar', 'ckb', 'dv', 'fa', 'he', 'ps', 'sd', 'ug', 'ur', 'yi']

export const directionOf = (language: string): 'ltr' | 'rtl' =>
  RIGHT_TO_LEFT.includes(language.toLowerCase().split('-')[0] ?? '') ? 'rtl' : 'ltr'
