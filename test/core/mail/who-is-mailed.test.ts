import { generateKeyPairSync } from 'node:crypto'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Identity } from '../../../src/core/access/identity.ts'
import { type LogFields, silentLog, systemClock, systemRandom } from '../../../src/core/host.ts'
import type { MailDefinition, MailResolution } from '../../../src/core/mail/definition.ts'
import type { SuppressionCause } from '../../../src/core/mail/feedback/event.ts'
import type { MailCount } from '../../../src/core/mail/feedback/sending.ts'
import { releaseAddress, suppressAddress } from '../../../src/core/mail/feedback/suppressions.ts'
import { LINES, type Mail, type Message, type Outcome, PATIENCE_MS } from '../../../src/core/mail/mailer.ts'
import { openMailer } from '../../../src/core/mail/open.ts'
import { createSuppressingMailer } from '../../../src/core/mail/suppressing-mailer.ts'
import { openTransactionalMail } from '../../../src/core/mail/transactional.ts'
import { secret } from '../../../src/core/secret.ts'
import { dkimPrivateKey } from '../../../src/core/webhook-key.ts'
import { compiledMails } from '../../support/learning.ts'
import { EXAM, mailerTo } from '../../support/mailers.ts'
import { openTestStore } from '../../support/stores.ts'
import { subscribe } from '../../support/subscribers.ts'
import { testTransport } from '../../support/test-transport.ts'

const NOW = Date.parse('2026-11-22T08:00:00Z')
const clock = { ...systemClock, now: () => NOW }
const ADA = { name: undefined, address: 'Ada@Gmail.com' }
const MAIL: Mail = {
  template: 'exam-passed',
  to: ADA,
  slots: EXAM,
  about: 'exam.1',
  date: new Date(NOW),
}
const LESSON: Mail = { ...MAIL, stream: 'course', unsubscribeUrl: 'https://www.example.com/u' }

/** A mailer over a real list, with a transport that answers as told; what was told of each mail. */
async function mailer(answer: () => Promise<Outcome> = async () => ({ kind: 'sent', id: 'provider-1' })) {
  const store = await openTestStore(undefined)
  const messages: Message[] = []
  const sent: MailCount[] = []
  let urgent = 0
  let fault: string | undefined
  const list = {
    store: store.feedback,
    sending: store.sending,
    erasureHashes: (identity: string) => [`hash of ${identity.length}`],
    bounceAddresses: undefined,
    wasSent: async () => false,
  }
  const inner = openMailer({
    mail: undefined,
    compiled: compiledMails,
    from: { name: undefined, address: 'course@example.com' },
    transport: testTransport(async (message) => {
      messages.push(message)
      return answer()
    }),
  })
  const open = (of = inner) =>
    createSuppressingMailer(of, {
      list: async () => {
        if (fault === 'list') throw new Error('the store is away')
        return list
      },
      isSignIn: (template) => template === 'magic-link',
      clock,
      onSent: async (count) => {
        sent.push(count)
        if (fault === 'told') throw new Error('the store is away')
      },
      onUrgent: async () => {
        urgent += 1
        if (fault === 'told') throw new Error('the store is away')
      },
    })
  return {
    it: open(),
    open,
    inner,
    store,
    list,
    messages,
    sent,
    urgent: () => urgent,
    fails: (what: 'list' | 'told') => {
      fault = what
    },
    suppress: (cause: SuppressionCause, identity = 'ada@gmail.com') =>
      suppressAddress(list, {
        identity,
        cause,
        reason: 'r',
        operator: { name: 'op', place: 'here' },
        clock,
        random: systemRandom,
      }),
  }
}

test('an address with other letters in its domain is on the list in the form that servers have', async () => {
  const { it, suppress, messages } = await mailer()
  await suppress('complaint', 'ada@xn--bcher-kva.example')
  const to = { name: undefined, address: 'Ada@bücher.example' }
  expect(await it.send({ ...MAIL, to })).toMatchObject({ kind: 'permanent' })
  expect(messages).toEqual([])
})

