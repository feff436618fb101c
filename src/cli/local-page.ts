import { randomBytes } from 'node:crypto'
import { escapeHtml } from '../core/mail/render.ts'

/** A page that this machine alone looks at, and the nonce that its style and script carry. */
export interface LocalPage {
  readonly html: string
  readonly nonce: string
}

/** A whole document around a body. */
export function documentOf(page: {
  readonly title: string
  readonly style: string
  readonly body: string
  readonly script?: string
  readonly bodyClass?: string
}): LocalPage {
  const { title, style, body, script, bodyClass } = page
  const nonce = randomBytes(16).toString('base64')
  return {
    nonce,
    html: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="data:,">
<style nonce="${nonce}">${style}</style>
</head>
<body${bodyClass ? ` class="${bodyClass}"` : ''}>
${body}${script ? `\n<script nonce="${nonce}">${script}</script>` : ''}
</body>
</html>`,
  }
}

/** The mail as it looks in the scheme asked for. A frame follows the reader's own scheme, so the media query is rewritten. */
export function inScheme(html: string, scheme: string | null): string {
  const media = scheme === 'dark' ? 'all' : 'not all'
  return html
    .replaceAll('(prefers-color-scheme: dark)', media)
    .replaceAll('(prefers-color-scheme:dark)', media)
    .replace('color-scheme: light dark', `color-scheme: ${scheme === 'dark' ? 'dark' : 'light'}`)
}
