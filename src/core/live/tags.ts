/** A `tag=value; tag=value` list (RFC 6376 §3.2) by tag, or what is wrong with it. DKIM and DMARC records are such lists. */
export function readTags(
  text: string,
): { readonly tags: ReadonlyMap<string, string> } | { readonly fault: string } {
  const tags = new Map<string, string>()
  const parts = text.split(';')
  // One semicolon may follow the last tag.
  if (parts.at(-1)?.trim() === '') parts.pop()
  for (const part of parts) {
    const [, tag, value = ''] = /^\s*([A-Za-z][A-Za-z0-9_]*)\s*=([\s\S]*)$/.exec(part) ?? []
    if (tag === undefined) return { fault: 'is not a list of tags' }
    if (tags.has(tag)) return { fault: `has the tag ${tag} twice` }
    tags.set(tag, value.trim())
  }
  return { tags }
}
