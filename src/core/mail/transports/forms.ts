import { asciiAddress, type Mailbox } from '../../address.ts'
import { perObject } from '../../calls.ts'
import type { ApiProvider } from '../../env/settings.ts'
import { awsRegion, awsSigned } from '../../network/aws-signature.ts'
import type { Secret } from '../../secret.ts'
import { encodedFill, joinPieces, type Piece } from '../encoding.ts'
import type { Message } from '../mailer.ts'
import type { HttpRow } from '../outcome.ts'
import { mimeOf } from './mime.ts'

export interface ProviderResponse {
  readonly status: number
  readonly retryAfter: string | undefined
  /** The provider's own time: a date in `retryAfter` is later than this, whatever our clock says. */
  readonly date: string | undefined
  /** Amazon's name of an error. */
  readonly errorType: string | undefined
  /** The beginning of it. */
  readonly text: string
}

type Headers = Readonly<Record<string, string>>

export interface ApiForm {
  readonly kind: string
  /** Whether the provider delivers a message once, however often it comes with the same key. */
  readonly honorsKey: boolean
  /** The path for an address without one. */
  readonly path?: string
  open(
    key: Secret,
    url: URL,
    now: () => number,
  ): {
    request(message: Message, path: string): { readonly headers: Headers; readonly body: Uint8Array }
    /** A request that shows whether the key is known, and sends nothing. */
    check(): { readonly headers: Headers; readonly method: 'GET' | 'HEAD'; readonly path?: string }
  }
  /** The field of an answer that holds the provider's id of the message. */
  readonly idIn: string
  /** The row of HTTP_OUTCOMES for a refusal whose status says less than its body. */
  readonly rowOf?: (answer: ProviderResponse, body: Readonly<Record<string, unknown>>) => HttpRow | undefined
  /** Whether a refused check came from a provider that knows the key. */
  readonly knowsKey?: (answer: ProviderResponse) => boolean
}

/** ASCII characters that a JSON string may hold unescaped (RFC 8259 §7). */
const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/
const WIDE = /[\u0080-\uffff]/g

