/** On every answer: it must not be cached, sniffed, indexed or embedded by other sites, and its URL, which may hold a token, must not leak. */
export const COMMON = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'X-Robots-Tag': 'noindex',
  'Cross-Origin-Resource-Policy': 'same-origin',
} as const

interface Meta {
  readonly status?: number
  readonly requestId: string
  readonly headers?: Readonly<Record<string, string>>
}

export const JSON_FIELDS = {
  ...COMMON,
  'Content-Type': 'application/json; charset=utf-8',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
} as const

export function jsonResponse(
  body: unknown,
  { status = 200, requestId, headers = {} }: Meta,
  type = 'application/json',
): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: {
      ...JSON_FIELDS,
      'Content-Type': `${type}; charset=utf-8`,
      'X-Request-Id': requestId,
      ...headers,
    },
  })
}

export function htmlResponse(
  input: Meta & {
    readonly html: string
    readonly nonce: string
    readonly scripted?: boolean
    readonly connects?: boolean
  },
): Response {
  const { status = 200, requestId, headers = {}, html, nonce, scripted = false, connects = false } = input
  return new Response(html, {
    status,
    headers: {
      ...COMMON,
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': `default-src 'none'; style-src 'nonce-${nonce}';${scripted ? ` script-src 'nonce-${nonce}';` : ''}${connects ? " connect-src 'self';" : ''} img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
      'X-Request-Id': requestId,
      ...headers,
    },
  })
}

export function textResponse(
  text: string,
  { requestId, type }: Pick<Meta, 'requestId'> & { readonly type: string },
): Response {
  return new Response(text, { headers: { ...COMMON, 'Content-Type': type, 'X-Request-Id': requestId } })
}

/** A picture that other sites may show; an answer that is a minute old says nothing new. */
export function svgResponse(svg: string, { requestId }: Pick<Meta, 'requestId'>): Response {
  return new Response(svg, {
    headers: {
      ...COMMON,
      'Cross-Origin-Resource-Policy': 'cross-origin',
      'Cache-Control': 'public, max-age=60',
      'Content-Type': 'image/svg+xml; charset=utf-8',
      'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
      'X-Request-Id': requestId,
    },
  })
}

/** An answer without a body, for HEAD and prefetches, which check nothing and change nothing. */
export function emptyResponse({ status = 204, requestId, headers = {} }: Meta): Response {
  return new Response(null, { status, headers: { ...COMMON, 'X-Request-Id': requestId, ...headers } })
}

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
