import { hash } from 'node:crypto'
import { asciiAddress, type Mailbox } from './address.ts'
import type { Mail } from './mailer.ts'
import { isSafeUrl, renderMail } from './render.ts'
import type { CompiledMail } from './template.ts'
import type { Message } from './transport.ts'

export interface ComposeInput {
  readonly mail: Mail
  readonly compiled: CompiledMail
  readonly from: Mailbox
  readonly replyTo: Mailbox | undefined
}

/** The complete message: the same mail gives the same bytes, however often it is composed. Throws a SlotError. */
export function composeMessage({ mail, compiled, from, replyTo }: ComposeInput): Message {
  const rendered = renderMail(compiled, mail.slots)
  const { subject } = rendered
  const sender = asciiAddress(from.address)
  const domain = sender.slice(sender.lastIndexOf('@') + 1)
  // A hash, because what a mail is about may hold more characters than a Message-ID or a provider's key allows.
  const digest = hash('sha256', `${mail.template} ${mail.about}`, 'base64url').slice(0, 32)
  const headers: Record<string, string> = {}
  if (mail.unsubscribeUrl !== undefined) {
    if (!isSafeUrl(mail.unsubscribeUrl)) throw new Error('the unsubscribe link is not an address')
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
    get html() {
      return rendered.html
    },
    get text() {
      return rendered.text
    },
    headers,
    source: { compiled, slots: mail.slots },
  }
}

function refuseLineEnds(value: string): void {
  if (/[\r\n\0]/.test(value)) throw new Error('a header field holds a line end')
}
