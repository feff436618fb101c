import fc from 'fast-check'
import PostalMime from 'postal-mime'
import { expect, test } from 'vitest'
import type { Message } from '../../../src/core/mail/mailer.ts'
import {
  headerDate,
  headerField,
  headerMailbox,
  headerText,
  mimeOf,
  quotedPrintable,
} from '../../../src/core/mail/transports/mime.ts'

const decode = (encoded: string) =>
  Buffer.from(
    encoded
      .replaceAll('=\r\n', '')
      .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  ).toString('utf8')
const text = () => fc.string({ unit: 'grapheme', maxLength: 400 })
/** Texts that quoted-printable is most likely to get wrong. */
const tricky = () =>
  fc
    .array(
      fc.oneof(
        fc.constantFrom('.', '-', 'From ', ' ', '\t', '\n', '=', '=3D', '..', 'é', '🙂', '_'),
        fc.string({ minLength: 60, maxLength: 90 }),
      ),
      { maxLength: 40 },
    )
    .map((pieces) => pieces.join(''))

test('quoted-printable gives back what it was given, in pieces or whole, on lines of at most 76', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(text(), tricky()), { maxLength: 5 }), (pieces) => {
      const encoded = pieces.map((piece) => quotedPrintable(piece)).join('')
      expect(decode(encoded)).toBe(pieces.join('').replace(/\r\n|\r|\n/g, '\r\n'))
      for (const line of encoded.split('\r\n')) {
        expect(line.length).toBeLessThanOrEqual(76)
        expect(line).toMatch(/^(?![.-]|From )[\t\x20-\x7e]*$/)
        expect(line).not.toMatch(/[ \t]$/)
      }
    }),
    { numRuns: 400 },
  )
})

test('a header field with a line end is refused, whoever wrote it', () => {
  for (const end of ['\r', '\n', '\0', '\r\n', '\r\nBcc: x@example.com', '\r\n Bcc: x@example.com\r\nX: y'])
    expect(() => headerField('Subject', `Hello${end}`)).toThrow('a line end')
})

test('any subject and any name comes back from the header as it went in', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 120 }),
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }),
      async (rawSubject, rawName) => {
        const oneLine = (value: string) =>
          value
            .replace(/[\p{Cc}\u2028\u2029]/gu, '')
            .replace(/\s+/g, ' ')
            .trim() || 'x'
        const [subject, name] = [oneLine(rawSubject), oneLine(rawName)]
        const mail = mimeOf({ ...MESSAGE, subject, to: { name, address: 'ada@example.com' } })
        for (const line of mail.toString().split('\r\n')) expect(line.length).toBeLessThanOrEqual(998)
        const parsed = await PostalMime.parse(mail)
        expect(parsed.subject).toBe(subject)
        expect(parsed.to).toEqual([{ name, address: 'ada@example.com' }])
        expect(parsed.headers).toHaveLength(9)
      },
    ),
    { numRuns: 150 },
  )
})

const MESSAGE: Message = {
  key: 'welcome.key',
  messageId: 'digest@example.com',
  date: new Date('2026-11-21T04:00:00Z'),
  from: { name: 'The Course', address: 'course@example.com' },
  to: { name: undefined, address: 'ada@example.com' },
  replyTo: { name: undefined, address: 'help@example.com' },
  subject: 'Hello',
  html: '<p>Grüße</p>\n',
  text: 'Grüße\n',
  headers: { 'List-Id': '<account.example.com>' },
}

test('the parts come back as they were, text before HTML, and the message is ASCII', async () => {
  const mail = mimeOf(MESSAGE)
  expect(mail.toString('latin1')).toMatch(/^[\r\n\x20-\x7e]*$/)
  expect(mail.indexOf('text/plain')).toBeLessThan(mail.indexOf('text/html'))
  const parsed = await PostalMime.parse(mail)
  expect(parsed).toMatchObject({ messageId: '<digest@example.com>', date: '2026-11-21T04:00:00.000Z' })
  expect(parsed.html?.trim()).toBe('<p>Grüße</p>')
  expect(parsed.text?.trim()).toBe('Grüße')
})

test.each([
  'plan.pdf',
  'a "b".pdf',
  'back\\slash',
  `${'long '.repeat(30)}.txt`,
  'Grüße’s (1)*.pdf',
  '100%.txt',
])('the file %j comes back under its name, with its bytes', async (name) => {
  const content = Buffer.concat([Buffer.from([0, 13, 10, 255]), Buffer.alloc(2000, 7)])
  const mail = mimeOf({ ...MESSAGE, attachments: [{ name, type: 'a/b', content }] })
  // A server may break or refuse a longer line.
  for (const line of mail.toString().split('\r\n')) expect(line.length).toBeLessThanOrEqual(998)
  const { attachments, html, text } = await PostalMime.parse(mail)
  expect([html?.trim(), text?.trim()]).toEqual(['<p>Grüße</p>', 'Grüße'])
  expect(attachments.map((one) => [one.filename, Buffer.from(one.content as ArrayBuffer)])).toEqual([
    [name, content],
  ])
})

test('an address beyond ASCII keeps its local part and has its domain in ASCII', () => {
  const mail = mimeOf({ ...MESSAGE, to: { name: undefined, address: 'jörg@bücher.example' } })
  expect(mail.toString('utf8')).toContain('To: jörg@xn--bcher-kva.example\r\n')
})

test('header fields are written as the standards want them', () => {
  expect(headerDate(new Date('2026-11-21T04:05:06Z'))).toBe('Sat, 21 Nov 2026 04:05:06 +0000')
  expect(() => headerDate(new Date(Number.NaN))).toThrow('not a date')
  expect(headerMailbox({ name: 'Course, the "first"', address: 'a@example.com' })).toBe(
    '"Course, the \\"first\\"" <a@example.com>',
  )
  expect(headerText('Grüße')).toBe('=?UTF-8?B?R3LDvMOfZQ==?=')
  // A text that looks like an encoded word would be decoded by the reader: it is encoded itself.
  expect(headerText('=?UTF-8?B?eA==?=')).toMatch(/^=\?UTF-8\?B\?.*\?=$/)
  const long = headerField('List-Unsubscribe', `<https://www.example.com/?${'x'.repeat(200)}>`)
  expect(long.split('\r\n').filter(Boolean)).toHaveLength(1)
  expect(() => headerField('List-Unsubscribe', `<https://www.example.com/?${'x'.repeat(1000)}>`)).toThrow(
    '998',
  )
})
