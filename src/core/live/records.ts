import { isIP } from 'node:net'

/** The TXT records of a name; undefined when neither the name nor anything below it exists (RFC 8020). */
export type Txt = (name: string) => Promise<readonly string[] | undefined>

/** A domain may need at most this many look-ups (RFC 7208 §4.6.4). */
export const MOST_LOOKUPS = 10

/** A record, or its lack, that receivers take for a permanent error. */
export const broken = (fault: string) => ({ kind: 'broken', fault }) as const

/** Reads the SPF records of a domain (`texts`) and every record that they include, as receivers do. */
export async function readSpf(txt: Txt, texts: readonly string[]) {
  const [record, ...more] = texts.filter(isSpf)
  if (record === undefined) return { kind: 'absent' } as const
  if (more.length > 0) return broken('has several SPF records, which counts as none')
  const walk = { txt, lookups: 0 }
  const fault = await follow(walk, record)
  if (fault !== undefined) return broken(fault)
  const openToAll = /(?:^|\s)\+?all(?:\s|$)/i.test(record)
  return { kind: 'sound', lookups: walk.lookups, openToAll } as const
}

const isSpf = (text: string) => /^v=spf1(?:\s|$)/i.test(text)

/** Gives the first fault of a record and of those that it leads to; counts look-ups on the way. */
async function follow(walk: { txt: Txt; lookups: number }, record: string): Promise<string | undefined> {
  const read = record.trim().split(/\s+/).slice(1).map(readTerm)
  if (read.includes(undefined))
    return 'has an SPF record with a term that no receiver knows, which counts as an error'
  const all = read.findIndex((term) => term?.name === 'all')
  for (const [index, term] of read.entries()) {
    // Terms after `all` are never reached, and `all` makes a redirect meaningless.
    if (term === undefined || !term.asks || (all !== -1 && (index > all || term.name === 'redirect')))
      continue
    walk.lookups += 1
    if (walk.lookups > MOST_LOOKUPS)
      return `has an SPF record that needs more than ${MOST_LOOKUPS} look-ups, which counts as an error`
    // A macro depends on the message at hand and cannot be followed.
    if ((term.name !== 'include' && term.name !== 'redirect') || term.target.includes('%')) continue
    const [inner, ...others] = ((await walk.txt(term.target)) ?? []).filter(isSpf)
    const records = inner === undefined ? 'without an SPF record' : 'with several SPF records'
    if (inner === undefined || others.length > 0)
      return `has an SPF record whose ${term.name} leads to a name ${records}, which counts as an error`
    const fault = await follow(walk, inner)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** One directive or modifier (RFC 7208 §12); undefined when it has no valid form. */
function readTerm(text: string) {
  const [, modifier, value = ''] = /^([a-z][a-z0-9._-]*)=(.*)$/i.exec(text) ?? []
  if (modifier !== undefined) {
    const name = modifier.toLowerCase()
    if ((name === 'redirect' || name === 'exp') && value === '') return undefined
    return { name, target: value, asks: name === 'redirect' }
  }
  const [, mechanism = '', rest = ''] = /^[+?~-]?([a-z0-9]+)(.*)$/is.exec(text) ?? []
  const name = mechanism.toLowerCase()
  const target = rest.startsWith(':') ? rest.slice(1) : ''
  const asks = { name, target, asks: true }
  if (name === 'all') return rest === '' ? { name, target, asks: false } : undefined
  if (name === 'include' || name === 'exists') return target === '' || target.includes('/') ? undefined : asks
  if (name === 'a' || name === 'mx')
    return /^(?::[^/\s]+)?(?:\/\d{1,2})?(?:\/\/\d{1,3})?$/.test(rest) ? asks : undefined
  if (name === 'ptr') return rest === '' || target !== '' ? asks : undefined
  if (name === 'ip4' || name === 'ip6')
    return isNetwork(target, name === 'ip4' ? 4 : 6) ? { name, target, asks: false } : undefined
  return undefined
}

function isNetwork(text: string, family: 4 | 6): boolean {
  const [address = '', prefix, ...more] = text.split('/')
  const widest = family === 4 ? 32 : 128
  return (
    more.length === 0 &&
    isIP(address) === family &&
    (prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= widest))
  )
}

/** A `tag=value; tag=value` list (RFC 6376 §3.2) by tag, or what is wrong with it. DKIM and DMARC records are such lists. */
export function readTags(text: string) {
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
