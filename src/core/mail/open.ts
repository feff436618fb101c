import { hash } from 'node:crypto'
import { asciiAddress, type Mailbox } from '../address.ts'
import { once, perObject } from '../calls.ts'
import type { DkimSettings, MailRoute, Settings } from '../env/settings.ts'
import { isRecord } from '../is-record.ts'
import type { Network } from '../network/get.ts'
import { dkimPrivateKey } from '../webhook-key.ts'
import type { BounceAddresses } from './feedback/bounce-address.ts'
import {
  composeFault,
  LINES,
  type Mail,
  type Mailer,
  type Message,
  NOT_CONFIGURED,
  type Outcome,
  PATIENCE_MS,
  type Transport,
} from './mailer.ts'
import { type CompiledMail, type CompiledMails, isSafeUrl, mailIn, renderMail } from './template.ts'
import type { SignMessage } from './transports/mime.ts'

export function openMailer(input: {
  readonly mail: Settings['mail']
  /** An embedding program's own transport; it then needs a sender of its own too, or that of `mail`. */
  readonly transport?: Transport | undefined
  readonly from?: Mailbox | undefined
  readonly replyTo?: Mailbox | undefined
  /** Takes out of an own transport's reasons what no log may hold. */
  readonly cleaned?: (reason: string) => string
  /** Envelope senders for SMTP; undefined: the sender of the message. */
  readonly bounceAddresses?: () => Promise<BounceAddresses | undefined>
  readonly compiled: () => Promise<CompiledMails>
  /** Hears the Date of an API’s answers. */
  readonly onDate?: Network['onDate']
}): Mailer {
  const { mail, transport: own, from = mail?.from, replyTo = mail?.replyTo, compiled, onDate } = input
  const { cleaned = (reason) => reason, bounceAddresses = async () => undefined } = input
  const sender = from ?? (own ? { name: undefined, address: 'platform@localhost.invalid' } : undefined)
  if (sender === undefined || (mail === undefined && own === undefined)) return noMailer
  const transport = once(async () => own ?? openTransport(mail, bounceAddresses, onDate))
  const compose = async (message: Mail) => {
    const template = message.compiled ?? mailIn(await compiled(), message.template, message.language)
    if (template === undefined) throw new RangeError('there is no such template')
    const { from = sender, sentAs = { from, replyTo } } = message
    return composeMessage(message, template, sentAs.from, sentAs.replyTo)
  }
  return {
    configured: true,
    transport: own?.kind ?? (mail && transportOf(mail.route)),
    lines: own === undefined && mail?.route.kind === 'smtp' ? LINES.smtp : LINES.api,
    patienceMs: own ? (own.patienceMs ?? PATIENCE_MS.api) : PATIENCE_MS[mail?.route.kind ?? 'api'],
    async prepare() {
      await Promise.all([compiled(), transport()])
    },
    messageId: (mail) => messageIdOf(mail, senderOf(mail.from ?? sender).domain),
    compose,
    async send(mail, signal, recorded) {
      const message = await compose(mail).catch(composeFault)
      if (typeof message === 'string') return { kind: 'not_composed', reason: message }
      const line = await transport().catch(() => undefined)
      if (line === undefined)
        return { kind: 'transient', scope: 'connection', reason: 'the mail transport could not be opened' }
      try {
        const outcome: unknown = await line.send(message, signal, recorded)
        if (isOutcome(outcome))
          return outcome.kind === 'sent' ? outcome : { ...outcome, reason: cleaned(outcome.reason) }
      } catch {
        // A transport from outside may throw. Its error's text could quote an address.
      }
      return { kind: 'unknown', reason: 'the mail transport failed' }
    },
    verify: async (signal) => (await transport()).verify(signal),
    close: async () => (await transport.opened().catch(() => undefined))?.close(),
  }
}

function isOutcome(value: unknown): value is Outcome {
  if (!isRecord(value)) return false
  const { kind, id, reason } = value
  if (kind === 'sent') return typeof id === 'string'
  return ['transient', 'permanent', 'unknown'].includes(String(kind)) && typeof reason === 'string'
}

const noMailer: Mailer = {
  configured: false,
  transport: undefined,
  lines: 0,
  patienceMs: 0,
  prepare: async () => {},
  messageId: () => undefined,
  compose: () => Promise.reject(new Error(NOT_CONFIGURED)),
  send: async () => ({ kind: 'not_configured', reason: NOT_CONFIGURED }),
  verify: () => Promise.reject(new Error(NOT_CONFIGURED)),
  close: async () => {},
}

