import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import tls from 'node:tls'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { expect, onTestFinished, test } from 'vitest'
import { LINES, type Mail } from '../../../src/core/mail/mailer.ts'
import { openMailer } from '../../../src/core/mail/open.ts'
import { SMTP_OUTCOMES } from '../../../src/core/mail/outcome.ts'
import { openSmtp } from '../../../src/core/mail/transports/smtp.ts'
import { secret } from '../../../src/core/secret.ts'
import { compiledMails } from '../../support/learning.ts'
import { type Rude, rudeSmtp } from '../../support/rude-smtp.ts'

const WELCOME: Mail = {
  template: 'welcome',
  slots: { startUrl: 'https://www.example.com/' },
  to: { name: undefined, address: 'ada@example.com' },
  about: 'user.1',
  date: new Date('2026-11-21T04:00:00Z'),
}
const CANARY = 'canary-password'

function mailer(url: string) {
  const opened = openMailer({
    compiled: compiledMails,
    mail: {
      key: secret(CANARY),
      route: { kind: 'smtp', url: secret(url) },
      from: { name: undefined, address: 'course@example.com' },
      replyTo: undefined,
    },
  })
  onTestFinished(() => opened.close())
  return opened
}

const rude =
  (answer: Rude, url = (port: number) => `smtp://127.0.0.1:${port}`) =>
  async () =>
    url((await rudeSmtp(answer)).port)
const says =
  (word: string, reply: string): Rude =>
  (said) =>
    said === word ? reply : undefined
const withAuth = (port: number) => `smtp://user@127.0.0.1:${port}`
const fixture = (name: string) => readFileSync(new URL(`../../fixtures/tls/${name}`, import.meta.url), 'utf8')

async function tlsServer(options: SMTPServerOptions): Promise<number> {
  const server = new SMTPServer({
    key: fixture('mail.example.com.key'),
    cert: fixture('mail.example.com.crt'),
    authOptional: true,
    ...options,
  })
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())))
  return (server.server.address() as AddressInfo).port
}

/** The test authority is trusted, so that only the name is wrong. */
function trustTestAuthority(): void {
  const before = tls.getCACertificates('default')
  tls.setDefaultCACertificates([...before, fixture('ca.crt')])
  onTestFinished(() => tls.setDefaultCACertificates(before))
}

type Case = readonly [row: keyof typeof SMTP_OUTCOMES, how: string, url: () => Promise<string>, mail?: Mail]

