import { hash } from 'node:crypto'
import PostalMime, { type Email } from 'postal-mime'
import { parseAddress } from '../../address.ts'
import { bounceKind, enhancedCode, type FeedbackEvent, reasonFor } from './event.ts'
import type { SuppressionList } from './suppressions.ts'

/** One recipient's part of a delivery status notification or an abuse report. */
export interface ReportedMessage extends Pick<FeedbackEvent, 'kind' | 'messageId' | 'reason'> {
  /** The recipient as the report spells it; undefined where it is left out or redacted. */
  readonly address: string | undefined
}

/** Valid, but no news of a recipient: a delay, an automatic reply. */
const ignored = (reason: string) => ({ kind: 'ignored', reason }) as const
const notUnderstood = (reason: string) => ({ kind: 'not-understood', reason }) as const
const reported = (reports: readonly ReportedMessage[]) => ({ kind: 'report', reports }) as const

/** The largest report that is taken; a returned message is rarely over 1 MB. */
export const LONGEST_REPORT_BYTES = 4 * 1024 * 1024
/** The part of a report that is parsed. What it says comes first, the returned message last. */
const PARSED_BYTES = 128 * 1024
const PARSED_LINES = 2000
const LONGEST_HEAD_BYTES = 32 * 1024
/** Our messages have one recipient each; servers put several of their reports into one message. */
const MOST_RECIPIENTS = 50
const LONGEST_NOTICE = 32 * 1024
const LONGEST_SUBJECT = 1000

/**
 * Reads a delivery status notification (RFC 3464), an abuse report (RFC 5965), or the plain text with which Exim,
 * qmail and older Exchange and Gmail servers return a message. A bounce is hard only for a status code that says so.
 */
export async function readMailReport(raw: Uint8Array) {
  if (raw.byteLength > LONGEST_REPORT_BYTES) return notUnderstood('it is larger than 4 MB')
  const beginning = beginningOf(raw)
  if (hasLongHead(beginning)) return notUnderstood('its header is longer than that of any report')
  const email = await PostalMime.parse(beginning, {
    forceRfc822Attachments: true,
    attachmentEncoding: 'arraybuffer',
    maxNestingDepth: 20,
  }).catch(() => undefined)
  if (email === undefined) return notUnderstood('it is not an email message')
  const parts = new Map(
    email.attachments.map(
      ({ mimeType, content }) =>
        [mimeType, typeof content === 'string' ? content : new TextDecoder().decode(content)] as const,
    ),
  )
  const original =
    parts.get('message/rfc822') ?? parts.get('text/rfc822-headers') ?? parts.get('message/global')
  const messageId = messageIdIn(original ?? '')
  /** To whom the returned message says that it was addressed. */
  const recipients = recipientsIn(original ?? '')
  const status = parts.get('message/delivery-status') ?? parts.get('message/global-delivery-status')
  const abuse = parts.get('message/feedback-report')
  const reading =
    status !== undefined
      ? deliveryStatus(status, messageId ?? messageIdIn(noticeOf(email)))
      : abuse !== undefined
        ? abuseReport(abuse, messageId)
        : returnedText(email, messageId)
  return reading.kind === 'report'
    ? { ...reading, reports: reading.reports.slice(0, MOST_RECIPIENTS), recipients }
    : reading
}

/** The first lines, because each line costs the parser time, and each part memory. */
function beginningOf(raw: Uint8Array): Uint8Array {
  const bytes = raw.subarray(0, PARSED_BYTES)
  let end = 0
  for (let lines = 0; lines < PARSED_LINES; lines += 1) {
    const at = bytes.indexOf(0x0a, end)
    if (at === -1) return bytes
    end = at + 1
  }
  return bytes.subarray(0, end)
}

function hasLongHead(bytes: Uint8Array): boolean {
  const head = Buffer.from(bytes).toString('latin1', 0, LONGEST_HEAD_BYTES)
  return bytes.length > LONGEST_HEAD_BYTES && !/\n\r?\n/.test(head)
}

function deliveryStatus(status: string, messageId: string | undefined) {
  // The first block is about the message, each further one about a recipient (RFC 3464 §2.1).
  const recipients = blocks(status).filter((block) => block.has('action') || block.has('final-recipient'))
  const reports = recipients.flatMap((block): ReportedMessage[] => {
    const action = block.get('action')?.toLowerCase()
    const code = enhancedCode(block.get('status'), block.get('diagnostic-code'))
    const kind = action === 'failed' ? bounceKind(code) : action === 'delivered' ? action : undefined
    if (kind === undefined) return []
    // `rfc822; ada@example.com`: the original recipient, since the final one may be where it was forwarded.
    const stated = block.get('original-recipient') ?? block.get('final-recipient') ?? ''
    const address = bareAddress(stated.replace(/^[^;]*;/, ''))
    return [{ kind, address, messageId, reason: reasonFor(kind, code) }]
  })
  if (reports.length > 0) return reported(reports)
  return recipients.length > 0
    ? ignored('the message is delayed, relayed or expanded, and not failed')
    : notUnderstood('the delivery status names no recipient')
}

function abuseReport(report: string, messageId: string | undefined) {
  const block = blocks(report)[0]
  const type = block?.get('feedback-type')?.toLowerCase()
  if (type === undefined) return notUnderstood('the feedback report has no type')
  if (type === 'not-spam') return ignored('the recipient said that the message is not spam')
  if (type !== 'abuse' && type !== 'fraud' && type !== 'virus' && type !== 'other')
    return ignored('the feedback report is not about abuse')
  const address = bareAddress(block?.get('original-rcpt-to') ?? '')
  return reported([{ kind: 'complaint', address, messageId, reason: reasonFor('complaint') }])
}

