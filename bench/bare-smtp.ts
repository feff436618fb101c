import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** The fastest possible SMTP client: one connection, with one write and one wait per message. */
export interface BareSmtp {
  /** Resolves when the server has taken it. */
  send(bytes: Buffer): Promise<void>
  close(): void
}

/**
 * A client that does nothing but pipeline (RFC 2920): the envelope of the next message goes out with the end of the one
 * before. It expects the replies of `smtp-sink.ts`, and knows nothing of refusals, TLS or credentials.
 */
export async function bareSmtp(port: number, from: string, to: string): Promise<BareSmtp> {
  const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  await once(socket, 'data')
  socket.write('EHLO bench\r\n')
  await once(socket, 'data')
  const envelope = Buffer.from(`MAIL FROM:<${from}>\r\nRCPT TO:<${to}>\r\nDATA\r\n`)
  const end = Buffer.from('\r\n.\r\n')
  let taken: (() => void) | undefined
  let started = false
  let [lines, needed] = [0, 0]
  socket.on('data', (chunk: Buffer) => {
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines += 1
    if (lines >= needed) taken?.()
  })
  const replies = (count: number) =>
    new Promise<void>((resolve) => {
      needed = count
      lines = 0
      taken = resolve
    })
  return {
    async send(bytes) {
      if (!started) {
        started = true
        socket.write(envelope)
        await replies(3)
      }
      // One reply to the message, and three to the next message's commands.
      const answered = replies(4)
      socket.write(Buffer.concat([bytes, end, envelope]))
      await answered
    },
    close: () => socket.destroy(),
  }
}
