import { expect, onTestFinished, test } from 'vitest'
import { openInbox } from '../../../src/cli/demo/inbox.ts'
import type { Mail } from '../../../src/core/mail/mailer.ts'
import { openMailer } from '../../../src/core/mail/open.ts'
import { smtpPool } from '../../../src/core/mail/transports/smtp-pool.ts'
import { secret } from '../../../src/core/secret.ts'
import { compiledMails } from '../../support/learning.ts'

const settings = (smtpUrl: string) => ({
  key: secret('mail-key'),
  route: { kind: 'smtp', url: secret(smtpUrl) } as const,
  from: { name: 'Grüße, "Course"', address: 'course@example.com' },
  replyTo: { name: undefined, address: 'help@example.com' },
})

const LESSON: Mail = {
  template: 'course-day-1',
  slots: {
    lessonUrl: 'https://www.example.com/lessons/1',
    unsubscribeUrl: 'https://www.example.com/u?s=1&t=2',
  },
  to: { name: undefined, address: 'ada@example.com' },
  about: 'course.1.1.1',
  date: new Date('2026-11-21T04:00:00Z'),
  unsubscribeUrl: 'https://www.example.com/u?s=1&t=2',
}

function mailer(url: string) {
  const opened = openMailer({ compiled: compiledMails, mail: settings(url) })
  onTestFinished(() => opened.close())
  return opened
}

test('a lesson arrives with both parts, the sender, and the headers that one-click unsubscribing needs', async () => {
  const inbox = await openInbox({ pagePort: 0 })
  onTestFinished(() => inbox.close())
  expect(await mailer(inbox.smtpUrl).send(LESSON)).toMatchObject({ kind: 'sent' })
  const [mail] = inbox.mails
  const header = (name: string) => mail?.headers.find((one) => one.name.toLowerCase() === name)?.value
  expect(mail).toMatchObject({
    from: 'course@example.com',
    to: 'ada@example.com',
    subject: 'Day 1: what a qubit is',
  })
  expect(mail?.html).toContain('href="https://www.example.com/u?s=1&amp;t=2"')
  expect(mail?.text).toContain('Unsubscribe: https://www.example.com/u?s=1&t=2')
  expect(header('list-unsubscribe')).toBe('<https://www.example.com/u?s=1&t=2>')
  expect(header('list-unsubscribe-post')).toBe('List-Unsubscribe=One-Click')
  expect(header('list-id')).toBe('<course.example.com>')
  expect(header('reply-to')).toBe('help@example.com')
})

test.each([
  ['whole lines', 'Subject: dots\r\n\r\nplain\r\n'],
  ['a line that begins with a dot', 'Subject: dots\r\n\r\n.\r\nRSET\r\n'],
  ['a dot first of all', '.Subject: dots\r\n\r\nplain\r\n'],
  ['a dot on a line with no carriage return', 'Subject: dots\r\n\r\na\n.\nRSET\r\n'],
  ['a dot on a line with no line feed', 'Subject: dots\r\n\r\na\r.\rRSET\r\n'],
  ['no line end', 'Subject: dots\r\n\r\nplain'],
])('%s is one message to the server, and its lines are as they were', async (_, text) => {
  const inbox = await openInbox({ pagePort: 0 })
  onTestFinished(() => inbox.close())
  const pool = smtpPool(
    {
      host: '127.0.0.1',
      port: Number(new URL(inbox.smtpUrl).port),
      auth: undefined,
      silenceMs: 10_000,
      finalReplyMs: 10_000,
    },
    1,
  )
  onTestFinished(() => pool.close())
  const send = () =>
    pool.send({ from: 'course@example.com', to: 'ada@example.com', bytes: Buffer.from(text) }, undefined)
  expect([await send(), await send()]).toEqual([undefined, undefined])
  const lines = (source: string | undefined) => source?.replace(/\r\n$/, '').split(/\r\n|\r|\n/)
  expect(inbox.mails.map(({ source }) => lines(source))).toEqual([lines(text), lines(text)])
})

test('the same mail sent again has the same bytes, Message-ID and Date', async () => {
  const inbox = await openInbox({ pagePort: 0 })
  onTestFinished(() => inbox.close())
  await mailer(inbox.smtpUrl).send(LESSON)
  await mailer(inbox.smtpUrl).send(LESSON)
  expect(inbox.mails[0]?.source).toContain('Date: Sat, 21 Nov 2026 04:00:00 +0000')
  expect(inbox.mails[1]?.source).toBe(inbox.mails[0]?.source)
})

test('unconfigured, sending is a no-op that says so', async () => {
  const none = openMailer({ mail: undefined, compiled: compiledMails })
  expect(none).toMatchObject({ configured: false, reason: 'mail is not configured' })
  expect(await none.send(LESSON)).toEqual({ kind: 'not_configured', reason: 'mail is not configured' })
})

test.each([
  ['a missing slot', { ...LESSON, slots: { lessonUrl: 'https://a.example/' } }],
  ['a slot that the template does not have', { ...LESSON, slots: { ...LESSON.slots, name: 'x' } }],
  ['a script for an address', { ...LESSON, slots: { ...LESSON.slots, lessonUrl: 'javascript:alert(1)' } }],
])('%s is refused before anything is sent', async (_, mail) => {
  expect(await mailer('smtp://127.0.0.1:1').send(mail)).toMatchObject({
    kind: 'not_composed',
    reason: expect.stringMatching(/slot/),
  })
})
