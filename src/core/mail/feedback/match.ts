import { createHash } from 'node:crypto'
import { parseAddress } from '../../address.ts'
import type { BounceAddresses } from './bounce-address.ts'
import type { FeedbackEvent } from './event.ts'
import type { MessageReport, ReportedMessage } from './message.ts'

export interface MatchOptions {
  /** Undefined without MAILER_BOUNCE_ADDRESS. */
  readonly bounceAddresses: BounceAddresses | undefined
  /** Was this message sent to this address? */
  readonly wasSent: (input: { readonly identity: string; readonly messageId: string }) => Promise<boolean>
  /** UTC milliseconds. */
  readonly now: number
}

/**
 * The events of a report whose recipient is proven. Anybody can write a bounce, so its content is not believed: the
 * report must name the envelope sender that only mail to this address carries, or the Message-ID of a message that was
 * sent to it.
 */
export async function matchReports(
  report: Extract<MessageReport, { kind: 'report' }>,
  raw: string,
  { bounceAddresses, wasSent, now }: MatchOptions,
): Promise<{ readonly events: readonly FeedbackEvent[]; readonly unmatched: readonly ReportedMessage[] }> {
  const digest = createHash('sha256').update(raw).digest('base64url')
  const isNamed = bounceAddresses?.namedIn(raw) ?? (() => false)
  const events: FeedbackEvent[] = []
  const unmatched: ReportedMessage[] = []
  for (const one of report.reports) {
    // A report about one recipient may name where the mail was forwarded to, or nobody: then the returned message says.
    const named = [one.address, ...(report.reports.length === 1 ? report.recipients : [])]
    const identity = await firstProven(named, one.messageId)
    if (identity === undefined) {
      unmatched.push(one)
      continue
    }
    const about = one.messageId ?? digest
    events.push({
      id: `${about}/${identity}/${one.kind}`,
      kind: one.kind,
      address: identity,
      messageId: one.messageId,
      at: now,
      reason: one.reason,
    })
  }
  return { events, unmatched }

  async function firstProven(named: readonly (string | undefined)[], messageId: string | undefined) {
    for (const address of new Set(named)) {
      const parsed = parseAddress(address ?? '')
      if (!parsed.ok) continue
      const { identity } = parsed
      if (isNamed(identity)) return identity
      if (messageId !== undefined && (await wasSent({ identity, messageId }))) return identity
    }
    return undefined
  }
}
