import { parseAddress } from '../../address.ts'
import { type AuditEntry, auditEntry, type Operator } from '../../audit.ts'
import type { Clock } from '../../clock.ts'
import type { Random } from '../../random.ts'
import type { BounceAddresses } from './bounce-address.ts'
import { type ErasureHashes, releaseChange, suppressionChange } from './changes.ts'
import type { SuppressionCause } from './mailbox.ts'
import type { SendingStore } from './sending.ts'
import type { FeedbackStore, SuppressedAddress } from './store.ts'
import type { CsvSuppression } from './suppression-csv.ts'

/** The suppression list of a store, with the keys under which the store knows addresses. */
export interface SuppressionList {
  readonly store: FeedbackStore
  readonly sending: SendingStore
  readonly erasureHashes: ErasureHashes
  /** Undefined without MAILER_BOUNCE_ADDRESS. */
  readonly bounceAddresses: BounceAddresses | undefined
  readonly wasSent: (input: { readonly identity: string; readonly messageId: string }) => Promise<boolean>
}

/** Author and time of a change to the list. */
export interface ListChange {
  readonly operator: Operator
  readonly clock: Pick<Clock, 'now'>
  readonly random: Random
}

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

/** Puts an address on the list, with an audit line. `erased`: it was erased, and is not mailed anyway. */
export async function suppressAddress(
  { store, erasureHashes }: SuppressionList,
  {
    identity,
    cause,
    reason,
    ...by
  }: ListChange & {
    readonly identity: string
    readonly cause: SuppressionCause
    readonly reason: string
  },
): Promise<'added' | 'known' | 'erased'> {
  const now = by.clock.now()
  const change = suppressionChange(identity, { cause, at: now, source: 'operator', reason }, erasureHashes)
  const audit = auditOf(by, 'suppress', `${cause}: ${reason}`, erasureHashes(identity)[0])
  const [applied] = await store.apply([change], now, audit)
  return applied === 'erased' ? 'erased' : applied === 'changed' ? 'added' : 'known'
}

/** Takes an address off the list, with an audit line; false when it is not on it. */
export async function releaseAddress(
  { store, erasureHashes }: SuppressionList,
  { identity, reason, ...by }: ListChange & { readonly identity: string; readonly reason: string },
): Promise<boolean> {
  if ((await store.find(identity))?.suppression === undefined) return false
  const now = by.clock.now()
  const audit = auditOf(by, 'unsuppress', reason, erasureHashes(identity)[0])
  const [applied] = await store.apply(
    [releaseChange(identity, { at: now, reason, source: 'operator' })],
    now,
    audit,
  )
  return applied === 'changed'
}

export interface ImportCounts {
  readonly added: number
  /** On the list already. */
  readonly known: number
  /** Lines whose address is malformed, and addresses that were erased. */
  readonly skipped: number
}

/** Puts the addresses of a provider's export on the list, a few hundred a commit; doing it twice changes nothing. */
export async function importSuppressions(
  { store, erasureHashes }: SuppressionList,
  { rows, file, ...by }: ListChange & { readonly rows: readonly CsvSuppression[]; readonly file: string },
): Promise<ImportCounts> {
  const now = by.clock.now()
  const changes = rows.flatMap(({ address, cause, at = now, reason }) => {
    const parsed = parseAddress(address)
    if (!parsed.ok) return []
    const suppression = { cause, at: Math.min(at, now), source: 'import', reason }
    return [suppressionChange(parsed.identity, suppression, erasureHashes)]
  })
  const counts = { added: 0, known: 0, skipped: rows.length - changes.length }
  for (let start = 0; start < changes.length; start += AT_ONCE) {
    const audit =
      start === 0 ? auditOf(by, 'suppress', `import of ${changes.length} addresses from ${file}`) : undefined
    for (const applied of await store.apply(changes.slice(start, start + AT_ONCE), now, audit))
      counts[applied === 'changed' ? 'added' : applied === 'erased' ? 'skipped' : 'known'] += 1
  }
  return counts
}

function auditOf(
  { operator, clock, random }: ListChange,
  action: 'suppress' | 'unsuppress',
  details: string,
  subject?: string,
): AuditEntry {
  return auditEntry({ action, operator, now: clock.now(), random, details, ...(subject && { subject }) })
}
