import { readFile } from 'node:fs/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { NOTICES } from '../../src/core/course/definition.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/durations.ts'
import type { Directory } from '../../src/core/mail/definition.ts'
import { suppressionChange } from '../../src/core/mail/feedback/store.ts'
import { LINES, type Message, type Outcome } from '../../src/core/mail/mailer.ts'
import type { MailParts, SendEmailInput } from '../../src/core/mail/send-email.ts'
import type { CompiledMail } from '../../src/core/mail/template.ts'
import { handlersOf, type OpenedPlatform, openPlatform } from '../../src/daemon/platform.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { bodyOf, clock, JWT_SECRET, NOW, token } from '../support/accounts.ts'
import { byHand } from '../support/by-hand.ts'
import { asking } from '../support/opened.ts'
import { addressOf, KEPT, openTestStore } from '../support/stores.ts'
import { audited } from '../support/subscribers.ts'
import { testTransport } from '../support/test-transport.ts'

const MAIL: SendEmailInput = {
  template: 'exam-passed',
  to: 'Ada <ada@example.com>',
  slots: { exam: 'Gates', score: '87 %', resultUrl: 'https://www.example.com/' },
  key: 'exam.1',
  durable: true,
}
const PDF = Buffer.from('%PDF-1.7')
const PARTS = {
  from: 'Bills <bills@example.com>',
  headers: { 'X-PM-Message-Stream': 'bills' },
  attachments: [{ name: 'Rechnung ä.pdf', type: 'application/pdf', content: PDF }],
} as const
const LINK = 'https://login.example.com/?once=a-token-that-is-kept-nowhere'

/** Platforms one after the other, or at once, over one store; the provider answers as told. */
async function world(kind: 'memory' | 'sqlite' | 'postgres', transport = 'test') {
  const address = await addressOf(kind)
  let [now, elapsed] = [NOW, 1_000_000]
  const store = await openTestStore(address, () => elapsed)
  const messages: Message[] = []
  const broken = new Set<string>()
  const gone = new Set(['gone'])
  const moved = new Set<string>()
  const { promise: hanging, resolve: release } = Promise.withResolvers<Outcome>()
  let answer: () => Outcome | Promise<Outcome> = () => ({ kind: 'sent', id: 'provider-1' })
  const directory: Directory = {
    ...store.directory,
    async findLoginRequest({ id }) {
      if (broken.has(id)) throw new TypeError('the record is no longer there')
      const address = `${id}@example.${moved.has(id) ? 'net' : 'org'}`
      return gone.has(id) ? undefined : { address, url: LINK }
    },
  }
  const open = (env: Record<string, string> = {}, compiled = learning.mails.compiled, own = true) => {
    const platform = openPlatform({
      env: {
        NEXT_PUBLIC_SITE_URL: 'https://www.example.com',
        NEXT_PUBLIC_DATASTORE_URL: 'https://data.example.com',
        NEXT_PUBLIC_DATASTORE_ANON_KEY: 'anon-key-of-the-datastore',
        DATASTORE_JWT_SECRET: JWT_SECRET,
        ...env,
      },
      platform: { ...learning, mails: { ...learning.mails, compiled } },
      store,
      clock: { ...clock, now: () => now },
      mailer: {
        ...testTransport(async (message) => {
          messages.push(message)
          return answer()
        }),
        kind: transport,
      },
      ...(own && { directory }),
    })
    onTestFinished(() => {
      release(DOWN)
      return platform.close()
    })
    const deliver = async () => (await platform.course()).deliverMessages()
    const { post } = asking(handlersOf(platform) as Parameters<typeof asking>[0])
    const signIn = async (loginRequestId = 'fresh') => {
      const bearer = await token({ role: 'service_role', sub: undefined, email: undefined })
      const asked = { template: 'magic-link', inputs: { loginRequestId } }
      return bodyOf(await post('/api/email', asked, { Authorization: `Bearer ${bearer}` }))
    }
    return { ...platform, deliver, signIn }
  }
  return {
    address,
    store,
    messages,
    broken,
    gone,
    moved,
    hang: () => hanging,
    sent: (count: number) => expect.poll(() => messages.length).toBe(count),
    suppress: async ({ mailService }: OpenedPlatform, cause: 'manual' | 'complaint') => {
      const { store: list, erasureHashes } = await mailService.suppressionList()
      const why = { cause, at: NOW, source: 'operator', reason: 'asked' } as const
      await list.apply([suppressionChange('eve@example.com', why, erasureHashes)], NOW)
    },
    open,
    answer: (next: typeof answer) => {
      answer = next
    },
    takes: (id: string) => {
      answer = () => ({ kind: 'sent', id })
    },
    pass: (ms: number) => {
      now += ms
      elapsed += ms
    },
  }
}
const SENT = { sent: true, id: 'provider-1' }
/** As the mail, but sent at once. */
const { durable: _, ...AT_ONCE } = MAIL
/** The mails of the preset, but one of them has other parts. */
async function mailsWith(parts: Partial<CompiledMail>, name = 'exam-passed') {
  const mails = await learning.mails.compiled()
  const mail = mails['exam-passed']
  if (mail === undefined) throw new TypeError('the preset has this mail')
  return async () => ({ ...mails, [name]: { ...mail, ...parts } })
}
const DOWN: Outcome = { kind: 'transient', scope: 'message', reason: 'busy' }

