import { domainToASCII } from 'node:url'
import { type DkimReading, readDkim } from './dkim.ts'
import { type DmarcReading, readDmarc } from './dmarc.ts'
import type { Step, Verdict } from './live.ts'
import type { Network } from './network.ts'
import { MOST_LOOKUPS, readSpf } from './spf.ts'

interface Looks {
  readonly network: Network
  readonly dkimSelectors: readonly string[]
}

const VARIABLES = ['MAILER_FROM']

/**
 * The domain that mail comes from: whether it exists, then its SPF (RFC 7208), DKIM (RFC 6376) and DMARC (RFC 7489)
 * records. An absent record is a warning; one that receivers count as an error fails.
 */
export function senderSteps({ network, dkimSelectors }: Looks, address: string): Step[] {
  const domain = domainToASCII(address.slice(address.lastIndexOf('@') + 1))
  return [
    { check: 'domain', variables: VARIABLES, run: (signal) => existence(network, domain, signal) },
    { check: 'SPF', variables: VARIABLES, run: (signal) => spf(network, domain, signal) },
    { check: 'DKIM', variables: VARIABLES, run: (signal) => dkim(network, domain, dkimSelectors, signal) },
    { check: 'DMARC', variables: VARIABLES, run: (signal) => dmarc(network, domain, signal) },
  ]
}

type SenderId = 'sender-spf' | 'sender-dkim' | 'sender-dmarc'
const warning = (id: SenderId, detail: string): Verdict => ({ state: 'warning', id, detail })
const failed = (id: SenderId, detail: string): Verdict => ({ state: 'failed', id, detail })

async function existence(network: Network, domain: string, signal: AbortSignal): Promise<Verdict> {
  return (await network.txt(domain, signal)) === undefined
    ? { state: 'failed', id: 'live-name', detail: 'does not exist in DNS' }
    : { state: 'passed', detail: 'exists' }
}

async function spf(network: Network, domain: string, signal: AbortSignal): Promise<Verdict> {
  const reading = await readSpf(network, (await network.txt(domain, signal)) ?? [], signal)
  if (reading.kind === 'absent') return warning('sender-spf', 'has no SPF record')
  if (reading.kind === 'broken') return failed('sender-spf', reading.fault)
  return reading.openToAll
    ? warning('sender-spf', 'has an SPF record that lets anybody send')
    : { state: 'passed', detail: `published, ${reading.lookups} of ${MOST_LOOKUPS} look-ups` }
}

/** Under which name a key stands is the provider's choice and cannot be listed: these are the usual ones. */
const USUAL_SELECTORS = [
  'default',
  'dkim',
  'mail',
  'smtp',
  'selector1',
  'selector2',
  's1',
  's2',
  'k1',
  'k2',
  'k3',
  'key1',
  'google',
  'resend',
  'pm',
  'mandrill',
  'mailjet',
  'mxvault',
  'zoho',
  'fm1',
]

async function dkim(
  network: Network,
  domain: string,
  selectors: readonly string[],
  signal: AbortSignal,
): Promise<Verdict> {
  const names = selectors.length > 0 ? selectors : USUAL_SELECTORS
  const found = await Promise.all(
    names.map(async (name) => {
      const texts = (await network.txt(`${name}._domainkey.${domain}`, signal)) ?? []
      const reading = texts.map(readDkim).find((one) => one !== undefined)
      return reading && { name, reading }
    }),
  )
  const keys = found.filter((one) => one !== undefined)
  const ofKind = (kind: DkimReading['kind']) => keys.filter(({ reading }) => reading.kind === kind)
  for (const { name, reading } of keys)
    if (reading.kind === 'broken')
      return failed('sender-dkim', `has an unusable DKIM key under ${name}: ${reading.fault}`)
  const usable = ofKind('usable').length
  if (selectors.length > 0 && usable < selectors.length)
    return warning('sender-dkim', 'lacks a usable DKIM key under a selector that was named')
  if (usable > 0) return { state: 'passed', detail: `${usable} key${usable === 1 ? '' : 's'} found` }
  if (keys.length > 0) return warning('sender-dkim', 'has only DKIM keys that are revoked')
  // When nothing exists below `_domainkey`, no selector can (RFC 8020).
  return (await network.txt(`_domainkey.${domain}`, signal)) === undefined
    ? warning('sender-dkim', 'has no DKIM key')
    : { state: 'skipped', detail: 'there are keys under another selector; name it with --dkim-selector' }
}

async function dmarc(network: Network, domain: string, signal: AbortSignal): Promise<Verdict> {
  const labels = domain.split('.')
  // A sub-domain without a record follows the one above it.
  for (let from = 0; from <= labels.length - 2; from += 1) {
    const texts = (await network.txt(`_dmarc.${labels.slice(from).join('.')}`, signal)) ?? []
    const [reading, ...more]: DmarcReading[] = texts.map(readDmarc).filter((one) => one !== undefined)
    if (reading === undefined) continue
    if (more.length > 0) return failed('sender-dmarc', 'has several DMARC records, which counts as none')
    if (reading.kind === 'broken') return failed('sender-dmarc', reading.fault)
    const { policy } = reading
    return { state: 'passed', detail: policy === 'none' ? 'policy none: reports only' : `policy ${policy}` }
  }
  return warning('sender-dmarc', 'has no DMARC record')
}
