import { parseAddress } from '../../address.ts'
import { auditEntry, type Operator, withoutAddresses } from '../../audit.ts'
import { cellValue, csvLine, readCsv } from '../../csv.ts'
import type { BounceAddresses } from './bounce-address.ts'
import { bounceKind, enhancedCode, instantOf, type Suppression, type SuppressionCause } from './event.ts'
import type { SendingStore } from './sending.ts'
import {
  type FeedbackInput,
  type FeedbackStore,
  releaseChange,
  type SuppressedAddress,
  suppressionChange,
} from './store.ts'

/** The suppression list of a store, with the keys under which the store knows addresses. */
export interface SuppressionList extends Pick<FeedbackInput, 'store' | 'erasureHashes'> {
  readonly sending: SendingStore
  /** Undefined without MAILER_BOUNCE_ADDRESS. */
  readonly bounceAddresses: BounceAddresses | undefined
  readonly wasSent: (input: { readonly identity: string; readonly messageId: string }) => Promise<boolean>
}

export type ListChange = Parameters<typeof auditEntry>[0] & { readonly operator: Operator }

const AT_ONCE = 500

/** Every suppressed address, oldest first, read in pages. */
export async function* suppressedAddresses(store: FeedbackStore): AsyncGenerator<SuppressedAddress> {
  let last: SuppressedAddress | undefined
  for (;;) {
    const page = await store.listSuppressed(AT_ONCE, last)
    yield* page
    last = page.at(-1)
    if (page.length < AT_ONCE) return
  }
}

/** Puts an address on the list, with an audit line. `erased`: it was erased, and is on the list by its hash. */
export async function suppressAddress(
  { store, erasureHashes }: SuppressionList,
  by: ListChange & Pick<CsvSuppression, 'cause' | 'reason'> & { readonly identity: string },
): Promise<'added' | 'known' | 'erased'> {
  const { identity, cause } = by
  const reason = withoutAddresses(by.reason)
  const [subject] = erasureHashes(identity)
  const now = by.clock.now()
  const change = suppressionChange(identity, { cause, at: now, source: 'operator', reason }, erasureHashes)
  const audit = auditEntry(by, { ...by, action: 'suppress', details: `${cause}: ${reason}`, subject })
  const [applied] = await store.apply([change], now, audit)
  return applied === 'erased' ? 'erased' : applied === 'changed' ? 'added' : 'known'
}

/** Takes an address off the list, with an audit line; undefined: it is not on it. `erased`: no course mails it all the same. */
export async function releaseAddress(
  { store, erasureHashes }: SuppressionList,
  { identity, reason, ...by }: ListChange & { readonly identity: string; readonly reason: string },
): Promise<'removed' | 'erased' | undefined> {
  const hashes = erasureHashes(identity)
  const known = await store.find(identity, hashes)
  if (known?.suppression === undefined) return undefined
  const now = by.clock.now()
  const [subject] = hashes
  const audit = auditEntry(by, { ...by, action: 'unsuppress', details: reason, subject })
  const release = { at: now, reason: withoutAddresses(reason), source: 'operator' }
  const [applied] = await store.apply([releaseChange(identity, release, hashes)], now, audit)
  return applied !== 'changed' ? undefined : known.identity === identity ? 'removed' : 'erased'
}

/** Imports a provider's export, a few hundred a commit; twice changes nothing. `skipped`: malformed or erased. */
export async function importSuppressions(
  { store, erasureHashes }: SuppressionList,
  { rows, file, ...by }: ListChange & { readonly rows: readonly CsvSuppression[]; readonly file: string },
) {
  const now = by.clock.now()
  const changes = rows.flatMap(({ address, cause, at = now, reason }) => {
    const parsed = parseAddress(address)
    if (!parsed.ok) return []
    const suppression = { cause, at: Math.min(at, now), source: 'import', reason }
    return [suppressionChange(parsed.identity, suppression, erasureHashes)]
  })
  const details = `import of ${changes.length} addresses from ${file}`
  const counts = { added: 0, known: 0, skipped: rows.length - changes.length }
  for (let start = 0; start < changes.length; start += AT_ONCE) {
    const audit = start === 0 ? auditEntry(by, { ...by, action: 'suppress', details }) : undefined
    for (const applied of await store.apply(changes.slice(start, start + AT_ONCE), now, audit))
      counts[applied === 'changed' ? 'added' : applied === 'erased' ? 'skipped' : 'known'] += 1
  }
  return counts
}