describe.each(KEPT)('durable mail on %s', (kind) => {
  test('answers once it is stored; a process that dies before the handover leaves it to the next', async () => {
    const it = await world(kind)
    it.answer(it.hang)
    const killed = it.open()
    expect(await killed.sendEmail(MAIL)).toEqual({
      sent: true,
      queued: true,
      id: expect.stringContaining('@'),
    })
    expect(await killed.signIn()).toMatchObject({ sent: true, queued: true })
    await it.sent(2)
    it.takes('provider-2')
    it.pass(2 * MINUTE_MS)
    const next = it.open()
    expect(await next.deliver()).toBe(2)
    expect(it.messages.slice(2).map(({ key }) => key)).toEqual(
      expect.arrayContaining(it.messages.slice(0, 2).map(({ key }) => key)),
    )
    expect(it.messages.some(({ text }) => text.includes(LINK))).toBe(true)
    expect(await next.sendEmail(MAIL)).toEqual({ sent: true, id: 'provider-2' })
    expect(await next.deliver()).toBe(0)
  })

  test('nobody without the store can compute the Message-ID of a mail, which all processes and attempts share', async () => {
    const it = await world(kind)
    const ids = async (platform: ReturnType<typeof it.open>, mail: SendEmailInput) => {
      it.answer(() => DOWN)
      await platform.sendEmail(mail)
      await platform.deliver()
      it.pass(HOUR_MS)
      it.takes('provider-1')
      expect(await platform.sendEmail(mail)).toMatchObject({ sent: true })
      await platform.deliver()
      return it.messages.splice(0).map(({ messageId }) => messageId.split('@')[0])
    }
    const found = [...(await ids(it.open(), { ...AT_ONCE, key: '1' })), ...(await ids(it.open(), MAIL))]
    expect(found).toHaveLength(4)
    const [first, again, queued, delivered] = found
    expect([first, queued]).toEqual([again, delivered])
    const elsewhere = await world(kind)
    await elsewhere.open().sendEmail({ ...AT_ONCE, key: '1' })
    const [other] = elsewhere.messages.map(({ messageId, key }) => [
      messageId.split('@')[0],
      key.split('.')[1],
    ])
    for (const id of [first, queued]) expect([...(other ?? []), undefined]).not.toContain(id)
    // One that knows a mail by its key gets the same bytes from everywhere, and gives an id of its own.
    const known = await Promise.all(
      (['memory', kind] as const).map(async (on) => {
        const byKey = await world(on, 'api')
        await byKey.open().sendEmail({ ...AT_ONCE, key: '1' })
        return byKey.messages.map(({ messageId }) => messageId)
      }),
    )
    expect(known[0]).toEqual(known[1])
  })

  test('a program without a daemon looks each minute for the mails that failed, and no more once it is closed', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const it = await world(kind)
    it.answer(() => DOWN)
    const program = it.open()
    expect(await program.courses.subscribe({ email: 'eve@example.com' })).toMatchObject({ sent: true })
    expect(await program.sendEmail(MAIL)).toMatchObject({ queued: true })
    expect(await program.signIn()).toMatchObject({ queued: true })
    await it.sent(3)
    await program.deliver()
    it.takes('provider-2')
    it.pass(10 * MINUTE_MS)
    vi.advanceTimersByTime(MINUTE_MS)
    await it.sent(6)
    expect(vi.getTimerCount()).toBe(1)
    await program.close()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('a program without a daemon that queues a mail and closes at once has sent it by then', async () => {
    const it = await world(kind)
    const program = it.open()
    expect(await program.sendEmail(MAIL)).toMatchObject({ queued: true })
    await program.close()
    expect(it.messages).toHaveLength(1)
    const next = it.open()
    expect(await next.sendEmail(MAIL)).toEqual({ sent: true, id: 'provider-1' })
    expect(await byHand(it.address, 'SELECT * FROM message')).toEqual([])
  })

  test('a mail with attachments, a sender and headers is queued with them, and keeps them over a restart', async () => {
    const it = await world(kind)
    it.answer(() => DOWN)
    const first = it.open()
    const mail = { ...MAIL, ...PARTS }
    const queued = await first.mail.send('exam-passed', mail)
    await first.deliver()
    expect(queued).toEqual({ sent: true, queued: true, id: it.messages[0]?.messageId })
    it.pass(HOUR_MS)
    it.takes('late')
    const next = it.open()
    expect(await next.deliver()).toBe(1)
    expect(it.messages[1]).toEqual(it.messages[0])
    expect(it.messages[1]).toMatchObject({
      to: { name: 'Ada', address: 'ada@example.com' },
      from: { name: 'Bills', address: 'bills@example.com' },
      headers: expect.objectContaining({ 'X-PM-Message-Stream': 'bills' }),
      attachments: [{ name: 'Rechnung ä.pdf', type: 'application/pdf', content: PDF }],
    })
    // Another file is another content, and so is another name or type of it, a second one, and none.
    const [file] = PARTS.attachments
    const other = { content: Buffer.alloc(PDF.length) }
    for (const changed of [[other], [{ name: 'b.pdf' }], [{ type: 'text/plain' }], [{}, other], []]) {
      const attachments = changed.map((one) => ({ ...file, ...one }))
      expect(await next.mail.send('exam-passed', { ...mail, attachments })).toMatchObject({
        code: 'conflict',
      })
    }
    // Its sender and its headers are none.
    const again = { ...mail, from: 'Sales <sales@example.com>', headers: { 'X-Trace': '2' } }
    expect(await next.mail.send('exam-passed', again)).toEqual({ sent: true, id: 'late' })
  })

  test('what is over a megabyte is refused where it is stored, and leaves where it is sent at once', async () => {
    const it = await world(kind)
    const { mail } = it.open()
    const large = { ...MAIL, attachments: [{ name: 'a.bin', type: 'x/y', content: Buffer.alloc(1_000_000) }] }
    expect(await mail.send('exam-passed', large)).toMatchObject({
      sent: false,
      reason: expect.stringContaining('1 MB'),
    })
    expect(await mail.send('exam-passed', { ...large, durable: false })).toMatchObject({ sent: true })
    expect(it.messages[0]?.attachments?.[0]?.content).toHaveLength(1_000_000)
    // Of two bytes each.
    const long = it.open({}, await mailsWith({ text: ['ü'.repeat(600_000)] }))
    expect(await long.mail.send('exam-passed', { ...MAIL, key: 'exam.2' })).toMatchObject({
      sent: false,
      reason: expect.stringContaining('1 MB'),
    })
  })

  test('a mail is queued in its own language', async () => {
    const it = await world(kind)
    const { mail, deliver } = it.open({}, await mailsWith({ subject: ['Bestanden'] }, 'de/exam-passed'))
    for (const language of ['de-AT', 'fr'])
      await mail.send('exam-passed', { ...MAIL, language, key: language })
    await deliver()
    expect(it.messages.map(({ subject }) => subject === 'Bestanden').toSorted()).toEqual([false, true])
  })

  test('a provider that is down for a day delays a mail; its bytes stay the same when its template is edited', async () => {
    const it = await world(kind)
    it.answer(() => DOWN)
    const first = it.open()
    await first.sendEmail(MAIL)
    // Joins what goes on, until its outcome is recorded.
    await first.deliver()
    expect(it.messages).toHaveLength(1)
    expect(await it.store.sending.queue(NOW)).toMatchObject([
      { stream: 'mail', due: 0, waiting: 1, failed: 0, oldestAt: NOW, nextAt: NOW + 5 * MINUTE_MS },
    ])
    it.pass(DAY_MS)
    it.takes('late')
    const later = it.open({}, await mailsWith({ subject: ['Edited'] }))
    expect(await later.deliver()).toBe(1)
    expect(it.messages[1]).toEqual(it.messages[0])
    // An edited template is no other content.
    expect(await later.sendEmail(MAIL)).toEqual({ sent: true, id: 'late' })
  })

  test('a provider that takes nothing for two hours has stalled, until it takes one mail; one that was refused has not', async () => {
    const it = await world(kind)
    const stalledSince = (hours: number) =>
      it.store.sending.stalledSince({
        now: NOW + hours * HOUR_MS,
        before: NOW + (hours - 1) * HOUR_MS,
      })
    const platform = it.open()
    it.answer(() => ({ kind: 'permanent', reason: 'no such address', hardBounce: true }))
    await platform.sendEmail({ ...MAIL, to: 'nobody@example.com', key: 'exam.0' })
    await platform.deliver()
    it.answer(() => DOWN)
    it.pass(MINUTE_MS)
    await platform.sendEmail(MAIL)
    await platform.deliver()
    expect([await stalledSince(1), await stalledSince(2)]).toEqual([undefined, NOW + MINUTE_MS])
    // A pause of other mail hides nothing; mail that is paused waits for its operator.
    const pauses = ['notice', 'mail'] as const
    for (const stream of pauses) {
      await it.store.sending.pause({
        streams: [stream],
        now: NOW,
        reason: 'a test',
        audit: audited('pause', NOW),
      })
      expect(await stalledSince(2)).toEqual(stream === 'notice' ? NOW + MINUTE_MS : undefined)
    }
    await it.store.sending.resume({ streams: pauses, now: NOW, audit: audited('resume', NOW) })
    // Given up lately, and still nothing was sent.
    it.pass(4 * DAY_MS)
    await platform.deliver()
    expect([await stalledSince(97), await stalledSince(98)]).toEqual([NOW + MINUTE_MS, undefined])
    const sent = [
      { at: NOW + 97 * HOUR_MS, source: 'api', kind: 'sent' as const, domain: 'example.com', count: 1 },
    ]
    await it.store.sending.count(sent)
    // What a clock ahead has counted says nothing.
    expect([await stalledSince(96.9), await stalledSince(97)]).toEqual([NOW + MINUTE_MS, undefined])
  })

  test('a stream of which nothing leaves for three people has stalled also while other mail leaves, until one of its own does', async () => {
    const it = await world(kind)
    const platform = it.open()
    const stalled = () => it.store.sending.stalledSince({ now: NOW + 3 * HOUR_MS, before: NOW + 2 * HOUR_MS })
    const send = async (to: string) => {
      await platform.sendEmail({ ...MAIL, to: `${to}@example.com`, key: `exam.${it.messages.length}` })
      await platform.deliver()
      return stalled()
    }
    const domain = 'example.com'
    await it.store.sending.count([{ at: NOW + 3 * HOUR_MS, source: 'api', kind: 'sent', domain, count: 1 }])
    it.answer(() => ({ kind: 'transient', scope: 'message', reason: 'this text is not taken (450)' }))
    for (const to of ['ada', 'ada', 'bob']) expect(await send(to)).toBeUndefined()
    expect(await send('cy')).toBe(NOW)
    it.pass(HOUR_MS)
    it.takes('late')
    expect(await send('dan')).toBeUndefined()
  })

  test('mail whose text cannot be made waits for its next time, and has stalled after two hours', async () => {
    const it = await world(kind)
    const streams = ['mail'] as const
    await it.store.sending.pause({ streams, now: NOW, reason: 'a test', audit: audited('pause', NOW) })
    const first = it.open()
    await first.sendEmail(MAIL)
    await first.close()
    await it.store.sending.resume({ streams, now: NOW, audit: audited('resume', NOW) })
    await byHand(it.address, `UPDATE message SET payload = '{"template":"of-a-newer-build"}'`)
    expect(await it.open().deliver()).toBe(0)
    const [queue] = await it.store.sending.queue(NOW)
    expect(queue).toMatchObject({ stream: 'mail', due: 0, waiting: 1, failed: 0 })
    const [now, before] = [NOW + 2 * HOUR_MS, NOW + HOUR_MS]
    expect(await it.store.sending.stalledSince({ now, before })).toBe(NOW)
  })

  test('mail that expires without an attempt counts as mail that was not sent', async () => {
    const it = await world(kind)
    const streams = ['mail'] as const
    await it.store.sending.pause({ streams, now: NOW, reason: 'a test', audit: audited('pause', NOW) })
    await it.open().sendEmail(MAIL)
    it.pass(4 * DAY_MS)
    const [now, before] = [NOW + 97 * HOUR_MS, NOW + 95 * HOUR_MS]
    await it.store.sending.resume({ streams, now, audit: audited('resume', now) })
    expect(await it.store.sending.stalledSince({ now, before })).toBeUndefined()
    await it.open().deliver()
    expect(it.messages).toEqual([])
    expect(await it.store.sending.stalledSince({ now, before })).toBe(NOW)
  })

  test('a mail server that never answers after DATA gets a mail ever more rarely, at last every six hours', async () => {
    const it = await world(kind)
    it.answer(() => ({ kind: 'unknown', reason: 'the connection broke after the message was handed over' }))
    const { sendEmail, deliver } = it.open()
    await sendEmail(MAIL)
    const after: number[] = []
    for (let at = 0; at < DAY_MS; at += 10 * MINUTE_MS) {
      const before = it.messages.length
      await deliver()
      if (it.messages.length > before && at > 0) after.push(at)
      it.pass(10 * MINUTE_MS)
    }
    expect(after.length).toBeGreaterThan(7)
    for (const [n, at] of after.slice(1).entries()) {
      const before = after[n] ?? 0
      expect(at - before).toBeGreaterThanOrEqual(Math.min(before, 6 * HOUR_MS))
      expect(at - before).toBeLessThanOrEqual(Math.max(before, HOUR_MS) + 20 * MINUTE_MS)
    }
    expect(new Set(it.messages.map((message) => JSON.stringify(message))).size).toBe(1)
  })

  test('one key with another content is refused, queued or sent at once', async () => {
    const it = await world(kind)
    const { sendEmail } = it.open()
    await sendEmail(MAIL)
    for (const other of [
      { ...MAIL, to: 'eve@example.com' },
      { ...MAIL, slots: { ...MAIL.slots, score: '12 %' } },
      { ...MAIL, language: 'de' },
      { ...MAIL, template: 'welcome', slots: { startUrl: 'https://www.example.com/' } },
      { ...AT_ONCE, to: 'eve@example.com' },
    ])
      expect(await sendEmail(other)).toMatchObject({ sent: false, code: 'conflict' })
    const abroad = { ...MAIL, key: 'exam.3' }
    expect(await sendEmail({ ...abroad, language: 'pt' })).toMatchObject({ sent: true })
    expect(await sendEmail({ ...abroad, language: 'pt-BR' })).toMatchObject({ code: 'conflict' })
    const slots = Object.fromEntries(Object.entries(MAIL.slots).toReversed()) as typeof MAIL.slots
    expect(await sendEmail({ ...MAIL, slots })).toMatchObject({ sent: true })
    expect(await sendEmail({ ...AT_ONCE, key: 'exam.2' })).toEqual({ sent: true, id: 'provider-1' })
    expect(
      await sendEmail({ ...AT_ONCE, key: 'exam.2', slots: { ...MAIL.slots, exam: 'Wires' } }),
    ).toMatchObject({
      code: 'conflict',
    })
  })

  test('a mail that was sent at once and may have been delivered is repeated as it was, also if its template was edited', async () => {
    const it = await world(kind)
    it.answer(() => ({ kind: 'unknown', reason: 'the line broke' }))
    expect(await it.open().sendEmail(AT_ONCE)).toMatchObject({ sent: false })
    it.pass(MINUTE_MS)
    it.takes('provider-1')
    const edited = it.open({}, await mailsWith({ subject: ['Edited'] }))
    expect(await edited.sendEmail(AT_ONCE)).toMatchObject({ sent: true })
    expect(it.messages[1]).toEqual(it.messages[0])
  })

  test('of two processes that send at once under one key one sends; a killed one holds the mail for two minutes', async () => {
    const it = await world(kind)
    const [one, other] = [it.open(), it.open()]
    const answered = Promise.withResolvers<Outcome>()
    it.answer(() => answered.promise)
    const sending = one.sendEmail(AT_ONCE)
    await expect.poll(() => it.messages).toHaveLength(1)
    expect(await other.sendEmail(AT_ONCE)).toMatchObject({
      sent: false,
      reason: expect.stringContaining('another process is sending this mail'),
    })
    answered.resolve({ kind: 'sent', id: 'provider-1' })
    expect([await sending, await other.sendEmail(AT_ONCE)]).toEqual([SENT, SENT])
    expect(it.messages).toHaveLength(1)
    it.answer(it.hang)
    void one.sendEmail({ ...AT_ONCE, key: 'exam.2' })
    await expect.poll(() => it.messages).toHaveLength(2)
    it.pass(2 * MINUTE_MS)
    it.takes('provider-1')
    expect(await other.sendEmail({ ...AT_ONCE, key: 'exam.2' })).toEqual(SENT)
  })

  test('calls at once under one key send one mail, whether they queue it or not', async () => {
    const it = await world(kind)
    const { sendEmail, deliver } = it.open()
    const gone = await Promise.all(Array.from({ length: 5 }, () => sendEmail({ ...AT_ONCE, key: 'exam.3' })))
    expect(gone).toEqual(gone.map(() => ({ sent: true, id: 'provider-1' })))
    expect(it.messages).toHaveLength(1)
    it.answer(() => DOWN)
    expect(await sendEmail(MAIL)).toMatchObject({ sent: true, queued: true })
    expect(await sendEmail(AT_ONCE)).toMatchObject({ sent: true, queued: true })
    await deliver()
    // A call that finds no store takes none with it that waits for its turn.
    vi.spyOn(it.store.sentMail, 'begin').mockRejectedValueOnce(new Error('gone'))
    const late = await Promise.all([1, 2].map(() => sendEmail({ ...MAIL, key: 'exam.5' })))
    expect(late.map(({ sent }) => sent)).toEqual([false, true])
    // A store that fails keeps no mail from leaving at once.
    vi.spyOn(it.store.sentMail, 'begin').mockRejectedValueOnce(new Error('gone'))
    it.takes('provider-2')
    expect(await sendEmail({ ...AT_ONCE, key: 'exam.6' })).toEqual({ sent: true, id: 'provider-2' })
    // What failed at once is tried anew by each call.
    it.answer(() => DOWN)
    expect(await sendEmail({ ...AT_ONCE, key: 'exam.4' })).toMatchObject({ sent: false })
    it.takes('provider-3')
    expect(await sendEmail({ ...AT_ONCE, key: 'exam.4' })).toEqual({ sent: true, id: 'provider-3' })
  })

  test('what is suppressed, capped, malformed or a sign-in link is not queued', async () => {
    const it = await world(kind)
    const platform = it.open()
    const { sendEmail, deliver } = platform
    const refused = async (mail: Partial<SendEmailInput>) => {
      const answer = await sendEmail({ ...MAIL, ...mail })
      return answer.sent ? 'sent' : answer.reason
    }
    expect(await refused({ slots: { exam: 'Gates' } })).toContain('score')
    expect(await refused({ template: 'magic-link', slots: { signInUrl: LINK } })).toContain('POST /api/email')
    await it.suppress(platform, 'manual')
    expect(await refused({ to: 'eve@example.com' })).toContain('suppressed')
    // What leaves at once has no cap, and counts toward none.
    const once = (n: number) => refused({ key: `once${n}`, durable: false })
    for (let n = 0; n < 5; n += 1) expect(await once(n)).toBe('sent')
    for (let n = 0; n < 5; n += 1) expect(await refused({ key: `n${n}` })).toBe('sent')
    expect(await refused({ key: 'n6' })).toContain('enough mail')
    expect(await once(6)).toBe('sent')
    await deliver()
    expect(it.messages).toHaveLength(11)
  })

  test('a confirmation, of the course or of notices, goes to nobody who was suppressed while it waited', async () => {
    const it = await world(kind)
    const platform = it.open()
    const { deliver } = platform
    const course = await platform.course()
    it.answer(() => DOWN)
    const eve = { spelling: 'eve@example.com', identity: 'eve@example.com' }
    for (const more of [{}, { course: NOTICES }]) await course.subscribe({ ...eve, ...more })
    await it.sent(2)
    await it.suppress(platform, 'complaint')
    it.pass(DAY_MS)
    await deliver()
    expect(it.messages).toHaveLength(2)
  })

  test('a lesson that a program sends, queued or at once, has the headers of a lesson and goes to no suppressed address', async () => {
    const it = await world(kind)
    const platform = it.open()
    const { sendEmail, deliver } = platform
    const link = 'https://www.example.com/end?s=1'
    const slots = { lessonUrl: 'https://www.example.com/lessons/1', unsubscribeUrl: link }
    const lesson = { ...MAIL, template: 'course-day-1', slots }
    await it.suppress(platform, 'complaint')
    for (const durable of [true, false]) {
      const to = 'eve@example.com'
      expect(await sendEmail({ ...lesson, durable, to })).toMatchObject({ sent: false })
      expect(await sendEmail({ ...lesson, durable, key: `lesson.${durable}` })).toMatchObject({ sent: true })
    }
    await deliver()
    const headers = { 'List-Unsubscribe': `<${link}>`, 'List-Id': expect.stringMatching(/^<course\./) }
    expect(it.messages.map((message) => message.headers)).toEqual(
      [1, 2].map(() => expect.objectContaining(headers)),
    )
  })

  test('a sign-in mail waits for no other mail, however many of those the provider leaves without an answer', async () => {
    const it = await world(kind)
    it.answer(it.hang)
    const { sendEmail, signIn } = it.open()
    for (let n = 0; n < LINES.api; n += 1)
      await sendEmail({ ...MAIL, to: `p${n}@example.com`, key: `exam.${n}` })
    await it.sent(LINES.api)
    it.takes('provider-2')
    await signIn()
    await it.sent(LINES.api + 1)
    expect(it.messages.at(-1)?.text).toContain(LINK)
  })

  test('a sign-in mail leaves within an hour or not at all, and then nothing is kept of what it said to whom', async () => {
    const it = await world(kind)
    it.answer(() => DOWN)
    const platform = it.open()
    await platform.signIn()
    await it.sent(1)
    await platform.deliver()
    it.takes('late')
    it.pass(HOUR_MS)
    expect(await platform.deliver()).toBe(0)
    expect(it.messages).toHaveLength(1)
    expect(await byHand(it.address, 'SELECT address, payload FROM message')).toEqual([
      { address: null, payload: '' },
    ])
  })

  test('a record that its own program fails to look up holds up no other sign-in mail', async () => {
    const it = await world(kind)
    const platform = it.open()
    it.answer(() => DOWN)
    for (const id of ['alan', 'joan', 'rose'])
      expect(await platform.signIn(id)).toMatchObject({ queued: true })
    await it.sent(3)
    it.broken.add('alan')
    it.moved.add('joan')
    it.takes('provider-1')
    // Somebody waits for such a mail.
    it.pass(MINUTE_MS / 2)
    expect(await platform.deliver()).toBe(2)
    // To whom their records name now.
    const addresses = it.messages.slice(3).map(({ to }) => to.address)
    expect(addresses.sort()).toEqual(['joan@example.net', 'rose@example.org'])
    it.broken.clear()
    it.pass(5 * MINUTE_MS)
    expect(await platform.deliver()).toBe(1)
  })

  test('a sign-in mail whose record is gone is given up, and nothing is kept of it but that', async () => {
    const it = await world(kind)
    it.answer(() => DOWN)
    const platform = it.open()
    await platform.signIn('alan')
    await it.sent(1)
    it.gone.add('alan')
    it.takes('late')
    it.pass(MINUTE_MS)
    expect(await platform.deliver()).toBe(0)
    expect(await byHand(it.address, 'SELECT address, payload, reason FROM message')).toEqual([
      { address: null, payload: '', reason: 'its record is gone' },
    ])
  })

  test('a process leaves a sign-in mail alone whose record only others can find, until it has long expired', async () => {
    const it = await world(kind)
    it.answer(() => DOWN)
    const [program, beside] = [it.open(), it.open({}, undefined, false)]
    await byHand(
      it.address,
      `INSERT INTO login_request (id, address, url, expires_at) VALUES ('row', 'row@example.org', '${LINK}', ${NOW + DAY_MS})`,
    )
    await program.signIn('alan')
    await beside.signIn('row')
    await it.sent(2)
    it.pass(MINUTE_MS)
    it.takes('later')
    it.gone.add('row')
    expect(await program.deliver()).toBe(1)
    expect(await beside.deliver()).toBe(1)
    expect(it.messages.slice(2).map(({ to }) => to.address)).toEqual(['alan@example.org', 'row@example.org'])
    // Of a program that is gone, it expires.
    it.answer(() => DOWN)
    await program.signIn('joan')
    await it.sent(5)
    it.pass(2 * HOUR_MS)
    await beside.deliver()
    expect(await byHand(it.address, 'SELECT address, reason FROM message')).toEqual([
      { address: null, reason: 'it could not be mailed in time' },
    ])
  })

  test('an erasure removes what has not left', async () => {
    const it = await world(kind)
    it.answer(() => DOWN)
    const platform = it.open()
    await platform.sendEmail(MAIL)
    await platform.signIn()
    await platform.sendEmail({ ...MAIL, to: 'Ada@ＥＸＡＭＰＬＥ.com', key: 'exam.2' })
    await it.sent(3)
    expect(await (await platform.course()).erase('ada@example.com')).toMatchObject({ related: 4 })
    it.pass(2 * HOUR_MS)
    expect(await platform.deliver()).toBe(0)
    expect(it.messages).toHaveLength(3)
  })

  test('an older build that erases also finds a mail that failed at once and was queued after that', async () => {
    const it = await world(kind)
    it.answer(() => DOWN)
    const platform = it.open()
    await platform.sendEmail(AT_ONCE)
    await platform.sendEmail(MAIL)
    await platform.sendEmail({ ...MAIL, key: 'exam.2' })
    const counted = await byHand(
      it.address,
      'SELECT DISTINCT recipient FROM sent_mail WHERE recipient IS NOT NULL',
    )
    expect(counted).toHaveLength(1)
  })

  test.each([
    ['is sent by an older build', "UPDATE sent_mail SET sent_id = 'of 0.2.0'"],
    ['is to somebody whom an older build erases', 'DELETE FROM sent_mail'],
  ])('a mail that waits and %s is not sent, and its text is deleted', async (_, sql) => {
    const it = await world(kind)
    it.answer(() => DOWN)
    const platform = it.open()
    await platform.sendEmail(MAIL)
    await it.sent(1)
    await byHand(it.address, sql)
    it.pass(2 * HOUR_MS)
    expect(await platform.deliver()).toBe(0)
    expect(it.messages).toHaveLength(1)
    expect(await byHand(it.address, 'SELECT address, payload FROM message')).toEqual([
      { address: null, payload: '' },
    ])
  })
})

test('the link of a sign-in mail is nowhere in the store', async () => {
  const it = await world('sqlite')
  it.answer(it.hang)
  await it.open().signIn()
  await it.sent(1)
  const file = it.address?.kind === 'sqlite' ? it.address.file : ''
  for (const name of [file, `${file}-wal`]) {
    const bytes = await readFile(name, 'latin1').catch(() => '')
    expect(bytes.includes('a-token-that-is-kept-nowhere')).toBe(false)
  }
})

test('without a persistent store a durable mail is sent at once', async () => {
  const it = await world('memory')
  expect(await it.open().sendEmail(MAIL)).toEqual({ sent: true, id: 'provider-1' })
})

test.each(['mail', 'sign-in'] as const)(
  'what cannot be queued is refused with the reason while the stream %s is paused, and no other stream is',
  async (stream) => {
    const it = await world('memory')
    const { sendEmail, signIn } = it.open()
    const pause = { streams: [stream], reason: 'wrong prices', now: NOW, audit: audited('pause', NOW) }
    await it.store.sending.pause(pause)
    const held = { sent: false, reason: `mail of the stream ${stream} is paused: wrong prices` }
    expect(await sendEmail(AT_ONCE)).toEqual(stream === 'mail' ? held : SENT)
    expect(await sendEmail({ ...MAIL, key: 'exam.2' })).toEqual(stream === 'mail' ? held : SENT)
    expect(await signIn()).toEqual(stream === 'sign-in' ? held : SENT)
    expect(it.messages).toHaveLength(stream === 'mail' ? 1 : 2)
  },
)

test('mail without a key is a new mail each time', async () => {
  const it = await world('memory')
  const { mail } = it.open()
  const { key, durable, template, ...rest } = MAIL
  await mail.send(template, rest)
  await mail.send(template, rest)
  expect(new Set(it.messages.map((message) => message.key)).size).toBe(2)
})

const named = (name: string, type = 'a/b', content: string | Buffer = ''): MailParts => ({
  attachments: [{ name, type, content }],
})
test.each<[string, MailParts, RegExp]>([
  ['a line of its own', { headers: { 'X-A': 'a\r\nBcc: eve@example.com' } }, /one line/],
  ['a name that is none', { headers: { 'X A:': 'a' } }, /name of a header/],
  [
    '21 headers',
    { headers: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`X-${n}`, 'a'])) },
    /at most 20/,
  ],
  ['21 attachments', { attachments: Array(21).fill({ name: 'a', type: 'a/b', content: '' }) }, /at most 20/],
  ['a sender that is none', { from: 'bills@' }, /^from: /],
  ['two senders', { from: 'a@example.com, b@example.com' }, /^from: /],
  ['a path', named('../a.pdf'), /without a path/],
  ['text that is turned round', named('a\u202efdp.exe'), /file name/],
  ['a type with a line', named('a', 'a/b\r\nX: y'), /media type/],
  ['a mail in a mail', named('a', 'message/rfc822'), /media type/],
  ['8 MB', named('a', 'a/b', Buffer.alloc(8_000_000)), /7 MB/],
  ['letters that take 8 MB', named('a', 'a/b', 'ä'.repeat(4_000_000)), /7 MB/],
  ['what is no list', { attachments: 'a.pdf' as never }, /attachment/],
  ['what is no object', { headers: null as never }, /message could not be made|header/],
  ['a number', named('a', 'a/b', 5 as never), /text or bytes/],
  ['no mail at all', undefined as never, /./],
])('%s is a reason, and nothing is sent', async (_, parts, reason) => {
  const it = await world('memory')
  // A program without types may give anything.
  const mail = parts && { ...MAIL, ...parts }
  const result = await it.open().mail.send('exam-passed', mail)
  expect(result).toEqual({ sent: false, reason: expect.stringMatching(reason) })
  expect(it.messages).toEqual([])
})

test('a header that the engine writes, that names other recipients, or that servers add on the way cannot be set', async () => {
  const it = await world('memory')
  const { mail } = it.open()
  const names = `From Sender To Cc Bcc Reply-To Subject Date Message-ID Return-Path Errors-To MIME-Version Content-Type
  Resent-To Received Received-SPF DKIM-Signature DomainKey-Signature ARC-Seal Authentication-Results Auto-Submitted
  Feedback-ID List-Unsubscribe X-SMTPAPI X-Bcc X-MC-Bcc X-MG-Cc X-PM-KeepID`
  for (const name of names.split(/\s+/))
    expect(await mail.send('exam-passed', { ...MAIL, headers: { [name]: 'a' } }), name).toEqual({
      sent: false,
      reason: expect.stringMatching(/cannot be set/),
    })
  expect(it.messages).toEqual([])
})
