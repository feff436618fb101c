import { createHash } from 'node:crypto'
import type { Directory } from '../access/directory.ts'
import type { Identity } from '../access/identity.ts'
import type { Clock } from '../clock.ts'
import type { Secret } from '../secret.ts'
import { parseAddress } from './address.ts'
import type { Mailer } from './mailer.ts'
import { recipientHash } from './recipient.ts'
import { inertText } from './record-text.ts'
import { recordUrl } from './record-url.ts'
import { RECIPIENT_CAPS, type SentMailStore } from './sent-mail.ts'

/** A mail that somebody may ask for, with the id of the record it is about. Course mails are the dispatcher's only. */
export type MailRequest =
  | { readonly template: 'organisation-invite'; readonly inputs: { readonly inviteId: string } }
  | { readonly template: 'magic-link'; readonly inputs: { readonly loginRequestId: string } }
  | { readonly template: 'exam-passed'; readonly inputs: { readonly examAttemptId: string } }
  | { readonly template: 'welcome' | 'subscription-confirmation' }

export type MailAnswer =
  | { readonly kind: 'sent'; readonly id: string }
  | { readonly kind: 'not_sent'; readonly reason: string }
  /** No such record, or not this caller's: the two are not told apart. */
  | { readonly kind: 'not_found' }
  /** The caller may ask, but the plan does not cover it. */
  | { readonly kind: 'locked' }

/** Sends what its asker may have sent, to the recipient and with the link of the server's own records (CONTRACT §4). */
export type TransactionalMail = (asker: Identity, asked: MailRequest) => Promise<MailAnswer>

export interface TransactionalMailOptions {
  readonly directory: Directory
  readonly mailer: Mailer
  readonly sentMail: SentMailStore
  /** Hashes recipients, so that their mails can be counted without keeping their addresses. */
  readonly addressKey: Secret
  /** Mails the link of an unconfirmed subscription anew; the course keeps its limits. */
  readonly confirmAgain: (email: string) => Promise<MailAnswer>
  readonly siteUrl: string
  readonly clock: Clock
}

interface Allowed {
  readonly kind: 'allowed'
  readonly to: string
  readonly slots: Readonly<Record<string, string>>
  /** The record: one mail for each. */
  readonly about: string
}

const NOT_FOUND = { kind: 'not_found' } as const
const BAD_LINK = { kind: 'not_sent', reason: 'the record holds no link that may be mailed' } as const

export function openTransactionalMail(options: TransactionalMailOptions): TransactionalMail {
  const { directory, mailer, sentMail, siteUrl, clock } = options

  async function authorise(asker: Identity, asked: MailRequest): Promise<Allowed | MailAnswer> {
    switch (asked.template) {
      case 'organisation-invite': {
        if (asker.kind !== 'person') return NOT_FOUND
        const { inviteId: id } = asked.inputs
        const invite = await directory.findInvite({ id, admin: asker.subject })
        if (invite === undefined) return NOT_FOUND
        if (invite.locked) return { kind: 'locked' }
        const inviteUrl = recordUrl(invite.url, siteUrl)
        if (inviteUrl === undefined) return BAD_LINK
        const slots = { organisation: inertText(invite.organisation), inviteUrl }
        return { kind: 'allowed', to: invite.address, slots, about: `invite.${id}` }
      }
      case 'magic-link': {
        if (asker.kind !== 'service') return NOT_FOUND
        const { loginRequestId: id } = asked.inputs
        const login = await directory.findLoginRequest({ id, now: clock.now() })
        if (login === undefined) return NOT_FOUND
        const signInUrl = recordUrl(login.url, siteUrl)
        if (signInUrl === undefined) return BAD_LINK
        return { kind: 'allowed', to: login.address, slots: { signInUrl }, about: `login.${id}` }
      }
      case 'exam-passed': {
        if (asker.kind !== 'person') return NOT_FOUND
        const { examAttemptId: id } = asked.inputs
        const passed = await directory.findPassedExam({ id, subject: asker.subject })
        if (passed === undefined) return NOT_FOUND
        const resultUrl = recordUrl(passed.url, siteUrl)
        if (resultUrl === undefined) return BAD_LINK
        const slots = { exam: inertText(passed.exam), score: `${passed.scorePercent} %`, resultUrl }
        return { kind: 'allowed', to: asker.email, slots, about: `exam.${id}` }
      }
      case 'welcome':
        if (asker.kind !== 'person') return NOT_FOUND
        return {
          kind: 'allowed',
          to: asker.email,
          slots: { startUrl: `${siteUrl}/` },
          about: `welcome.${asker.subject}`,
        }
      case 'subscription-confirmation':
        return asker.kind === 'person' ? options.confirmAgain(asker.email) : NOT_FOUND
    }
  }

  /** Two clicks meet while the first is being sent: they share its outcome. */
  const underway = new Map<string, Promise<MailAnswer>>()

  function sendOnce(template: string, allowed: Allowed): Promise<MailAnswer> {
    // A hash, because a subject or a record's id is not ours to keep twice.
    const key = createHash('sha256').update(`${template}.${allowed.about}`).digest('base64url')
    const sending = underway.get(key) ?? send(key, template, allowed).finally(() => underway.delete(key))
    underway.set(key, sending)
    return sending
  }

  async function send(key: string, template: string, { to, slots, about }: Allowed): Promise<MailAnswer> {
    if (!mailer.configured) return { kind: 'not_sent', reason: mailer.reason ?? 'mail is not configured' }
    const address = parseAddress(to)
    if (!address.ok) return { kind: 'not_sent', reason: 'the record holds no address that can be mailed' }
    const begun = await sentMail.begin({
      key,
      now: clock.now(),
      recipient: recipientHash({
        key: options.addressKey.reveal(),
        identity: address.identity,
        template,
      }),
      caps: RECIPIENT_CAPS,
    })
    if (begun === 'capped')
      return { kind: 'not_sent', reason: 'this recipient has had enough mail for now; try again later' }
    const { firstAttemptAt, sentId } = begun
    if (sentId !== undefined) return { kind: 'sent', id: sentId }
    const outcome = await mailer.send({
      template,
      slots,
      about,
      to: address.mailbox,
      date: new Date(firstAttemptAt),
    })
    if (outcome.kind !== 'sent') return { kind: 'not_sent', reason: outcome.reason }
    await sentMail.recordSent({ key, id: outcome.id })
    return { kind: 'sent', id: outcome.id }
  }

  return async (asker, asked) => {
    const verdict = await authorise(asker, asked)
    return verdict.kind === 'allowed' ? sendOnce(asked.template, verdict) : verdict
  }
}
