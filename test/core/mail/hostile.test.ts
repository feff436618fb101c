import { expect, test } from 'vitest'
import { parseMailbox } from '../../../src/core/address.ts'
import { seeded } from '../../../src/core/analytics/sample.ts'
import { joinPieces } from '../../../src/core/mail/encoding.ts'
import type { Mail } from '../../../src/core/mail/mailer.ts'
import { composeMessage } from '../../../src/core/mail/open.ts'
import { jsonPiecesOf } from '../../../src/core/mail/transports/forms.ts'
import { mimeOf } from '../../../src/core/mail/transports/mime.ts'
import { compiledMails } from '../../support/learning.ts'
import { mailerTo, smtpServer } from '../../support/mailers.ts'

/** Pieces of attacks on mails, mixed with some innocent letters. */
const PIECES = [
  '\r\n',
  '\n',
  '\r',
  '\0',
  '\u2028',
  '\u0085',
  '\f',
  '%0d%0a',
  '=?UTF-8?B?DQpCY2M6IGV2ZUBldmlsLmV4YW1wbGU=?=',
  'Bcc: eve@evil.example',
  'To: eve@evil.example',
  '\r\n\r\n<script>alert(1)</script>',
  '\r\n.\r\nMAIL FROM:<eve@evil.example>',
  '\r.\r',
  'From ',
  '--=_',
  '<script>alert(1)</script>',
  '"><svg onload=alert(1)>',
  '</style><script>',
  '<!--',
  '&#x3c;',
  'javascript:alert(1)',
  'http://www.example.com/"onclick="x',
  'https://www.example.com/?a=1&b=2',
  '{{slot}}',
  ...'<>"\'&,;:)]\\@ \t',
  '@evil.example',
  'ada',
  '@example.com',
  'ada@example.com',
  '"ada eve"@example.com',
  'Ünïcödé',
  '🙂',
  '\ud800',
  '\udc00',
  '\u202e',
  '\ufeff',
  'x'.repeat(70),
  '\u212a',
]

function generator(random: () => number) {
  const piece = () => PIECES[Math.floor(random() * PIECES.length)] ?? ''
  const text = () => Array.from({ length: 1 + Math.floor(random() * 4) }, piece).join('')
  const sometimes = (usual: string) => (random() < 0.5 ? usual : text())
  return {
    text,
    to: () =>
      random() < 0.5
        ? `${text()} <${sometimes('ada')}@${sometimes('example.com')}>`
        : sometimes('ada@example.com'),
    url: () => (random() < 0.5 ? `https://www.example.com/${text()}` : sometimes('https://www.example.com/')),
  }
}

const FROM = { name: 'The Course', address: 'course@example.com' }
const HEADERS = [
  'From',
  'To',
  'Subject',
  'Message-ID',
  'Date',
  'List-Unsubscribe',
  'List-Unsubscribe-Post',
  'Auto-Submitted',
  'Feedback-ID',
  'List-Id',
  'MIME-Version',
  'Content-Type',
]
const DATE = new Date('2026-11-21T04:00:00Z')

/** The header fields' names, unfolded; whatever follows the first empty line is body. */
function fieldsOf(mime: string): string[] {
  return mime
    .slice(0, mime.indexOf('\r\n\r\n'))
    .split('\r\n')
    .filter((line) => !/^[ \t]/.test(line))
    .map((line) => line.slice(0, line.indexOf(':')))
}

const TAGS = /<[^>]*>/g

