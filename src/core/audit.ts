import { type Clock, newId, type Random } from './host.ts'

/** The user who changes a store, and the machine. */
export interface Operator {
  readonly name: string
  readonly place: string
}

/** The operator named when an embedding program acts for itself. */
export const PROGRAM: Operator = { name: 'program', place: 'openPlatform' }

export const AUDIT_ACTIONS = [
  ...(['erase', 'resolve', 'resolve-incident', 'restore', 'suppress', 'unsuppress'] as const),
  ...(['pause', 'resume', 'enrol', 'cancel', 'set', 'import'] as const),
] as const
export type AuditAction = (typeof AUDIT_ACTIONS)[number]

/** One line of the audit log. No field holds an address: entries stay when a person is erased. */
export interface AuditEntry {
  readonly id: string
  /** UTC milliseconds. */
  readonly at: number
  readonly action: AuditAction
  readonly who: string
  readonly place: string
  /** The id of a subscription, or the keyed hash of an address. */
  readonly subject: string | undefined
  readonly details: string | undefined
}

/** What an operator does, and to whom. */
export type Audited = Pick<AuditEntry, 'action'> & Partial<Pick<AuditEntry, 'subject' | 'details'>>

const ID_BYTES = 12
const LONGEST = 300

/** The entry for an action, ready to be written in its transaction; addresses in `details` are masked. */
export function auditEntry(
  { clock, random }: { readonly clock: Pick<Clock, 'now'>; readonly random: Random },
  { operator, action, subject, details }: Audited & { readonly operator: Operator },
): AuditEntry {
  return {
    id: newId(random, ID_BYTES),
    at: clock.now(),
    action,
    who: plain(operator.name),
    place: plain(operator.place),
    subject,
    details: details && plain(withoutAddresses(details.slice(0, 2 * LONGEST))),
  }
}

/** Masks whatever has the form of an address, quoted or not, even percent-encoded as in a link. */
export const withoutAddresses = (text: string) =>
  text.replace(/(?:"[^"]*"|[^\s"<>]+)(?:@|%40)[^\s"<>]*/gi, '[address]')

const plain = (text: string) => text.replaceAll('\0', '\ufffd').slice(0, LONGEST).toWellFormed()
