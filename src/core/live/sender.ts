import { createPublicKey, type KeyObject } from 'node:crypto'
import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import type { DkimSettings, MailSettings } from '../env/settings.ts'
import { attempt } from '../is-record.ts'
import { counted } from '../sentences.ts'
import { dkimPrivateKey, LEAST_RSA_BITS } from '../webhook-key.ts'
import { type LiveDependencies, step } from './endpoint.ts'
import { failed, type LiveCheck, passed, type Step, type StepOutcome, skipped, warning } from './live.ts'

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

const POLICY = /^(?:none|quarantine|reject)$/i
const ADDRESSES = /^mailto:[^@\s,]+@[^@\s,]+(?:\s*,\s*mailto:[^@\s,]+@[^@\s,]+)*$/i
/** The values that each tag with a closed set of values allows. */
const FORMS: Readonly<Record<string, RegExp>> = {
  p: POLICY,
  sp: POLICY,
  np: POLICY,
  adkim: /^[rs]$/i,
  aspf: /^[rs]$/i,
  pct: /^(?:\d{1,2}|100)$/,
  fo: /^[01ds](?:\s*:\s*[01ds])*$/i,
  ri: /^\d{1,10}$/,
  rua: ADDRESSES,
  ruf: ADDRESSES,
}

/**
 * Reads a record that begins like a DMARC record (RFC 7489 §6.3), however it goes on; undefined when the text is no such
 * record. `below` is the policy for sub-domains.
 */
export function readDmarc(text: string) {
  if (!/^\s*v\s*=\s*DMARC/i.test(text)) return undefined
  if (!/^v\s*=\s*DMARC1\s*(?:;|$)/.test(text))
    return broken('has a DMARC record that does not begin with v=DMARC1;')
  const read = readTags(text)
  if ('fault' in read) return broken(`has a DMARC record that ${read.fault}`)
  const policy = read.tags.get('p')
  if (policy === undefined) return broken('has a DMARC record without a policy')
  for (const [tag, value] of read.tags)
    if (FORMS[tag]?.test(value) === false)
      return broken(`has a DMARC record whose ${tag}= has no valid value`)
  const below = (read.tags.get('sp') ?? policy).toLowerCase()
  return { kind: 'sound', policy: policy.toLowerCase(), below } as const
}

/** Reads a DKIM key record (RFC 6376 §3.6.1) as a receiver does; undefined when the text is not one. */
export function readDkim(text: string) {
  if (!/(?:^|;)\s*(?:p\s*=|v\s*=\s*DKIM)/i.test(text)) return undefined
  const read = readTags(text)
  if ('fault' in read) return broken(`it ${read.fault}`)
  const { tags } = read
  const [first] = tags.keys()
  if (tags.has('v') && (first !== 'v' || tags.get('v') !== 'DKIM1'))
    return broken('it does not begin with v=DKIM1')
  const encoded = tags.get('p')?.replace(/\s/g, '')
  if (encoded === undefined) return broken('it has no key (p=)')
  if (encoded === '') return { kind: 'revoked' } as const
  const hashes = tags.get('h')?.split(':')
  if (hashes && !hashes.some((hash) => hash.trim().toLowerCase() === 'sha256'))
    return broken('it does not allow sha256')
  const type = (tags.get('k') ?? 'rsa').toLowerCase()
  if (type !== 'rsa' && type !== 'ed25519') return broken('its kind of key (k=) is unknown')
  const key = /^[A-Za-z0-9+/]+={0,2}$/.test(encoded) ? keyOf(Buffer.from(encoded, 'base64'), type) : undefined
  if (key === undefined) return broken('its key (p=) cannot be read')
  return type === 'rsa' && (key.asymmetricKeyDetails?.modulusLength ?? 0) < LEAST_RSA_BITS
    ? broken(`its RSA key has fewer than ${LEAST_RSA_BITS} bits`)
    : ({ kind: 'usable', key } as const)
}

/** Reads a public key: of RSA as SubjectPublicKeyInfo or RSAPublicKey (RFC 6376), of Ed25519 as 32 bytes (RFC 8463). */
function keyOf(bytes: Buffer, type: 'rsa' | 'ed25519'): KeyObject | undefined {
  const der = { key: bytes, format: 'der' } as const
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') }
  const forms = {
    rsa: [() => createPublicKey({ ...der, type: 'spki' }), () => createPublicKey({ ...der, type: 'pkcs1' })],
    ed25519: [() => createPublicKey({ key: jwk, format: 'jwk' })],
  }
  return forms[type].map(attempt<KeyObject>).find((key) => key?.asymmetricKeyType === type)
}

/** The sender's domain: SPF (RFC 7208), DKIM (RFC 6376), DMARC (RFC 7489). Absent is a warning, broken a failure. */
export function senderSteps(
  { network, dkimSelectors }: Pick<LiveDependencies, 'network' | 'dkimSelectors'>,
  { from, bounceAddress, dkim, route }: Pick<MailSettings, 'from' | 'bounceAddress' | 'dkim' | 'route'>,
): Step[] {
  const domain = domainOf(from.address)
  // An API has an envelope and a signature of its own.
  const isOurs = route.kind === 'smtp'
  const signing = isOurs ? dkim : undefined
  const envelope = isOurs && bounceAddress !== undefined ? domainOf(bounceAddress) : domain
  const about = (check: LiveCheck, run: (txt: Txt) => Promise<StepOutcome>) =>
    step(check, 'MAILER_FROM', (signal) => run((name) => network.txt(name, signal)))
  return [
    about('domain', async (txt) =>
      (await txt(domain)) === undefined ? failed('live-name', 'does not exist in DNS') : passed('exists'),
    ),
    // Receivers look at the domain of the envelope (RFC 7208 §2.4).
    about('SPF', (txt) => spf(txt, domain, envelope)),
    about('DKIM', (txt) => (signing ? ownDkim(txt, domain, signing) : anyDkim(txt, domain, dkimSelectors))),
    about('DMARC', (txt) => dmarc(txt, domain)),
  ]
}