/** A server for each way of misbehaving; the row is the one of the table that decides. */
const CASES: readonly Case[] = [
  [
    'certificate-refused',
    'an unknown issuer',
    async () => `smtps://localhost:${await tlsServer({ secure: true })}`,
  ],
  [
    'certificate-refused',
    'a certificate for another name',
    async () => {
      trustTestAuthority()
      return `smtps://localhost:${await tlsServer({ secure: true })}`
    },
  ],
  [
    'certificate-refused',
    'a certificate for another name, behind STARTTLS',
    async () => {
      trustTestAuthority()
      return `smtp://0.0.0.0:${await tlsServer({})}`
    },
  ],
  [
    'certificate-refused',
    'a server that does not speak TLS',
    rude(
      () => undefined,
      (port) => `smtps://127.0.0.1:${port}`,
    ),
  ],
  [
    'encryption-refused',
    'no STARTTLS from a server elsewhere, with credentials',
    // Not a loopback address by its name, and still this machine.
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
  ['credentials-refused', 'no AUTH at all', rude(() => undefined, withAuth)],
  ['service-closing', '421 as the greeting', rude(says('CONNECT', '421 4.3.2 shutting down'))],
  ['service-closing', '421 to MAIL', rude(says('MAIL', '421 4.7.0 too many'))],
  ['service-closing', '421 to the message', rude(says('END', '421 4.3.0 closing'))],
  ['credentials-needed', '530 to MAIL', rude(says('MAIL', '530 5.7.0 authentication required'))],
  ['greeting-refused', '554 as the greeting', rude(says('CONNECT', '554 5.7.1 not you'))],
  [
    'greeting-refused',
    '550 to EHLO and HELO',
    rude((word) => (word === 'EHLO' || word === 'HELO' ? '550 no' : undefined)),
  ],
  ['message-too-large', 'a SIZE that the message exceeds', rude(says('EHLO', '250-rude\r\n250 SIZE 1000'))],
  ['message-too-large', '552 5.3.4 to the message', rude(says('END', '552 5.3.4 too big'))],
  ['message-too-large', '552 to MAIL', rude(says('MAIL', '552 too big'))],
  ['sender-refused', '553 to MAIL', rude(says('MAIL', '553 5.7.1 not your address'))],
  ['address-dead', '550 5.1.1 to RCPT', rude(says('RCPT', '550 5.1.1 no such user'))],
  ['address-dead', '550 5.1.2 to the message', rude(says('END', '550 5.1.2 no such domain'))],
  ['address-dead', '556 5.1.10 to RCPT', rude(says('RCPT', '556 5.1.10 null MX'))],
  ['policy-refused', '554 5.7.1 to the message', rude(says('END', '554 5.7.1 spam'))],
  ['message-refused', '550 without an enhanced code to RCPT', rude(says('RCPT', '550 no'))],
  ['message-refused', '552 5.2.2 to RCPT', rude(says('RCPT', '552 5.2.2 mailbox full'))],
  ['message-refused', '503 to DATA', rude(says('DATA', '503 5.5.1 bad sequence'))],
  ['message-deferred', '450 4.7.1 to RCPT', rude(says('RCPT', '450 4.7.1 greylisted'))],
  ['message-deferred', '452 4.3.1 to the message', rude(says('END', '452 4.3.1 no room'))],
  ['message-deferred', '451 to MAIL', rude(says('MAIL', '451 4.3.0 busy'))],
  [
    'address-unusable',
    'a quoted local part with an angle bracket',
    rude(() => undefined),
    { ...WELCOME, to: { name: undefined, address: '"a> b"@example.com' } },
  ],
  [
    'dropped-after-data',
    'the data taken, and the line dropped',
    rude((word, socket) => {
      if (word === 'END') socket.destroy()
      return undefined
    }),
  ],
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
  ['unreachable', 'no server', async () => 'smtp://127.0.0.1:1'],
  ['unreachable', 'no such name', async () => 'smtp://mail.invalid:25'],
  ...(['CONNECT', 'EHLO', 'MAIL', 'RCPT', 'DATA'] as const).map(
    (at): Case => [
      'unreachable',
      `a line that drops at ${at}`,
      rude((word, socket) => {
        if (word === at) socket.destroy()
        return undefined
      }),
    ],
  ),
]

const outcomeOf = (row: keyof typeof SMTP_OUTCOMES) => SMTP_OUTCOMES[row].outcome

test('every row of the table has a server that misbehaves so, but one that is a fault of the store', () => {
  const rows = new Set([...CASES.map(([row]) => row), 'not-recorded'])
  expect([...rows].sort()).toEqual(Object.keys(SMTP_OUTCOMES).sort())
})

test('a message is not completed before the last one on its connection is recorded, and never if that failed', async () => {
  const { port, lines, connections } = await rudeSmtp()
  const one = mailer(`smtp://127.0.0.1:${port}`)
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
  const { port, connections } = await rudeSmtp()
  const one = mailer(`smtp://127.0.0.1:${port}`)
  await one.send(WELCOME, undefined, () => new Promise(() => {}))
  expect((await one.send(WELCOME)).kind).toBe('sent')
  expect(connections()).toBe(1)
})

test('replaces a connection that the server closed only after its last message is recorded', async () => {
  const { port, connections } = await rudeSmtp((word, socket) => {
    if (word !== 'END') return undefined
    socket.end('250 2.0.0 the only one here\r\n')
    return null
  })
  const one = mailer(`smtp://127.0.0.1:${port}`)
  const recorded = Promise.withResolvers<void>()
  const send = () => one.send(WELCOME, undefined, () => recorded.promise)
  await Promise.all(Array.from({ length: LINES.smtp }, send))
  // Until the ends of the connections are seen.
  const someTurns = async () => {
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  }
  await someTurns()
  const next = send()
  await someTurns()
  expect(connections()).toBe(LINES.smtp)
  recorded.resolve()
  expect((await next).kind).toBe('sent')
  expect(connections()).toBe(LINES.smtp + 1)
})

test('replaces a connection that broke after handover only after that is recorded', async () => {
  const { port, connections } = await rudeSmtp((word, socket) => {
    if (word !== 'END') return undefined
    socket.destroy()
    return null
  })
  const one = mailer(`smtp://127.0.0.1:${port}`)
  const recorded = Promise.withResolvers<void>()
  const send = () => one.send(WELCOME, undefined, () => recorded.promise)
  const outcomes = await Promise.all(Array.from({ length: LINES.smtp }, send))
  expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['unknown']))
  const next = send()
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  expect(connections()).toBe(LINES.smtp)
  recorded.resolve()
  expect((await next).kind).toBe('unknown')
  expect(connections()).toBe(LINES.smtp + 1)
})

