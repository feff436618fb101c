import { describe, expect, test } from 'vitest'
import { createBounceAddresses } from '../../../../src/core/mail/feedback/bounce-address.ts'
import { matchReports, readMailReport } from '../../../../src/core/mail/feedback/message.ts'
import { seeded } from '../../../simulation/seeded.ts'
import { asyncTimeOf, growthOf, LINEAR } from '../../../support/growth.ts'

const MB = 1024 * 1024
const bounceAddresses = createBounceAddresses('bounce@example.com', 'a key in tests only')

/** Everything that `email feedback` does with a mail but the store. */
async function readWhole(raw: Buffer) {
  const report = await readMailReport(raw)
  if (report.kind !== 'report') return { report, asked: 0 }
  let asked = 0
  const wasSent = async () => {
    asked += 1
    return false
  }
  await matchReports(report, raw.toString('latin1'), { bounceAddresses, wasSent, now: 0 })
  return { report, asked }
}

const FROM = 'From: MAILER-DAEMON@mx.example.net\r\nTo: bounce@example.com\r\n'
const NOTICE = `${FROM}Subject: Undelivered mail\r\nMIME-Version: 1.0\r\n`
const REPORT = `${NOTICE}Content-Type: multipart/report; boundary=b\r\n\r\n`
const part = (type: string, body: string) => `--b\r\nContent-Type: ${type}\r\n\r\n${body}\r\n`
const FAILED = part(
  'message/delivery-status',
  'Reporting-MTA: dns; mx\r\n\r\nFinal-Recipient: rfc822; a@example.com\r\nAction: failed\r\nStatus: 5.1.1',
)

const BLOCK = 'Action: failed\r\nFinal-Recipient: rfc822; a@example.com\r\nStatus: 5.1.1\r\n\r\n'

/** Where foreign text can be in a mail. */
const PLACES: Readonly<Record<string, (filling: string) => string>> = {
  'a header': (filling) => `X-Any: ${filling}\r\n${NOTICE}\r\nfailed 5.1.1`,
  'the subject': (filling) => `${FROM}Subject: ${filling}\r\n\r\nfailed 5.1.1`,
  'the sender': (filling) => `From: ${filling}\r\nSubject: Undelivered mail\r\n\r\nfailed 5.1.1`,
  'the failed recipients': (filling) => `X-Failed-Recipients: ${filling}\r\n${NOTICE}\r\nfailed 5.1.1`,
  'the content type': (filling) => `${NOTICE}Content-Type: multipart/report; ${filling}\r\n\r\n5.1.1`,
  'the text': (filling) => `${NOTICE}\r\nfailed 5.1.1 ${filling}`,
  'the HTML': (filling) => `${NOTICE}Content-Type: text/html\r\n\r\nfailed 5.1.1 ${filling}`,
  'a part': (filling) => `${REPORT}${filling}${FAILED}`,
  'the delivery status': (filling) => `${REPORT}${part('message/delivery-status', filling)}`,
  'the feedback report': (filling) => `${REPORT}${part('message/feedback-report', filling)}`,
  'the returned head': (filling) => `${REPORT}${FAILED}${part('message/rfc822', `To: ${filling}`)}`,
  'the returned mail': (filling) => `${REPORT}${FAILED}${part('message/rfc822', filling)}`,
}

/** What readers of mail take for a beginning. */
const PIECES = [
  ...'< > @ , ; : ( ) " \\ =? ?= ? = % & &lt; <a - a name*0*= a= deliver fail'.split(' '),
  ...['\r\n', '\r\n ', '\r\n\r\n', '\t', ' ', '\u2028', 'a@b.c', '<a@b.c>, ', '5.1.1 '],
  ...['=?utf-8?Q?=41?= ', '=?utf-8?B?QQ==?=', 'message-id: ', 'Message-ID: <', 'to: a@b.c,\r\n '],
  ...['--b\r\n', '--b\r\nContent-Type: message/rfc822\r\n\r\n'],
  BLOCK,
  'Content-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n',
]
const filled = (pieces: readonly string[], size: number) => {
  const one = pieces.join('')
  return one.repeat(Math.ceil(size / one.length)).slice(0, size)
}
const mailOf = (place: string, pieces: readonly string[]) => (size: number) =>
  Buffer.from(PLACES[place]?.(filled(pieces, size)) ?? '')

