import { createHash } from 'node:crypto'
import type { Settings } from '../env/settings.ts'
import type { Mailbox } from './address.ts'
import { compiledMails } from './compiled.ts'
import type { Mail, Mailer, SendOutcome } from './mailer.ts'
import { renderMail } from './render.ts'
import type { Message, Transport } from './transport.ts'

const NOT_CONFIGURED = 'mail is not configured'

export interface MailerOptions {
  readonly mail: Settings['mail']
  /** An embedding program's own transport; it then needs a sender of its own too, or that of `mail`. */
  readonly transport?: Transport | undefined
  readonly from?: Mailbox | undefined
}

/** True only when the key is set (CONTRACT §4). */
export function isEmailConfigured(mail: Settings['mail']): boolean {
  return mail !== undefined
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
  const compose = (message: Mail) => composeMessage(message, sender, mail?.replyTo)
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

/** The same mail gives the same bytes, however often it is composed. */
async function composeMessage(mail: Mail, from: Mailbox, replyTo: Mailbox | undefined): Promise<Message> {
  const { subject, html, text } = renderMail((await compiledMails())[mail.template], mail.slots)
  const domain = from.address.slice(from.address.lastIndexOf('@') + 1)
  // A hash, because what a mail is about may hold more characters than a Message-ID or a provider's key allows.
  const digest = createHash('sha256').update(mail.about).digest('base64url').slice(0, 32)
  const headers: Record<string, string> = {}
  if (mail.unsubscribeUrl !== undefined) {
    headers['List-Unsubscribe'] = `<${mail.unsubscribeUrl}>`
    headers['List-Unsubscribe-Post'] = 'List-Unsubscribe=One-Click'
  }
  headers['List-Id'] = `<${mail.unsubscribeUrl === undefined ? 'account' : 'course'}.${domain}>`
  for (const value of [subject, from.name ?? '', mail.to.name ?? '', ...Object.values(headers)])
    refuseLineEnds(value)
  return {
    key: `${mail.template}.${digest}`,
    messageId: `${digest}@${domain}`,
    date: mail.date,
    from,
    to: mail.to,
    replyTo,
    subject,
    html,
    text,
    headers,
  }
}

function refuseLineEnds(value: string): void {
  if (/[\r\n\0]/.test(value)) throw new Error('a header field holds a line end')
}

/** Faults of ours have a sentence of their own; a stranger's message could quote an address. */
function faultOf(error: unknown): string {
  return error instanceof Error && error.name === 'SlotError'
    ? error.message
    : 'the message could not be made'
}
