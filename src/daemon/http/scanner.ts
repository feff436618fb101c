/**
 * Did a program fetch this link, and no person follow it? Mail filters, link previews and prefetching browsers open
 * every link of a mail; a person's browser names HTML among what it accepts, and a program that means it asks for JSON.
 * A scanner that behaves as a browser in every respect cannot be told from one: `confirmation: 'button'` and `unsubscription: 'button'` are
 * for that.
 */
export function isScanner(headers: Headers): boolean {
  const accept = headers.get('accept') ?? ''
  if (!/\btext\/html\b|\bapplication\/(?:[\w.-]+\+)?json\b/i.test(accept)) return true
  if (SCANNER.test(headers.get('user-agent') ?? '')) return true
  return PURPOSES.some((name) => /prefetch|preview|prerender/i.test(headers.get(name) ?? ''))
}

/** Headers by which browsers and proxies mark a prefetch. */
export const PURPOSES = ['sec-purpose', 'purpose', 'x-moz', 'x-purpose'] as const

/** User agents of mail filters, link previews and crawlers. */
const SCANNER =
  /bot\b|bot\/|crawl|spider|scanner|preview|prefetch|proofpoint|mimecast|barracuda|safelinks|safe links|urldefense|fireeye|trellix|symantec|sophos|forcepoint|ironport|fortinet|zscaler|virustotal|urlscan|checkpoint|trend ?micro|bitdefender|kaspersky|google-safety|google-read-aloud|googleimageproxy|ggpht|yahoomailproxy|yahoo pipes|microsoft office|ms-office|outlook-|facebookexternalhit|whatsapp|telegram|discord|slack|skypeuri|headlesschrome|phantomjs/i