test.each([
  ['hard-bounce', 'exam-passed', 'the address is suppressed: mail to it bounced'],
  ['complaint', 'exam-passed', 'the address is suppressed: its owner reported mail as spam'],
  ['manual', 'exam-passed', 'the address is suppressed by an operator'],
  ['hard-bounce', 'magic-link', 'the address is suppressed: mail to it bounced'],
  ['complaint', 'magic-link', undefined],
  ['manual', 'magic-link', undefined],
] as const)(
  'to an address that is suppressed for %s, %s is refused with: %s',
  async (cause, template, reason) => {
    const { it, suppress, messages, sent } = await mailer()
    await suppress(cause)
    const mail =
      template === 'magic-link'
        ? { ...MAIL, template, slots: { signInUrl: 'https://www.example.com/' } }
        : MAIL
    const outcome = await it.send(mail)
    if (reason === undefined) return expect(outcome.kind).not.toBe('permanent')
    expect(outcome).toEqual({ kind: 'permanent', hardBounce: false, reason })
    expect([messages, sent]).toEqual([[], []])
  },
)

test.each(['before', 'after'])(
  'an address that complained %s it was erased gets no mail, until it is taken off the list',
  async (when) => {
    const { it, store, list, suppress, messages } = await mailer()
    const [identity, suppressionHash] = ['ada@gmail.com', 'hash of 13']
    if (when === 'before') await suppress('complaint')
    await store.course.erase({ identity, spellings: [identity], recipients: [], suppressionHash, now: NOW })
    if (when === 'after') expect(await suppress('complaint')).toBe('erased')
    const reason = 'the address is suppressed: its owner reported mail as spam'
    expect(await it.refusal(MAIL)).toMatchObject({ reason })
    expect(await it.send(MAIL)).toMatchObject({ kind: 'permanent', reason })
    expect(messages).toEqual([])
    const by = { operator: { name: 'op', place: 'here' }, clock, random: systemRandom }
    const release = () => releaseAddress(list, { ...by, identity, reason: 'asked by phone' })
    expect([await release(), await release()]).toEqual(['erased', undefined])
    expect(await it.send(MAIL)).toMatchObject({ kind: 'sent' })
  },
)

test('counts an accepted mail under its transport and domain, and marks all but lessons and notices as urgent', async () => {
  const { it, sent, urgent, suppress } = await mailer()
  expect(await it.send(MAIL)).toEqual({ kind: 'sent', id: 'provider-1' })
  const counted = { at: NOW, kind: 'sent', source: 'test', domain: 'gmail.com', count: 1 }
  expect([sent, urgent()]).toEqual([[counted], 1])
  // A subscription of a suppressed address has ended: its lesson is not looked up.
  await suppress('manual')
  expect(await it.send(LESSON)).toMatchObject({ kind: 'sent' })
  expect([sent, urgent()]).toEqual([[counted, counted], 1])
  await it.send({ ...LESSON, stream: 'notice' })
  expect(urgent()).toBe(1)
  await it.send({ ...MAIL, to: { name: undefined, address: 'bob@example.com' }, stream: 'confirmation' })
  expect(urgent()).toBe(2)
})

test('counting that fails costs no mail, and a list that cannot be read lets none out but lessons', async () => {
  const told = await mailer()
  told.fails('told')
  expect(await told.it.send(MAIL)).toEqual({ kind: 'sent', id: 'provider-1' })
  const list = await mailer()
  list.fails('list')
  expect(await list.it.send(MAIL)).toEqual({
    kind: 'transient',
    scope: 'connection',
    reason: 'the suppression list could not be read',
  })
  expect([list.messages, list.urgent()]).toEqual([[], 0])
  expect((await list.it.send(LESSON)).kind).toBe('sent')
})