test('no message waits for one that the server refused to be recorded', async () => {
  let refused = false
  const { port, connections } = await rudeSmtp((word) => {
    if (word !== 'END' || refused) return undefined
    refused = true
    return '554 5.7.1 policy'
  })
  const one = mailer(`smtp://127.0.0.1:${port}`)
  const never = () => new Promise<void>(() => {})
  expect((await one.send(WELCOME, undefined, never)).kind).toBe('transient')
  expect((await one.send(WELCOME, undefined, never)).kind).toBe('sent')
  expect(connections()).toBe(1)
})

test.each([
  ['with its refusal', 'END'],
  ['when it is asked to go on', 'RSET'],
])('a server that ends the connection %s has still refused the message', async (_, last) => {
  const { port } = await rudeSmtp((word, socket) => {
    if (word === last) socket.end(word === 'END' ? '550 5.7.1 spam\r\n' : '')
    if (word === last) return null
    return word === 'END' ? '550 5.7.1 spam' : undefined
  })
  const one = mailer(`smtp://127.0.0.1:${port}`)
  expect(await one.send(WELCOME)).toMatchObject({
    kind: 'transient',
    reason: 'the mail server’s policy refused the message (550)',
  })
})

test.each(CASES.map(([row, how, url, mail = WELCOME]) => ({ row, how, url, mail })))(
  '$row: $how: nothing is thrown, and the reason holds no secret and none of the server’s text',
  async ({ row, url, mail }) => {
    const outcome = await mailer(await url()).send(mail)
    const expected = outcomeOf(row)
    expect(outcome).toEqual({ ...expected, reason: expect.stringContaining(expected?.reason ?? '?') })
    const reason = outcome.kind === 'sent' ? '' : outcome.reason
    expect(reason.slice(expected?.reason.length)).toMatch(/^(?: \(\d{3}\)|: [a-z ,’]+(?:: [a-z ]+)?)?$/)
    expect(reason).not.toContain(CANARY)
  },
)

test('a message with an unknown outcome keeps its Message-ID when sent again', async () => {
  const ids: string[] = []
  let fails = true
  const { port } = await rudeSmtp((word, socket) => {
    if (word === 'END' && fails) socket.destroy()
    return undefined
  })
  const one = mailer(`smtp://127.0.0.1:${port}`)
  expect((await one.send(WELCOME)).kind).toBe('unknown')
  fails = false
  const sent = await one.send(WELCOME)
  if (sent.kind === 'sent') ids.push(sent.id)
  expect(ids).toEqual([(await one.compose(WELCOME)).messageId])
})

test('a refused message leaves its connection usable for the next one', async () => {
  let refuse = true
  const { port, connections, lines } = await rudeSmtp((word) =>
    word === 'RCPT' && refuse ? '550 5.1.1 no such user' : undefined,
  )
  const one = mailer(`smtp://127.0.0.1:${port}`)
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
    const { port, connections } = await rudeSmtp((word, socket) => {
      if (word !== 'MAIL') return undefined
      messages += 1
      if (messages !== 2) return undefined
      if (reply === null) socket.destroy()
      return reply
    })
    const one = mailer(`smtp://127.0.0.1:${port}`)
    expect((await one.send(WELCOME)).kind).toBe('sent')
    expect((await one.send(WELCOME)).kind).toBe('sent')
    expect(connections()).toBe(2)
  },
)

test('kept lines that are all dead are no fault either: the message goes out on a fresh one', async () => {
  const first = new Set<Socket>()
  let dead = false
  const { port, connections } = await rudeSmtp((word, socket) => {
    if (!dead) first.add(socket)
    // As behind a firewall that has forgotten the connections: nothing is heard before something is said.
    if (!dead || !first.has(socket) || word !== 'MAIL') return undefined
    socket.resetAndDestroy()
    return null
  })
  const one = mailer(`smtp://127.0.0.1:${port}`)
  const three = () =>
    Promise.all([1, 2, 3].map((n) => one.send({ ...WELCOME, about: `user.${n}` }))).then((outcomes) =>
      outcomes.map(({ kind }) => kind),
    )
  expect(await three()).toEqual(['sent', 'sent', 'sent'])
  dead = true
  expect((await one.send(WELCOME)).kind).toBe('sent')
  expect(await three()).toEqual(['sent', 'sent', 'sent'])
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
    const one = mailer(`smtp://127.0.0.1:${port}`)
    await one.send(WELCOME)
    for (let left = turns; left > 0; left -= 1) await new Promise((resolve) => setImmediate(resolve))
    kinds.add((await one.send(WELCOME)).kind)
  }
  expect([...kinds]).toEqual(['sent'])
})

