import type { Message, Transport } from '../../src/core/mail/mailer.ts'

/** A transport with the given `send`. */
export const testTransport = (send: Transport['send']): Transport => ({
  kind: 'test',
  send,
  verify: async () => {},
  close: async () => {},
})

/** A transport that accepts every message and keeps it in `messages`. */
export const keepingTransport = (messages: Message[]): Transport =>
  testTransport(async (message) => {
    messages.push(message)
    return { kind: 'sent', id: message.key }
  })
