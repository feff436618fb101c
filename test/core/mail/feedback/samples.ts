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

// Amazon SES: notification contents and event publishing, wrapped by SNS in the test.
const sesMail = {
  timestamp: AT,
  source: 'course@example.com',
  messageId: '00000137860315fd-34208509-5b74-41f3-95c5-22c1edc3c924-000000',
  destination: ['ada@example.com'],
  commonHeaders: { messageId: '<course.sub_1.1.day-1@example.com>', subject: 'Day 1' },
}
const sesRecipient = {
  emailAddress: 'ada@example.com',
  status: '5.1.1',
  action: 'failed',
  diagnosticCode: 'smtp; 550 5.1.1 user unknown',
}
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
const both = (type: string, rest: object, ...expected: readonly FeedbackKind[]): Row[] => [
  [
    `${type} notification ${JSON.stringify(rest).slice(0, 60)}`,
    { notificationType: type, mail: sesMail, ...rest },
    ...expected,
  ],
  [
    `${type} event ${JSON.stringify(rest).slice(0, 60)}`,
    { eventType: type, mail: sesMail, ...rest },
    ...expected,
  ],
]
const ses = samples('ses', [
  ...['General', 'NoEmail', 'Suppressed', 'OnAccountSuppressionList', 'UnsubscribedRecipient'].flatMap(
    (sub) => both('Bounce', sesBounce('Permanent', sub), HARD),
  ),
  ...[
    'General',
    'MailboxFull',
    'MessageTooLarge',
    'ContentRejected',
    'AttachmentRejected',
    'CustomTimeoutExceeded',
  ].flatMap((sub) => both('Bounce', sesBounce('Transient', sub), SOFT)),
  ...both('Bounce', sesBounce('Undetermined', 'Undetermined'), SOFT),
  ...both('Bounce', sesBounce('Permanent', 'General', [{ emailAddress: 'ada@example.com' }]), HARD),
  ...both(
    'Bounce',
    sesBounce('Permanent', 'General', [sesRecipient, { emailAddress: 'bob@example.com' }, sesRecipient]),
    HARD,
    HARD,
    HARD,
  ),
  ...['abuse', 'auth-failure', 'fraud', 'other', 'virus', undefined].flatMap((complaintFeedbackType) =>
    both(
      'Complaint',
      {
        complaint: {
          complainedRecipients: [{ emailAddress: 'ada@example.com' }],
          timestamp: AT,
          feedbackId: 'f-2',
          complaintFeedbackType,
        },
      },
      'complaint',
    ),
  ),
  ...both('Complaint', {
    complaint: {
      complainedRecipients: [{ emailAddress: 'ada@example.com' }],
      timestamp: AT,
      complaintFeedbackType: 'not-spam',
    },
  }),
  ...both(
    'Delivery',
    { delivery: { timestamp: AT, recipients: ['ada@example.com'], smtpResponse: '250 ok' } },
    'delivered',
  ),
  ...both(
    'Delivery',
    { delivery: { timestamp: AT, recipients: ['ada@example.com', 'bob@example.com'] } },
    'delivered',
    'delivered',
  ),
  ...[
    'Send',
    'Reject',
    'Open',
    'Click',
    'Rendering Failure',
    'DeliveryDelay',
    'Subscription',
    'AmazonSnsSubscriptionSucceeded',
  ].map((type): Row => [type, { eventType: type, mail: sesMail, reject: { reason: 'Bad content' } }]),
])

