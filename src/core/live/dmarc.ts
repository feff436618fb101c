import { readTags } from './tags.ts'

/** A DMARC record as receivers read it (RFC 7489 §6.3). */
export type DmarcReading =
  | { readonly kind: 'sound'; readonly policy: 'none' | 'quarantine' | 'reject' }
  | { readonly kind: 'broken'; readonly fault: string }

/** The values that each tag with a closed set of values allows. */
const FORMS: Readonly<Record<string, RegExp>> = {
  p: /^(?:none|quarantine|reject)$/i,
  sp: /^(?:none|quarantine|reject)$/i,
  np: /^(?:none|quarantine|reject)$/i,
  adkim: /^[rs]$/i,
  aspf: /^[rs]$/i,
  pct: /^(?:\d{1,2}|100)$/,
  fo: /^[01ds](?:\s*:\s*[01ds])*$/i,
  ri: /^\d{1,10}$/,
  rua: /^mailto:[^@\s,]+@[^@\s,]+(?:\s*,\s*mailto:[^@\s,]+@[^@\s,]+)*$/i,
  ruf: /^mailto:[^@\s,]+@[^@\s,]+(?:\s*,\s*mailto:[^@\s,]+@[^@\s,]+)*$/i,
}

/** Reads a record that begins like a DMARC record, however it goes on; undefined when the text is no such record. */
export function readDmarc(text: string): DmarcReading | undefined {
  if (!/^\s*v\s*=\s*DMARC/i.test(text)) return undefined
  if (!/^v\s*=\s*DMARC1\s*(?:;|$)/.test(text))
    return { kind: 'broken', fault: 'has a DMARC record that does not begin with v=DMARC1;' }
  const read = readTags(text)
  if ('fault' in read) return { kind: 'broken', fault: `has a DMARC record that ${read.fault}` }
  const policy = read.tags.get('p')
  if (policy === undefined) return { kind: 'broken', fault: 'has a DMARC record without a policy' }
  for (const [tag, value] of read.tags)
    if (FORMS[tag]?.test(value) === false)
      return { kind: 'broken', fault: `has a DMARC record whose ${tag}= has no valid value` }
  // Checked against its form above.
  return { kind: 'sound', policy: policy.toLowerCase() as 'none' | 'quarantine' | 'reject' }
}
