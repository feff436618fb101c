import { domainToASCII } from 'node:url'
import type { Step, Verdict } from './live.ts'
import type { Network } from './network.ts'

interface Looks {
  readonly network: Network
  readonly dkimSelectors: readonly string[]
}

const VARIABLES = ['MAILER_FROM']

/** SPF (RFC 7208), DKIM (RFC 6376) and DMARC (RFC 7489) of the domain that mail comes from. */
export function senderSteps({ network, dkimSelectors }: Looks, address: string): Step[] {
  const domain = domainToASCII(address.slice(address.lastIndexOf('@') + 1))
  return [
    { check: 'SPF', variables: VARIABLES, run: (signal) => spf(network, domain, signal) },
    { check: 'DKIM', variables: VARIABLES, run: (signal) => dkim(network, domain, dkimSelectors, signal) },
    { check: 'DMARC', variables: VARIABLES, run: (signal) => dmarc(network, domain, signal) },
  ]
}

const warning = (id: 'sender-spf' | 'sender-dkim' | 'sender-dmarc', detail: string): Verdict => ({
  state: 'warning',
  id,
  detail,
})

/** More than this many look-ups of one record are an error (RFC 7208 §4.6.4). */
const MOST_LOOKUPS = 10

async function spf(network: Network, domain: string, signal: AbortSignal): Promise<Verdict> {
  const records = await spfRecords(network, domain, signal)
  const [record] = records
  if (record === undefined) return warning('sender-spf', 'has no SPF record')
  if (records.length > 1) return warning('sender-spf', 'has several SPF records, which counts as none')
  if (/(?:^|\s)\+?all(?:\s|$)/i.test(record))
    return warning('sender-spf', 'has an SPF record that lets anybody send')
  const lookups = await countLookups(network, record, signal, MOST_LOOKUPS)
  return lookups > MOST_LOOKUPS
    ? warning(
        'sender-spf',
        `has an SPF record that needs more than ${MOST_LOOKUPS} look-ups, which counts as an error`,
      )
    : { state: 'passed', detail: `published, ${lookups} of ${MOST_LOOKUPS} look-ups` }
}

async function spfRecords(network: Network, domain: string, signal: AbortSignal): Promise<readonly string[]> {
  return ((await network.txt(domain, signal)) ?? []).filter((text) => /^v=spf1(?:\s|$)/i.test(text))
}

/** Mechanisms that ask the DNS, those of included records too; stops as soon as `most` is passed. */
async function countLookups(
  network: Network,
  record: string,
  signal: AbortSignal,
  most: number,
): Promise<number> {
  let count = 0
  for (const term of record.split(/\s+/).slice(1)) {
    const [, kind = '', target = ''] =
      /^[+?~-]?(include:|redirect=|exists:|a|mx|ptr)(?:$|[:/]?)(.*)$/i.exec(term) ?? []
    if (
      kind === '' ||
      (/^(?:a|mx|ptr)$/i.test(kind) && /^[a-z]/i.test(term.replace(/^[+?~-]?(?:a|mx|ptr)/i, '')))
    )
      continue
    count += 1
    if (count > most) return count
    // A macro depends on the mail at hand and cannot be followed.
    if (/^(?:include:|redirect=)$/i.test(kind) && !target.includes('%')) {
      const [inner] = await spfRecords(network, target, signal)
      if (inner !== undefined) count += await countLookups(network, inner, signal, most - count)
    }
    if (count > most) return count
  }
  return count
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
    names.map(async (name) =>
      ((await network.txt(`${name}._domainkey.${domain}`, signal)) ?? []).find((text) =>
        /(?:^|;)\s*p=/.test(text),
      ),
    ),
  )
  const keys = found.filter((text) => text !== undefined)
  const usable = keys.filter((text) => !/(?:^|;)\s*p=\s*(?:;|$)/.test(text))
  if (selectors.length > 0 && usable.length < selectors.length)
    return warning('sender-dkim', 'lacks a usable DKIM key under a selector that was named')
  if (usable.length > 0)
    return { state: 'passed', detail: `${usable.length} key${usable.length === 1 ? '' : 's'} found` }
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
    const name = `_dmarc.${labels.slice(from).join('.')}`
    const records = ((await network.txt(name, signal)) ?? []).filter((text) =>
      /^v=DMARC1\s*(?:;|$)/.test(text),
    )
    if (records.length > 1) return warning('sender-dmarc', 'has several DMARC records, which counts as none')
    const [record] = records
    if (record === undefined) continue
    const policy = /;\s*p=\s*(none|quarantine|reject)\s*(?:;|$)/i.exec(record)?.[1]?.toLowerCase()
    if (policy === undefined) return warning('sender-dmarc', 'has a DMARC record without a policy')
    return { state: 'passed', detail: policy === 'none' ? 'policy none: reports only' : `policy ${policy}` }
  }
  return warning('sender-dmarc', 'has no DMARC record')
}
