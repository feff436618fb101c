/** Text for an element or an attribute of XML 1.0. */
export function escapeXml(text: string): string {
  let clean = ''
  for (const char of text) {
    const code = char.codePointAt(0) ?? 0
    // Characters that XML 1.0 cannot hold, even escaped (XML §2.2).
    const isOther = code >= 0xfffe && code <= 0xffff
    const isHalf = code >= 0xd800 && code <= 0xdfff
    if ((code >= 32 && !isOther && !isHalf) || char === '\n' || char === '\t') clean += char
  }
  return clean
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&apos;')
}
