import type { Settings } from '../env/settings.ts'
import type { Mailbox } from './address.ts'
import { compiledMails } from './compiled.ts'
import { composeMessage } from './compose.ts'
import type { Mail, Mailer, SendOutcome } from './mailer.ts'
import type { Transport } from './transport.ts'

const NOT_CONFIGURED = 'mail is not configured'

export interface MailerOptions {
  readonly mail: Settings['mail']
  /** An embedding program's own transport; it then needs a sender of its own too, or that of `mail`. */
  readonly transport?: Transport | undefined
  readonly from?: Mailbox | undefined
}

/** Opens a mailer; nothing connects before the first send. */
export function openMailer({ mail, transport: own, from = mail?.from }: MailerOptions): Mailer {
  const sender = from ?? (own ? { name: undefined, address: 'platform@localhost.invalid' } : undefined)
  if (sender === undefined || (mail === undefined && own === undefined)) return noMailer
  let opened: Promise<Transport> | undefined
  const transport = () => {
    opened ??= own ? Promise.resolve(own) : openTransport(mail)
    return opened
  }
  const compose = async (message: Mail) =>
    composeMessage({
      mail: message,
      compiled: (await compiledMails())[message.template],
      from: sender,
      replyTo: mail?.replyTo,
    })
  return {
    configured: true,
    reason: undefined,
    transport: own?.kind ?? mail?.route.kind,
    compose,
    async send(message, signal) {
      try {
        return await (await transport()).send(await compose(message), signal)
      } catch (error) {
        return { kind: 'permanent', reason: faultOf(error), hardBounce: false }
      }
    },
    verify: async (signal) => (await transport()).verify(signal),
    close: async () => (await opened)?.close(),
  }
}

const noMailer: Mailer = {
  configured: false,
  reason: NOT_CONFIGURED,
  transport: undefined,
  compose: () => Promise.reject(new Error(NOT_CONFIGURED)),
  send: async (): Promise<SendOutcome> => ({ kind: 'not_configured', reason: NOT_CONFIGURED }),
  verify: () => Promise.reject(new Error(NOT_CONFIGURED)),
  close: async () => {},
}

async function openTransport(mail: Settings['mail']): Promise<Transport> {
  if (mail === undefined) throw new Error(NOT_CONFIGURED)
  if (mail.route.kind === 'smtp')
    return (await import('./transports/smtp.ts')).openSmtp({ url: mail.route.url, key: mail.key })
  return (await import('./transports/api.ts')).openApi({ url: mail.route.url, key: mail.key })
}

/** Faults of ours have a sentence of their own; a stranger's message could quote an address. */
function faultOf(error: unknown): string {
  return error instanceof Error && error.name === 'SlotError'
    ? error.message
    : 'the message could not be made'
}
