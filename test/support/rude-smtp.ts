import { type AddressInfo, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** Chooses a server's answer: a reply, `undefined` for the usual one, or `null` for no reply at all. */
export type Rude = (word: string, socket: Socket, line: string) => string | null | undefined

const USUAL: Readonly<Record<string, string>> = {
  CONNECT: '220 rude',
  EHLO: '250 rude',
  DATA: '354 go',
  QUIT: '221 bye',
}

/** A real SMTP server on loopback that behaves until it is told not to. `END` is the end of a message. */
export async function rudeSmtp(
  answer: Rude = () => undefined,
): Promise<{ readonly port: number; readonly lines: readonly string[]; readonly connections: () => number }> {
  const lines: string[] = []
  const sockets = new Set<Socket>()
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    let inData = false
    let buffered = ''
    const reply = (word: string, line: string) => {
      const said = answer(word, socket, line)
      const text = said === undefined ? (USUAL[word] ?? '250 2.0.0 ok') : said
      if (word === 'DATA' && text?.startsWith('354')) inData = true
      if (text !== null && !socket.destroyed) socket.write(`${text}\r\n`)
    }
    reply('CONNECT', '')
    socket.on('data', (chunk) => {
      buffered += chunk.toString('latin1')
      for (let end = buffered.indexOf('\r\n'); end !== -1; end = buffered.indexOf('\r\n')) {
        const line = buffered.slice(0, end)
        buffered = buffered.slice(end + 2)
        if (inData && line !== '.') continue
        lines.push(line)
        const word = inData ? 'END' : (line.split(' ')[0] ?? '').toUpperCase()
        inData = false
        reply(word, line)
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise<void>((resolve) => server.close(() => resolve()))
  })
  return { port: (server.address() as AddressInfo).port, lines, connections: () => connections }
}