test('30,000 hostile recipients and values: no header field, no recipient and no markup of theirs, or a refusal', async () => {
  const { text, to, url } = generator(seeded(20261121))
  const mails = await compiledMails()
  const [exam, invite] = [mails['exam-passed'], mails['organisation-invite']]
  const markupOf = (template: 'exam-passed' | 'organisation-invite') =>
    mails[template].html
      .flatMap((part) => (typeof part === 'string' ? [part] : []))
      .join('x')
      .match(TAGS)?.length
  const tags = [markupOf('exam-passed'), markupOf('organisation-invite')]
  const counts = { sent: 0, refused: 0 }
  for (let index = 0; index < 30_000; index += 1) {
    const parsed = parseMailbox(to())
    if (!parsed.ok) {
      counts.refused += 1
      continue
    }
    const { mailbox } = parsed
    const link = url()
    const common = { to: mailbox, about: text(), date: DATE }
    const slots = { exam: text(), score: text(), resultUrl: link }
    const isInvite = index % 2 === 1
    const mail: Mail = isInvite
      ? {
          ...common,
          template: 'organisation-invite',
          slots: { organisation: text(), inviteUrl: link },
          unsubscribeUrl: link,
        }
      : { ...common, template: 'exam-passed', slots }
    let message: ReturnType<typeof composeMessage>
    let mime: string
    try {
      message = composeMessage(mail, isInvite ? invite : exam, FROM, undefined)
      mime = mimeOf(message).toString('latin1')
    } catch {
      counts.refused += 1
      continue
    }
    counts.sent += 1
    const fields = fieldsOf(mime)
    // Compared by hand: an assertion for each of so many costs more than what is tested.
    const wanted = HEADERS.filter((name) => isInvite || !/^(?:List-Unsubscribe|Feedback-ID)/.test(name))
    if (fields.length !== wanted.length || !wanted.every((name) => fields.includes(name)))
      expect.fail(`header fields ${fields.join(', ')} of ${JSON.stringify(mail)}`)
    if (
      /[\r\n\0<>]/.test(mailbox.address.replace(/^"(?:[^"\\]|\\.)*"/, '')) ||
      /[\r\n\0]/.test(mailbox.address)
    )
      expect.fail(`the recipient ${JSON.stringify(mailbox.address)}`)
    if (/(?:^|[^\r])\n|\r(?!\n)|\0/.test(mime) || /\r\n\.(?:\r|\.)/.test(mime))
      expect.fail(`line ends of ${JSON.stringify(mail)}`)
    if (message.html.match(TAGS)?.length !== tags[isInvite ? 1 : 0])
      expect.fail(`markup in ${JSON.stringify(mail)}`)
    if (index % 10 === 0) {
      const body = JSON.parse(joinPieces(jsonPiecesOf(message)).toString('latin1')) as Record<string, unknown>
      if (body.html !== message.html || body.text !== message.text || (body.to as string[]).length !== 1)
        expect.fail(`the JSON of ${JSON.stringify(mail)}`)
    }
  }
  expect(counts.sent + counts.refused).toBe(30_000)
  // Neither everything refused nor everything let through: the generator hits both.
  expect(counts.sent).toBeGreaterThan(800)
  expect(counts.refused).toBeGreaterThan(5_000)
})

test('300 of them over the wire: each message has the one recipient that was parsed, and nothing else arrives', async () => {
  const { text, to } = generator(seeded(7))
  const arrived: { from: string; to: string[]; head: string }[] = []
  const port = await smtpServer({
    disabledCommands: ['AUTH', 'STARTTLS'],
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope
        const source = Buffer.concat(chunks).toString('latin1')
        arrived.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          head: source.slice(0, source.indexOf('\r\n\r\n')),
        })
        done()
      })
    },
  })
  const mailer = mailerTo(`smtp://127.0.0.1:${port}`, { from: FROM })
  const mailboxes: string[] = []
  while (mailboxes.length < 300) {
    const parsed = parseMailbox(to())
    if (!parsed.ok) continue
    mailboxes.push(parsed.mailbox.address)
    const slots = { organisation: text(), inviteUrl: 'https://www.example.com/' }
    // Messages refused for their slots are not sent; refusals by the server do not matter here.
    const mail = { template: 'organisation-invite', slots, about: text(), date: DATE }
    await mailer.send({ ...mail, to: parsed.mailbox })
  }
  expect(arrived.length).toBeGreaterThan(60)
  const known = new Set(mailboxes.map((address) => address.slice(0, address.lastIndexOf('@'))))
  for (const { from, to: recipients, head } of arrived) {
    expect(from).toBe('course@example.com')
    expect(recipients).toHaveLength(1)
    expect(known).toContain(recipients[0]?.slice(0, recipients[0].lastIndexOf('@')))
    expect(head).not.toMatch(/^(?:Bcc|Cc|X-[\w-]+):/im)
    expect(head.match(/^To:/gim)).toHaveLength(1)
  }
})
