import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { MINUTE_MS } from '../../../src/core/durations.ts'
import type { Transport } from '../../../src/core/mail/mailer.ts'
import { openMailer } from '../../../src/core/mail/open.ts'
import { createSendEmail, type SendEmailInput } from '../../../src/core/mail/send-email.ts'
import { virtualTime } from '../../simulation/virtual-time.ts'
import { compiledMails } from '../../support/learning.ts'
import { EXAM, mailerTo } from '../../support/mailers.ts'
import { rudeSmtp } from '../../support/rude-smtp.ts'
import { addressOf, KEPT, openTestStore } from '../../support/stores.ts'

const NOW = Date.parse('2026-11-21T08:00:00Z')
const MAIL: SendEmailInput = {
  template: 'exam-passed',
  to: 'Ada <ada@example.com>',
  slots: EXAM,
  key: 'exam.1',
}
const HELD = { sent: false, reason: expect.stringContaining('another process is sending this mail') }
const SENT = { sent: true, id: expect.stringContaining('@') }

/** Two processes over one store, and a mail server that has taken a message and does not say so yet. */
async function twoProcesses(kind: (typeof KEPT)[number], transport?: Transport) {
  const address = await addressOf(kind)
  const time = virtualTime(NOW)
  let keeping = Promise.resolve()
  let waiting: Socket | undefined
  let isSlow = true
  const { port, lines } = await rudeSmtp((word, socket) => {
    if (word !== 'END' || !isSlow) return undefined
    waiting = socket
    return null
  })
  const open = async () => {
    const { sentMail } = await openTestStore(address)
    const { keep } = sentMail
    sentMail.keep = (held) => {
      const kept = keep(held)
      keeping = kept
      return kept
    }
    const kept = {
      sentMail,
      addressKey: 'key',
      queue: { refusal: async () => undefined, wake() {} },
      timer: time.clock,
    }
    const mailer = transport
      ? openMailer({ mail: undefined, transport, compiled: compiledMails })
      : mailerTo(`smtp://127.0.0.1:${port}`)
    const mails = { definitions: [], compiled: compiledMails }
    const sendEmail = createSendEmail(mailer, time.clock, mails, undefined, async () => kept)
    return { sentMail, sendEmail }
  }
  const taken = () => lines.filter((line) => line === '.').length
  return {
    one: await open(),
    other: await open(),
    taken,
    handedOver: (count = 1) => expect.poll(taken).toBe(count),
    answer(reply = '250 2.0.0 ok', next: 'again' | 'quickly' = 'quickly') {
      isSlow = next === 'again'
      waiting?.write(`${reply}\r\n`)
    },
    async pass(ms: number) {
      for (const until = time.elapsed() + ms; time.elapsed() < until; ) {
        time.after(10_000, () => {})
        await time.passUntil(time.elapsed() + 10_000, () => false)
        // Virtual time does not wait for a database server.
        await keeping.catch(() => {})
      }
    },
  }
}

describe.each(KEPT)('a key under which a mail is sent at once, on %s', (kind) => {
  test('is held as long as the slowest mail server may take, so that no other process sends a second mail', async () => {
    const { one, other, ...it } = await twoProcesses(kind)
    const sending = one.sendEmail(MAIL)
    await it.handedOver()
    for (let minute = 0; minute < 14; minute += 1) {
      expect(await other.sendEmail(MAIL)).toEqual(HELD)
      await it.pass(MINUTE_MS)
    }
    it.answer()
    const sent = await sending
    expect(sent).toEqual(SENT)
    expect([await other.sendEmail(MAIL), it.taken()]).toEqual([sent, 1])
  })

  test('is free again 90 seconds after its process was killed', async () => {
    const { one, other, ...it } = await twoProcesses(kind)
    void one.sendEmail(MAIL)
    await it.handedOver()
    await it.pass(5 * MINUTE_MS)
    // A killed process renews nothing.
    one.sentMail.keep = () => Promise.reject(new Error('killed'))
    expect(await other.sendEmail(MAIL)).toEqual(HELD)
    await it.pass(90_000)
    void other.sendEmail(MAIL)
    await it.handedOver(2)
  })

  test('is held from the moment of its own attempt by a call that waited for the one before it', async () => {
    const { one, other, ...it } = await twoProcesses(kind)
    const calls = [one.sendEmail(MAIL), one.sendEmail(MAIL)]
    await it.handedOver()
    await it.pass(5 * MINUTE_MS)
    it.answer('451 4.3.0 busy', 'again')
    expect(await calls[0]).toMatchObject({ sent: false })
    await it.handedOver(2)
    expect(await other.sendEmail(MAIL)).toEqual(HELD)
    // One that comes meanwhile waits in its turn.
    calls.push(one.sendEmail(MAIL))
    it.answer()
    expect([await calls[1], await calls[2], it.taken()]).toEqual([SENT, SENT, 2])
  })

  test('is given up with the attempt once the longest one is over', async () => {
    const { one, other, ...it } = await twoProcesses(kind)
    const sending = one.sendEmail(MAIL)
    await it.handedOver()
    await it.pass(15 * MINUTE_MS)
    expect(await sending).toMatchObject({ sent: false })
    void other.sendEmail(MAIL)
    await it.handedOver(2)
  })

  test.each(['holds the key', 'fails'])(
    'is given up by its call where a transport of the program’s own never answers, and the store %s',
    async (store) => {
      const begun = Promise.withResolvers<void>()
      const { one, ...it } = await twoProcesses(kind, {
        kind: 'own',
        send() {
          begun.resolve()
          return new Promise(() => {})
        },
        verify: async () => {},
        close: async () => {},
      })
      if (store === 'fails') one.sentMail.begin = () => Promise.reject(new Error('gone'))
      const sending = one.sendEmail(MAIL)
      await begun.promise
      await it.pass(2 * MINUTE_MS)
      expect(await sending).toEqual({ sent: false, reason: 'the provider did not answer in time' })
    },
  )

  test('is not held while the store fails, and the mail is sent however slow the server', async () => {
    const { one, ...it } = await twoProcesses(kind)
    one.sentMail.begin = () => Promise.reject(new Error('gone'))
    one.sentMail.keep = () => Promise.reject(new Error('gone'))
    const sending = one.sendEmail(MAIL)
    await it.handedOver()
    await it.pass(13 * MINUTE_MS)
    it.answer()
    expect([await sending, it.taken()]).toEqual([SENT, 1])
  })

  test('is not queued a second time by a durable call of another process', async () => {
    const { one, other, ...it } = await twoProcesses(kind)
    const sending = one.sendEmail(MAIL)
    await it.handedOver()
    const durable = { ...MAIL, durable: true }
    expect(await other.sendEmail(durable)).toEqual(HELD)
    it.answer()
    const sent = await sending
    expect(await other.sendEmail(durable)).toEqual(sent)
    // A mail that no process is sending is queued; later calls under its key join it, also one at once.
    const next = { ...durable, key: 'exam.2' }
    expect(await other.sendEmail(next)).toMatchObject({ sent: true, queued: true })
    for (const again of [next, { ...next, durable: false }])
      expect(await one.sendEmail(again)).toMatchObject({ sent: true, queued: true })
    expect(it.taken()).toBe(1)
  })

  test('can be queued by another process once its mail was refused', async () => {
    const { one, other, ...it } = await twoProcesses(kind)
    const sending = one.sendEmail(MAIL)
    await it.handedOver()
    it.answer('550 5.7.1 policy')
    expect(await sending).toMatchObject({ sent: false })
    expect(await other.sendEmail({ ...MAIL, durable: true })).toMatchObject({ sent: true, queued: true })
  })
})