/** ASCII only, so that bytes and characters are the same and are written as they are. */
const asciiJson = (text: string) =>
  PLAIN.test(text)
    ? text
    : JSON.stringify(text)
        .slice(1, -1)
        .replace(WIDE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
const fillPart = encodedFill(asciiJson)
const quoted = (text: string): string => `"${asciiJson(text)}"`

/** An address with its name, as a mail API parses it. */
function quotedMailbox({ name, address }: Mailbox): string {
  const bare = asciiAddress(address)
  return quoted(name === undefined ? bare : `"${name.replace(/["\\]/g, '\\$&')}" <${bare}>`)
}

/** The JSON of one message, in pieces: the same message has the same bytes. `attachment` names its fields. */
function piecesOf(
  message: Message,
  parts: readonly [before: string, between: string, after: string],
  [list, ...attachment]: readonly [list: string, name: string, type: string, content: string],
): readonly Piece[] {
  const [before, between, after] = parts
  const pieces: Piece[] = [before]
  fillPart(message, 'html', pieces)
  pieces.push(between)
  fillPart(message, 'text', pieces)
  const files = (message.attachments ?? []).map(({ name, type, content }) => {
    const values = [quoted(name), quoted(type), `"${content.toString('base64')}"`]
    return `{${attachment.map((field, index) => `"${field}":${values[index]}`).join()}}`
  })
  pieces.push(files.length === 0 ? `${after}}` : `${after},"${list}":[${files.join()}]}`)
  return pieces
}

/** The sender is nearly always the same. */
const senderOf = perObject(quotedMailbox)

/** The body of a request to Resend (docs/reference/mail-api.md). */
export function jsonPiecesOf(message: Message): readonly Piece[] {
  const { from, to, replyTo, subject, headers, messageId } = message
  const reply = replyTo === undefined ? '' : `"reply_to":${quotedMailbox(replyTo)},`
  let after = '","headers":{'
  // A header's name is a token (RFC 5322 §2.2) and needs no escaping.
  for (const name in headers) after += `"${name}":${quoted(headers[name] ?? '')},`
  const before = `{"from":${senderOf(from)},"to":[${quoted(asciiAddress(to.address))}],${reply}"subject":${quoted(subject)},"html":"`
  return piecesOf(
    message,
    [before, '","text":"', `${after}"Message-ID":${quoted(`<${messageId}>`)}}`],
    ['attachments', 'filename', 'content_type', 'content'],
  )
}

/** The API of Resend, and of services that take the same requests. */
const resend: ApiForm = {
  kind: 'api',
  honorsKey: true,
  open(key) {
    const authorization = `Bearer ${key.reveal()}`
    return {
      request: (message) => ({
        headers: { authorization, 'idempotency-key': message.key },
        body: joinPieces(jsonPiecesOf(message)),
      }),
      check: () => ({ method: 'HEAD', headers: { authorization } }),
    }
  },
  idIn: 'id',
}

/** Over SMTP a header names Postmark's message stream; the API has a field for it. */
const STREAM = 'x-pm-message-stream'
/** `ErrorCode` of a recipient that bounced, complained or was suppressed: Postmark delivers nothing to it. */
const INACTIVE_RECIPIENT = 406

function postmarkBody(message: Message): Buffer {
  const { from, to, replyTo, subject, headers, messageId } = message
  const isStream = ([name]: readonly [string, string]) => name.toLowerCase() === STREAM
  const [, stream] = Object.entries(headers).find(isStream) ?? []
  // Without X-PM-KeepID, Postmark replaces the Message-ID.
  const all = Object.entries({ ...headers, 'Message-ID': `<${messageId}>`, 'X-PM-KeepID': 'true' })
  const kept = all.flatMap(([name, value]) =>
    isStream([name, value]) ? [] : `{"Name":"${name}","Value":${quoted(value)}}`,
  )
  const reply = replyTo === undefined ? '' : `"ReplyTo":${quotedMailbox(replyTo)},`
  const named = stream === undefined ? '' : `"MessageStream":${quoted(stream)},`
  const before = `{"From":${senderOf(from)},"To":${quoted(asciiAddress(to.address))},${reply}${named}"Subject":${quoted(subject)},"HtmlBody":"`
  const parts = [before, '","TextBody":"', `","Headers":[${kept.join()}]`] as const
  return joinPieces(piecesOf(message, parts, ['Attachments', 'Name', 'ContentType', 'Content']))
}

/** Postmark's API (postmarkapp.com/developer/api/email-api). It recognizes no repeats. */
const postmark: ApiForm = {
  kind: 'postmark',
  honorsKey: false,
  path: '/email',
  open(key) {
    const headers = { accept: 'application/json', 'x-postmark-server-token': key.reveal() }
    return {
      request: (message) => ({ headers, body: postmarkBody(message) }),
      check: () => ({ method: 'GET', path: '/server', headers }),
    }
  },
  idIn: 'MessageID',
  rowOf: (_, { ErrorCode }) => (ErrorCode === INACTIVE_RECIPIENT ? 'recipient-inactive' : undefined),
}

/** Errors of SES whose status says less than their name. */
const ROWS: readonly (readonly [error: RegExp, row: HttpRow])[] = [
  [/^(?:Throttling|TooManyRequests|LimitExceeded)/, 'rate-limited'],
  [/^(?:SendingPaused|AccountSuspended|MailFromDomainNotVerified)/, 'key-refused'],
  // The configuration set that a header names.
  [/^NotFound/, 'request-refused'],
]

const ACCOUNT = '/v2/email/account'

/** Amazon SES, version 2 of its API, with the whole message as MIME. It recognizes no repeats. */
const ses: ApiForm = {
  kind: 'ses',
  honorsKey: false,
  path: '/v2/email/outbound-emails',
  open(key, url, now) {
    const [id = '', secret = ''] = key.reveal().split(/:(.*)/s)
    const signing = { id, secret, region: awsRegion(url.href) ?? 'us-east-1', service: 'ses' }
    const sign = (method: 'GET' | 'POST', path: string, body: string) =>
      awsSigned({ method, host: url.host, path, body }, signing, now())
    return {
      request(message, path) {
        const body = JSON.stringify({
          FromEmailAddress: asciiAddress(message.from.address),
          Destination: { ToAddresses: [asciiAddress(message.to.address)] },
          Content: { Raw: { Data: mimeOf(message).toString('base64') } },
        })
        return { headers: sign('POST', path, body), body: Buffer.from(body) }
      },
      check: () => ({ method: 'GET', path: ACCOUNT, headers: sign('GET', ACCOUNT, '') }),
    }
  },
  idIn: 'MessageId',
  rowOf: ({ errorType = '' }) => ROWS.find(([error]) => error.test(errorType))?.[1],
  // A key that may only send is refused everything else by this name, and a wrong key by another.
  knowsKey: ({ errorType = '' }) => errorType.startsWith('AccessDenied'),
}

export const API_FORMS: Readonly<Record<ApiProvider, ApiForm>> = { resend, postmark, ses }
