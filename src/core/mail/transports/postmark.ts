import { asciiAddress } from '../../address.ts'
import { joinPieces, type Piece } from '../encoding.ts'
import type { Message } from '../transport.ts'
import type { ApiForm } from './api-form.ts'
import { attachmentsJson, fillPart, mailboxText, quoted } from './json.ts'

const ATTACHMENTS = { list: 'Attachments', name: 'Name', type: 'ContentType', content: 'Content' }
/** Over SMTP a header names the message stream; the API has a field for it. */
const STREAM = 'x-pm-message-stream'
/** `ErrorCode` of a recipient that bounced, complained or was suppressed: Postmark delivers nothing to it. */
const INACTIVE_RECIPIENT = 406

function bodyOf(message: Message): Buffer {
  const { from, to, replyTo, subject, headers, messageId } = message
  const entries = Object.entries(headers)
  const stream = entries.find(([name]) => name.toLowerCase() === STREAM)?.[1]
  const kept = [
    ...entries.filter(([name]) => name.toLowerCase() !== STREAM),
    ['Message-ID', `<${messageId}>`],
    // Without it, Postmark replaces the Message-ID.
    ['X-PM-KeepID', 'true'],
  ].map(([name = '', value = '']) => `{"Name":"${name}","Value":${quoted(value)}}`)
  const pieces: Piece[] = [
    `{"From":${quoted(mailboxText(from))},"To":${quoted(asciiAddress(to.address))},`,
    replyTo === undefined ? '' : `"ReplyTo":${quoted(mailboxText(replyTo))},`,
    stream === undefined ? '' : `"MessageStream":${quoted(stream)},`,
    `"Subject":${quoted(subject)},"HtmlBody":"`,
  ]
  fillPart(message, 'html', pieces)
  pieces.push('","TextBody":"')
  fillPart(message, 'text', pieces)
  pieces.push(`","Headers":[${kept.join()}]${attachmentsJson(message, ATTACHMENTS)}}`)
  return joinPieces(pieces)
}

/** Postmark's API (postmarkapp.com/developer/api/email-api). It recognizes no repeats. */
export const postmark: ApiForm = {
  kind: 'postmark',
  honorsKey: false,
  path: '/email',
  open(key) {
    const headers = { accept: 'application/json', 'x-postmark-server-token': key.reveal() }
    return {
      request: (message) => ({ headers, body: bodyOf(message) }),
      check: () => ({ method: 'GET', path: '/server', headers }),
    }
  },
  idIn: 'MessageID',
  rowOf: (_, { ErrorCode }) => (ErrorCode === INACTIVE_RECIPIENT ? 'recipient-inactive' : undefined),
}
