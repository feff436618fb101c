import { hash } from 'node:crypto'
import { asciiAddress, type Mailbox } from '../address.ts'
import { perObject } from '../once.ts'
import type { Mail, Message } from './mailer.ts'
import { type CompiledMail, isSafeUrl, renderMail } from './template.ts'

const LINE_END = /[\r\n\0]/

/** The complete message: the same mail gives the same bytes, however often it is composed. Throws a SlotError. */
export function composeMessage(
  mail: Mail,
  compiled: CompiledMail,
  from: Mailbox,
  replyTo: Mailbox | undefined,
): Message {
  const { subject, html, text } = renderMail(compiled, mail.slots)
  const { domain, id: sender } = senderOf(from)
  const digest = digestOf(mail)
  const headers: Record<string, string> = {}
  if (mail.unsubscribeUrl !== undefined) {
    // Usually this is the link in the body, which was already checked with the slots.
    if (mail.unsubscribeUrl !== mail.slots.unsubscribeUrl && !isSafeUrl(mail.unsubscribeUrl))
      throw new Error('the unsubscribe link is not an address')
    headers['List-Unsubscribe'] = `<${mail.unsubscribeUrl}>`
    headers['List-Unsubscribe-Post'] = 'List-Unsubscribe=One-Click'
  }
  // Vacation responders answer no such mail (RFC 3834 §5).
  headers['Auto-Submitted'] = 'auto-generated'
  // Gmail reports complaint rates for each part; the last one names the sender.
  if (mail.unsubscribeUrl !== undefined) headers['Feedback-ID'] = `${mail.template}:course:mail:${sender}`
  headers['List-Id'] = `<${mail.unsubscribeUrl === undefined ? 'account' : 'course'}.${domain}>`
  Object.assign(headers, mail.headers)
  // Slots, addresses and the link above are checked where they are parsed. Check the other values that go
  // into headers.
  if (LINE_END.test(subject) || LINE_END.test(from.name ?? '') || LINE_END.test(mail.to.name ?? ''))
    throw new Error('a header field holds a line end')
  return {
    key: `${mail.label ?? mail.template}.${digest}`,
    messageId: `${digest}@${domain}`,
    date: mail.date,
    from,
    to: mail.to,
    replyTo,
    subject,
    html,
    text,
    headers,
    attachments: mail.attachments,
    source: { compiled, slots: mail.slots },
  }
}

/** A hash, because what a mail is about may hold more characters than a Message-ID or a provider's key allows. */
function digestOf({ template, label = template, about }: Pick<Mail, 'template' | 'label' | 'about'>): string {
  return hash('sha256', `${label} ${about}`, 'base64url').slice(0, 32)
}

/** The domain of a sender, and 5 to 15 characters that stay the same for it. Every message has the same sender. */
const senderOf = perObject((from: Mailbox) => {
  const address = asciiAddress(from.address)
  const domain = address.slice(address.lastIndexOf('@') + 1)
  return { domain, id: hash('sha256', domain, 'hex').slice(0, 12) }
})

/** The Message-ID of a mail, without angle brackets: the same for every attempt. */
export function messageIdOf(mail: Pick<Mail, 'template' | 'label' | 'about'>, from: Mailbox): string {
  return `${digestOf(mail)}@${senderOf(from).domain}`
}