test('fifty messages at once share twenty lines, and each arrives once', async () => {
  const { port, connections, lines } = await rudeSmtp()
  const one = mailer(`smtp://127.0.0.1:${port}`)
  const outcomes = await Promise.all(
    Array.from({ length: 50 }, (_, index) => one.send({ ...WELCOME, about: `user.${index}` })),
  )
  expect(outcomes.map(({ kind }) => kind)).toEqual(Array.from({ length: 50 }, () => 'sent'))
  expect(connections()).toBeLessThanOrEqual(20)
  expect(lines.filter((line) => line === '.')).toHaveLength(50)
})

test.each([
  ['takes no credentials', () => undefined],
  ['refuses the greeting', says('CONNECT', '554 5.7.1 not you')],
  [
    'drops every line',
    (_, socket) => {
      socket.destroy()
      return null
    },
  ],
] satisfies readonly (readonly [string, Rude])[])(
  'a server that %s delays none of fifty messages',
  async (_, answer) => {
    const { port } = await rudeSmtp(answer)
    const one = mailer(withAuth(port))
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_unused, index) => one.send({ ...WELCOME, about: `user.${index}` })),
    )
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['transient']))
  },
)

test('a message abandoned while it waits for a connection passes its turn on', async () => {
  const held: Socket[] = []
  let hold = true
  const { port } = await rudeSmtp((word, socket) => {
    if (word !== 'END' || !hold) return undefined
    held.push(socket)
    return null
  })
  const one = mailer(`smtp://127.0.0.1:${port}`)
  const out = Array.from({ length: LINES.smtp }, (_, n) => one.send({ ...WELCOME, about: `user.${n}` }))
  await expect.poll(() => held.length).toBe(LINES.smtp)
  hold = false
  const stop = new AbortController()
  const givenUp = one.send({ ...WELCOME, about: 'user.given-up' }, stop.signal)
  const next = one.send({ ...WELCOME, about: 'user.next' })
  // Until both wait in line.
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  stop.abort()
  held[0]?.write('250 2.0.0 ok\r\n')
  expect((await givenUp).kind).toBe('transient')
  expect((await next).kind).toBe('sent')
  for (const socket of held.slice(1)) socket.write('250 2.0.0 ok\r\n')
  expect(new Set((await Promise.all(out)).map(({ kind }) => kind))).toEqual(new Set(['sent']))
})

test('a send aborted before the message was handed over is not sent; aborted afterwards, its outcome is unknown', async () => {
  for (const [word, kind] of [
    ['MAIL', 'transient'],
    ['END', 'unknown'],
  ] as const) {
    const stop = new AbortController()
    const { port } = await rudeSmtp((said) => {
      if (said !== word) return undefined
      stop.abort()
      return null
    })
    expect((await mailer(`smtp://127.0.0.1:${port}`).send(WELCOME, stop.signal)).kind).toBe(kind)
  }
})

test('closed, nothing is sent any more and nothing is thrown', async () => {
  const { port, connections } = await rudeSmtp()
  const one = mailer(`smtp://127.0.0.1:${port}`)
  await one.send(WELCOME)
  await one.close()
  expect((await one.send(WELCOME)).kind).toBe('transient')
  expect(connections()).toBe(1)
})

test('verifying connects and authenticates, and its reason is that of the table', async () => {
  const { port } = await rudeSmtp((word) => ({ EHLO: '250-rude\r\n250 AUTH PLAIN', AUTH: '235 ok' })[word])
  await mailer(withAuth(port)).verify()
  await expect(mailer('smtp://127.0.0.1:1').verify()).rejects.toThrow(
    /^the mail server could not be reached: the connection was refused: nothing listens there$/,
  )
})

test.each([
  [
    'cuts it at once',
    (socket: Socket) => void socket.destroy(),
    'the connection broke before the answer was whole',
  ],
  ['says nothing', () => {}, 'it accepted the connection and did not answer in time'],
])('the reason names a server that accepts a connection and %s', async (_, answer, cause) => {
  const server = createServer(answer).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const url = secret(`smtp://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const line = openSmtp({ url, silenceMs: 100 })
  await expect(line.verify(AbortSignal.timeout(20_000))).rejects.toThrow(
    new Error(`the mail server could not be reached: ${cause}`),
  )
  await line.close()
})
