import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { DAY_MS } from '../../../../src/core/durations.ts'
import type { FeedbackProviderName } from '../../../../src/core/env/settings.ts'
import { FeedbackFormatError, readItems } from '../../../../src/core/mail/feedback/provider.ts'
import { FEEDBACK_PROVIDERS, readWebhook } from '../../../../src/core/mail/feedback/providers.ts'
import { SAMPLES } from './samples.ts'
import {
  KEYS,
  NOW,
  optionsFor,
  otherSns,
  requestOf,
  type Signed,
  signAs,
  snsMessage,
  TOPIC,
  wrongNameSns,
} from './signing.ts'

const NAMES = Object.keys(FEEDBACK_PROVIDERS) as FeedbackProviderName[]
const verify = async (name: FeedbackProviderName, signed: Signed, options = optionsFor(KEYS[name].ours)) =>
  FEEDBACK_PROVIDERS[name].verify(requestOf(signed), options)
const readSigned = async (name: FeedbackProviderName, signed: Signed) => {
  const verified = await verify(name, signed)
  if (verified.kind !== 'genuine') throw new Error(JSON.stringify(verified))
  return read(name, verified.value, { now: NOW, deliveryId: verified.deliveryId })
}
const read = (name: FeedbackProviderName, body: unknown, of: Parameters<typeof readItems>[1]) =>
  readItems(FEEDBACK_PROVIDERS[name].items(body, of.deliveryId), of)
const sampleOf = (name: FeedbackProviderName) => {
  const found = SAMPLES.find(({ provider, expected }) => provider === name && expected.length > 0)
  if (found === undefined) throw new RangeError(`no sample of ${name}`)
  return found.value
}

describe.each(NAMES)('%s', (name) => {
  test.each(SAMPLES.filter(({ provider }) => provider === name))(
    'classifies $name',
    async ({ value, expected }) => {
      const { events, ignored } = await readSigned(name, signAs(name, value))
      expect(events.map(({ kind }) => kind)).toEqual(expected)
      // SendGrid sends several at once, of which each counts.
      const given = Array.isArray(value) ? value.length : Math.max(1, expected.length)
      expect(ignored).toBe(given - expected.length)
      expect(new Set(events.map(({ id }) => id)).size).toBe(events.length)
      for (const event of events) {
        expect(event.address).toMatch(/^(ada|bob)@example\.com$/)
        expect(event.at).toBe(Date.parse('2026-11-22T02:00:00Z'))
        expect(event.reason).not.toMatch(/@|\p{Cc}/u)
      }
    },
  )

  test('gives an event the same id each time the provider delivers it, and names the message', async () => {
    const signed = signAs(name, sampleOf(name))
    const [first, second] = [await readSigned(name, signed), await readSigned(name, signed)]
    expect(first.events[0]?.id).toBeDefined()
    expect(first.events[0]?.id).toBe(second.events[0]?.id)
    // The Message-ID that we gave it, where the provider tells that.
    const own = { postmark: '883953f4-6105-42a2-a16a-77a8eac79483', resend: undefined }
    const named = name === 'postmark' || name === 'resend' ? own[name] : 'course.sub_1.1.day-1@example.com'
    expect(first.events[0]?.messageId).toBe(named)
  })

  test('refuses what another account signed', async () => {
    const signed = signAs(name, sampleOf(name))
    expect(await verify(name, signed, optionsFor(KEYS[name].other))).toMatchObject({ kind: 'refused' })
  })

  test('accepts either of two keys during a rotation', async () => {
    const signed = signAs(name, sampleOf(name))
    const pair = optionsFor(`${KEYS[name].other},${KEYS[name].ours}`)
    expect(await verify(name, signed, pair)).toMatchObject({ kind: 'genuine' })
  })

  test('refuses a body that was cut short anywhere', async () => {
    const signed = signAs(name, sampleOf(name))
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: signed.body.length - 1 }), async (length) => {
        const cut = await verify(name, { ...signed, body: signed.body.slice(0, length) })
        expect(cut.kind).toBe('refused')
      }),
    )
  })

  test('refuses a request without its headers', async () => {
    const { headers, body } = signAs(name, sampleOf(name))
    for (const header of Object.keys(headers)) {
      const { [header]: _, ...rest } = headers
      expect(await verify(name, { headers: rest, body })).toMatchObject({ kind: 'refused' })
    }
    expect(await verify(name, { headers: {}, body: '{}' })).toMatchObject({ kind: 'refused' })
  })

  test('accepts either key while the key is being rotated', async () => {
    const { ours, other } = KEYS[name]
    for (const both of [`${ours},${other}`, `${other},${ours}`])
      expect(await verify(name, signAs(name, sampleOf(name)), optionsFor(both))).toMatchObject({
        kind: 'genuine',
      })
  })

  test('refuses a body with a byte order mark', async () => {
    const signed = signAs(name, sampleOf(name))
    expect(await verify(name, { ...signed, body: `\uFEFF${signed.body}` })).toMatchObject({ kind: 'refused' })
  })

  test('reads any JSON as feedback or as a format error, never as another fault', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        try {
          read(name, value, { now: NOW, deliveryId: 'd-1' })
        } catch (error) {
          expect(error).toBeInstanceOf(FeedbackFormatError)
        }
      }),
      { numRuns: 300 },
    )
  })
})

