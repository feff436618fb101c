import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LONGEST_REPORT_BYTES, readMailReport } from '../../../../src/core/mail/feedback/message.ts'

/** A reason in words. */
const SAYS = expect.stringMatching(/^[a-z]+ [a-z]+ [a-z ,]+/)
const ID = 'course.sub_1.1.day-1@example.com'
const read = (text: string) => readMailReport(Buffer.from(text.replaceAll('\n', '\r\n')))

/** A delivery status notification as Postfix writes it. */
const dsn = (
  recipients: string,
  { original = `Message-ID: <${ID}>` } = {},
) => `From: MAILER-DAEMON@mx.example.net (Mail Delivery System)
To: bounce@example.com
Subject: Undelivered Mail Returned to Sender
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="B/1"

--B/1
Content-Type: text/plain; charset=utf-8

This is the mail system at host mx.example.net.

--B/1
Content-Description: Delivery report
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.net
X-Postfix-Sender: rfc822; bounce@example.com
Arrival-Date: Sun, 22 Nov 2026 02:00:00 +0000 (UTC)

${recipients}

--B/1
Content-Type: message/rfc822

From: Course <course@example.com>
To: ada@example.com
${original}
Subject: Day 1

Hello
--B/1--
`
const failed = (
  status: string,
  diagnostic = '',
  action = 'failed',
) => `Final-Recipient: rfc822; ada@example.com
Action: ${action}
Status: ${status}
Remote-MTA: dns; mx.example.com
Diagnostic-Code: smtp; ${diagnostic}`

describe('a delivery status notification', () => {
  test.each([
    ['5.1.1', 'hard-bounce', 'the address does not exist (5.1.1)'],
    ['5.2.2', 'soft-bounce', 'the mailbox does not accept mail (5.2.2)'],
    ['4.4.7', 'soft-bounce', 'the message could not be routed or timed out (4.4.7)'],
    ['5.0.0', 'soft-bounce', 'the message was returned (5.0.0)'],
    ['gone', 'soft-bounce', 'the message was returned'],
  ])('with status %s is a %s', async (status, kind, reason) => {
    expect(await read(dsn(failed(status)))).toEqual({
      kind: 'report',
      recipients: ['ada@example.com'],
      reports: [{ kind, address: 'ada@example.com', messageId: ID, reason }],
    })
  })

  test('takes the precise code of the receiving server over a vague status', async () => {
    const report = await read(
      dsn(failed('5.0.0', '550 5.1.1 <ada@example.com>: Recipient\n    address rejected: User unknown')),
    )
    expect(report).toMatchObject({
      reports: [{ kind: 'hard-bounce', reason: 'the address does not exist (5.1.1)' }],
    })
  })

  test('reports each failed recipient of several', async () => {
    const two = `${failed('5.1.1')}\n\n${failed('5.2.2').replace('ada', 'bob')}\n\n${failed('2.0.0', '', 'delivered').replace('ada', 'eve')}`
    const report = await read(dsn(two))
    expect(report.kind === 'report' && report.reports.map(({ kind, address }) => [kind, address])).toEqual([
      ['hard-bounce', 'ada@example.com'],
      ['soft-bounce', 'bob@example.com'],
      ['delivered', 'eve@example.com'],
    ])
  })

  test('is read in whatever case its action is, and with its recipient in angle brackets', async () => {
    const spelled = failed('5.1.1', '', 'Failed').replace(
      'rfc822; ada@example.com',
      'RFC822;<ada@example.com>',
    )
    expect(await read(dsn(spelled))).toMatchObject({
      reports: [{ kind: 'hard-bounce', address: 'ada@example.com' }],
    })
  })

  test('names the recipient we wrote to, and not where it was forwarded', async () => {
    const forwarded = `Original-Recipient: rfc822;ada@example.com\n${failed('5.1.1').replace('ada@example.com', 'forward@elsewhere.example')}`
    expect(await read(dsn(forwarded))).toMatchObject({ reports: [{ address: 'ada@example.com' }] })
  })

  test.each(['delayed', 'relayed', 'expanded'])('that says %s is ignored', async (action) => {
    expect(await read(dsn(failed('4.4.7', '', action)))).toMatchObject({ kind: 'ignored' })
  })

  test('without a recipient is not understood', async () => {
    expect(await read(dsn('X-Nothing: here'))).toMatchObject({ kind: 'not-understood' })
  })

  test.each([
    ['the returned headers only', 'message/rfc822', 'text/rfc822-headers'],
    ['a message to an address beyond ASCII', 'message/rfc822', 'message/global'],
    ['a status about such an address', 'message/delivery-status', 'message/global-delivery-status'],
  ])('with %s still names the message', async (_, type, other) => {
    const report = dsn(failed('5.1.1')).replace(`Content-Type: ${type}`, `Content-Type: ${other}`)
    expect(await read(report)).toMatchObject({ reports: [{ kind: 'hard-bounce', messageId: ID }] })
  })

  test('without the returned message names the one of its text, and with it to whom it was addressed, on however many lines', async () => {
    const report = dsn(failed('5.1.1'))
    const bare = report
      .replace(/\n--B\/1\nContent-Type: message\/rfc822[\s\S]*?(?=\n--B\/1--)/, '')
      .replace('mx.example.net.\n', `mx.example.net.\n\nMessage-ID: <${ID}>\n`)
    expect(await read(bare)).toMatchObject({ recipients: [], reports: [{ messageId: ID }] })
    const folded = report.replace('To: ada@example.com', 'To: Ada of the Engine\n <ada@example.com>')
    expect(await read(folded)).toMatchObject({ recipients: ['ada@example.com'] })
  })

  test('shows nothing of the remote server’s text in its reason', async () => {
    const report = await read(dsn(failed('5.7.1', '550 5.7.1 \u001b[31mcanary secret@example.com')))
    expect(JSON.stringify(report)).not.toMatch(/canary|secret/)
  })
})

