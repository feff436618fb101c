/**
 * Does the client want a page? True if its Accept header names HTML and does not prefer JSON (RFC 9110 §12.5.1).
 * Browsers name HTML; programs send `any type`, `application/json` or nothing, and should not get a page that they did
 * not ask for.
 */
export function prefersHtml(accept: string): boolean {
  const html = quality(accept, /^(?:text\/html|application\/xhtml\+xml)$/)
  const json = quality(accept, /^(?:application\/(?:[\w.-]+\+)?json)$/)
  return html.q > 0 && (html.q > json.q || (html.q === json.q && html.at < json.at))
}

/** The best quality of a media type that is named, and its position in the list. */
function quality(accept: string, wanted: RegExp): { readonly q: number; readonly at: number } {
  let best = { q: 0, at: Number.MAX_SAFE_INTEGER }
  // A header holds at most a few KB. No browser sends more than a few dozen ranges.
  for (const [at, range] of accept.split(',', 64).entries()) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    if (!wanted.test(type)) continue
    const given = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1'
    const q = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(given) ? Number(given) : 0
    if (q > best.q) best = { q, at }
  }
  return best
}