test('two changes of a suppression by hand, which Postmark tells without a message, are two events', async () => {
  const change = SAMPLES.find(({ name }) => name === 'suppressed by hand')?.value as object
  const idOf = async (more: object) =>
    (await readSigned('postmark', signAs('postmark', { ...change, ...more }))).events[0]?.id
  const none = { MessageID: '00000000-0000-0000-0000-000000000000' }
  const first = await idOf({ ...none, ChangedAt: '2026-11-22T02:00:00Z' })
  expect(first).toBeDefined()
  expect(await idOf({ ...none, ChangedAt: '2026-11-22T02:00:00Z' })).toBe(first)
  expect(await idOf({ ...none, ChangedAt: '2026-11-22T03:00:00Z' })).not.toBe(first)
})

/** Postmark signs nothing. */
describe.each(NAMES.filter((name) => name !== 'postmark'))('%s, which signs a time', (name) => {
  const oldest = name === 'ses' ? DAY_MS : 5 * 60_000
  test.each([
    [oldest, 'genuine'],
    [oldest + 1000, 'refused'],
    [-5 * 60_000, 'genuine'],
    [-5 * 60_000 - 1000, 'refused'],
  ])('a signature %i ms old is %s', async (age, kind) => {
    const options = optionsFor(KEYS[name].ours, { now: NOW + age })
    expect(await verify(name, signAs(name, sampleOf(name), NOW), options)).toMatchObject({ kind })
  })
})

describe.each(NAMES.filter((name) => name !== 'postmark' && name !== 'mailgun'))(
  '%s, which signs the body',
  (name) => {
    test('believes nothing else when one byte of the body is changed', async () => {
      const signed = signAs(name, sampleOf(name))
      const { events: genuine } = await readSigned(name, signed)
      await fc.assert(
        fc.asyncProperty(fc.integer({ min: 0, max: signed.body.length - 1 }), async (at) => {
          const other = signed.body[at] === 'x' ? 'y' : 'x'
          const changed = { ...signed, body: signed.body.slice(0, at) + other + signed.body.slice(at + 1) }
          // A bit of base64 that pads a signature carries nothing.
          if ((await verify(name, changed)).kind === 'genuine')
            expect((await readSigned(name, changed)).events).toEqual(genuine)
        }),
      )
    })
  },
)

