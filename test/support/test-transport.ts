import type { Transport } from '../../src/core/mail/transport.ts'

/** A transport with the given `send`. */
export const testTransport = (send: Transport['send']): Transport => ({
  kind: 'test',
  send,
  verify: async () => {},
  close: async () => {},
})
