import { randomBytes } from 'node:crypto'
import { brandColors } from '../../core/colour.ts'
import { escapeHtml } from '../../core/mail/template.ts'
import { messagesOf, spokenIn } from '../../core/messages/messages.ts'
import { PATHS } from '../../core/paths.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'

export type Page = Readonly<ReturnType<typeof page>>

interface Extras {
  readonly wide?: boolean
  /** One sentence, for search engines and link previews. */
  readonly description?: string
  /** A data URL of ours, in place of the platform's own. */
  readonly icon?: string | undefined
  readonly style?: string
  /** More of the head, in HTML of ours. */
  readonly head?: string
  /** Where the platform's name leads; the start page when left out. */
  readonly start?: string
  /** Beside the platform's name, in HTML of ours. */
  readonly aside?: string
  /** The script asks this server for more. */
  readonly connects?: boolean
  /** A module of ours, built into `dist`. */
  readonly script?: string | undefined
  readonly data?: unknown
}

/** One page frame for all: light and dark, phone and desktop, no remote asset, and a script only where a page brings one. `body` is trusted HTML. */
export function page(frame: Frame, title: string, body: string, extras: Extras = {}) {
  const { wide, icon, style = '', head = '', aside = '', script } = extras
  const nonce = randomBytes(16).toString('base64')
  const { name, logo, pagesAt } = frame
  let [data, code, allowed] = ['', '', '']
  if (script !== undefined) {
    if (extras.data !== undefined)
      data = `<script type="application/json" nonce="${nonce}">${JSON.stringify(extras.data).replaceAll('<', '\\u003c')}</script>\n`
    code = `<script type="module" nonce="${nonce}">${script.replaceAll('</script', '<\\/script')}</script>\n`
    allowed = ` script-src 'nonce-${nonce}';${extras.connects === true ? " connect-src 'self';" : ''}`
  }
  return {
    /** The Content-Security-Policy: lets its own style and script in, and nothing else. */
    policy: `default-src 'none'; style-src 'nonce-${nonce}';${allowed} img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
    html: `<!doctype html>
<html lang="${frame.messages.language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex, nofollow">
${THEME}
${described(frame, title, extras.description)}
<link rel="icon" href="${icon ?? letterIcon(name)}">${head}
<style nonce="${nonce}">${compact(STYLE + frame.style + PRINT + style)}</style>
</head>
<body>
<header class="brand"><a href="${escapeHtml(extras.start ?? `${pagesAt}/`)}">${logo === undefined ? '' : `<img src="${logo}" alt="">`}<span>${escapeHtml(name)}</span></a>${aside}</header>
<main class="${wide ? 'wide' : 'card'}">
${body}
</main>
${data}${code}</body>
</html>
`,
  }
}

/** Style without the space that is for readers. */
const compact = (css: string) => css.replaceAll(/\s*([{};,>])\s*/g, '$1').replaceAll(': ', ':')

/** The title, and what a link to the page looks like where people share it. */
function described({ name, siteUrl }: Frame, title: string, description: string | undefined): string {
  const facts = [
    ['og:title', title],
    ['og:site_name', name],
    ['og:type', 'website'],
    ['og:image', `${siteUrl}${PATHS.picture}`],
    ['twitter:card', 'summary_large_image'],
    ...(description === undefined ? [] : [['og:description', description] as const]),
  ] as const
  const about = description && `<meta name="description" content="${escapeHtml(description)}">`
  return [
    `<title>${escapeHtml(title === name ? title : `${title} · ${name}`)}</title>`,
    ...(about ? [about] : []),
    ...facts.map(([property, content]) => `<meta property="${property}" content="${escapeHtml(content)}">`),
  ].join('\n')
}

/** The first letter of the platform's name, as a favicon. */
function letterIcon(name: string): string {
  const [letter = ''] = name
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" fill="#3147a8"/><text x="8" y="12" text-anchor="middle" font-family="sans-serif" font-weight="700" font-size="11" fill="#fff">${escapeHtml(letter.toUpperCase())}</text></svg>`
  return `data:image/svg+xml,${encodeURIComponent(svg)}`
}

const GROUND = { light: '#f2f1ee', dark: '#14171d' }
const THEME = Object.entries(GROUND)
  .map(
    ([scheme, color]) =>
      `<meta name="theme-color" content="${color}" media="(prefers-color-scheme: ${scheme})">`,
  )
  .join('\n')

const STYLE = `
:root { --ground: ${GROUND.light}; --paper: #fff; --ink: #1f2430; --quiet: #565c6b; --line: #dcdad3; --accent: #3147a8; --on-accent: #fff; --ok: #1e7a46; --degraded: #8a5a00; --failing: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ground: ${GROUND.dark}; --paper: #1d212a; --ink: #e8eaf0; --quiet: #a7adbb; --line: #343a46; --accent: #a9b9ff; --on-accent: #14171d; --ok: #6fcf97; --degraded: #f2b84b; --failing: #ff8a80; }
}
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; background: var(--ground); color: var(--ink); font: 16px/1.6 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; }
main { margin: 0 auto; padding: 2rem 1.25rem 4rem; }
.brand { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: center; gap: .6rem 1rem; max-width: 60rem; margin: 0 auto; padding: 1.1rem 1.25rem 0; font-weight: 600; }
.brand > a { color: var(--ink); text-decoration: none; display: flex; align-items: center; gap: .6rem; min-width: 0; overflow-wrap: anywhere; }
.brand img { height: 2rem; width: auto; max-width: 8rem; display: block; }
.card { max-width: 34rem; background: var(--paper); border: 1px solid var(--line); border-radius: 14px; padding: 2.25rem 2.25rem 1.75rem; position: relative; top: 12vh; }
.wide { max-width: 60rem; }
@media (max-width: 38rem) { .card { top: 0; border-radius: 0; border-width: 0 0 1px; padding: 2rem 1.25rem; } }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .75rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { margin: 0 0 1rem; }
.quiet { color: var(--quiet); font-size: .9rem; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
a { color: var(--accent); }
button { font: inherit; font-weight: 600; color: var(--on-accent); background: var(--accent); border: 0; border-radius: 8px; padding: .6rem 1.1rem; cursor: pointer; }
:is(button, a, select, summary, input):focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
table { width: 100%; border-collapse: collapse; }
th, td { text-align: start; vertical-align: top; border-top: 1px solid var(--line); }
th { font-weight: 600; }
.ok { color: var(--ok); } .degraded { color: var(--degraded); } .failing { color: var(--failing); } .skipped { color: var(--quiet); }
`
/** After the colors of the brand, which are for screens. */
const PRINT = `
@media print { :root { --ground: #fff; --paper: #fff; --ink: #000; --quiet: #444; --line: #999; --accent: #3147a8; --ok: #1e7a46; --degraded: #8a5a00; --failing: #b3261e; } }
`

/** Language, name and colors shared by all pages of a platform. */
export type Frame = Readonly<ReturnType<typeof frameOf>>

export function frameOf({ brand, language, name }: ResolvedPlatform, siteUrl: string, pagesAt = siteUrl) {
  return {
    messages: messagesOf(language),
    /** Of the texts by the platform's owners, as `fr`; the engine's own texts are in the language of `messages`. */
    language,
    name,
    /** A data URL. */
    logo: brand?.logo,
    style: brand?.color === undefined ? '' : colored(brand.color),
    /** Where visitors reach the web service, without a trailing slash. */
    siteUrl,
    /** The prefix of links to the web service: empty on that service itself. */
    pagesAt,
  }
}

/** The frame in the first language that the engine speaks; else in that of the platform. */
export function frameIn(frame: Frame, languages: readonly string[]): Frame {
  const messages = languages.map(spokenIn).find((spoken) => spoken !== undefined)
  return messages === undefined ? frame : { ...frame, messages }
}

function colored(color: string): string {
  const { accent, onAccent, accentInDark, onAccentInDark } = brandColors(color)
  return `:root { --accent: ${accent}; --on-accent: ${onAccent}; }
@media (prefers-color-scheme: dark) { :root { --accent: ${accentInDark}; --on-accent: ${onAccentInDark}; } }
`
}
