import { randomBytes } from 'node:crypto'
import { brandColors } from '../../core/colour.ts'
import { isLanguage, isPublic } from '../../core/course/definition.ts'
import { escapeHtml } from '../../core/mail/render.ts'
import type { Messages } from '../../core/messages/en.ts'
import { messagesOf, spokenIn } from '../../core/messages/messages.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'

export interface Page {
  readonly html: string
  readonly nonce: string
  /** The page has a script of its own, and the policy must let it run. */
  readonly scripted?: boolean
  /** Its script asks this server, and the policy must let it. */
  readonly connects?: boolean
}

/** One page frame for all: light and dark, phone and desktop, no remote asset, and a script only where a page brings one. `body` is trusted HTML. */
export function page(input: {
  readonly frame: Frame
  readonly title: string
  readonly body: string
  readonly wide?: boolean
  /** A data URL of ours; none without it. */
  readonly icon?: string
  /** Style of this page alone. */
  readonly style?: string
  /** More of the head, in HTML of ours. */
  readonly head?: string
  /** The script asks this server for more. */
  readonly connects?: boolean
  /** A module of ours, built into `dist`. */
  readonly script?: string | undefined
  /** For the script, as JSON. */
  readonly data?: unknown
}): Page {
  const {
    frame,
    title,
    body,
    wide = false,
    icon = 'data:,',
    style = '',
    head = '',
    connects = false,
    script,
    data,
  } = input

  const nonce = randomBytes(16).toString('base64')
  const { name, logo, pagesAt } = frame
  return {
    nonce,
    scripted: script !== undefined,
    connects: connects && script !== undefined,
    html: `<!doctype html>
<html lang="${frame.messages.language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(name === undefined ? title : `${title} · ${name}`)}</title>
<link rel="icon" href="${icon}">${head}
<style nonce="${nonce}">${STYLE}${frame.style}${style}</style>
</head>
<body>
${name === undefined ? '' : `<header class="brand"><a href="${escapeHtml(pagesAt)}/">${logo === undefined ? '' : `<img src="${logo}" alt="">`}${escapeHtml(name)}</a></header>\n`}<main class="${wide ? 'wide' : 'card'}">
${body}
</main>
${data === undefined ? '' : `<script type="application/json" nonce="${nonce}">${JSON.stringify(data).replaceAll('<', '\\u003c')}</script>\n`}${script === undefined ? '' : `<script type="module" nonce="${nonce}">${script.replaceAll('</script', '<\\/script')}</script>\n`}</body>
</html>
`,
  }
}

const STYLE = `
:root { --ground: #f2f1ee; --paper: #fff; --ink: #1f2430; --quiet: #565c6b; --line: #dcdad3; --accent: #3147a8; --on-accent: #fff; --ok: #1e7a46; --degraded: #8a5a00; --failing: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #14171d; --paper: #1d212a; --ink: #e8eaf0; --quiet: #a7adbb; --line: #343a46; --accent: #a9b9ff; --on-accent: #14171d; --ok: #6fcf97; --degraded: #f2b84b; --failing: #ff8a80; }
}
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; background: var(--ground); color: var(--ink); font: 16px/1.6 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; }
main { margin: 0 auto; padding: 2rem 1.25rem 4rem; }
.card { max-width: 34rem; background: var(--paper); border: 1px solid var(--line); border-radius: 14px; padding: 2.25rem 2.25rem 1.75rem; position: relative; top: 12vh; }
.wide { max-width: 60rem; }
@media (max-width: 38rem) { .card { top: 0; border-radius: 0; border-width: 0 0 1px; padding: 2rem 1.25rem; } }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .75rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { margin: 0 0 1rem; }
.quiet { color: var(--quiet); font-size: .9rem; }
a { color: var(--accent); }
button { font: inherit; font-weight: 600; color: var(--on-accent); background: var(--accent); border: 0; border-radius: 8px; padding: .6rem 1.1rem; cursor: pointer; }
button:focus-visible, a:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
table { width: 100%; border-collapse: collapse; background: var(--paper); border: 1px solid var(--line); border-radius: 10px; }
th, td { text-align: left; vertical-align: top; padding: .55rem .9rem; border-top: 1px solid var(--line); }
tr:first-child th, tr:first-child td { border-top: 0; }
th { font-weight: 600; white-space: nowrap; width: 1%; }
.state { white-space: nowrap; font-weight: 600; width: 1%; }
@media (max-width: 38rem) {
  tr { display: grid; grid-template-columns: 1fr auto; border-top: 1px solid var(--line); padding: .5rem .9rem; }
  tr:first-child { border-top: 0; }
  th, td { border: 0; padding: 0; width: auto; } td:last-child { grid-column: 1 / -1; color: var(--quiet); overflow-wrap: anywhere; }
}
.ok { color: var(--ok); } .degraded { color: var(--degraded); } .failing { color: var(--failing); } .skipped { color: var(--quiet); }
.lesson { background: var(--paper); border: 1px solid var(--line); border-radius: 14px; padding: 2rem 2.25rem; max-width: 42rem; margin: 0 auto; }
.course { max-width: 42rem; margin: 0 auto 1rem; }
.lesson code { font-size: .95em; }
@media (max-width: 38rem) { .lesson { padding: 1.25rem; } }
nav { display: flex; justify-content: space-between; max-width: 42rem; margin: 1rem auto 0; }
`

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
