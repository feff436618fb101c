import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { openInbox } from '../../../src/cli/demo/inbox.ts'
import type { Mail } from '../../../src/core/mail/mailer.ts'
import { openMailer } from '../../../src/core/mail/open.ts'
import { secret } from '../../../src/core/secret.ts'

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
  const opened = openMailer({ mail: settings(url) })
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

test('the same mail sent again has the same bytes, Message-ID and Date', async () => {
  const inbox = await openInbox({ pagePort: 0 })
  onTestFinished(() => inbox.close())
  await mailer(inbox.smtpUrl).send(LESSON)
  await mailer(inbox.smtpUrl).send(LESSON)
  expect(inbox.mails[0]?.source).toContain('Date: Sat, 21 Nov 2026 04:00:00 +0000')
  expect(inbox.mails[1]?.source).toBe(inbox.mails[0]?.source)
})

/** A server that speaks SMTP up to the point where it misbehaves. */
async function rude(answer: (line: string, socket: Socket) => string | undefined): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.write('220 rude\r\n')
    let inData = false
    let buffered = ''
    socket.on('data', (chunk) => {
      buffered += chunk.toString('latin1')
      for (let end = buffered.indexOf('\r\n'); end !== -1; end = buffered.indexOf('\r\n')) {
        const line = buffered.slice(0, end)
        buffered = buffered.slice(end + 2)
        if (inData && line !== '.') continue
        const word = inData ? 'END' : (line.split(' ')[0] ?? '').toUpperCase()
        inData = false
        const reply =
          answer(word, socket) ??
          {
            EHLO: '250 rude',
            MAIL: '250 ok',
            RCPT: '250 ok',
            DATA: '354 go',
            END: '250 taken',
            RSET: '250 ok',
          }[word] ??
          '250 ok'
        if (socket.destroyed) return
        if (word === 'DATA' && reply.startsWith('354')) inData = true
        socket.write(`${reply}\r\n`)
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())))
  return `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test.each([
  ['greylists', 'RCPT', '451 4.7.1 come back later', { kind: 'transient', scope: 'message' }],
  ['knows no such address', 'RCPT', '550 5.1.1 no such user', { kind: 'permanent', hardBounce: true }],
  ['refuses the content', 'END', '554 5.7.1 spam', { kind: 'permanent', hardBounce: false }],
  ['is out of room', 'END', '452 4.3.1 no room', { kind: 'transient', scope: 'message' }],
  [
    'asks to come back later',
    'MAIL',
    '421 4.7.0 too many connections',
    { kind: 'transient', scope: 'connection' },
  ],
])('a server that %s: the outcome says so, and nothing is thrown', async (_, word, reply, expected) => {
  const url = await rude((said) => (said === word ? reply : undefined))
  expect(await mailer(url).send(LESSON)).toMatchObject(expected)
})

test('a server that takes the data and drops the line leaves the outcome unknown', async () => {
  const url = await rude((said, socket) => {
    if (said === 'END') socket.destroy()
    return undefined
  })
  expect(await mailer(url).send(LESSON)).toEqual({
    kind: 'unknown',
    reason: 'the connection broke after the message was handed over',
  })
})

test('a server that is not there is a fault of the connection', async () => {
  expect(await mailer('smtp://127.0.0.1:1').send(LESSON)).toEqual({
    kind: 'transient',
    scope: 'connection',
    reason: 'the mail server could not be reached',
  })
})

test('unconfigured, sending is a no-op that says so', async () => {
  const none = openMailer({ mail: undefined })
  expect(none).toMatchObject({ configured: false, reason: 'mail is not configured' })
  expect(await none.send(LESSON)).toEqual({ kind: 'not_configured', reason: 'mail is not configured' })
})

test.each([
  ['a missing slot', { ...LESSON, slots: { lessonUrl: 'https://a.example/' } }],
  ['a slot that the template does not have', { ...LESSON, slots: { ...LESSON.slots, name: 'x' } }],
  ['a script for an address', { ...LESSON, slots: { ...LESSON.slots, lessonUrl: 'javascript:alert(1)' } }],
])('%s is refused before anything is sent', async (_, mail) => {
  expect(await mailer('smtp://127.0.0.1:1').send(mail)).toMatchObject({
    kind: 'permanent',
    hardBounce: false,
  })
})