test('suppresses and counts an address at once if the server says that it does not exist, and after no other refusal', async () => {
  let outcome: Outcome = { kind: 'permanent', hardBounce: false, reason: 'too large' }
  const { it, store, sent, fails } = await mailer(async () => outcome)
  await it.send(MAIL)
  expect(await store.feedback.find('ada@gmail.com')).toBeUndefined()
  outcome = { kind: 'permanent', hardBounce: true, reason: 'the address does not exist' }
  expect(await it.send(MAIL)).toEqual(outcome)
  expect((await store.feedback.find('ada@gmail.com'))?.suppression).toEqual({
    cause: 'hard-bounce',
    at: NOW,
    source: 'send',
    reason: 'the address does not exist',
  })
  expect(await store.sending.days(NOW)).toEqual([
    { day: '2026-11-22', kind: 'hard-bounce', source: 'send', domain: 'gmail.com', count: 1 },
  ])
  expect(sent).toEqual([])
  await subscribe(store, 'grace', NOW)
  const grace = { name: undefined, address: 'grace@example.com' }
  await it.send({ ...LESSON, to: grace })
  expect((await store.feedback.find('grace@example.com'))?.suppression).toMatchObject({
    cause: 'hard-bounce',
  })
  // The attempt is in the history already, with its outcome.
  expect((await store.course.history('grace')).map(({ kind }) => kind)).toEqual(['confirmed'])
  // A failed write loses nothing but the entry.
  fails('list')
  expect(await it.send(LESSON)).toEqual(outcome)
})

test('an unconfigured mailer says why, without reading the suppression list', async () => {
  const { open, fails } = await mailer()
  fails('list')
  const none = openMailer({ mail: undefined, compiled: compiledMails })
  expect(await open(none).send(MAIL)).toEqual({ kind: 'not_configured', reason: 'mail is not configured' })
  expect([none.lines, none.patienceMs, none.messageId(MAIL)]).toEqual([0, 0, undefined])
  await expect(none.compose(MAIL)).rejects.toThrow('mail is not configured')
  await expect(none.verify()).rejects.toThrow('mail is not configured')
  const smtp = mailerTo('smtp://127.0.0.1:1')
  expect([smtp.transport, smtp.lines, smtp.patienceMs]).toEqual(['smtp', LINES.smtp, PATIENCE_MS.smtp])
  const api = mailerTo('http://127.0.0.1:1')
  expect([api.transport, api.lines, api.patienceMs]).toEqual(['api', LINES.api, PATIENCE_MS.api])
})

const rsaKey = (bits: number) =>
  generateKeyPairSync('rsa', {
    modulusLength: bits,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  }).privateKey

test('retries opening a transport with the next mail', async () => {
  let dkim = 'no key'
  const it = openMailer({
    compiled: compiledMails,
    mail: {
      key: secret('key'),
      route: { kind: 'smtp', url: secret('smtp://127.0.0.1:1') },
      from: ADA,
      replyTo: undefined,
      dkim: { domain: 'example.com', selector: 's', key: { reveal: () => dkim } },
    } as never,
  })
  expect(await it.send(MAIL)).toMatchObject({ reason: 'the mail transport could not be opened' })
  await expect(it.prepare()).rejects.toThrow('MAILER_DKIM_KEY is not a private RSA key')
  dkim = rsaKey(1024)
  await it.prepare()
  await it.close()
})

test('a key signs only if it is RSA and of at least 1,024 bits', () => {
  expect(dkimPrivateKey(rsaKey(1024))?.asymmetricKeyDetails?.modulusLength).toBe(1024)
  expect(dkimPrivateKey(rsaKey(1016))).toBeUndefined()
  const { privateKey } = generateKeyPairSync('ed25519')
  expect(dkimPrivateKey(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())).toBeUndefined()
})

const PERSON: Identity = { kind: 'person', subject: 'ada', email: 'ada@example.com' }
const SERVICE: Identity = { kind: 'service' } as Identity

