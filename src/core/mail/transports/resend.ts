import { asciiAddress, type Mailbox } from '../../address.ts'
import { joinPieces, type Piece } from '../encoding.ts'
import type { Message } from '../transport.ts'
import type { ApiForm } from './api-form.ts'
import { attachmentsJson, fillPart, mailboxText, quoted } from './json.ts'

const ATTACHMENTS = { list: 'attachments', name: 'filename', type: 'content_type', content: 'content' }

/** The JSON of one message (docs/mail-api.md), in pieces: the same message has the same bytes. */
export function jsonPiecesOf(message: Message): readonly Piece[] {
  const { from, to, replyTo, subject, headers, messageId } = message
  const pieces: Piece[] = [
    `${senderOf(from)},"to":[${quoted(asciiAddress(to.address))}],${replyTo === undefined ? '' : `"reply_to":${quoted(mailboxText(replyTo))},`}"subject":${quoted(subject)},"html":"`,
  ]
  fillPart(message, 'html', pieces)
  pieces.push('","text":"')
  fillPart(message, 'text', pieces)
  let tail = '","headers":{'
  // A header's name is a token (RFC 5322 §2.2) and needs no escaping.
  for (const name in headers) tail += `"${name}":${quoted(headers[name] ?? '')},`
  pieces.push(`${tail}"Message-ID":${quoted(`<${messageId}>`)}}${attachmentsJson(message, ATTACHMENTS)}}`)
  return pieces
}

const senders = new WeakMap<Mailbox, string>()

/** The sender is nearly always the same. */
function senderOf(from: Mailbox): string {
  let written = senders.get(from)
  if (written === undefined) {
    written = `{"from":${quoted(mailboxText(from))}`
    senders.set(from, written)
  }
  return written
}

/** The API of Resend, and of services that take the same requests. */
export const resend: ApiForm = {
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