const arf = (
  type: string,
  { recipient = 'Original-Rcpt-To: <ada@example.com>\n' } = {},
) => `From: <abusedesk@example.net>
To: feedback@example.com
Subject: FW: Day 1
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary="part1"

--part1
Content-Type: text/plain

This is an email abuse report.
--part1
Content-Type: message/feedback-report

Feedback-Type: ${type}
User-Agent: SomeGenerator/1.0
Version: 1
${recipient}Reported-Domain: example.com
--part1
Content-Type: message/rfc822

From: Course <course@example.com>
To: bob@example.com
Message-ID: <${ID}>
Subject: Day 1

Hello
--part1--
`

describe('an abuse report', () => {
  test.each(['abuse', 'fraud', 'virus', 'other', 'Abuse'])('of type %s is a complaint', async (type) => {
    expect(await read(arf(type))).toEqual({
      kind: 'report',
      recipients: ['bob@example.com'],
      reports: [
        {
          kind: 'complaint',
          address: 'ada@example.com',
          messageId: ID,
          reason: 'the recipient reported the message as spam',
        },
      ],
    })
  })

  test.each(['not-spam', 'auth-failure', 'dmarc'])('of type %s is ignored', async (type) => {
    expect(await read(arf(type))).toEqual({ kind: 'ignored', reason: SAYS })
  })

  test('with a redacted recipient still names the message', async () => {
    const redacted = arf('abuse', { recipient: '' }).replace('To: bob@example.com', 'To: redacted')
    expect(await read(redacted)).toMatchObject({
      reports: [{ kind: 'complaint', address: undefined, messageId: ID }],
    })
  })

  test('without a type is not understood', async () => {
    expect(await read(arf('abuse').replace('Feedback-Type: abuse\n', ''))).toEqual({
      kind: 'not-understood',
      reason: SAYS,
    })
  })
})

const EXIM = `From: Mail Delivery System <Mailer-Daemon@mx.example.net>
To: bounce@example.com
X-Failed-Recipients: ada@example.com
Auto-Submitted: auto-replied
Subject: Mail delivery failed: returning message to sender

This message was created automatically by mail delivery software.

A message that you sent could not be delivered to one or more of its
recipients. This is a permanent error. The following address(es) failed:

  ada@example.com
    host mx.example.com [192.0.2.1]
    SMTP error from remote mail server after RCPT TO:<ada@example.com>:
    550 5.1.1 <ada@example.com>: Recipient address rejected: User unknown

------ This is a copy of the message, including all the headers. ------

From: Course <course@example.com>
Message-ID: <${ID}>
Subject: Day 1

Hello 5.7.1
`
const QMAIL = `From: MAILER-DAEMON@mx.example.net
To: bounce@example.com
Subject: failure notice

Hi. This is the qmail-send program at mx.example.net.
I'm afraid I wasn't able to deliver your message to the following addresses.
This is a permanent error; I've given up. Sorry it didn't work out.

<ada@example.com>:
192.0.2.1 does not like recipient.
Remote host said: 550 No such user (#5.1.1)
Giving up on 192.0.2.1.

--- Below this line is a copy of the message.

Message-ID: <${ID}>
Subject: Day 1
`
const EXCHANGE = `From: MicrosoftExchange329e71ec88ae4615bbc36ab6ce41109e@corp.example.net
To: bounce@example.com
Subject: Undeliverable: Day 1

Delivery has failed to these recipients or groups:

ada@example.com<mailto:ada@example.com>
The email address you entered couldn't be found.

Diagnostic information for administrators:
Generating server: corp.example.net
<ada@example.com>
#550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup ##

Original message headers:
Message-ID: <${ID}>
`
const GMAIL = `From: Mail Delivery Subsystem <mailer-daemon@googlemail.com>
To: bounce@example.com
Subject: Delivery Status Notification (Failure)
X-Failed-Recipients: ada@example.com

Delivery to the following recipient failed permanently:

     ada@example.com

Technical details of permanent failure:
Google tried to deliver your message, but it was rejected by the server.
The error that the other server returned was:
550 5.2.1 The email account that you tried to reach is disabled.

----- Original message -----
Message-ID: <${ID}>
`

