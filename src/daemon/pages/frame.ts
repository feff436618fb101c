import { brandColors } from '../../core/colour.ts'
import type { Messages } from '../../core/messages/en.ts'
import { messagesOf } from '../../core/messages/messages.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'

/** Language, name and colors shared by all pages of a platform. */
export interface Frame {
  readonly messages: Messages
  /**
   * Language of the texts by the platform's owners, as `fr`; the engine's own texts are in the language of `messages`.
   */
  readonly language: string
  /** Shown above each page and in its title; undefined for a platform without a brand. */
  readonly name: string | undefined
  /** A data URL. */
  readonly logo: string | undefined
  readonly style: string
  /** The prefix of links to the web service: empty on that service itself. */
  readonly pagesAt: string
  /** How many lessons the first course has. */
  readonly lessons: number
}

export function frameOf(platform: ResolvedPlatform, pagesAt: string): Frame {
  const { brand, language, courses } = platform
  return {
    messages: messagesOf(language),
    language,
    name: brand && platform.name,
    logo: brand?.logo,
    style: brand === undefined ? '' : BRAND_STYLE + (brand.color === undefined ? '' : colored(brand.color)),
    pagesAt,
    lessons: courses[0]?.lessons.length ?? 0,
  }
}

const BRAND_STYLE = `
.brand { display: flex; align-items: center; gap: .6rem; max-width: 60rem; margin: 0 auto; padding: 1.1rem 1.25rem 0; font-weight: 600; }
.brand a { color: var(--ink); text-decoration: none; display: flex; align-items: center; gap: .6rem; }
.brand img { height: 2rem; width: auto; max-width: 8rem; display: block; }
`

function colored(color: string): string {
  const { accent, onAccent, accentInDark, onAccentInDark } = brandColors(color)
  return `:root { --accent: ${accent}; --on-accent: ${onAccent}; }
@media (prefers-color-scheme: dark) { :root { --accent: ${accentInDark}; --on-accent: ${onAccentInDark}; } }
`
}
