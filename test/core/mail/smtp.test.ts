import { getEventListeners } from 'node:events'
import type { SMTPServerOptions } from 'smtp-server'
import { expect, onTestFinished, test } from 'vitest'
import { openInbox } from '../../../src/cli/demo/inbox.ts'
import { readSettings } from '../../../src/core/env/settings.ts'
import type { Mail } from '../../../src/core/mail/mailer.ts'
import { openMailer } from '../../../src/core/mail/open.ts'
import { smtpPool } from '../../../src/core/mail/transports/smtp.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { compiledMails } from '../../support/learning.ts'
import { mailerTo, smtpServer } from '../../support/mailers.ts'
import { type Rude, rudeSmtp } from '../../support/rude-smtp.ts'

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

async function testInbox() {
  const inbox = await openInbox({ pagePort: 0 })
  onTestFinished(() => inbox.close())
  return inbox
}

/** One line to a server. */
function lineTo(port: number, more: Partial<Parameters<typeof smtpPool>[0]> = {}) {
  const patience = { silenceMs: 10_000, finalReplyMs: 10_000 }
  const pool = smtpPool({ host: '127.0.0.1', port, auth: undefined, ...patience, ...more }, 1)
  onTestFinished(() => pool.close())
  return pool
}

const message = (text = 'Subject: x\r\n\r\nx\r\n') => ({
  from: 'course@example.com',
  to: 'ada@example.com',
  bytes: Buffer.from(text),
})

test('a relay that asks for no user takes mail with nothing configured but its address and a sender', async () => {
  const inbox = await testInbox()
  const { mail } = readSettings(learning, {
    // Without TLS, under a name that is not of this machine.
    MAILER_SMTP_URL: inbox.smtpUrl.replace('127.0.0.1', '0.0.0.0'),
    MAILER_FROM: 'course@example.com',
  })
  const opened = openMailer({ mail, compiled: compiledMails })
  onTestFinished(() => opened.close())
  await opened.verify()
  expect(await opened.send(LESSON)).toMatchObject({ kind: 'sent' })
  expect(inbox.mails[0]?.from).toBe('course@example.com')
})

test('a mail server on this machine takes mail under the certificate that its package made', async () => {
  // Its own certificate is for `localhost` and signed by itself, as that of Debian's Postfix.
  const onData: SMTPServerOptions['onData'] = (stream, _, done) => stream.resume().on('end', done)
  const port = await smtpServer({ onData })
  const opened = mailerTo(`smtp://127.0.0.1:${port}`)
  await opened.verify()
  expect(await opened.send(LESSON)).toMatchObject({ kind: 'sent' })
  expect(await mailerTo(`smtp://0.0.0.0:${port}`).send(LESSON)).toMatchObject({ kind: 'transient' })
})

test('a lesson arrives with both parts and the headers of one-click unsubscribing, and again with the same bytes', async () => {
  const inbox = await testInbox()
  const send = () =>
    mailerTo(inbox.smtpUrl, {
      from: { name: 'Grüße, "Course"', address: 'course@example.com' },
      replyTo: { name: undefined, address: 'help@example.com' },
    }).send(LESSON)
  expect(await send()).toMatchObject({ kind: 'sent' })
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
  expect(header('date')).toBe('Sat, 21 Nov 2026 04:00:00 +0000')
  await send()
  expect(inbox.mails[1]?.source).toBe(mail?.source)
})

test.each([
  ['whole lines', 'Subject: dots\r\n\r\nplain\r\n'],
  ['a line that begins with a dot', 'Subject: dots\r\n\r\n.\r\nRSET\r\n'],
  ['a dot first of all', '.Subject: dots\r\n\r\nplain\r\n'],
  ['a dot on a line with no carriage return', 'Subject: dots\r\n\r\na\n.\nRSET\r\n'],
  ['a dot on a line with no line feed', 'Subject: dots\r\n\r\na\r.\rRSET\r\n'],
  ['no line end', 'Subject: dots\r\n\r\nplain'],
])('%s is one message to the server, and its lines are as they were', async (_, text) => {
  const inbox = await testInbox()
  const line = lineTo(Number(new URL(inbox.smtpUrl).port))
  const send = () => line.send(message(text), undefined)
  expect([await send(), await send()]).toEqual([undefined, undefined])
  const lines = (source: string | undefined) => source?.replace(/\r\n$/, '').split(/\r\n|\r|\n/)
  expect(inbox.mails.map(({ source }) => lines(source))).toEqual([lines(text), lines(text)])
})

const at =
  (word: string, reply: string | null): Rude =>
  (said) =>
    said === word ? reply : undefined
const noCredentials = (word: string) => ({ EHLO: '250-rude\r\n250 AUTH PLAIN', AUTH: '535 5.7.8 no' })[word]
const ADA = { auth: { user: 'ada', pass: 'x' } }

test.each<[how: string, answer: Rude, command: string | undefined, more?: Parameters<typeof lineTo>[1]]>([
  ['takes the message', () => undefined, undefined],
  ['says nothing at first', at('CONNECT', null), 'connect', { silenceMs: 100 }],
  ['does not want us', at('CONNECT', '554 5.7.1 no'), 'connect'],
  ['takes no credentials', () => undefined, 'auth', ADA],
  ['refuses the credentials', noCredentials, 'auth', ADA],
  ['says nothing to the sender', at('MAIL', null), 'data', { silenceMs: 500 }],
  ['refuses the recipient', at('RCPT', '550 5.1.1 no'), 'rcpt'],
  ['says nothing at the end', at('END', null), 'data', { finalReplyMs: 100 }],
  ['breaks off at the end', (word, socket) => void (word === 'END' && socket.destroy()), 'connect'],
])('after a server that %s, nothing listens to the signal any more', async (_, answer, command, more) => {
  const { port } = await rudeSmtp(answer)
  const line = lineTo(port, more)
  const { signal } = new AbortController()
  // The second finds the one line free again.
  for (const fault of [await line.send(message(), signal), await line.send(message(), signal)])
    expect(fault?.command).toBe(command)
  expect(getEventListeners(signal, 'abort')).toEqual([])
})

test('a message whose turn never came, because the one before was not recorded, does not listen to the signal', async () => {
  const { port, lines } = await rudeSmtp()
  const line = lineTo(port)
  const { signal } = new AbortController()
  const recorded = () => Promise.reject(new Error('the store is gone'))
  expect(await line.send(message(), signal, recorded)).toBeUndefined()
  expect(await line.send(message(), signal, recorded)).toMatchObject({ command: 'record', handedOver: false })
  expect(lines.filter((one) => one === '.')).toHaveLength(1)
  expect(getEventListeners(signal, 'abort')).toEqual([])
})

test('a look at a server with a signal that is aborted already ends at once, without a connection', async () => {
  const { port, connections } = await rudeSmtp(at('CONNECT', null))
  await expect(lineTo(port).verify(AbortSignal.abort())).rejects.toMatchObject({ command: 'connect' })
  expect(connections()).toBe(0)
})
