import { once } from '../../core/calls.ts'
import { suppressionHashes } from '../../core/course/links.ts'
import { isOutcome, ruleOf } from '../../core/delivery/retries.ts'
import { MINUTE_MS } from '../../core/durations.ts'
import type { Settings } from '../../core/env/settings.ts'
import type { Host } from '../../core/host.ts'
import { createBounceAddresses } from '../../core/mail/feedback/bounce-address.ts'
import { createPacer, createTally } from '../../core/mail/feedback/pacer.ts'
import { createHeld, type StreamName, streamOf } from '../../core/mail/holds.ts'
import { openMailer } from '../../core/mail/open.ts'
import { recipientHashes } from '../../core/mail/send-once.ts'
import { createSuppressingMailer, type SuppressingMailer } from '../../core/mail/suppressing-mailer.ts'
import type { Network } from '../../core/network/get.ts'
import { createScrub } from '../../core/reporting/scrub.ts'
import type { OpenOptions } from '../embedding.ts'
import type { Stores } from './stores.ts'

/** So many people in a row whom nothing reaches: it is not they, but the provider or what we send. */
const UNREACHED = 3
/** A provider that limits our rate, cannot be reached or does not answer for a shorter time is only busy. */
const BUSY_MS = 10 * MINUTE_MS

/** If another process of the store has sent mail this long after a refusal here, the refusal is over. */
const REFUSAL_MS = 10 * MINUTE_MS
export const isRefusalOver = (refusal: { readonly at: number } | undefined, sentAt = 0) =>
  refusal !== undefined && sentAt - refusal.at > REFUSAL_MS

/** The transport behind the list of suppressed addresses, counted and paced across all dispatchers. */
export function openMail(
  { clock, timer }: Host,
  { mailer: transport, platform: { mails } }: OpenOptions,
  { mail, mailRate, sender, secretValues: secrets }: Settings,
  { store, keys, isKept }: Stores,
  counted: (stream: StreamName, outcome: 'sent' | 'failed' | 'unknown') => void,
  onDate: Network['onDate'],
) {
  const sendingStore = async () => (await store()).sending
  const tally = createTally(async () => ((await isKept()) ? sendingStore() : undefined), clock)
  /** Undefined: messages go as fast as the transport carries them. */
  const pacer =
    mailRate === undefined ? undefined : createPacer({ perSecond: mailRate, store: sendingStore, timer })
  const suppressionList = once(async () => {
    const { addressKey, linkKey, oldLinkKeys } = await keys()
    const { feedback, sending } = await store()
    return {
      store: feedback,
      sending,
      erasureHashes: (identity: string) => suppressionHashes([addressKey, linkKey, ...oldLinkKeys], identity),
      bounceAddresses:
        mail?.bounceAddress === undefined
          ? undefined
          : createBounceAddresses(mail.bounceAddress, addressKey.reveal()),
      wasSent: (sent: { readonly identity: string; readonly messageId: string }) =>
        feedback.wasSent({ ...sent, recipients: recipientHashes(addressKey.reveal(), sent.identity) }),
    }
  })
  const opened = openMailer({
    mail,
    compiled: mails.compiled,
    transport,
    ...(transport && { ...sender, cleaned: createScrub({ secrets }).text }),
    bounceAddresses: async () => (await suppressionList()).bounceAddresses,
    onDate,
  })
  // Where nothing is kept beyond the process, nothing is counted before something else has opened the store.
  const suppressing = createSuppressingMailer(opened, {
    list: async () => ((await isKept()) ? suppressionList() : undefined),
    onSent: tally.add,
    onUrgent: async () => ((await isKept()) ? pacer?.passed() : undefined),
    isSignIn: (template) => streamOf(mails.definitions, template) === 'sign-in',
    clock,
  })
  const held = createHeld(
    async () => ((await isKept()) ? (await sendingStore()).holds() : []),
    timer.monotonic,
  )
  let sending = 0
  /** False: mail is taken; null: there is none; undefined: nothing was tried yet that says. */
  let refused: string | false | null | undefined = opened.configured ? undefined : null
  /** Addresses whose messages failed since the last one that was sent, at most UNREACHED of them. */
  const unreached = new Set<string>()
  /** When the first messages since then got to nobody. */
  let busy: readonly { readonly at: number; readonly address: string }[] = []
  let failure: { readonly reason: string; readonly at: number } | undefined
  const mailer: SuppressingMailer = {
    ...suppressing,
    async send(message, signal, recorded) {
      sending += 1
      try {
        const outcome = await suppressing.send(message, signal, recorded)
        if (outcome.kind !== 'sent') failure = { reason: outcome.reason, at: clock.now() }
        if (!isOutcome(outcome)) return outcome
        const { stream = streamOf(mails.definitions, message.template) } = message
        counted(stream, outcome.kind === 'sent' || outcome.kind === 'unknown' ? outcome.kind : 'failed')
        if (outcome.kind === 'sent') {
          refused = false
          unreached.clear()
          busy = []
          return outcome
        }
        const { scope, isUnclear } = { scope: undefined, isUnclear: false, ...outcome }
        const isOurs = scope === 'sender' && !isUnclear
        const isOfAddress = outcome.kind === 'permanent' && outcome.hardBounce
        const isOfMessage = !isOurs && ruleOf(outcome).run !== 'ends'
        // A connection that breaks loses many answers at once; repeats of one message say nothing about others.
        const isOfAll = !isOfMessage || outcome.kind === 'unknown'
        const [at, { address }] = [clock.monotonic(), message.to]
        if (!isOfAll && !isOfAddress && unreached.size < UNREACHED) unreached.add(address)
        const isRepeat = isOfMessage && busy.some((one) => one.address === address)
        if (isOfAll && !isRepeat) busy = [...busy, { at, address }].slice(0, UNREACHED)
        const isBusy = busy.length < UNREACHED || at - (busy[0]?.at ?? at) < BUSY_MS
        if (isOurs) refused = outcome.reason
        if (unreached.size === UNREACHED || (isOfAll && !isBusy)) refused ||= outcome.reason
        return outcome
      } finally {
        sending -= 1
      }
    },
  }
  return {
    mailer,
    pacer,
    tally,
    held,
    suppressionList,
    /** The number of messages in flight: handed over, but not answered yet. */
    sending: () => sending,
    failure: () => failure,
    /** Why the provider refuses the sender, or everybody; false once a message went through. */
    refused: () => refused,
  }
}
