import { getEventListeners } from 'node:events'
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { expect, onTestFinished, test } from 'vitest'
import { openInbox } from '../../../src/cli/demo/inbox.ts'
import { readSettings } from '../../../src/core/env/settings.ts'
import type { Mail } from '../../../src/core/mail/mailer.ts'
import { openMailer } from '../../../src/core/mail/open.ts'
import { smtpPool } from '../../../src/core/mail/transports/smtp.ts'
import { secret } from '../../../src/core/secret.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { compiledMails } from '../../support/learning.ts'
import { type Rude, rudeSmtp } from '../../support/rude-smtp.ts'

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

test('a relay that asks for no user takes mail with nothing configured but its address and a sender', async () => {
  const inbox = await openInbox({ pagePort: 0 })
  onTestFinished(() => inbox.close())
  const { mail } = readSettings(learning, {
    MAILER_SMTP_URL: inbox.smtpUrl,
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
  const server = new SMTPServer({
    authOptional: true,
    onData: (stream, _, done) => stream.resume().on('end', done),
  })
  server.on('error', () => {})
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())))
  const { port } = server.server.address() as AddressInfo
  const opened = mailer(`smtp://127.0.0.1:${port}`)
  await opened.verify()
  expect(await opened.send(LESSON)).toMatchObject({ kind: 'sent' })
  expect(await mailer(`smtp://0.0.0.0:${port}`).send(LESSON)).toMatchObject({ kind: 'transient' })
})

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
  expect(none).toMatchObject({ configured: false })
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

const at =
  (word: string, reply: string | null): Rude =>
  (said) =>
    said === word ? reply : undefined

test.each<
  [
    how: string,
    answer: Rude,
    command: string | undefined,
    more?: { user?: string; silenceMs?: number; finalReplyMs?: number },
  ]
>([
  ['takes the message', () => undefined, undefined],
  ['says nothing at first', at('CONNECT', null), 'connect', { silenceMs: 100 }],
  ['does not want us', at('CONNECT', '554 5.7.1 no'), 'connect'],
  ['takes no credentials', () => undefined, 'auth', { user: 'ada' }],
  [
    'refuses the credentials',
    (word) => ({ EHLO: '250-rude\r\n250 AUTH PLAIN', AUTH: '535 5.7.8 no' })[word],
    'auth',
    { user: 'ada' },
  ],
  ['says nothing to the sender', at('MAIL', null), 'data', { silenceMs: 500 }],
  ['refuses the recipient', at('RCPT', '550 5.1.1 no'), 'rcpt'],
  ['says nothing at the end', at('END', null), 'data', { finalReplyMs: 100 }],
  [
    'breaks the connection at the end',
    (word, socket) => {
      if (word === 'END') socket.destroy()
      return undefined
    },
    'connect',
  ],
])(
  'after a server that %s, nothing of it listens to the signal any more',
  async (_, answer, command, { user, silenceMs = 10_000, finalReplyMs = 10_000 } = {}) => {
    const { port } = await rudeSmtp(answer)
    const auth = user === undefined ? undefined : { user, pass: 'x' }
    const pool = smtpPool({ host: '127.0.0.1', port, auth, silenceMs, finalReplyMs }, 1)
    onTestFinished(() => pool.close())
    const { signal } = new AbortController()
    const bytes = Buffer.from('Subject: x\r\n\r\nx\r\n')
    const send = () => pool.send({ from: 'course@example.com', to: 'ada@example.com', bytes }, signal)
    // The second finds the one line free again.
    for (const fault of [await send(), await send()]) expect(fault?.command).toBe(command)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  },
)

test('a message whose turn never came, because the one before was not recorded, does not listen to the signal', async () => {
  const { port, lines } = await rudeSmtp()
  const pool = smtpPool(
    { host: '127.0.0.1', port, auth: undefined, silenceMs: 10_000, finalReplyMs: 10_000 },
    1,
  )
  onTestFinished(() => pool.close())
  const { signal } = new AbortController()
  const bytes = Buffer.from('Subject: x\r\n\r\nx\r\n')
  const message = { from: 'course@example.com', to: 'ada@example.com', bytes }
  const recorded = () => Promise.reject(new Error('the store is gone'))
  expect(await pool.send(message, signal, recorded)).toBeUndefined()
  expect(await pool.send(message, signal, recorded)).toMatchObject({ command: 'record', handedOver: false })
  expect(lines.filter((line) => line === '.')).toHaveLength(1)
  expect(getEventListeners(signal, 'abort')).toEqual([])
})

test('a look at a server with a signal that is aborted already ends at once, without a connection', async () => {
  const { port, connections } = await rudeSmtp(at('CONNECT', null))
  const pool = smtpPool({ host: '127.0.0.1', port, auth: undefined, silenceMs: 500, finalReplyMs: 500 }, 1)
  await expect(pool.verify(AbortSignal.abort())).rejects.toMatchObject({ command: 'connect' })
  expect(connections()).toBe(0)
})
