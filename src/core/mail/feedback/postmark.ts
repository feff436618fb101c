import { isAcceptedSecret } from '../../accepted-secret.ts'
import type { FeedbackKind } from './event.ts'
import {
  type FeedbackProvider,
  fields,
  messageId,
  optionalText,
  parseBody,
  refused,
  text,
  timeOf,
} from './provider.ts'
import { reasonFor } from './standard.ts'
import { enhancedCode } from './status.ts'

/** Postmark signs nothing: the webhook's URL carries a user name and a password, and the password is the secret. */
export const postmark: FeedbackProvider = {
  verify({ header, body }, { secret }) {
    const basic = /^Basic ([A-Za-z0-9+/=]{1,1000})$/i.exec(header('authorization') ?? '')?.[1]
    if (basic === undefined) return refused('the password is missing')
    const credentials = Buffer.from(basic, 'base64').toString()
    const password = credentials.slice(credentials.indexOf(':') + 1)
    if (!isAcceptedSecret(password, secret)) return refused('the password is wrong')
    const value = parseBody(body)
    return value === undefined ? refused('the body is not JSON') : { kind: 'genuine', value }
  },
  read(value, { now }) {
    const event = fields(value, 'the body')
    const type = optionalText(event.RecordType) ?? 'Bounce'
    const kind = kindOf(type, event)
    if (kind === undefined) return { events: [], ignored: 1 }
    const recipient = type === 'Bounce' || type === 'SpamComplaint' ? event.Email : event.Recipient
    const address = text(recipient, 'Email')
    const message = text(event.MessageID, 'MessageID')
    const status = enhancedCode(optionalText(event.Details) ?? '')
    return {
      events: [
        {
          // Only bounces have an id of their own; of the others there is one for each message, recipient and time.
          id: [type, event.ID ?? message, event.ChangedAt ?? '', address].join('/').slice(0, 500),
          kind,
          address,
          messageId: messageId(event.MessageID),
          at: timeOf(event.BouncedAt ?? event.DeliveredAt ?? event.ChangedAt, now),
          reason: reasonFor(kind, status),
        },
      ],
      ignored: 0,
    }
  },
}

/** Postmark's bounce types; those that are not listed say nothing about the recipient's mailbox. */
const BOUNCES: Readonly<Record<string, FeedbackKind>> = {
  HardBounce: 'hard-bounce',
  BadEmailAddress: 'hard-bounce',
  SpamComplaint: 'complaint',
  Unsubscribe: 'unsubscribed',
  Transient: 'soft-bounce',
  DnsError: 'soft-bounce',
  SoftBounce: 'soft-bounce',
  SpamNotification: 'soft-bounce',
  VirusNotification: 'soft-bounce',
  Blocked: 'soft-bounce',
  Unknown: 'soft-bounce',
}

const SUPPRESSIONS: Readonly<Record<string, FeedbackKind>> = {
  HardBounce: 'hard-bounce',
  SpamComplaint: 'complaint',
  ManualSuppression: 'unsubscribed',
}

function kindOf(type: string, event: Readonly<Record<string, unknown>>): FeedbackKind | undefined {
  switch (type) {
    case 'Bounce':
      return own(BOUNCES, optionalText(event.Type))
    case 'SpamComplaint':
      return 'complaint'
    case 'SubscriptionChange':
      return event.SuppressSending === true
        ? own(SUPPRESSIONS, optionalText(event.SuppressionReason))
        : undefined
    case 'Delivery':
      return 'delivered'
    default:
      return undefined
  }
}

function own<T>(table: Readonly<Record<string, T>>, key: string | undefined): T | undefined {
  return key !== undefined && Object.hasOwn(table, key) ? table[key] : undefined
}
