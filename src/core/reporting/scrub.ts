import { isPersonalKey } from '../analytics/personal.ts'
import type { Reporter, ReporterInput } from './facade.ts'

const DEEPEST = 6
const WIDEST = 50
const LONGEST = 2000
/** How much of a text the rules see: more than is kept, so that no rule meets only half of what it looks for. */
const LOOKED_AT = 2 * LONGEST
const LONGEST_WORD = 1000

export type Scrub = ReturnType<typeof createScrub>

/** Keys whose values are removed, besides personal data: what a request carried, and keys to anything. */
const CARRIED =
  /cookie|header|query|body|payload|params|search|fragment|credential|signature|dsn|^session$|(?:private|access|api|link)[._-]?key/i

const TEXT_RULES: readonly (readonly [RegExp, string])[] = [
  // Credentials in an address, then everything after its path, which may hold tokens and what visitors share.
  [/([a-z][a-z\d+.-]*:\/\/)[^/\s@?#]*@/gi, '$1'],
  [/([a-z][a-z\d+.-]*:\/\/[^\s?#"'<>)]*)[?#][^\s"'<>)]*/gi, '$1'],
  // A fragment behind a path: `/play#token=…`.
  [/((?:^|[\s"'(=])\/[^\s?#"'<>)]*)#[^\s"'<>)]*/g, '$1'],
  // A query without the address before it: `/play?c=…`, `?token=…&x=1`.
  [/\?[^\s"'<>?=&]{1,200}=[^\s"'<>)]*/g, ''],
  [/\b(?:Bearer|Basic)\s+[\w.~+/=-]+|-----BEGIN [A-Z ]{0,20}PRIVATE KEY[A-Z ]{0,20}-----[^-]*/gi, '[secret]'],
  [/\b(?:eyJ[\w-]+|SG)\.[\w-]+(?:\.[\w-]*)?/g, '[secret]'],
  [/\b(?:(?:sk|pk|rk|whsec|ghp|gho|xox[abp]|AKIA)[_-]?|re_)[A-Za-z\d_-]{12,}/g, '[secret]'],
  // Webhook addresses of Slack, Discord and Telegram are secrets.
  [/(\/services\/(?=T[A-Z\d]+\/)|\/api\/webhooks\/)[\w/-]+|(\/bot\d+:)[\w-]+/g, '$1$2[secret]'],
  [
    /((?:(?:key|token|secret|passw(?:or)?d|pwd|cookie|session|authorization)["']?\s*[=:]|--(?:[a-z]+-)?(?:key|token|secret|password)\s)\s*)("[^"]*"|'[^']*'|[^\s,;&]+)/gi,
    '$1[secret]',
  ],
  // Not `npm:@scope/name`, and not `/@name` in a path.
  [/[^\s@＠<>"(),;=]*[^\s@＠:/](?:@|＠|%40)[^\s@＠<>"'(),:;=/]+/gi, '[address]'],
  // The machine's own address (127.0.0.1) stays: it says nothing about anybody.
  [/\b(?!127\.0\.0\.1\b)(?:\d{1,3}\.){3}\d{1,3}\b/g, '[address]'],
  [
    /(^|[^\w:])(?:(?:[\da-f]{1,4}:){3,7}:?[\da-f]{1,4}|[\da-f]{1,4}(?::[\da-f]{1,4})*::(?:[\da-f]{1,4}(?::[\da-f]{1,4})*)?|::[\da-f]{1,4}(?::[\da-f]{1,4})*)(?![\w:])/gi,
    '$1[address]',
  ],
]

/** Removes what must not leave from values of any shape. Never throws. `secrets` are masked in every field. */
export function createScrub({ secrets = [] }: { readonly secrets?: readonly string[] } = {}) {
  // Longest first, because one secret may be part of another.
  const known = secrets.filter((secret) => secret.length >= 6).sort((a, b) => b.length - a.length)
  const text = (given: string): string => {
    let clean = given
    for (const secret of known) clean = clean.replaceAll(secret, '[secret]')
    const isLong = clean.length > LONGEST
    if (clean.length > LOOKED_AT) clean = wholeWords(clean)
    for (const [pattern, instead] of TEXT_RULES) clean = clean.replace(pattern, instead)
    return isLong ? `${clean.slice(0, LONGEST)}…` : clean
  }
  const copy = (value: unknown, depth: number): unknown => {
    if (typeof value === 'string') return text(value)
    if (value === null || ['undefined', 'number', 'boolean'].includes(typeof value)) return value
    if (typeof value !== 'object') return `[${typeof value}]`
    if (depth === DEEPEST) return '[deeper]'
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? '[no date]' : value.toISOString()
    if (value instanceof Error || value instanceof URL) return text(String(value))
    if (Array.isArray(value))
      return value.slice(0, WIDEST).map((item) => guarded(() => copy(item, depth + 1)))
    if (ArrayBuffer.isView(value)) return '[bytes]'
    const clean: Record<string, unknown> = Object.create(null)
    for (const key of Object.keys(value).slice(0, WIDEST)) {
      if (isPersonalKey(key) || CARRIED.test(key)) clean[text(key)] = '[removed]'
      // A getter may throw.
      else clean[text(key)] = guarded(() => copy((value as Record<string, unknown>)[key], depth + 1))
    }
    return clean
  }
  return {
    text: (given: string) => String(guarded(() => text(given))),
    /** A copy: plain objects, lists and simple values only. */
    value: (value: unknown) => guarded(() => copy(value, 0)),
  }
}

function guarded(work: () => unknown): unknown {
  try {
    return work()
  } catch {
    return '[unreadable]'
  }
}

/** The beginning of a text, without a last word that was cut: that could be the first part of a secret. */
function wholeWords(text: string): string {
  const start = text.slice(0, LOOKED_AT)
  return start.slice(0, Math.max(start.search(/\s\S*$/), LOOKED_AT - LONGEST_WORD))
}

/** A reporter that passes on only scrubbed contexts, messages and users (CONTRACT §6). */
export function scrubbing(reporter: Reporter, scrub: Scrub): Reporter {
  const context = (given: ReporterInput & { kind: 'error' | 'message' }) =>
    // Scrubbing an object gives an object. Anything else is not a context.
    (typeof given.context === 'object' ? scrub.value(given.context) : undefined) as typeof given.context
  return {
    report(report) {
      if (report.kind === 'error') return reporter.report({ ...report, context: context(report) })
      if (report.kind === 'message')
        return reporter.report({ ...report, message: scrub.text(report.message), context: context(report) })
      const id = report.user?.id
      const user = id === undefined ? undefined : { id: scrub.text(String(id)) }
      return reporter.report({ kind: 'user', user })
    },
  }
}