describe('a returned message that is no proper notification', () => {
  test.each([
    ['Exim', EXIM, 'hard-bounce'],
    ['qmail', QMAIL, 'hard-bounce'],
    ['Exchange', EXCHANGE, 'hard-bounce'],
    ['Gmail', GMAIL, 'soft-bounce'],
    ['one that quotes the message', QMAIL.replace('Message-ID', '> Message-ID'), 'hard-bounce'],
    ['a postmaster', QMAIL.replace('MAILER-DAEMON', 'Postmaster'), 'hard-bounce'],
    ['a server that names no sender', QMAIL.replace('MAILER-DAEMON@mx.example.net', '<>'), 'hard-bounce'],
  ])('of %s is classified by the code in its text', async (_, text, kind) => {
    expect(await read(text)).toMatchObject({
      kind: 'report',
      reports: [{ kind, address: 'ada@example.com', messageId: ID }],
    })
  })

  test.each([
    ['Exim', EXIM.replace('550 5.1.1 ', '550 ')],
    ['qmail', QMAIL.replace(' (#5.1.1)', '')],
    ['Exchange', EXCHANGE.replace('5.1.10 ', '')],
    ['Gmail', GMAIL.replace('5.2.1 ', '')],
  ])('of %s without a code is not understood, and never guessed', async (_, text) => {
    expect(await read(text)).toEqual({ kind: 'not-understood', reason: SAYS })
  })

  test('is ignored while the server still tries', async () => {
    const delayed = EXIM.replace(
      'Mail delivery failed: returning message to sender',
      'Warning: message delayed 24 hours',
    )
    expect(await read(delayed)).toEqual({ kind: 'ignored', reason: SAYS })
    expect(await read(QMAIL.replace('#5.1.1', '#4.4.1'))).toEqual({ kind: 'ignored', reason: SAYS })
  })

  test('from a person who quotes a bounce is ignored', async () => {
    expect(await read(EXIM.replace('Mailer-Daemon@mx.example.net', 'mallory@example.net'))).not.toMatchObject(
      { kind: 'report' },
    )
  })
})

describe('other mail', () => {
  test('an automatic reply is ignored', async () => {
    const reply = `From: ada@example.com\nSubject: Out of office\nAuto-Submitted: auto-replied\n\nI am away. 5.1.1\n`
    expect(await read(reply)).toEqual({ kind: 'ignored', reason: SAYS })
  })

  test('a letter to the bounce address is not understood', async () => {
    expect(await read('From: ada@example.com\nSubject: Hello\n\nPlease stop. 550 5.1.1\n')).toEqual({
      kind: 'not-understood',
      reason: SAYS,
    })
  })

  test('a message over 4 MB is not read, and one of 4 MB is', async () => {
    expect(LONGEST_REPORT_BYTES).toBe(4 * 1024 * 1024)
    const reason = 'it is larger than 4 MB'
    const read = (length: number) => readMailReport(new Uint8Array(length))
    expect(await read(LONGEST_REPORT_BYTES + 1)).toEqual({ kind: 'not-understood', reason })
    expect(await read(LONGEST_REPORT_BYTES)).not.toMatchObject({ reason })
  })

  test('any bytes are read without a fault', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 2000 }), async (bytes) => {
        expect((await readMailReport(bytes)).kind).not.toBe('report')
      }),
      { numRuns: 300 },
    )
  })

  test('a report cut short anywhere is never a hard bounce by guess', async () => {
    const whole = dsn(failed('5.2.2', '552 5.2.2 mailbox full'))
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: whole.length }), async (length) => {
        const report = await read(whole.slice(0, length))
        expect(report.kind === 'report' ? report.reports.map(({ kind }) => kind) : []).not.toContain(
          'hard-bounce',
        )
      }),
      { numRuns: 200 },
    )
  })
})
