import type { FeedbackProviderName } from '../../../../src/core/env/settings.ts'
import type { FeedbackKind } from '../../../../src/core/mail/feedback/event.ts'

/** One payload as the provider's documentation shows it, or a documented variation of it. */
export interface Sample {
  readonly provider: FeedbackProviderName
  readonly name: string
  readonly value: unknown
  /** One for each recipient; empty when the event says nothing about a mailbox. */
  readonly expected: readonly FeedbackKind[]
}

const HARD: FeedbackKind = 'hard-bounce'
const SOFT: FeedbackKind = 'soft-bounce'
const AT = '2026-11-22T02:00:00.000Z'
const SECONDS = Date.parse(AT) / 1000

type Row = readonly [name: string, value: object, ...expected: readonly FeedbackKind[]]
const samples = (provider: FeedbackProviderName, rows: readonly Row[]): Sample[] =>
  rows.map(([name, value, ...expected]) => ({ provider, name, value, expected }))

/** A row for each of these names. */
const each = (names: string, payloadOf: (name: string) => object, ...expected: FeedbackKind[]): Row[] =>
  names.split(' ').map((name) => [name, payloadOf(name), ...expected])

// Amazon SES: notification contents and event publishing, wrapped by SNS in the test.
const sesMail = {
  timestamp: AT,
  source: 'course@example.com',
  messageId: '00000137860315fd-34208509-5b74-41f3-95c5-22c1edc3c924-000000',
  destination: ['ada@example.com'],
  commonHeaders: { messageId: '<course.sub_1.1.day-1@example.com>', subject: 'Day 1' },
}
const ADA = { emailAddress: 'ada@example.com' }
const BOB = { emailAddress: 'bob@example.com' }
const sesRecipient = {
  ...ADA,
  status: '5.1.1',
  action: 'failed',
  diagnosticCode: 'smtp; 550 5.1.1 user unknown',
}
const sesEvent = (eventType: string, rest: object = {}) => ({ eventType, mail: sesMail, ...rest })
const sesBounce = (
  bounceType: string,
  bounceSubType: string,
  recipients: readonly object[] = [sesRecipient],
) => ({
  bounce: {
    bounceType,
    bounceSubType,
    bouncedRecipients: recipients,
    timestamp: AT,
    feedbackId: 'f-1',
    reportingMTA: 'dns; mx.example.com',
  },
})
const sesComplaint = (complaintFeedbackType?: string) => ({
  complaint: { complainedRecipients: [ADA], timestamp: AT, feedbackId: 'f-2', complaintFeedbackType },
})
const sesDelivery = (...recipients: string[]) => ({ delivery: { timestamp: AT, recipients } })
const ses = samples('ses', [
  [
    'permanent, as a notification',
    { notificationType: 'Bounce', mail: sesMail, ...sesBounce('Permanent', 'General') },
    HARD,
  ],
  ...each(
    'General NoEmail OnAccountSuppressionList',
    (sub) => sesEvent('Bounce', sesBounce('Permanent', sub)),
    HARD,
  ),
  ...each(
    'General MailboxFull ContentRejected',
    (sub) => sesEvent('Bounce', sesBounce('Transient', sub)),
    SOFT,
  ),
  ['undetermined', sesEvent('Bounce', sesBounce('Undetermined', 'Undetermined')), SOFT],
  ['no status', sesEvent('Bounce', sesBounce('Permanent', 'General', [ADA])), HARD],
  [
    'three recipients',
    sesEvent('Bounce', sesBounce('Permanent', 'General', [sesRecipient, BOB, sesRecipient])),
    ...[HARD, HARD, HARD],
  ],
  ['complaint of abuse', sesEvent('Complaint', sesComplaint('abuse')), 'complaint'],
  ['complaint of no type', sesEvent('Complaint', sesComplaint()), 'complaint'],
  ['taken out of the spam folder', sesEvent('Complaint', sesComplaint('not-spam'))],
  ['delivery', sesEvent('Delivery', sesDelivery('ada@example.com')), 'delivered'],
  [
    'two deliveries',
    sesEvent('Delivery', sesDelivery('ada@example.com', 'bob@example.com')),
    ...(['delivered', 'delivered'] as const),
  ],
  ...each('Send Reject Open DeliveryDelay', (type) => sesEvent(type, { reject: { reason: 'Bad content' } })),
  ['a rendering failure', sesEvent('Rendering Failure')],
])

