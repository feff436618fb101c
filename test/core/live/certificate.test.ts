import { getEventListeners, once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { codeOf } from '../../../src/core/errors.ts'
import { certificateOf } from '../../../src/core/live/network.ts'
import { authority, loopbackLookup } from '../../support/outside.ts'

const signed = await authority('Trusted for tests')
const network = { lookup: loopbackLookup, ca: signed.ca }

/** Listens on loopback, and gives every connection that was accepted. */
async function listen(
  server: ReturnType<typeof createServer>,
  connected: (socket: Socket) => void = () => {},
) {
  const sockets: Socket[] = []
  server.on('connection', (socket: Socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    connected(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as { port: number }
  return { port, sockets }
}

/** A mail server that answers each line with what is next, in the pieces given; notes the lines. */
function mailServer(replies: readonly (readonly string[])[]) {
  const lines: string[] = []
  const waiting = [...replies]
  const say = async (socket: Socket) => {
    const pieces = waiting.shift()
    if (pieces === undefined) socket.end()
    for (const piece of pieces ?? []) {
      socket.write(piece)
      // Each piece is a packet of its own.
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const listening = listen(createServer({ noDelay: true }), (socket) => {
    void say(socket)
    socket.on('data', (chunk) => {
      lines.push(String(chunk).trim())
      void say(socket)
    })
  })
  return { lines, listening }
}

const upgraded = async (replies: readonly (readonly string[])[]) => {
  const { lines, listening } = mailServer(replies)
  const { port } = await listening
  const outcome = await certificateOf(
    new URL(`smtp://service.example:${port}`),
    network,
    AbortSignal.timeout(2000),
  ).catch((error: unknown) => codeOf(error))
  return { lines, outcome }
}

const HELLO = ['220-mail.example\r\n', '220 ready\r', '\n']
const OFFER = ['250-mail.example\r\n250-SIZE 1000\r\n', '250-starttls\r\n', '250 HELP\r\n']

test('a line is closed once the certificate is read, and nothing listens to the signal any more', async () => {
  const names: string[] = []
  const credentials = await signed.issue({})
  const server = createTlsServer({
    ...credentials,
    SNICallback: (name, done) => {
      names.push(name)
      done(null)
    },
  })
  const { port, sockets } = await listen(server)
  server.on('tlsClientError', () => {})
  const { signal } = new AbortController()
  const read = await certificateOf(new URL(`https://service.example:${port}`), network, signal)
  expect(read.fault).toBeUndefined()
  expect(read.validTo - read.validFrom).toBeGreaterThan(0)
  expect(names).toEqual(['service.example'])
  await Promise.all(sockets.filter(({ destroyed }) => !destroyed).map((socket) => once(socket, 'close')))
  expect(sockets).toHaveLength(1)
  expect(getEventListeners(signal, 'abort')).toEqual([])
})

test('a certificate for an address is held to the address', async () => {
  const at = async (host: string) => {
    const { port } = await listen(createTlsServer(await signed.issue({ host })))
    const { signal } = new AbortController()
    return (await certificateOf(new URL(`https://127.0.0.1:${port}`), network, signal)).fault
  }
  expect(await at('127.0.0.1')).toBeUndefined()
  expect(await at('service.example')).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
})

test.each([
  ['to EHLO', 'smtp'],
  ['to its handshake', 'https'],
])('gives up on a server that does not answer %s when time is up', async (_, scheme) => {
  const asked = Promise.withResolvers<Socket>()
  const { port } = await listen(createServer(), (socket) => {
    if (scheme === 'smtp') socket.write('220 mail.example\r\n')
    socket.once('data', () => asked.resolve(socket))
  })
  const control = new AbortController()
  const url = new URL(`${scheme}://service.example:${port}`)
  const fault = certificateOf(url, network, control.signal).catch((error: unknown) => error)
  const closed = once(await asked.promise, 'close')
  control.abort()
  expect(await fault).toMatchObject({ code: 'answer_timeout' })
  await closed
  expect(getEventListeners(control.signal, 'abort')).toEqual([])
})

test('STARTTLS is asked for after EHLO, when it is offered', async () => {
  const { lines } = await upgraded([HELLO, OFFER, ['220 go\r\n']])
  expect(lines.slice(0, 2)).toEqual(['EHLO platformctl.localhost', 'STARTTLS'])
  expect(lines).toHaveLength(3)
})

test.each<[string, readonly (readonly string[])[], string, number]>([
  ['offers no STARTTLS', [HELLO, ['250-mail.example\r\n250 SIZE 1000\r\n'], []], 'no_starttls', 1],
  ['offers something that only begins like it', [HELLO, ['250 STARTTLSX\r\n'], []], 'no_starttls', 1],
  ['takes it back', [HELLO, OFFER, ['454 not now\r\n'], []], 'no_starttls', 2],
  ['hangs up before it greets', [], 'connection_closed', 0],
  ['hangs up instead of an answer', [HELLO], 'connection_closed', 1],
  ['talks on without a line end', [['2'.repeat(8193)]], 'connection_closed', 0],
])('a mail server that %s is told so', async (_, replies, kind, asked) => {
  const { lines, outcome } = await upgraded(replies)
  expect(outcome).toBe(kind)
  expect(lines).toHaveLength(asked)
})