describe('SNS', () => {
  const confirmation = {
    Type: 'SubscriptionConfirmation',
    Message: 'You have chosen to subscribe to the topic',
    Token: '2336412f37',
    SubscribeURL: `https://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=${TOPIC}&Token=2336412f37`,
  }
  const ses = (fields: Readonly<Record<string, string>>, pem?: string) =>
    verify('ses', snsMessage(fields), optionsFor(KEYS.ses.ours, pem === undefined ? {} : { pem }))

  test('a signed confirmation names the URL to confirm at', async () => {
    expect(await ses(confirmation)).toEqual({ kind: 'confirm', url: confirmation.SubscribeURL })
  })

  test.each([
    'https://sns.eu-central-1.amazonaws.com.evil.example/?Action=ConfirmSubscription',
    'http://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription',
    'https://evil.example/?Action=ConfirmSubscription',
    'https://sns.eu-central-1.amazonaws.com:8443/?Action=ConfirmSubscription',
    'https://user@sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription',
    'https://s3.eu-central-1.amazonaws.com/?Action=ConfirmSubscription',
    'https://sns.eu-central-1.amazonaws.com/?Action=Unsubscribe',
    'nonsense',
  ])('refuses a confirmation link to %s', async (SubscribeURL) => {
    expect(await ses({ ...confirmation, SubscribeURL })).toMatchObject({ kind: 'refused' })
  })

  test.each([
    'https://evil.example/SimpleNotificationService-9c6465fa7f48f5cacd23014631ec1136.pem',
    'https://sns.eu-central-1.amazonaws.com/evil.pem',
    'https://bucket.s3.amazonaws.com/SimpleNotificationService-9c6465fa7f48f5cacd23014631ec1136.pem',
    'https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-9c6465fa7f48f5cacd23014631ec1136.pem?x=1',
  ])('a certificate at %s is not fetched', async (SigningCertURL) => {
    expect(await ses({ ...confirmation, SigningCertURL })).toMatchObject({ kind: 'refused' })
  })

  test('a signature by another key, by one for another name, or beside no certificate at all is refused', async () => {
    expect(await ses(confirmation, otherSns.cert)).toMatchObject({ kind: 'refused' })
    const signed = snsMessage(confirmation, NOW, wrongNameSns.private)
    const options = optionsFor(KEYS.ses.ours, { pem: wrongNameSns.cert })
    expect(await verify('ses', signed, options)).toMatchObject({ kind: 'refused' })
    expect(await ses(confirmation, 'not a certificate')).toMatchObject({ kind: 'refused' })
  })

  test.each([
    ['1', 'confirm'],
    ['2', 'confirm'],
    ['3', 'refused'],
    ['', 'refused'],
  ])('signature version "%s" is %s', async (SignatureVersion, kind) => {
    expect(await ses({ ...confirmation, SignatureVersion })).toMatchObject({ kind })
  })

  test('the end of an SNS subscription is refused with what to do, and not confirmed', async () => {
    expect(await ses({ ...confirmation, Type: 'UnsubscribeConfirmation' })).toEqual({
      kind: 'refused',
      signature: 'right',
      reason: 'SNS ended the subscription of this endpoint; subscribe it to the topic again',
    })
  })
})

test.each([
  [0, 'genuine'],
  [7, 'genuine'],
  [8, 'refused'],
])('a Standard Webhooks signature that follows %i by another key is %s', async (others, kind) => {
  for (const name of ['standard', 'resend'] as const) {
    const { headers, body } = signAs(name, sampleOf(name))
    const header = name === 'resend' ? 'svix-signature' : 'webhook-signature'
    const other = `v1,${Buffer.alloc(32).toString('base64')}`
    const all = [...Array(others).fill(other), headers[header]].join(' ')
    expect(await verify(name, { body, headers: { ...headers, [header]: all } })).toMatchObject({ kind })
  }
})

test.each([
  [255, 'genuine'],
  [256, 'refused'],
])('a Standard Webhooks message id of %i characters is %s', async (length, kind) => {
  const body = JSON.stringify(sampleOf('standard'))
  const id = 'm'.repeat(length)
  const signature = new Webhook(KEYS.standard.ours).sign(id, new Date(NOW), body)
  const headers = { 'webhook-id': id, 'webhook-timestamp': `${NOW / 1000}`, 'webhook-signature': signature }
  expect(await verify('standard', { body, headers })).toMatchObject({ kind })
})

test('Mailgun names an event by its token, so a second body under one signature is the same event', async () => {
  const signed = signAs('mailgun', sampleOf('mailgun'))
  const forged = { ...signed, body: signed.body.replace('ada@example.com', 'bob@example.com') }
  const [first, second] = [await readSigned('mailgun', signed), await readSigned('mailgun', forged)]
  expect(first.events[0]?.id).toBe(second.events[0]?.id)
})

test.each([
  [100, 'genuine'],
  [101, 'refused'],
])('a token of Mailgun of %i characters is %s', async (length, kind) => {
  const value = { ...(sampleOf('mailgun') as object) }
  const token = 'x'.repeat(length)
  expect(await verify('mailgun', signAs('mailgun', value, NOW, token))).toMatchObject({ kind })
})

test('no provider believes what was signed for another with the same key', async () => {
  const key = KEYS.sendgrid.ours
  const forged = signAs('mailgun', sampleOf('mailgun'))
  // The public key of SendGrid, taken for the signing key of Mailgun, would let anybody sign.
  expect(await verify('sendgrid', forged, optionsFor(key))).toMatchObject({ kind: 'refused' })
})