const random = seeded(20261123)
const mixtures = Array.from({ length: 3 }, () =>
  Array.from({ length: random.between(2, 4) }, () => random.pick(['', ...PIECES])),
)
/** The promise is 100 ms; a busy machine needs a multiple, and what is not linear a hundred times that. */
const MOST_MS = 400
/** Below this, time is noise. */
const FELT_MS = 5
/** Other load can spoil one measurement. A reader that is not linear fails every attempt. */
const MEASURED = { timeout: 120_000, retry: 3 }

describe.each(Object.keys(PLACES))('%s of a hostile mail', (place) => {
  test('is read in a moment, whatever it is filled with', MEASURED, async () => {
    const costs: { pieces: readonly string[]; cost: number }[] = []
    for (const pieces of [...PIECES.map((piece) => [piece]), ...mixtures]) {
      const mail = mailOf(place, pieces)(MB / 64)
      const cost = await asyncTimeOf(() => readWhole(mail))
      expect(cost, JSON.stringify(pieces)).toBeLessThan(MOST_MS)
      costs.push({ pieces, cost })
    }
    // What took longest grows no faster than the mail.
    const [worst] = costs.sort((a, b) => b.cost - a.cost)
    const felt = async (size: number) => {
      const mail = mailOf(place, worst?.pieces ?? [])(size)
      return Math.max(FELT_MS, await asyncTimeOf(() => readWhole(mail)))
    }
    const most = await felt(MB)
    expect(most, JSON.stringify(worst)).toBeLessThan(MOST_MS)
    const growth = Math.log2(most / (await felt(MB / 4))) / 2
    expect(growth, JSON.stringify(worst)).toBeLessThan(LINEAR)
  })
})

test('what took minutes is read in a moment, and grows no faster than the mail', MEASURED, async () => {
  const attacks: readonly (readonly [string, string])[] = [
    ['the text', '<a@'],
    ['the returned head', 'a@b.c,'],
    ['the delivery status', BLOCK],
    ['a part', '--b\r\n\r\n\r\n'],
  ]
  for (const [place, piece] of attacks) {
    const mail = mailOf(place, [piece])(4 * MB - 2000)
    expect(await asyncTimeOf(() => readWhole(mail)), place).toBeLessThan(MOST_MS)
  }
  // A line separator ends a line for an expression, and not for a mail.
  const blanks = PLACES['the delivery status']?.(`a:${' '.repeat(120_000)}\u2028`) ?? ''
  expect(await asyncTimeOf(() => readWhole(Buffer.from(blanks)))).toBeLessThan(MOST_MS)
  const senders = (size: number) => filled(['bounce+', 'a'.repeat(26)], size)
  // The set of 60,000 outgrows the processor's cache; a quadratic search would be 2.
  expect(growthOf(senders, (text) => bounceAddresses.namedIn(text), { from: MB / 4, runs: 2 })).toBeLessThan(
    1.5,
  )
})

test('a mail of 400,000 parts needs little memory, and a report with a thousand recipients few questions', async () => {
  const parts = mailOf('a part', ['--b\r\n\r\n\r\n'])(4 * MB - 2000)
  const before = process.memoryUsage.rss()
  expect((await readWhole(parts)).report).toMatchObject({ kind: 'not-understood' })
  expect(process.memoryUsage.rss() - before).toBeLessThan(50 * MB)
  const { report, asked } = await readWhole(
    Buffer.from(PLACES['the delivery status']?.(BLOCK.repeat(1000)) ?? ''),
  )
  // The first fifty count.
  expect(report).toMatchObject({ kind: 'report', reports: Array(50).fill({ address: 'a@example.com' }) })
  expect(asked).toBeLessThanOrEqual(50)
})

test('a report within the limits is read as before, however long the returned mail is', async () => {
  const returned = `Message-ID: <m-1@example.com>\r\nTo: a@example.com\r\n\r\n${'A picture. '.repeat(300_000)}`
  const { report } = await readWhole(
    Buffer.from(`${REPORT}${FAILED}${part('message/rfc822', returned)}--b--\r\n`),
  )
  expect(report).toMatchObject({
    kind: 'report',
    reports: [{ kind: 'hard-bounce', address: 'a@example.com', messageId: 'm-1@example.com' }],
    recipients: ['a@example.com'],
  })
})
