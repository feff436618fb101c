import type { Transport } from '../../src/core/mail/mailer.ts'

/** A transport with the given `send`. */
export const testTransport = (send: Transport['send']): Transport => ({
  kind: 'test',
  send,
  verify: async () => {},
  close: async () => {},
})
