import { parseAddress } from '../address.ts'
import type { Clock } from '../host.ts'
import type { SuppressionCause } from './feedback/event.ts'
import { AT_ONCE, countedDomain, type MailCount } from './feedback/sending.ts'
import { suppressionChange } from './feedback/store.ts'
import type { SuppressionList } from './feedback/suppressions.ts'
import type { Mail, Mailer, SendOutcome } from './mailer.ts'

const REASONS: Readonly<Record<SuppressionCause, string>> = {
  'hard-bounce': 'the address is suppressed: mail to it bounced',
  complaint: 'the address is suppressed: its owner reported mail as spam',
  manual: 'the address is suppressed by an operator',
}

const isOfSubscriber = ({ stream }: Pick<Mail, 'stream'>) => stream === 'course' || stream === 'notice'

export interface SuppressingMailer extends Mailer {
  /** Why the address may not have this mail, without sending it; undefined: it may. */
  refusal(mail: Pick<Mail, 'template' | 'to' | 'stream'>): Promise<SendOutcome | undefined>
}

/**
 * The mailer, sending nothing to suppressed addresses, and suppressing those that a mail server says do not exist.
 * Lessons need no look at the list: a subscription of a suppressed address has ended.
 */
export function createSuppressingMailer(
  mailer: Mailer,
  input: {
    /** Undefined while there is no store that could hold one. */
    readonly list: () => Promise<SuppressionList | undefined>
    readonly isSignIn: (template: string) => boolean
    readonly clock: Clock
    readonly onSent?: (count: MailCount) => Promise<void> | undefined
    /** Called for each mail but lessons and status notices, because such mail does not wait for a slot. */
    readonly onUrgent?: () => Promise<void>
  },
): SuppressingMailer {
  const { list, isSignIn, clock, onSent = () => undefined, onUrgent = async () => {} } = input
  const identityOf = (mail: Pick<Mail, 'to'>) => {
    const address = parseAddress(mail.to.address)
    return address.ok ? address.identity : undefined
  }

  const refusal: SuppressingMailer['refusal'] = async (mail) => {
    if (isOfSubscriber(mail)) return undefined
    const identity = identityOf(mail)
    if (identity === undefined) return undefined
    const { store, erasureHashes } = (await list()) ?? {}
    const suppression = (await store?.find(identity, erasureHashes?.(identity)))?.suppression
    // Sign-in mail stops only for an address that does not exist (CONTRACT §12).
    return suppression === undefined || (suppression.cause !== 'hard-bounce' && isSignIn(mail.template))
      ? undefined
      : { kind: 'permanent', hardBounce: false, reason: REASONS[suppression.cause] }
  }

  async function suppress(mail: Mail, reason: string): Promise<void> {
    const identity = identityOf(mail)
    const suppressions = await list()
    if (identity === undefined || suppressions === undefined) return
    const now = clock.now()
    const why = { cause: 'hard-bounce', at: now, source: AT_ONCE, reason } as const
    const change = suppressionChange(identity, why, suppressions.erasureHashes)
    const domain = countedDomain(identity)
    const counted = { at: now, kind: 'hard-bounce', source: AT_ONCE, domain, count: 1 } as const
    // The history already has the attempt, so no entry is added.
    await suppressions.store.apply([{ ...change, entry: undefined, counted }], now)
  }

  return {
    ...mailer,
    refusal,
    async send(mail, signal, recorded) {
      if (!mailer.configured) return mailer.send(mail, signal, recorded)
      if (!isOfSubscriber(mail)) {
        const reason = 'the suppression list could not be read'
        const unread = { kind: 'transient', scope: 'connection', reason } as const
        const refused = await refusal(mail).catch(() => unread)
        if (refused) return refused
        await onUrgent().catch(() => {})
      }
      const outcome = await mailer.send(mail, signal, recorded)
      if (outcome.kind === 'sent') {
        // Lower case is enough to count by domain; parsing each lesson's address again would cost too much.
        const domain = countedDomain(mail.to.address.toLowerCase())
        const source = mailer.transport ?? 'own'
        const written = onSent({ at: clock.now(), kind: 'sent', source, domain, count: 1 })
        if (written) await written.catch(() => {})
      }
      // If the suppression cannot be written now, the next bounce writes it.
      if (outcome.kind === 'permanent' && outcome.hardBounce)
        await suppress(mail, outcome.reason).catch(() => {})
      return outcome
    },
  }
}