const postmarkBounce = (Type: string) => ({
  RecordType: 'Bounce',
  ID: 4323372036854775807n.toString(),
  Type,
  MessageID: '883953f4-6105-42a2-a16a-77a8eac79483',
  ServerID: 23,
  Details: 'smtp;550 5.1.1 The email account that you tried to reach does not exist',
  Email: 'ada@example.com',
  From: 'course@example.com',
  BouncedAt: AT,
  Inactive: true,
})
const change = (SuppressSending: boolean, SuppressionReason: string | null) => ({
  RecordType: 'SubscriptionChange',
  MessageID: '883953f4-6105-42a2-a16a-77a8eac79483',
  ChangedAt: AT,
  Recipient: 'ada@example.com',
  Origin: 'Recipient',
  SuppressSending,
  SuppressionReason,
})
const postmarkEvent = (RecordType: string, rest: object = {}) => ({
  RecordType,
  MessageID: 'm-1',
  Recipient: 'ada@example.com',
  ...rest,
})
const postmark = samples('postmark', [
  ['hard bounce', postmarkBounce('HardBounce'), HARD],
  ['bad address', postmarkBounce('BadEmailAddress'), HARD],
  ['spam complaint as a bounce', postmarkBounce('SpamComplaint'), 'complaint'],
  ['unsubscribe request as a bounce', postmarkBounce('Unsubscribe'), 'unsubscribed'],
  ...each(
    'Transient DnsError SpamNotification Unknown SoftBounce VirusNotification Blocked',
    postmarkBounce,
    SOFT,
  ),
  ...each('Subscribe AutoResponder ManuallyDeactivated DMARCPolicy constructor', postmarkBounce),
  ['spam complaint', { ...postmarkBounce('SpamComplaint'), RecordType: 'SpamComplaint' }, 'complaint'],
  ['suppressed after a hard bounce', change(true, 'HardBounce'), HARD],
  ['suppressed after a complaint', change(true, 'SpamComplaint'), 'complaint'],
  ['suppressed by hand', change(true, 'ManualSuppression'), 'unsubscribed'],
  ['reactivated', change(false, null)],
  ['reactivated with a reason', change(false, 'HardBounce')],
  ['suppressed for a new reason', change(true, 'Other')],
  ['delivery', postmarkEvent('Delivery', { DeliveredAt: AT, Details: 'Test' }), 'delivered'],
  ['open', postmarkEvent('Open')],
  ['inbound', { MessageID: 'm-1', From: 'ada@example.com', RecordType: 'Inbound' }],
])

let sendgridId = 0
const sendgridEvent = (event: string, rest: object = {}) => {
  sendgridId += 1
  return {
    email: 'ada@example.com',
    timestamp: SECONDS,
    'smtp-id': '<course.sub_1.1.day-1@example.com>',
    event,
    sg_event_id: `sg-${sendgridId}`,
    sg_message_id: '14c5d75ce93.dfd.64b469',
    ...rest,
  }
}
const sendgridBounce = (status: string, rest: object = {}) =>
  sendgridEvent('bounce', { type: 'bounce', bounce_classification: 'Unclassified', status, ...rest })
const dropped = (reason: string) => [sendgridEvent('dropped', { reason, status: '5.0.0' })]
const sendgrid = samples('sendgrid', [
  [
    'bounce of an invalid address',
    [sendgridBounce('5.0.0', { bounce_classification: 'Invalid Address', reason: '500 unknown recipient' })],
    HARD,
  ],
  ...each('5.1.1 5.1.10', (status) => [sendgridBounce(status)], HARD),
  [
    'a vague status and a precise reply',
    [sendgridBounce('5.0.0', { reason: '550 5.1.1 no such user' })],
    HARD,
  ],
  ...each('5.0.0 5.2.2 5.7.1 4.2.2', (status) => [sendgridBounce(status)], SOFT),
  ['bounce classified', [sendgridBounce('5.7.1', { bounce_classification: 'Mailbox Unavailable' })], SOFT],
  ['blocked', [sendgridBounce('5.1.1', { type: 'blocked', bounce_classification: 'Content' })], SOFT],
  ['dropped, bounced before', dropped('Bounced Address'), HARD],
  ['dropped, invalid', dropped('Invalid'), HARD],
  ['dropped, for a header of its sender', dropped('Invalid SMTPAPI header')],
  ['dropped, over the quota', dropped('Recipient List over Package Quota')],
  ['dropped, reported as spam before', dropped('Spam Reporting Address'), 'complaint'],
  ['dropped, unsubscribed before', dropped('Unsubscribed Address'), 'unsubscribed'],
  ['dropped, spam content', dropped('Spam Content (if Spam Checker app enabled)')],
  ['spam report', [sendgridEvent('spamreport')], 'complaint'],
  ['unsubscribe', [sendgridEvent('unsubscribe')], 'unsubscribed'],
  ['group unsubscribe', [sendgridEvent('group_unsubscribe', { asm_group_id: 10 })], 'unsubscribed'],
  ['delivered', [sendgridEvent('delivered', { response: '250 OK' })], 'delivered'],
  ...each('processed deferred open group_resubscribe', (event) => [
    sendgridEvent(event, { attempt: '5', response: '400 try again' }),
  ]),
  ['an empty batch', []],
  [
    'a batch',
    [sendgridBounce('5.1.1'), sendgridEvent('open'), sendgridEvent('spamreport')],
    HARD,
    'complaint',
  ],
])