const postmarkBounce = (Type: string, TypeCode: number) => ({
  RecordType: 'Bounce',
  ID: 4323372036854775807n.toString(),
  Type,
  TypeCode,
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
  ServerID: 123456,
  ChangedAt: AT,
  Recipient: 'ada@example.com',
  Origin: 'Recipient',
  SuppressSending,
  SuppressionReason,
})
const postmark = samples('postmark', [
  ['hard bounce', postmarkBounce('HardBounce', 1), HARD],
  ['bad address', postmarkBounce('BadEmailAddress', 100000), HARD],
  ['spam complaint as a bounce', postmarkBounce('SpamComplaint', 100001), 'complaint'],
  ['unsubscribe request as a bounce', postmarkBounce('Unsubscribe', 16), 'unsubscribed'],
  ...(
    [
      ['Transient', 2],
      ['DnsError', 256],
      ['SpamNotification', 512],
      ['Unknown', 2048],
      ['SoftBounce', 4096],
      ['VirusNotification', 8192],
      ['Blocked', 100006],
    ] as const
  ).map(([type, code]): Row => [type, postmarkBounce(type, code), SOFT]),
  ...(
    [
      ['Subscribe', 32],
      ['AutoResponder', 64],
      ['AddressChange', 128],
      ['OpenRelayTest', 1024],
      ['ChallengeVerification', 16384],
      ['ManuallyDeactivated', 100002],
      ['Unconfirmed', 100003],
      ['SMTPApiError', 100007],
      ['InboundError', 100008],
      ['DMARCPolicy', 100009],
      ['TemplateRenderingFailed', 100010],
      ['constructor', 0],
    ] as const
  ).map(([type, code]): Row => [type, postmarkBounce(type, code)]),
  ['spam complaint', { ...postmarkBounce('SpamComplaint', 512), RecordType: 'SpamComplaint' }, 'complaint'],
  ['suppressed after a hard bounce', change(true, 'HardBounce'), HARD],
  ['suppressed after a complaint', change(true, 'SpamComplaint'), 'complaint'],
  ['suppressed by hand', change(true, 'ManualSuppression'), 'unsubscribed'],
  ['reactivated', change(false, null)],
  ['reactivated with a reason', change(false, 'HardBounce')],
  ['suppressed for a new reason', change(true, 'Other')],
  [
    'delivery',
    {
      RecordType: 'Delivery',
      MessageID: 'm-1',
      Recipient: 'ada@example.com',
      DeliveredAt: AT,
      Details: 'Test',
      ServerID: 1,
    },
    'delivered',
  ],
  ['open', { RecordType: 'Open', MessageID: 'm-1', Recipient: 'ada@example.com' }],
  ['click', { RecordType: 'Click', MessageID: 'm-1', Recipient: 'ada@example.com' }],
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
const sendgrid = samples('sendgrid', [
  [
    'bounce of an invalid address',
    [
      sendgridEvent('bounce', {
        type: 'bounce',
        bounce_classification: 'Invalid Address',
        status: '5.0.0',
        reason: '500 unknown recipient',
      }),
    ],
    HARD,
  ],
  ...['5.1.1', '5.1.2', '5.1.10'].map(
    (status): Row => [
      `bounce with ${status}`,
      [sendgridEvent('bounce', { type: 'bounce', status, bounce_classification: 'Unclassified' })],
      HARD,
    ],
  ),
  ...['550', '5.0.0'].map(
    (status): Row => [
      `bounce with ${status} and a precise reply`,
      [sendgridEvent('bounce', { type: 'bounce', status, reason: '550 5.1.1 no such user' })],
      HARD,
    ],
  ),
  ...['5.0.0', '5.2.2', '5.7.1', '5.4.6', '4.2.2'].map(
    (status): Row => [
      `bounce with ${status}`,
      [sendgridEvent('bounce', { type: 'bounce', status, bounce_classification: 'Unclassified' })],
      SOFT,
    ],
  ),
  ...[
    'Technical',
    'Content',
    'Reputation',
    'Frequency or Volume Too High',
    'Mailbox Unavailable',
    'Unclassified',
  ].flatMap((bounce_classification): Row[] => [
    [
      `bounce classified ${bounce_classification}`,
      [sendgridEvent('bounce', { type: 'bounce', bounce_classification, status: '5.7.1' })],
      SOFT,
    ],
    [
      `blocked classified ${bounce_classification}`,
      [sendgridEvent('bounce', { type: 'blocked', bounce_classification, status: '5.1.1' })],
      SOFT,
    ],
  ]),
  [
    'dropped, bounced before',
    [sendgridEvent('dropped', { reason: 'Bounced Address', status: '5.0.0' })],
    HARD,
  ],
  ['dropped, invalid', [sendgridEvent('dropped', { reason: 'Invalid', status: '5.0.0' })], HARD],
  [
    'dropped, invalid SMTPAPI header',
    [sendgridEvent('dropped', { reason: 'Recipient List over Package Quota' })],
  ],
  [
    'dropped, reported as spam before',
    [sendgridEvent('dropped', { reason: 'Spam Reporting Address' })],
    'complaint',
  ],
  [
    'dropped, unsubscribed before',
    [sendgridEvent('dropped', { reason: 'Unsubscribed Address' })],
    'unsubscribed',
  ],
  [
    'dropped, spam content',
    [sendgridEvent('dropped', { reason: 'Spam Content (if Spam Checker app enabled)' })],
  ],
  ['spam report', [sendgridEvent('spamreport')], 'complaint'],
  ['unsubscribe', [sendgridEvent('unsubscribe')], 'unsubscribed'],
  ['group unsubscribe', [sendgridEvent('group_unsubscribe', { asm_group_id: 10 })], 'unsubscribed'],
  ['delivered', [sendgridEvent('delivered', { response: '250 OK' })], 'delivered'],
  ...['processed', 'deferred', 'open', 'click', 'group_resubscribe', 'account_status_change'].map(
    (event): Row => [event, [sendgridEvent(event, { attempt: '5', response: '400 try again' })]],
  ),
  ['an empty batch', []],
  [
    'a batch',
    [
      sendgridEvent('bounce', { type: 'bounce', status: '5.1.1' }),
      sendgridEvent('open'),
      sendgridEvent('spamreport'),
    ],
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
const permanent = { severity: 'permanent', reason: 'bounce' }
const mailgun = samples('mailgun', [
  [
    'hard bounce',
    mailgunEvent('failed', permanent, { 'bounce-type': 'hard', 'enhanced-code': '5.1.1' }),
    HARD,
  ],
  [
    'soft bounce',
    mailgunEvent('failed', permanent, { 'bounce-type': 'soft', 'enhanced-code': '5.2.2' }),
    SOFT,
  ],
  ...['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10'].map(
    (code): Row => [`permanent ${code}`, mailgunEvent('failed', permanent, { 'enhanced-code': code }), HARD],
  ),
  ...['5.7.1', '5.2.1', '5.2.2', '5.3.0', '5.4.1', '5.4.4', '5.6.0', '5.7.26'].map(
    (code): Row => [`permanent ${code}`, mailgunEvent('failed', permanent, { 'enhanced-code': code }), SOFT],
  ),
  [
    'permanent with the code in its message',
    mailgunEvent('failed', permanent, { message: '550 5.1.1 The email account does not exist' }),
    HARD,
  ],
  [
    'permanent with a policy in its message',
    mailgunEvent('failed', permanent, { message: '550 5.7.1 blocked by policy' }),
    SOFT,
  ],
  ['permanent without any code', mailgunEvent('failed', permanent), SOFT],
  [
    'permanent with the address in its message',
    mailgunEvent('failed', permanent, { message: '550 10.5.1.1 blocked' }),
    SOFT,
  ],
  ['too old', mailgunEvent('failed', { severity: 'permanent', reason: 'old' }, { code: 602 }), SOFT],
  ['generic', mailgunEvent('failed', { severity: 'permanent', reason: 'generic' }), SOFT],
  ['espblock', mailgunEvent('failed', { severity: 'permanent', reason: 'espblock' }), SOFT],
  [
    'suppressed after a bounce',
    mailgunEvent('failed', { severity: 'permanent', reason: 'suppress-bounce' }, { code: 605 }),
    HARD,
  ],
  [
    'suppressed after a complaint',
    mailgunEvent('failed', { severity: 'permanent', reason: 'suppress-complaint' }, { code: 607 }),
    'complaint',
  ],
  [
    'suppressed after unsubscribing',
    mailgunEvent('failed', { severity: 'permanent', reason: 'suppress-unsubscribe' }, { code: 606 }),
    'unsubscribed',
  ],
  ...['generic', 'greylisted', 'bounce', 'hardfail', 'suppress-bounce'].map(
    (reason): Row => [
      `temporary ${reason}`,
      mailgunEvent('failed', { severity: 'temporary', reason }, { code: 450, 'enhanced-code': '4.2.0' }),
    ],
  ),
  ['complained', mailgunEvent('complained'), 'complaint'],
  ['unsubscribed', mailgunEvent('unsubscribed'), 'unsubscribed'],
  ['delivered', mailgunEvent('delivered', {}, { code: 250, message: 'OK' }), 'delivered'],
  ...['accepted', 'opened', 'clicked', 'stored', 'rejected', 'list_member_uploaded'].map(
    (event): Row => [event, mailgunEvent(event)],
  ),
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
const resendBounce = (
  type: string,
  subType: string,
  message = 'The recipient’s email address is on the suppression list',
) => resendEvent('email.bounced', { bounce: { type, subType, message } })
const resend = samples('resend', [
  ...['General', 'NoEmail', 'Suppressed', 'OnAccountSuppressionList'].map(
    (sub): Row => [`permanent ${sub}`, resendBounce('Permanent', sub), HARD],
  ),
  ...['General', 'MailboxFull', 'MessageTooLarge', 'ContentRejected', 'AttachmentRejected'].map(
    (sub): Row => [`transient ${sub}`, resendBounce('Transient', sub), SOFT],
  ),
  ['undetermined', resendBounce('Undetermined', 'Undetermined'), SOFT],
  [
    'undetermined with a dead address',
    resendBounce('Undetermined', 'Undetermined', '550 5.1.1 no such user'),
    HARD,
  ],
  ['a bounce without details', resendEvent('email.bounced'), SOFT],
  [
    'several recipients',
    resendEvent('email.bounced', {
      to: ['ada@example.com', 'bob@example.com'],
      bounce: { type: 'Permanent', subType: 'General', message: '' },
    }),
    HARD,
    HARD,
  ],
  ['a single recipient as text', resendEvent('email.complained', { to: 'ada@example.com' }), 'complaint'],
  ['complained', resendEvent('email.complained'), 'complaint'],
  ['suppressed', resendEvent('email.suppressed', { suppressed: { type: 'OnAccountSuppressionList' } }), HARD],
  ['delivered', resendEvent('email.delivered'), 'delivered'],
  ...[
    'email.sent',
    'email.opened',
    'email.clicked',
    'email.failed',
    'email.scheduled',
    'email.delivery_delayed',
    'email.received',
    'contact.created',
    'domain.updated',
  ].map((type): Row => [type, resendEvent(type)]),
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
  ...['bounce', 'opened', '__proto__', 'Hard-Bounce'].map((type): Row => [type, standardEvent(type)]),
])

export const SAMPLES: readonly Sample[] = [
  ...ses,
  ...postmark,
  ...sendgrid,
  ...mailgun,
  ...resend,
  ...standard,
]
