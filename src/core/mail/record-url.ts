/**
 * The link of a record: an absolute http(s) address as it is, or a path on the site. Undefined for anything else, so
 * that `//evil.example`, `/\evil.example` and other spellings that leave the site by the parser's leniency go nowhere.
 */
export function recordUrl(url: string, siteUrl: string): string | undefined {
  if (/^https?:\/\/[^/\\?#]/i.test(url)) return URL.parse(url)?.href
  const resolved = URL.parse(url, `${siteUrl}/`)
  return resolved !== null &&
    resolved.origin === new URL(siteUrl).origin &&
    !/^[a-z][a-z\d+.-]*:/i.test(url.trim())
    ? resolved.href
    : undefined
}