/** The kind of the transport that a route opens, known before it is loaded. */
const transportOf = (route: MailRoute): string =>
  route.kind === 'smtp' || route.provider === 'resend' ? route.kind : (route.provider ?? route.kind)

async function openTransport(
  mail: Settings['mail'],
  bounceAddresses: () => Promise<BounceAddresses | undefined>,
  onDate: Network['onDate'],
): Promise<Transport> {
  if (mail === undefined) throw new Error(NOT_CONFIGURED)
  if (mail.route.kind === 'smtp')
    return (await import('./transports/smtp.ts')).openSmtp({
      url: mail.route.url,
      key: mail.key,
      // The store, which holds the key of the tokens, is opened only if they are needed.
      bounceAddresses: mail.bounceAddress === undefined ? undefined : await bounceAddresses(),
      dkim: await signerOf(mail.dkim),
    })
  if (mail.key === undefined) throw new Error(NOT_CONFIGURED)
  const { openApi } = await import('./transports/api.ts')
  return openApi({ ...mail.route, key: mail.key, onDate })
}

/** Unsigned mail in place of signed would lose the domain's good name: a key that cannot be used is a fault. */
async function signerOf(dkim: DkimSettings | undefined): Promise<SignMessage | undefined> {
  if (dkim === undefined) return undefined
  const key = dkimPrivateKey(dkim.key.reveal())
  if (key === undefined) throw new Error('MAILER_DKIM_KEY is not a private RSA key')
  const { createDkimSigner } = await import('./transports/mime.ts')
  return createDkimSigner(dkim, key)
}

const LINE_END = /[\r\n\0]/

/** The complete message: the same mail gives the same bytes, however often it is composed. Throws a SlotError. */
export function composeMessage(
  mail: Mail,
  compiled: CompiledMail,
  from: Mailbox,
  replyTo: Mailbox | undefined,
): Message {
  const { unsubscribeUrl: link, slots, template, label = template, date, to, attachments } = mail
  const list = link === undefined ? 'account' : (mail.stream ?? 'course')
  const rendered = renderMail(compiled, slots)
  const { domain, id: sender } = senderOf(from)
  // Usually this is the link in the body, which was already checked with the slots.
  if (link !== undefined && link !== slots.unsubscribeUrl && !isSafeUrl(link))
    throw new Error('the unsubscribe link is not an address')
  const oneClick = { 'List-Unsubscribe': `<${link}>`, 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' }
  const headers = {
    ...(link !== undefined && oneClick),
    // Vacation responders answer no such mail (RFC 3834 §5).
    'Auto-Submitted': 'auto-generated',
    // Gmail reports complaint rates for each part; the last one names the sender.
    ...(link !== undefined && { 'Feedback-ID': `${template}:${list}:mail:${sender}` }),
    'List-Id': `<${list}.${domain}>`,
    ...mail.headers,
  }
  // Slots, addresses and the link are checked where they are parsed.
  if (LINE_END.test(rendered.subject) || LINE_END.test(from.name ?? '') || LINE_END.test(to.name ?? ''))
    throw new Error('a header field holds a line end')
  return {
    key: `${label}.${digestOf(mail)}`,
    messageId: messageIdOf(mail, domain),
    date,
    from,
    to,
    replyTo,
    ...rendered,
    headers,
    attachments,
    source: { compiled, slots },
  }
}

type Named = Pick<Mail, 'template' | 'label' | 'about'>

/** A hash, because what a mail is about may hold more characters than a Message-ID or a provider's key allows. */
const digestOf = ({ template, label = template, about }: Named) =>
  hash('sha256', `${label} ${about}`, 'base64url').slice(0, 32)

const messageIdOf = ({ seal, about, ...mail }: Named & Pick<Mail, 'seal'>, domain: string) =>
  `${digestOf({ ...mail, about: seal ?? about })}@${domain}`

/** The domain of a sender, and 12 characters that stay the same for it: most messages have one sender. */
const senderOf = perObject((from: Mailbox) => {
  const address = asciiAddress(from.address)
  const domain = address.slice(address.lastIndexOf('@') + 1)
  return { domain, id: hash('sha256', domain, 'hex').slice(0, 12) }
})
