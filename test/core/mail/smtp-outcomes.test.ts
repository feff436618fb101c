import type { Socket } from 'node:net'
import type { SMTPServerOptions } from 'smtp-server'
import { expect, test } from 'vitest'
import { LINES, type Mail, type Mailer } from '../../../src/core/mail/mailer.ts'
import { SMTP_OUTCOMES } from '../../../src/core/mail/outcome.ts'
import { openSmtp } from '../../../src/core/mail/transports/smtp.ts'
import { secret } from '../../../src/core/secret.ts'
import { MAIL_EXAMPLE, MAILER_KEY, mailerTo, smtpServer, trust, WELCOME } from '../../support/mailers.ts'
import { type Rude, rudeSmtp } from '../../support/rude-smtp.ts'
import { serveTcp } from '../../support/servers.ts'

/** An SMTP server that answers so, and a mailer for it. */
async function rudeMailer(answer?: Rude, user = '') {
  const server = await rudeSmtp(answer)
  return { ...server, one: mailerTo(`smtp://${user}127.0.0.1:${server.port}`) }
}

/** Sends `count` different messages at once; gives the kinds of their outcomes. */
async function sendMany(one: Mailer, count: number, recorded?: () => Promise<void>) {
  const mails = Array.from({ length: count }, (_, n) => ({ ...WELCOME, about: `user.${n}` }))
  const outcomes = await Promise.all(mails.map((mail) => one.send(mail, undefined, recorded)))
  return outcomes.map(({ kind }) => kind)
}
const times = (count: number, kind: string) => Array(count).fill(kind)

