import { parseMailbox } from '../address.ts'
import type { Mail } from './mailer.ts'

/** A file to attach, as code gives it. */
export interface AttachmentInput {
  /** File name, without a path. */
  readonly name: string
  /** Media type, as `application/pdf`. */
  readonly type: string
  /** Bytes, or text to write in UTF-8. */
  readonly content: Uint8Array | string
}

/** What code may add to one mail. */
export interface MailParts {
  /** Sender in place of MAILER_FROM; the provider has to know it. */
  readonly from?: string
  /** Further headers, as `X-PM-Message-Stream`. Those that carry or sign the mail are not yours to set. */
  readonly headers?: Readonly<Record<string, string>>
  /** At most 20, of 7 MB together. */
  readonly attachments?: readonly AttachmentInput[]
}

const MOST = 20
const LARGEST_BYTES = 7_000_000
const LONGEST_NAME = 200
const LONGEST_VALUE = 900

/** Fields that the engine writes, that name other recipients, or that servers add on the way. */
const RESERVED =
  /^(?:from|sender|to|cc|bcc|reply-to|subject|date|message-id|return-path|errors-to|mime-version|content-.*|resent-.*|received.*|dkim-.*|domainkey-.*|arc-.*|authentication-results|auto-submitted|feedback-id|list-.*|x-smtpapi|.*-b?cc|x-pm-keepid)$/i
const FIELD_NAME = /^[A-Za-z][A-Za-z0-9-]{0,75}$/
const FIELD_VALUE = new RegExp(`^[\\x20-\\x7e]{1,${LONGEST_VALUE}}$`)
/** A media type with simple parameters (RFC 2045 §5.1). Those of parts and messages are not sent in base64. */
const MEDIA_TYPE =
  /^(?!multipart|message)[\w!#$&^.+-]{1,60}\/[\w!#$&^.+-]{1,80}(?:; ?[\w-]{1,30}=[\w.+-]{1,60}){0,4}$/i
/** Separators of paths, control characters, and characters that turn the direction of text. */
const UNSAFE_IN_NAME = /[/\\\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/u

/** Reads what is added to a mail; a text says why it cannot be. Callers without types give what they have. */
export function readMailParts({
  from,
  headers = {},
  attachments = [],
}: MailParts): Pick<Mail, 'from' | 'headers' | 'attachments'> | string {
  const sender = from === undefined ? undefined : parseMailbox(String(from))
  if (sender?.ok === false) return `from: ${sender.reason}`
  const fault = headerFault(headers) ?? attachmentFault(attachments)
  if (fault !== undefined) return fault
  const files = attachments.map(({ name, type, content }) => ({
    name,
    type,
    content: typeof content === 'string' ? Buffer.from(content, 'utf8') : Buffer.from(content),
  }))
  if (files.reduce((all, { content }) => all + content.length, 0) > LARGEST_BYTES)
    return 'the attachments are larger than 7 MB together: link to them instead'
  return {
    ...(sender && { from: sender.mailbox }),
    ...(Object.keys(headers).length > 0 && { headers: { ...headers } }),
    ...(files.length > 0 && { attachments: files }),
  }
}

function headerFault(headers: Readonly<Record<string, string>>): string | undefined {
  const entries: [string, unknown][] = Object.entries(headers)
  if (entries.length > MOST) return `a mail has at most ${MOST} headers of its own`
  for (const [name, value] of entries) {
    if (!FIELD_NAME.test(name)) return 'the name of a header has letters, digits and hyphens, at most 76'
    if (RESERVED.test(name))
      return `the header ${name} cannot be set: it is written for every mail, or misdirects it`
    if (typeof value !== 'string' || !FIELD_VALUE.test(value))
      return `the value of the header ${name} is not one line of at most ${LONGEST_VALUE} printable ASCII characters`
  }
  return undefined
}

function attachmentFault(attachments: readonly AttachmentInput[]): string | undefined {
  if (attachments.length > MOST) return `a mail has at most ${MOST} attachments`
  for (const { name, type, content } of attachments) {
    if (
      typeof name !== 'string' ||
      name.trim() === '' ||
      name.length > LONGEST_NAME ||
      !name.isWellFormed() ||
      UNSAFE_IN_NAME.test(name) ||
      /^\.+$/.test(name)
    )
      return `the name of an attachment is a file name of at most ${LONGEST_NAME} characters, without a path`
    if (typeof type !== 'string' || !MEDIA_TYPE.test(type))
      return 'the type of an attachment is a media type, as application/pdf'
    if (typeof content !== 'string' && !(content instanceof Uint8Array))
      return 'the content of an attachment is text or bytes'
  }
  return undefined
}
