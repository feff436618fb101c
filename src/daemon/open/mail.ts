import { type Clock, systemClock } from '../../core/clock.ts'
import { suppressionHashes } from '../../core/course/links.ts'
import type { Settings } from '../../core/env/settings.ts'
import { createBounceAddresses } from '../../core/mail/feedback/bounce-address.ts'
import { createPacer, createTally, type Pacer, type Tally } from '../../core/mail/feedback/pacer.ts'
import type { SuppressionList } from '../../core/mail/feedback/suppressions.ts'
import { createHeld, type Held } from '../../core/mail/holds.ts'
import { openMailer } from '../../core/mail/open.ts'
import { recipientHashes } from '../../core/mail/sent-mail.ts'
import { createSuppressingMailer, type SuppressingMailer } from '../../core/mail/suppressing-mailer.ts'
import type { Transport } from '../../core/mail/transport.ts'
import { once } from '../../core/once.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import type { Stores } from './stores.ts'

export interface MailService {
  readonly mailer: SuppressingMailer
  /** Undefined: messages go as fast as the transport carries them. */
  readonly pacer: Pacer | undefined
  readonly tally: Tally
  /** Asked before each attempt to send: does an operator hold the stream? */
  readonly held: Held
  readonly suppressionList: () => Promise<SuppressionList>
  /** The number of messages in flight: handed over, but not answered yet. */
  readonly sending: () => number
  /** Why the provider refuses the sender; undefined once a message went through. */
  readonly refused: () => string | undefined
}

/**
 * Opens the mail service: the transport behind the list of suppressed addresses, counted and paced across all
 * dispatchers.
 */
export function openMail({
  transport,
  settings,
  platform,
  stores,
  clock,
}: {
  readonly transport: Transport | undefined
  readonly settings: Settings
  readonly platform: ResolvedPlatform
  readonly stores: Stores
  readonly clock: Clock
}): MailService {
  const { store, keys, isKept } = stores
  const sendingStore = async () => (await store()).sending
  const tally = createTally(sendingStore, clock)
  const pacer =
    settings.mailRate === undefined
      ? undefined
      : createPacer({ perSecond: settings.mailRate, store: sendingStore, timer: systemClock })
  const suppressionList = once(async () => {
    const { addressKey, linkKey, oldLinkKeys } = await keys()
    const { feedback, sending } = await store()
    const bounceAddress = settings.mail?.bounceAddress
    return {
      store: feedback,
      sending,
      erasureHashes: (identity: string) => suppressionHashes([addressKey, linkKey, ...oldLinkKeys], identity),
      bounceAddresses:
        bounceAddress === undefined ? undefined : createBounceAddresses(bounceAddress, addressKey.reveal()),
      wasSent: (sent: { readonly identity: string; readonly messageId: string }) =>
        feedback.wasSent({ ...sent, recipients: recipientHashes(addressKey.reveal(), sent.identity) }),
    }
  })
  const opened = openMailer({
    mail: settings.mail,
    compiled: platform.mails.compiled,
    transport,
    bounceAddresses: async () => (await suppressionList()).bounceAddresses,
  })
  // Where nothing is kept beyond the process, nothing is counted before something else has opened the store.
  const suppressing = createSuppressingMailer(opened, {
    list: async () => ((await isKept()) ? suppressionList() : undefined),
    onSent: async (count) => ((await isKept()) ? tally.add(count) : undefined),
    onUrgent: async () => ((await isKept()) ? pacer?.passed() : undefined),
    isSignIn: (template) =>
      platform.mails.definitions.find(({ name }) => name === template)?.allowance === 'sign-in',
    clock,
  })
  const held = createHeld(
    async () => ((await isKept()) ? (await sendingStore()).holds() : []),
    systemClock.monotonic,
  )
  let sending = 0
  let refused: string | undefined
  const mailer: SuppressingMailer = {
    ...suppressing,
    async send(mail, signal, recorded) {
      sending += 1
      try {
        const outcome = await suppressing.send(mail, signal, recorded)
        if (outcome.kind === 'sent') refused = undefined
        if (outcome.kind === 'transient' && outcome.scope === 'sender') refused = outcome.reason
        return outcome
      } finally {
        sending -= 1
      }
    },
  }
  return { mailer, pacer, tally, held, suppressionList, sending: () => sending, refused: () => refused }
}
