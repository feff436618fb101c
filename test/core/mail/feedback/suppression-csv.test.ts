import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { SuppressedAddress } from '../../../../src/core/mail/feedback/store.ts'
import {
  readSuppressionCsv,
  SuppressionCsvError,
  suppressionCsv,
} from '../../../../src/core/mail/feedback/suppressions.ts'

const read = (text: string, cause?: 'manual' | 'complaint' | 'hard-bounce') => {
  const { suppressions, passing } = readSuppressionCsv(text, cause)
  return { found: suppressions.map((one) => `${one.address} ${one.cause} ${one.at ?? '-'}`), passing }
}

test.each([
  [
    'SendGrid bounces',
    'status,reason,email,created\r\n5.1.1,"550 5.1.1 No such user, sorry",ada@example.com,1795248000\r\n4.2.2,452 full,b@example.com,1795248000\r\n',
    { found: ['ada@example.com hard-bounce 1795248000000'], passing: 1 },
  ],
  [
    'Postmark suppressions',
    'EmailAddress,SuppressionReason,Origin,CreatedAt\nada@example.com,HardBounce,Recipient,2026-11-20T10:00:00Z\nb@example.com,SpamComplaint,Recipient,2026-11-20T10:00:00Z\nc@example.com,ManualSuppression,Customer,2026-11-20T10:00:00Z\n',
    {
      found: [
        'ada@example.com hard-bounce 1795168800000',
        'b@example.com complaint 1795168800000',
        'c@example.com manual 1795168800000',
      ],
      passing: 0,
    },
  ],
  [
    'SES',
    'Email address,Reason,Last update\nada@example.com,BOUNCE,2026-11-20 10:00:00\nb@example.com,COMPLAINT,2026-11-20 10:00:00\n',
    {
      found: ['ada@example.com hard-bounce 1795168800000', 'b@example.com complaint 1795168800000'],
      passing: 0,
    },
  ],
  [
    'Mailgun bounces',
    'address;code;error;created_at\nada@example.com;550;"5.1.1 The account; does not exist";Fri, 20 Nov 2026 10:00:00 UTC\nb@example.com;552;5.2.2 full, looks like spam;Fri, 20 Nov 2026 10:00:00 UTC\n',
    { found: ['ada@example.com hard-bounce 1795168800000'], passing: 1 },
  ],
])('an export of %s is read as its provider means it', (_, text, expected) => {
  expect(read(text)).toEqual(expected)
})

test('a line without a cause is an error that names it, unless one cause is given for all', () => {
  const text = 'email,created\nada@example.com,1795248000\n'
  expect(() => read(text)).toThrow(/^line 2 does not say why/)
  expect(read(text, 'complaint').found).toEqual(['ada@example.com complaint 1795248000000'])
  // Whatever the lines say themselves.
  const listed = 'email,reason\nada@example.com,unsubscribed\nb@example.com,4.2.2 full\n'
  expect(read(listed, 'hard-bounce')).toEqual({
    found: ['ada@example.com hard-bounce -', 'b@example.com hard-bounce -'],
    passing: 0,
  })
})

test('a file without a column of addresses is refused', () => {
  expect(() => read('ada@example.com\nb@example.com\n')).toThrow(SuppressionCsvError)
})

test('an export is imported again unchanged, and no spreadsheet runs any of it as a formula', () => {
  const cell = fc.string().filter((text) => text.trim() === text && text !== '')
  fc.assert(
    fc.property(
      fc.array(fc.tuple(cell, cell, fc.constantFrom('hard-bounce', 'complaint', 'manual')), { maxLength: 5 }),
      (rows) => {
        const list = rows.map(
          ([name, reason, cause], n): SuppressedAddress => ({
            identity: `${n % 2 ? '=' : ''}${name.replaceAll(/['\r\n]/g, '')}@example.com`,
            cause: cause as SuppressedAddress['cause'],
            at: 1_795_000_000_000,
            source: 'import',
            reason,
          }),
        )
        const csv = suppressionCsv(list)
        expect(csv.split('\r\n').some((line) => /^[=+@-]/.test(line))).toBe(false)
        const { suppressions } = readSuppressionCsv(csv, undefined)
        expect(suppressions.map(({ address, cause, at }) => ({ address, cause, at }))).toEqual(
          list.map(({ identity, cause, at }) => ({ address: identity.trim(), cause, at })),
        )
      },
    ),
  )
})