/** A file that is no list of suppressed addresses: one sentence with the fix. */
export class SuppressionCsvError extends Error {
  override readonly name = 'SuppressionCsvError'
}

export interface CsvSuppression extends Pick<Suppression, 'cause' | 'reason'> {
  readonly address: string
  /** UTC milliseconds; undefined when the file does not say. */
  readonly at: number | undefined
}

/** Names of columns, without the spaces and underscores of some. */
const COLUMNS = {
  address: ['address', 'email', 'emailaddress', 'recipient'],
  said: ['cause', 'suppressionreason', 'type', 'status', 'code', 'reason', 'error', 'description'],
  at: ['at', 'created', 'createdat', 'lastupdate', 'lastupdatetime', 'date', 'bouncedat'],
} as const

/** Matched against whole cells, because the text of a bounce may contain any word. */
const SAID: readonly (readonly [RegExp, SuppressionCause])[] = [
  [/^(?:spam[ _-]?(?:complaint|report)s?|complain(?:t|ed))$/i, 'complaint'],
  [/^(?:hard[ _-]?bounced?|bounced?|bad ?email ?address|invalid(?: email)?(?: address)?)$/i, 'hard-bounce'],
  [/^(?:manual(?: ?suppression)?|unsubscribed?)$/i, 'manual'],
]

/**
 * Reads a provider's export of suppressed addresses, or our own: any CSV whose first line names a column of addresses.
 * A line without a cause, by its words or status codes, is an error unless `cause` says what all are: none is guessed.
 */
export function readSuppressionCsv(text: string, cause: SuppressionCause | undefined) {
  const lines = readCsv(text)
  const names = lines.next().value?.cells.map((name) => name.toLowerCase().replaceAll(/[\s_]/g, '')) ?? []
  const columnsOf = (known: readonly string[]) =>
    known.flatMap((name) => (names.includes(name) ? [names.indexOf(name)] : []))
  const [address] = columnsOf(COLUMNS.address)
  if (address === undefined)
    throw new SuppressionCsvError(
      'the first line names no column of addresses. Name one of its columns address or email.',
    )
  const [said, [at]] = [columnsOf(COLUMNS.said), columnsOf(COLUMNS.at)]
  /** Lines about mail that may arrive later, or about a message that was refused: no reason to suppress. */
  let passing = 0
  const suppressions: CsvSuppression[] = []
  // Line by line, because a file may hold millions.
  for (const { line: number, cells: line, fault } of lines) {
    if (fault !== undefined) throw new SuppressionCsvError(`line ${number}: ${fault}. Correct it.`)
    const cells = said.map((column) => (line[column] ?? '').trim()).filter((cell) => cell !== '')
    const found = cause ?? causeOf(cells)
    if (found === undefined)
      throw new SuppressionCsvError(
        `line ${number} does not say why the address is suppressed. Say it for all lines with --cause.`,
      )
    if (found === 'passing') passing += 1
    else
      suppressions.push({
        address: cellValue(line[address] ?? ''),
        cause: found,
        at: instantOf(line[at ?? -1] ?? ''),
        reason: REASONS[found],
      })
  }
  return { suppressions, passing }
}

/** Our own reasons. The provider's text is not kept, because it can contain anything, even an address. */
const REASONS: Readonly<Record<SuppressionCause, string>> = {
  'hard-bounce': 'the provider lists the address as bounced',
  complaint: 'the provider lists the address as one that complained',
  manual: 'the provider lists the address as suppressed',
}

function causeOf(cells: readonly string[]): SuppressionCause | 'passing' | undefined {
  const [said] = cells.flatMap((cell) => SAID.filter(([pattern]) => pattern.test(cell)))
  if (said) return said[1]
  const code = enhancedCode(...cells)
  if (code === undefined) return undefined
  return bounceKind(code) === 'hard-bounce' ? 'hard-bounce' : 'passing'
}

/** The suppression list as CSV, as `readSuppressionCsv` reads it. */
export function suppressionCsv(addresses: readonly SuppressedAddress[]): string {
  const lines = addresses.map(({ identity, cause, at, source, reason }) =>
    csvLine([identity, cause, new Date(at).toISOString(), source, reason]),
  )
  return [csvLine(['address', 'cause', 'at', 'source', 'reason']), ...lines].join('')
}