/** Until what has happened on a connection is seen. */
async function someTurns(turns = 50) {
  for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

const rude =
  (answer?: Rude, url = (port: number) => `smtp://127.0.0.1:${port}`) =>
  async () =>
    url((await rudeSmtp(answer)).port)
const says =
  (word: string, reply: string): Rude =>
  (said) =>
    said === word ? reply : undefined
const withAuth = (port: number) => `smtp://user@127.0.0.1:${port}`
const tlsServer = (options: SMTPServerOptions) => smtpServer({ ...MAIL_EXAMPLE, ...options })

type Case = readonly [row: keyof typeof SMTP_OUTCOMES, how: string, url: () => Promise<string>, mail?: Mail]

const trusted = async (url: Promise<string>) => {
  // Only the name is wrong.
  trust('ca.crt')
  return url
}
const smtps = async () => `smtps://localhost:${await tlsServer({ secure: true })}`
// Not a loopback address by its name, and still this machine.
const startTls = async () => `smtp://0.0.0.0:${await tlsServer({})}`
const dropsAt = (word: string) =>
  rude((said, socket) => {
    if (said === word) socket.destroy()
    return undefined
  })
const noAddress: Mail = { ...WELCOME, to: { name: undefined, address: '"a> b"@example.com' } }

/** A server for each way of misbehaving; the row is the one of the table that decides. */
const CASES: readonly Case[] = [
  ['certificate-refused', 'an unknown issuer', smtps],
  ['certificate-refused', 'a certificate for another name', () => trusted(smtps())],
  ['certificate-refused', 'a certificate for another name, behind STARTTLS', () => trusted(startTls())],
  ['certificate-refused', 'no TLS', rude(undefined, (port) => `smtps://127.0.0.1:${port}`)],
  [
    'encryption-refused',
    'no STARTTLS from a server elsewhere, with credentials',
    rude(says('STARTTLS', '502 5.5.1 not here'), (port) => `smtp://user@0.0.0.0:${port}`),
  ],
  [
    'credentials-refused',
    '535 to AUTH',
    rude((word) => ({ EHLO: '250-rude\r\n250 AUTH PLAIN', AUTH: '535 5.7.8 no' })[word], withAuth),
  ],
  [
    'credentials-refused',
    '454 to AUTH',
    rude((word) => ({ EHLO: '250-rude\r\n250 AUTH PLAIN', AUTH: '454 4.7.0 later' })[word], withAuth),
  ],
  ['credentials-refused', 'no AUTH at all', rude(undefined, withAuth)],
  ['service-closing', '421 as the greeting', rude(says('CONNECT', '421 4.3.2 shutting down'))],
  ['service-closing', '421 to the message', rude(says('END', '421 4.3.0 closing'))],
  ['service-closing', '421 to RCPT', rude(says('RCPT', '421 4.7.0 too many'))],
  ['credentials-needed', '530 to MAIL', rude(says('MAIL', '530 5.7.0 authentication required'))],
  ['greeting-refused', '554 as the greeting', rude(says('CONNECT', '554 5.7.1 not you'))],
  [
    'greeting-refused',
    '550 to EHLO and HELO',
    rude((word) => (/^(?:EHLO|HELO)$/.test(word) ? '550 no' : undefined)),
  ],
  ['message-too-large', 'a SIZE that the message exceeds', rude(says('EHLO', '250-rude\r\n250 SIZE 1000'))],
  ['message-too-large', '552 5.3.4 to the message', rude(says('END', '552 5.3.4 too big'))],
  ['sender-refused', '553 to MAIL', rude(says('MAIL', '553 5.7.1 not your address'))],
  ['address-dead', '550 5.1.1 to RCPT', rude(says('RCPT', '550 5.1.1 no such user'))],
  ['address-dead', 'a reply of several lines', rude(says('RCPT', '550-5.1.1 gone\r\n550 5.1.1 for good'))],
  ['address-dead', '550 5.1.2 to the message', rude(says('END', '550 5.1.2 no such domain'))],
  ['policy-refused', '554 5.7.1 to the message', rude(says('END', '554 5.7.1 spam'))],
  ['policy-refused', '550 without an enhanced code to the message', rude(says('END', '550 too many today'))],
  ['policy-refused', '554 5.2.0 to the message', rude(says('END', '554 5.2.0 quota exceeded'))],
  ['message-refused', '550 without an enhanced code to RCPT', rude(says('RCPT', '550 no'))],
  ['message-refused', '552 5.2.2 to RCPT', rude(says('RCPT', '552 5.2.2 mailbox full'))],
  ['message-refused', '503 to DATA', rude(says('DATA', '503 5.5.1 bad sequence'))],
  ['message-deferred', '450 4.7.1 to RCPT', rude(says('RCPT', '450 4.7.1 greylisted'))],
  ['message-deferred', '452 4.3.1 to MAIL', rude(says('MAIL', '452 4.3.1 disk full'))],
  ['message-deferred', '451 to DATA', rude(says('DATA', '451 later'))],
  ['message-deferred', '451 4.3.0 to the message', rude(says('END', '451 4.3.0 later'))],
  ['address-unusable', 'a quoted local part with an angle bracket', rude(), noAddress],
  ['dropped-after-data', 'the data taken, and the line dropped', dropsAt('END')],
  [
    'dropped-after-data',
    'half a reply, and the line dropped',
    rude((word, socket) => {
      if (word !== 'END') return undefined
      socket.end('25')
      return null
    }),
  ],
  ['dropped-after-data', 'a reply that is none', rude(says('END', 'what?'))],
  ['unreachable', 'a reply that is none, before the message', rude(says('MAIL', '\0\0'))],
  ['unreachable', 'no server', async () => 'smtp://127.0.0.1:1'],
  ['unreachable', 'no such name', async () => 'smtp://mail.invalid:25'],
  ['unreachable', 'a line that drops at once', dropsAt('CONNECT')],
  ['unreachable', 'a line that drops at MAIL', dropsAt('MAIL')],
  ['unreachable', 'a line that drops at DATA', dropsAt('DATA')],
]

const outcomeOf = (row: keyof typeof SMTP_OUTCOMES) => SMTP_OUTCOMES[row].outcome

test('a message is not completed before the last one on its connection is recorded, and never if that failed', async () => {
  const { one, lines, connections } = await rudeMailer()
  const taken = () => lines.filter((line) => line === '.').length
  const first = Promise.withResolvers<void>()
  const second = Promise.withResolvers<void>()
  let asked = 0
  const recorded = (promise: Promise<void>) => () => {
    asked += 1
    return promise
  }
  expect((await one.send(WELCOME, undefined, recorded(first.promise))).kind).toBe('sent')
  const next = one.send(WELCOME, undefined, recorded(second.promise))
  await expect.poll(() => asked).toBe(1)
  expect([taken(), lines.filter((line) => line === 'DATA').length]).toEqual([1, 2])
  first.resolve()
  expect((await next).kind).toBe('sent')
  const last = one.send(WELCOME, undefined, recorded(Promise.resolve()))
  await expect.poll(() => asked).toBe(2)
  second.reject(new Error('disk full'))
  expect(await last).toEqual(outcomeOf('not-recorded'))
  expect([taken(), connections()]).toEqual([2, 1])
})

test('a message that needs no record does not wait for one that does', async () => {
  const { one, connections } = await rudeMailer()
  await one.send(WELCOME, undefined, () => new Promise(() => {}))
  expect((await one.send(WELCOME)).kind).toBe('sent')
  expect(connections()).toBe(1)
})

test.each([
  ['that the server closed after its last message', '250 2.0.0 the only one here\r\n', 'sent'],
  ['that broke after handover', '', 'unknown'],
])('a connection %s is replaced only once that message is recorded', async (_, last, kind) => {
  const { one, connections } = await rudeMailer((word, socket) => {
    if (word !== 'END') return undefined
    socket.end(last)
    return null
  })
  const recorded = Promise.withResolvers<void>()
  const send = (count: number) => sendMany(one, count, () => recorded.promise)
  expect(await send(LINES.smtp)).toEqual(times(LINES.smtp, kind))
  await someTurns()
  const next = send(1)
  await someTurns()
  expect(connections()).toBe(LINES.smtp)
  recorded.resolve()
  expect(await next).toEqual([kind])
  expect(connections()).toBe(LINES.smtp + 1)
})

test('no message waits for one that the server refused to be recorded', async () => {
  let refused = false
  const { one, connections } = await rudeMailer((word) => {
    if (word !== 'END' || refused) return undefined
    refused = true
    return '554 5.7.1 policy'
  })
  const never = () => new Promise<void>(() => {})
  expect((await one.send(WELCOME, undefined, never)).kind).toBe('transient')
  expect((await one.send(WELCOME, undefined, never)).kind).toBe('sent')
  expect(connections()).toBe(1)
})

test.each([
  ['with its refusal', 'END'],
  ['when it is asked to go on', 'RSET'],
])('a server that ends the connection %s has still refused the message', async (_, last) => {
  const { one } = await rudeMailer((word, socket) => {
    if (word === last) socket.end(word === 'END' ? '550 5.7.1 spam\r\n' : '')
    if (word === last) return null
    return word === 'END' ? '550 5.7.1 spam' : undefined
  })
  expect(await one.send(WELCOME)).toMatchObject({
    kind: 'transient',
    reason: 'the mail server’s policy refused the message (550)',
  })
})

test.each(CASES.map(([row, how, url, mail = WELCOME]) => ({ row, how, url, mail })))(
  '$row: $how: nothing is thrown, and the reason holds no secret and none of the server’s text',
  async ({ row, url, mail }) => {
    const outcome = await mailerTo(await url()).send(mail)
    const expected = outcomeOf(row)
    expect(outcome).toEqual({ ...expected, reason: expect.stringContaining(expected?.reason ?? '?') })
    const reason = outcome.kind === 'sent' ? '' : outcome.reason
    expect(reason.slice(expected?.reason.length)).toMatch(/^(?: \(\d{3}\)|: [a-z ,’]+(?:: [a-z ]+)?)?$/)
    expect(reason).not.toContain(MAILER_KEY)
  },
)

test('a refused message leaves its connection usable for the next one', async () => {
  let refuse = true
  const { one, connections, lines } = await rudeMailer((word) =>
    word === 'RCPT' && refuse ? '550 5.1.1 no such user' : undefined,
  )
  expect((await one.send(WELCOME)).kind).toBe('permanent')
  refuse = false
  expect((await one.send(WELCOME)).kind).toBe('sent')
  expect(connections()).toBe(1)
  expect(lines).toContain('RSET')
})

test.each(['421 4.7.0 so many messages a line', null])(
  'a kept connection that the server ends (%s) is no fault: the message goes out on a new one',
  async (reply) => {
    let messages = 0
    const { one, connections } = await rudeMailer((word, socket) => {
      if (word !== 'MAIL') return undefined
      messages += 1
      if (messages !== 2) return undefined
      if (reply === null) socket.destroy()
      return reply
    })
    expect((await one.send(WELCOME)).kind).toBe('sent')
    expect((await one.send(WELCOME)).kind).toBe('sent')
    expect(connections()).toBe(2)
  },
)

test('kept lines that are all dead are no fault either: the message goes out on a fresh one', async () => {
  const first = new Set<Socket>()
  let dead = false
  const { one, connections } = await rudeMailer((word, socket) => {
    if (!dead) first.add(socket)
    // As behind a firewall that has forgotten the connections: nothing is heard before something is said.
    if (!dead || !first.has(socket) || word !== 'MAIL') return undefined
    socket.resetAndDestroy()
    return null
  })
  expect(await sendMany(one, 3)).toEqual(times(3, 'sent'))
  dead = true
  expect((await one.send(WELCOME)).kind).toBe('sent')
  expect(await sendMany(one, 3)).toEqual(times(3, 'sent'))
  expect(connections()).toBe(6)
})

test('a kept connection that is just being ended by the server is no fault of the address', async () => {
  const { port } = await rudeSmtp((word, socket) => {
    if (word === 'END') setImmediate(() => socket.end())
    return undefined
  })
  const kinds = new Set<string>()
  // One of these moments lies between the end from the server and that of the connection.
  for (let turns = 0; turns < 40; turns += 1) {
    const one = mailerTo(`smtp://127.0.0.1:${port}`)
    await one.send(WELCOME)
    await someTurns(turns)
    kinds.add((await one.send(WELCOME)).kind)
  }
  expect([...kinds]).toEqual(['sent'])
})

test('fifty messages at once share twenty lines, and each arrives once', async () => {
  const { one, connections, lines } = await rudeMailer()
  expect(await sendMany(one, 50)).toEqual(times(50, 'sent'))
  expect(connections()).toBeLessThanOrEqual(20)
  expect(lines.filter((line) => line === '.')).toHaveLength(50)
})

/** A server that has at most so many connections at once, and refuses any further one. */
const withAtMost = (most: number, open = new Set<Socket>()): Rude => {
  return (word, socket) => {
    if (word !== 'CONNECT') return undefined
    if (open.size < most) {
      open.add(socket)
      socket.on('close', () => open.delete(socket))
      return undefined
    }
    setImmediate(() => socket.end())
    return '421 4.7.0 too many connections from you'
  }
}

test('a mail server that takes fewer connections at once gets every message over those', async () => {
  const { one, connections, lines } = await rudeMailer(withAtMost(3))
  for (const _ of [1, 2]) expect(await sendMany(one, 50)).toEqual(times(50, 'sent'))
  // A look at it finds it well, although it refuses that connection too.
  await one.verify()
  expect(connections()).toBeLessThanOrEqual(LINES.smtp + 1)
  expect(lines.filter((line) => line === '.')).toHaveLength(100)
})

test('a connection that was given back while another was refused takes the message', async () => {
  let refused: Socket | undefined
  const { one } = await rudeMailer((word, socket) => {
    if (word === 'CONNECT' && refused === undefined && open.size > 0) {
      refused = socket
      return null
    }
    open.add(socket)
    return word === 'END' && refused === undefined ? null : undefined
  })
  const open = new Set<Socket>()
  const first = one.send(WELCOME)
  await expect.poll(() => open.size).toBe(1)
  const second = one.send({ ...WELCOME, about: 'user.second' })
  await expect.poll(() => refused).toBeDefined()
  for (const socket of open) socket.write('250 2.0.0 ok\r\n')
  expect((await first).kind).toBe('sent')
  refused?.end('421 4.7.0 too many connections from you\r\n')
  expect((await second).kind).toBe('sent')
})

test('a mail server that takes no connection at all delays no message', async () => {
  const { one, connections } = await rudeMailer(withAtMost(0))
  expect(await sendMany(one, LINES.smtp)).toEqual(times(LINES.smtp, 'transient'))
  expect(connections()).toBeLessThanOrEqual(2 * LINES.smtp)
})

test.each<[string, Rude]>([
  ['takes no credentials', () => undefined],
  ['refuses the greeting', says('CONNECT', '554 5.7.1 not you')],
  ['drops every line', (_, socket) => void socket.destroy()],
])('a server that %s delays none of fifty messages', async (_, answer) => {
  const { one } = await rudeMailer(answer, 'user@')
  expect(await sendMany(one, 50)).toEqual(times(50, 'transient'))
})

test('a message abandoned while it waits for a connection passes its turn on', async () => {
  const held: Socket[] = []
  let hold = true
  const { one } = await rudeMailer((word, socket) => {
    if (word !== 'END' || !hold) return undefined
    held.push(socket)
    return null
  })
  const out = sendMany(one, LINES.smtp)
  await expect.poll(() => held.length).toBe(LINES.smtp)
  hold = false
  const stop = new AbortController()
  const givenUp = one.send({ ...WELCOME, about: 'user.given-up' }, stop.signal)
  const next = one.send({ ...WELCOME, about: 'user.next' })
  // Until both wait in line.
  await someTurns()
  stop.abort()
  held[0]?.write('250 2.0.0 ok\r\n')
  expect((await givenUp).kind).toBe('transient')
  expect((await next).kind).toBe('sent')
  for (const socket of held.slice(1)) socket.write('250 2.0.0 ok\r\n')
  expect(await out).toEqual(times(LINES.smtp, 'sent'))
})

test('a send aborted before the message was handed over is not sent; aborted afterwards, its outcome is unknown', async () => {
  for (const [word, kind] of [
    ['MAIL', 'transient'],
    ['END', 'unknown'],
  ] as const) {
    const stop = new AbortController()
    const { one } = await rudeMailer((said) => {
      if (said !== word) return undefined
      stop.abort()
      return null
    })
    expect((await one.send(WELCOME, stop.signal)).kind).toBe(kind)
  }
})

test('closed, nothing is sent any more and nothing is thrown', async () => {
  const { one, connections } = await rudeMailer()
  await one.send(WELCOME)
  await one.close()
  expect((await one.send(WELCOME)).kind).toBe('transient')
  expect(connections()).toBe(1)
})

test.each([
  ['user:its%20own@', 'its own'],
  ['user:50%off@', '50%off'],
  ['user@', MAILER_KEY],
])(
  'verifying authenticates: a server that is named as %s is given the password %j',
  async (user, password) => {
    const answers: Record<string, string> = { EHLO: '250-rude\r\n250 AUTH PLAIN', AUTH: '235 ok' }
    const { one, lines } = await rudeMailer((word) => answers[word], user)
    await one.verify()
    const given = lines.find((line) => line.startsWith('AUTH PLAIN '))?.split(' ')[2] ?? ''
    expect(Buffer.from(given, 'base64').toString().split('\0')).toEqual(['', 'user', password])
  },
)

test('verifying says that there is no server', async () => {
  await expect(mailerTo('smtp://127.0.0.1:1').verify()).rejects.toThrow(
    /^the mail server could not be reached: the connection was refused: nothing listens there$/,
  )
})

test.each<[string, (socket: Socket) => void, string]>([
  ['cuts it at once', (socket) => socket.destroy(), 'the connection broke before the answer was whole'],
  ['says nothing', () => {}, 'it accepted the connection and did not answer in time'],
])('the reason names a server that accepts a connection and %s', async (_, answer, cause) => {
  const url = (await serveTcp(answer)).replace('http', 'smtp')
  const line = openSmtp({ url: secret(url), silenceMs: 100 })
  await expect(line.verify(AbortSignal.timeout(20_000))).rejects.toThrow(
    new Error(`the mail server could not be reached: ${cause}`),
  )
  await line.close()
})