describe('a webhook', () => {
  const request = async (name: FeedbackProviderName, signed: Signed, key: string = KEYS[name].ours) => {
    const asked: string[] = []
    const options = optionsFor(key)
    const reading = await readWebhook(name, requestOf(signed), {
      ...options,
      fetchText: async (url) => {
        asked.push(url)
        return url.includes('Action=') ? '' : options.fetchText(url)
      },
    })
    return { reading, asked }
  }

  test('is read once it is known to be the provider’s', async () => {
    const { reading } = await request('postmark', signAs('postmark', sampleOf('postmark')))
    expect(reading).toMatchObject({
      kind: 'feedback',
      feedback: { events: [{ address: expect.any(String) }] },
    })
  })

  test('of another account is refused, and not read', async () => {
    const { reading } = await request('resend', signAs('resend', { type: 7 }), KEYS.resend.other)
    expect(reading).toEqual({
      kind: 'refused',
      signature: 'wrong',
      reason: expect.stringMatching(/^[a-z].{5,}/),
    })
  })

  test('that is signed and of another form is told apart from one that is refused', async () => {
    const { reading } = await request('resend', signAs('resend', { type: 7 }))
    expect(reading).toMatchObject({ kind: 'not-understood', reason: expect.stringMatching(/^.{5,}/) })
  })

  test('that asks to be confirmed is confirmed at its URL', async () => {
    const SubscribeURL = `https://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=${TOPIC}&Token=1`
    const message = { Type: 'SubscriptionConfirmation', Message: 'confirm', Token: '1', SubscribeURL }
    const { reading, asked } = await request('ses', snsMessage(message))
    expect(reading).toEqual({ kind: 'confirmed' })
    expect(asked.at(-1)).toBe(SubscribeURL)
  })
})

test('a time without a zone is in UTC, whatever the zone of the machine, and one to come is now', () => {
  const complaint = (created_at: string) => ({
    type: 'email.complained',
    created_at,
    data: { to: 'a@b.example' },
  })
  const [zoned, bare, late] = ['2026-01-02T03:04:05.678Z', '2026-01-02 03:04:05.678', '2126-01-02'].map(
    (at) => read('resend', complaint(at), { now: NOW, deliveryId: 'd-1' }),
  )
  expect(zoned?.events).toMatchObject([{ at: Date.UTC(2026, 0, 2, 3, 4, 5, 678) }])
  expect(bare).toEqual(zoned)
  expect(late?.events).toMatchObject([{ at: NOW }])
})

test('an event of Resend counts for each of its recipients, of which there are at most fifty', () => {
  const bounced = (count: number) => {
    const to = Array.from({ length: count }, (_, n) => `p${n}@example.com`)
    const data = { to, message_id: 'm-1', bounce: { type: 'Permanent' } }
    const body = { type: 'email.bounced', created_at: '2026-01-02T03:04:05Z', data }
    return read('resend', body, { now: NOW, deliveryId: 'd-1' }).events.map(({ address }) => address)
  }
  // The name of an event has its recipient’s place: a malformed one before it does not move it.
  const data = {
    to: ['a@example.com', '', 'c@example.com'],
    message_id: 'm-1',
    bounce: { type: 'Permanent' },
  }
  const { events } = read('resend', { type: 'email.bounced', data }, { now: NOW, deliveryId: 'd-1' })
  expect(events.map(({ id }) => id)).toEqual(['d-1/0', 'd-1/2'])
  expect(bounced(50)).toEqual(Array.from({ length: 50 }, (_, n) => `p${n}@example.com`))
  for (const count of [0, 51]) expect(() => bounced(count)).toThrow('1 to 50 recipients')
})

test('an event of SES counts for each of its fifty recipients', () => {
  const recipients = Array.from({ length: 50 }, (_, n) => `p${n}@example.com`)
  const report = { eventType: 'Delivery', delivery: { recipients, timestamp: '2026-01-02T03:04:05Z' } }
  const body = { MessageId: 'm-1', Message: JSON.stringify(report) }
  const { events } = read('ses', body, { now: NOW, deliveryId: undefined })
  expect(new Set(events.map(({ id }) => id)).size).toBe(50)
})