async function spf(txt: Txt, domain: string, envelope: string): Promise<StepOutcome> {
  if (!isAligned(domain, envelope))
    return warning(
      'sender-spf',
      `has no part in ${envelope}, the domain of MAILER_BOUNCE_ADDRESS: DMARC does not count its SPF`,
    )
  const reading = await readSpf(txt, (await txt(envelope)) ?? [])
  if (reading.kind === 'absent') return warning('sender-spf', 'has no SPF record')
  if (reading.kind === 'broken') return failed('sender-spf', reading.fault)
  return reading.openToAll
    ? warning('sender-spf', 'has an SPF record that lets anybody send')
    : passed(`published, ${reading.lookups} of ${MOST_LOOKUPS} look-ups`)
}

const dkimAt = async (txt: Txt, name: string) =>
  (await txt(name))?.map(readDkim).find((one) => one !== undefined)

/** The usual selectors: the provider chooses the name of a key, and DNS cannot list them. */
const USUAL_SELECTORS =
  'default dkim mail smtp selector1 selector2 s1 s2 k1 k2 k3 key1 google resend pm mandrill mailjet mxvault zoho fm1'.split(
    ' ',
  )

async function anyDkim(txt: Txt, domain: string, selectors: readonly string[]): Promise<StepOutcome> {
  const names = selectors.length > 0 ? selectors : USUAL_SELECTORS
  const found = await Promise.all(
    names.map(async (name) => {
      const reading = await dkimAt(txt, `${name}._domainkey.${domain}`)
      return reading && { name, reading }
    }),
  )
  const keys = found.filter((one) => one !== undefined)
  for (const { name, reading } of keys)
    if (reading.kind === 'broken')
      return failed('sender-dkim', `has an unusable DKIM key under ${name}: ${reading.fault}`)
  const usable = keys.filter(({ reading }) => reading.kind === 'usable').length
  if (selectors.length > 0 && usable < selectors.length)
    return warning('sender-dkim', 'lacks a usable DKIM key under a selector that was named')
  if (usable > 0) return passed(`${counted(usable, 'key')} found`)
  if (keys.length > 0) return warning('sender-dkim', 'has only DKIM keys that are revoked')
  // When nothing exists below `_domainkey`, no selector can (RFC 8020).
  return (await txt(`_domainkey.${domain}`)) === undefined
    ? warning('sender-dkim', 'has no DKIM key')
    : skipped('there are keys under another selector; name it with --dkim-selector')
}

/** Compares the key that signs our mail with the one that receivers read. */
async function ownDkim(txt: Txt, from: string, signing: DkimSettings): Promise<StepOutcome> {
  const name = `${signing.selector}._domainkey.${domainToASCII(signing.domain)}`
  const reading = await dkimAt(txt, name)
  if (reading === undefined) return failed('sender-dkim', `has no DKIM key at ${name}: every signature fails`)
  if (reading.kind === 'revoked') return failed('sender-dkim', `has a revoked DKIM key at ${name}`)
  if (reading.kind === 'broken')
    return failed('sender-dkim', `has an unusable DKIM key at ${name}: ${reading.fault}`)
  const key = dkimPrivateKey(signing.key.reveal())
  if (key === undefined || !createPublicKey(key).equals(reading.key))
    return failed('sender-dkim', `publishes another key at ${name} than that of MAILER_DKIM_KEY`)
  if (!isAligned(from, domainToASCII(signing.domain)))
    return warning(
      'sender-dkim',
      `has no part in ${signing.domain}, which MAILER_DKIM_DOMAIN signs for: DMARC does not count the signature`,
    )
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0
  return bits < GOOD_RSA_BITS
    ? warning('sender-dkim', `signs with an RSA key of ${bits} bits: make one of ${GOOD_RSA_BITS}`)
    : passed(`${name} publishes the key of MAILER_DKIM_KEY`)
}

const GOOD_RSA_BITS = 2048

const domainOf = (address: string) => domainToASCII(address.slice(address.lastIndexOf('@') + 1))

/** Whether two domains are aligned for DMARC, relaxed (RFC 7489 §3.1); here, one must be within the other. */
const isAligned = (a: string, b: string) => a === b || a.endsWith(`.${b}`) || b.endsWith(`.${a}`)

async function dmarc(txt: Txt, domain: string): Promise<StepOutcome> {
  const labels = domain.split('.')
  // A subdomain without a record uses that of the domain above it.
  for (let from = 0; from <= labels.length - 2; from += 1) {
    const texts = (await txt(`_dmarc.${labels.slice(from).join('.')}`)) ?? []
    const [reading, ...more] = texts.map(readDmarc).filter((one) => one !== undefined)
    if (reading === undefined) continue
    if (more.length > 0) return failed('sender-dmarc', 'has several DMARC records, which counts as none')
    if (reading.kind === 'broken') return failed('sender-dmarc', reading.fault)
    const policy = from === 0 ? reading.policy : reading.below
    return passed(policy === 'none' ? 'policy none: reports only' : `policy ${policy}`)
  }
  return warning('sender-dmarc', 'has no DMARC record')
}