/** Mails of a platform with one definition each for a person and a service. */
async function transactional(
  resolve: () => MailResolution | Promise<MailResolution>,
  answer: () => Promise<Outcome> = async () => ({ kind: 'sent', id: 'provider-1' }),
) {
  const { inner, messages, store } = await mailer(answer)
  const logged: LogFields[] = []
  let now = NOW
  const definition = (name: string, by: 'person' | 'service', allowance?: 'invite') =>
    ({ name, ask: { by, inputs: [], resolve }, ...(allowance && { allowance }) }) as MailDefinition
  const kept = { sentMail: store.sentMail, addressKey: 'key', queue: undefined, timer: systemClock }
  const { ask, again } = openTransactionalMail(inner, kept, {
    mails: {
      definitions: [
        definition('exam-passed', 'person'),
        definition('magic-link', 'service'),
        { name: 'welcome' },
        definition('organisation-invite', 'person', 'invite'),
      ],
      compiled: compiledMails,
    },
    directory: store.directory,
    confirmAgain: async () => ({ kind: 'not_found' }),
    value: () => undefined,
    siteUrl: 'https://www.example.com',
    clock: { ...systemClock, now: () => now },
    log: {
      ...silentLog,
      warn: (event, _, fields) => logged.push({ event, ...fields }),
      error: (event, _, fields) => logged.push({ event, ...fields }),
    },
  })
  return {
    messages,
    logged,
    ask: (template = 'exam-passed', asker = PERSON) => ask(asker, { template, inputs: {} }),
    again: () => again(PERSON, { template: 'exam-passed', inputs: {} }),
    pass: (ms: number) => {
      now += ms
    },
  }
}
const resolved = { to: 'ada@example.com', slots: MAIL.slots, about: 'exam.1' }

test('a mail whose record gives a relative address is not sent, and the log says why', async () => {
  const slots = { ...resolved.slots, resultUrl: '/results/17' }
  const { ask, logged, messages } = await transactional(() => ({ ...resolved, slots }))
  const reason = 'the value of the slot resultUrl is not an absolute http or https address'
  expect(await ask()).toEqual({ kind: 'not_sent', reason })
  expect(logged).toEqual([{ event: 'mail_not_sent', template: 'exam-passed', reason }])
  expect(messages).toEqual([])
})

test('a second click while the mail is on its way shares what becomes of it, and a later one tries again', async () => {
  let answer: Outcome = { kind: 'transient', scope: 'message', reason: 'busy' }
  const { ask, messages } = await transactional(
    () => resolved,
    async () => answer,
  )
  const failed = { kind: 'not_sent', reason: 'busy' }
  expect(await Promise.all([ask(), ask()])).toEqual([failed, failed])
  answer = { kind: 'sent', id: 'provider-1' }
  expect(await Promise.all([ask(), ask()])).toEqual([answer, answer])
  expect(messages).toHaveLength(2)
})

test('two people who ask for the same mail at the same moment are both mailed', async () => {
  const people = ['ada@example.com', 'eve@example.com']
  const left = [...people]
  const { ask, messages } = await transactional(() => ({
    ...resolved,
    to: left[0] ?? '',
    about: `of ${left.shift()}`,
  }))
  await Promise.all([ask(), ask()])
  expect(messages.map(({ to }) => to.address)).toEqual(people)
})

test('sends a mail only to callers that its definition allows: services, persons or nobody', async () => {
  const { ask, messages } = await transactional(() => resolved)
  expect(await ask('exam-passed', SERVICE)).toEqual({ kind: 'not_found' })
  expect(await ask('magic-link', PERSON)).toEqual({ kind: 'not_found' })
  expect(await ask('welcome', PERSON)).toEqual({ kind: 'not_found' })
  expect(await ask('none', PERSON)).toEqual({ kind: 'not_found' })
  expect(messages).toEqual([])
  expect(await ask()).toEqual({ kind: 'sent', id: 'provider-1' })
  expect(messages).toMatchObject([{ to: { address: 'ada@example.com' }, date: new Date(NOW) }])
  // Another mail about the same record is no repeat of it: this one fails for its slots.
  expect(await ask('organisation-invite')).toMatchObject({ kind: 'not_sent' })
})

