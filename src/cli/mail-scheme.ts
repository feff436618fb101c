/** The mail as it looks in the scheme asked for. A frame follows the reader's own scheme, so the media query is rewritten. */
export function inScheme(html: string, scheme: string | null): string {
  const media = scheme === 'dark' ? 'all' : 'not all'
  return html
    .replaceAll('(prefers-color-scheme: dark)', media)
    .replaceAll('(prefers-color-scheme:dark)', media)
    .replace('color-scheme: light dark', `color-scheme: ${scheme === 'dark' ? 'dark' : 'light'}`)
}