const MAILER = /^(?:mailer-daemon|postmaster|microsoftexchange[0-9a-f]*)@|^$/i
const RETURNED =
  /undeliver|deliver(?:y|ed).{0,40}fail|fail.{0,20}deliver|returned (?:mail|to sender)|could ?n[o']t be delivered|was not able to deliver|wasn't able to deliver/i
const TEMPORARY = /delay|will (?:be )?retr|still trying|temporar|warning/i

/** Only a mailer's own notice of a final failure counts, and only with a status code that its text gives. */
function returnedText(email: Email, attachedId: string | undefined) {
  const header = (name: string) => email.headers.find(({ key }) => key === name)?.value
  const text = noticeOf(email)
  const failed = header('x-failed-recipients')
  const subject = (email.subject ?? '').slice(0, LONGEST_SUBJECT)
  const fromMailer = MAILER.test(email.from?.address ?? '')
  if (!fromMailer || !(failed !== undefined || RETURNED.test(subject) || RETURNED.test(text.slice(0, 2000))))
    return header('auto-submitted') !== undefined || header('x-autoreply') !== undefined
      ? ignored('it is an automatic reply')
      : notUnderstood('it is neither a delivery status nor an abuse report')
  if (TEMPORARY.test(subject)) return ignored('the message is delayed, and not failed')
  // The returned message follows the notice; its text may hold anything.
  const notice =
    text.split(/^(?:-{2,} ?(?:this is a copy|original message|below this line)|-{3,} )/im)[0] ?? ''
  const code = enhancedCode(notice)
  const messageId = attachedId ?? messageIdIn(text)
  if (code === undefined || code.startsWith('2'))
    return notUnderstood('it returns a message, but gives no status code')
  if (code.startsWith('4')) return ignored('the message is delayed, and not failed')
  const named = [...notice.matchAll(/<([^<>\s]{1,320})>/g)].find(([, inside]) => inside?.includes('@'))?.[1]
  const address = bareAddress(failed ?? named ?? '')
  const kind = bounceKind(code)
  return reported([{ kind, address, messageId, reason: reasonFor(kind, code) }])
}

const noticeOf = ({ text, html = '' }: Email): string =>
  (text ?? html.slice(0, LONGEST_NOTICE).replace(/<[^<>]{0,500}>/g, ' ')).slice(0, LONGEST_NOTICE)

/** Header-like blocks, separated by empty lines, with folded lines joined; the first of two equal names counts. */
function blocks(text: string): readonly ReadonlyMap<string, string>[] {
  return text
    .replace(/\r\n?/g, '\n')
    .replace(/\n[ \t]+/g, ' ')
    .split(/\n{2,}/)
    .flatMap((block) => {
      const found = new Map<string, string>()
      for (const line of block.split('\n')) {
        const [, name, value] = /^([A-Za-z][A-Za-z0-9-]*):(.*)$/s.exec(line) ?? []
        if (name !== undefined && value !== undefined && !found.has(name.toLowerCase()))
          found.set(name.toLowerCase(), value.trim())
      }
      return found.size > 0 ? [found] : []
    })
}

function bareAddress(text: string): string | undefined {
  const bare = (/<([^<>]*)>/.exec(text)?.[1] ?? text.split(',')[0] ?? '').trim().replace(/^mailto:/i, '')
  return bare.includes('@') && bare.length <= 320 ? bare : undefined
}

/** The addresses of its To field; what follows the first empty line is the message's text. */
function recipientsIn(original: string): readonly string[] {
  const head = original.split(/\r?\n\r?\n/, 1)[0] ?? ''
  const to = /^to:((?:.*)(?:\r?\n[ \t].*)*)/im.exec(head)?.[1] ?? ''
  return to.split(',', MOST_RECIPIENTS).flatMap((one) => bareAddress(one) ?? [])
}

const messageIdIn = (text: string) => /^[> \t]*message-id:\s*<([^<>\s]{1,500})>/im.exec(text)?.[1]

/**
 * The events of a report whose recipient is proven. Anybody can write a bounce: it must name the envelope sender that
 * only mail to this address carries, or the Message-ID of a message that was sent to it.
 */
export async function matchReports(
  report: Extract<Awaited<ReturnType<typeof readMailReport>>, { kind: 'report' }>,
  raw: string,
  proofs: Pick<SuppressionList, 'bounceAddresses' | 'wasSent'> & { readonly now: number },
): Promise<{ readonly events: readonly FeedbackEvent[]; readonly unmatched: readonly ReportedMessage[] }> {
  const { bounceAddresses, wasSent, now: at } = proofs
  const digest = hash('sha256', raw, 'base64url')
  const isNamed = bounceAddresses?.namedIn(raw) ?? (() => false)
  const events: FeedbackEvent[] = []
  const unmatched: ReportedMessage[] = []
  for (const one of report.reports) {
    // A report about one recipient may name where the mail was forwarded to, or nobody: then the returned message says.
    const named = [one.address, ...(report.reports.length === 1 ? report.recipients : [])]
    const identity = await firstProven(named, one.messageId)
    const id = `${one.messageId ?? digest}/${identity}/${one.kind}`
    if (identity === undefined) unmatched.push(one)
    else events.push({ ...one, id, address: identity, at })
  }
  return { events, unmatched }

  async function firstProven(named: readonly (string | undefined)[], messageId: string | undefined) {
    for (const address of new Set(named)) {
      const parsed = parseAddress(address ?? '')
      if (!parsed.ok) continue
      const { identity } = parsed
      if (isNamed(identity)) return identity
      if (messageId !== undefined && (await wasSent({ identity, messageId }))) return identity
    }
    return undefined
  }
}