const mailgunEvent = (event: string, rest: object = {}, status: object = {}) => ({
  'event-data': {
    event,
    id: 'G9Bn5sl1TC6nu79C8C0bwg',
    timestamp: SECONDS,
    recipient: 'ada@example.com',
    'recipient-domain': 'example.com',
    message: { headers: { 'message-id': 'course.sub_1.1.day-1@example.com' } },
    'delivery-status': { code: 550, message: '', ...status },
    ...rest,
  },
})
const permanent = (status: object = {}, reason = 'bounce') =>
  mailgunEvent('failed', { severity: 'permanent', reason }, status)
const mailgun = samples('mailgun', [
  ['hard bounce', permanent({ 'bounce-type': 'hard', 'enhanced-code': '5.2.2' }), HARD],
  ['soft bounce', permanent({ 'bounce-type': 'soft', 'enhanced-code': '5.2.2' }), SOFT],
  ['permanent 5.1.1', permanent({ 'enhanced-code': '5.1.1' }), HARD],
  ['permanent 5.7.1', permanent({ 'enhanced-code': '5.7.1' }), SOFT],
  ['the code in its message', permanent({ message: '550 5.1.1 The email account does not exist' }), HARD],
  ['a policy in its message', permanent({ message: '550 5.7.1 blocked by policy' }), SOFT],
  ['permanent without any code', permanent(), SOFT],
  ['an IP address in its message', permanent({ message: '550 10.5.1.1 blocked' }), SOFT],
  ['too old', permanent({ code: 602 }, 'old'), SOFT],
  ['suppressed after a bounce', permanent({ code: 605 }, 'suppress-bounce'), HARD],
  ['suppressed after a complaint', permanent({ code: 607 }, 'suppress-complaint'), 'complaint'],
  ['suppressed after unsubscribing', permanent({ code: 606 }, 'suppress-unsubscribe'), 'unsubscribed'],
  ...each('greylisted hardfail suppress-bounce', (reason) =>
    mailgunEvent('failed', { severity: 'temporary', reason }, { code: 450, 'enhanced-code': '4.2.0' }),
  ),
  ['complained', mailgunEvent('complained'), 'complaint'],
  ['unsubscribed', mailgunEvent('unsubscribed'), 'unsubscribed'],
  ['delivered', mailgunEvent('delivered', {}, { code: 250, message: 'OK' }), 'delivered'],
  ...each('accepted opened rejected', (event) => mailgunEvent(event)),
])

const resendEvent = (type: string, rest: object = {}) => ({
  type,
  created_at: AT,
  data: {
    created_at: AT,
    email_id: '56761188-7520-42d8-8898-ff6fc54ce618',
    from: 'Course <course@example.com>',
    to: ['ada@example.com'],
    subject: 'Day 1',
    ...rest,
  },
})
const resendBounce = (type: string, subType: string, message = 'It is on the suppression list', rest = {}) =>
  resendEvent('email.bounced', { bounce: { type, subType, message }, ...rest })
const resend = samples('resend', [
  ['permanent General', resendBounce('Permanent', 'General'), HARD],
  ['permanent NoEmail', resendBounce('Permanent', 'NoEmail'), HARD],
  ['transient General', resendBounce('Transient', 'General'), SOFT],
  ['transient MailboxFull', resendBounce('Transient', 'MailboxFull'), SOFT],
  ['undetermined', resendBounce('Undetermined', 'Undetermined'), SOFT],
  ['a dead address', resendBounce('Undetermined', 'Undetermined', '550 5.1.1 no such user'), HARD],
  ['a bounce without details', resendEvent('email.bounced'), SOFT],
  [
    'several recipients',
    resendBounce('Permanent', 'General', '', { to: ['ada@example.com', 'bob@example.com'] }),
    HARD,
    HARD,
  ],
  ['a single recipient as text', resendEvent('email.complained', { to: 'ada@example.com' }), 'complaint'],
  ['complained', resendEvent('email.complained'), 'complaint'],
  ['suppressed', resendEvent('email.suppressed', { suppressed: { type: 'OnAccountSuppressionList' } }), HARD],
  ['delivered', resendEvent('email.delivered'), 'delivered'],
  ...each('email.sent email.failed email.delivery_delayed contact.created', (type) => resendEvent(type)),
])

const standardEvent = (type: string, data: object = {}) => ({
  type,
  timestamp: AT,
  data: { address: 'ada@example.com', messageId: '<course.sub_1.1.day-1@example.com>', ...data },
})
const standard = samples('standard', [
  ['hard', standardEvent('hard-bounce', { status: '5.1.1' }), HARD],
  ['hard without a status', standardEvent('hard-bounce'), HARD],
  ['soft', standardEvent('soft-bounce', { status: '4.2.2' }), SOFT],
  ['complaint', standardEvent('complaint'), 'complaint'],
  ['unsubscribed', standardEvent('unsubscribed'), 'unsubscribed'],
  ['delivered', standardEvent('delivered'), 'delivered'],
  ...each('bounce opened __proto__ Hard-Bounce', (type) => standardEvent(type)),
])

export const SAMPLES: readonly Sample[] = [ses, postmark, sendgrid, mailgun, resend, standard].flat()
