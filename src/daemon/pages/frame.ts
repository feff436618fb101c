import { brandColors } from '../../core/colour.ts'
import { isLanguage, isPublic } from '../../core/course/definition.ts'
import type { Messages } from '../../core/messages/en.ts'
import { messagesOf, spokenIn } from '../../core/messages/messages.ts'
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
  /** How many lessons the first course has that everybody can read. */
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
    lessons: courses[0] !== undefined && isPublic(courses[0]) ? courses[0].lessons.length : 0,
  }
}

/** The languages that a reader wants, the first first: that of the link, then those of the browser. */
export function languagesOf(request: Request, url: URL): readonly string[] {
  const asked = url.searchParams.get('language') ?? ''
  const accepted = (request.headers.get('accept-language') ?? '').split(',', MOST_LANGUAGES).map((range) => {
    const [tag = '', quality = 'q=1'] = range.split(';').map((part) => part.trim().toLowerCase())
    return { tag, q: Number(quality.slice(2)) || 0 }
  })
  const wanted = accepted.filter(({ q }) => q > 0).sort((a, b) => b.q - a.q)
  return [asked.toLowerCase(), ...wanted.map(({ tag }) => tag)].filter(isLanguage)
}

const MOST_LANGUAGES = 32

/** The frame in the first language that the engine speaks; else in that of the platform. */
export function frameIn(frame: Frame, languages: readonly string[]): Frame {
  const messages = languages.map(spokenIn).find((spoken) => spoken !== undefined)
  return messages === undefined ? frame : { ...frame, messages }
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