test('a recipient gets five mails an hour of each allowance, counted by mailbox', async () => {
  let n = 0
  let to = 'ada@example.com'
  const { ask, pass } = await transactional(() => ({ ...resolved, to, about: `exam.${n++}` }))
  const kinds = async (times: number) => {
    const answers = []
    for (let asked = 0; asked < times; asked += 1) answers.push((await ask()).kind)
    return answers.join(' ')
  }
  expect(await kinds(4)).toBe('sent sent sent sent')
  // Another spelling of the same mailbox.
  to = '"ada"@example.com'
  expect(await kinds(2)).toBe('sent not_sent')
  to = 'ａda@example.com'
  expect(await ask()).toEqual({
    kind: 'not_sent',
    reason: 'this recipient has had enough mail for now; try again later',
  })
  // Another allowance has another count: this one fails for its slots, not for its number.
  expect(await ask('organisation-invite')).not.toMatchObject({
    reason: expect.stringContaining('enough mail'),
  })
  to = 'grace@example.com'
  expect(await kinds(1)).toBe('sent')
  to = 'ada@example.com'
  pass(3_600_000)
  expect(await kinds(1)).toBe('sent')
})

test.each([
  [() => undefined, { kind: 'not_found' }],
  [() => ({ locked: 'Upgrade.' }), { kind: 'locked', message: 'Upgrade.' }],
  [() => ({ answer: { kind: 'sent', id: 'x' } as const }), { kind: 'sent', id: 'x' }],
  [
    () => ({ ...resolved, to: 'nobody' }),
    { kind: 'not_sent', reason: 'the record holds no address that can be mailed' },
  ],
])('a request is answered by what the definition resolves: %s', async (resolve, answer) => {
  const { ask, messages } = await transactional(resolve)
  expect(await ask()).toEqual(answer)
  expect(messages).toEqual([])
})

test('records that cannot be looked up answer 503, and the log names the mail and the fault', async () => {
  const failing = await transactional(() => Promise.reject(new TypeError('fetch failed')))
  await expect(failing.ask()).rejects.toMatchObject({ code: 'unavailable', retryAfterSeconds: 60 })
  expect(failing.logged).toEqual([{ event: 'resolve_fault', template: 'exam-passed', fault: 'TypeError' }])
})

test('records that do not answer within ten seconds answer 503', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const hanging = await transactional(() => new Promise(() => {}))
  const answer = expect(hanging.ask()).rejects.toMatchObject({ code: 'unavailable' })
  vi.advanceTimersByTime(10_000)
  await answer
  expect(hanging.logged).toEqual([{ event: 'resolve_fault', template: 'exam-passed', fault: 'TimeoutError' }])
})

test('a fault is not kept for the next request, and a record’s text is escaped in text slots', async () => {
  let to = undefined as unknown as string
  const once = await transactional(() => ({ ...resolved, to }))
  await expect(once.ask()).rejects.toThrow(TypeError)
  to = 'ada@example.com'
  expect((await once.ask()).kind).toBe('sent')
  const slots = { ...MAIL.slots, exam: 'Go to evil.example' }
  const { ask, again, messages } = await transactional(() => ({ ...resolved, slots }))
  // Also where it was queued, and is looked up anew.
  expect((await again())?.slots.exam).toBe('Go to evil. example')
  expect((await ask()).kind).toBe('sent')
  expect(messages[0]?.text).toContain('Go to evil. example')
  expect(messages[0]?.text).toContain('https://www.example.com/')
})
