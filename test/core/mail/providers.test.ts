import { createHash, createHmac } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { DAY_MS } from '../../../src/core/durations.ts'
import { readSettings } from '../../../src/core/env/settings.ts'
import type { Mail } from '../../../src/core/mail/mailer.ts'
import { openMailer } from '../../../src/core/mail/open.ts'
import { HTTP_OUTCOMES, type HttpRow } from '../../../src/core/mail/outcome.ts'
import { openApi } from '../../../src/core/mail/transports/api.ts'
import { awsRegion, awsSigned } from '../../../src/core/network/aws-signature.ts'
import { secret } from '../../../src/core/secret.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { compiledMails } from '../../support/learning.ts'
import { WELCOME } from '../../support/mailers.ts'
import { serveBodies } from '../../support/servers.ts'

const INVOICE: Mail = {
  ...WELCOME,
  headers: { 'X-PM-Message-Stream': 'broadcast', 'X-Case': 'é' },
  attachments: [{ name: 'Rechnung „7“.pdf', type: 'application/pdf', content: Buffer.from('%PDF') }],
}
const KEYS = { resend: 're_key', postmark: 'pm-token', ses: 'AKIDEXAMPLE:canary/secret+key' }
type Provider = keyof typeof KEYS
const PROVIDERS = ['resend', 'postmark', 'ses'] as const

interface Received extends Pick<IncomingMessage, 'method' | 'url' | 'headers'> {
  readonly body: string
}
interface Answer {
  readonly status: number
  readonly headers?: Record<string, string>
  readonly body?: unknown
}

/** A provider's API on loopback, and a mailer for it that was configured by the environment alone. */
async function api(provider: Provider, answer: (request: Received) => Answer | 'drop' | 'hang') {
  const received: Received[] = []
  const origin = await serveBodies((body, response, { method, url, headers, socket }) => {
    const one = { method, url, headers, body }
    received.push(one)
    const given = answer(one)
    if (given === 'drop') return void socket.destroy()
    if (given === 'hang') return
    response.writeHead(given.status, given.headers).end(JSON.stringify(given.body ?? {}))
  })
  const { mail } = readSettings(learning, {
    MAILER_PROVIDER: provider,
    MAILER_API_KEY: KEYS[provider],
    MAILER_API_URL:
      provider === 'ses'
        ? `${origin}/?region=eu-central-1`
        : `${origin}/${provider === 'resend' ? 'emails' : ''}`,
    MAILER_FROM: 'Grüße <course@example.com>',
    MAILER_REPLY_TO: 'help@example.com',
  })
  const hosts: string[] = []
  const onDate = (host: string, at: number) => void (Number.isFinite(at) && hosts.push(host))
  const mailer = openMailer({ mail, compiled: compiledMails, onDate })
  onTestFinished(() => mailer.close())
  return { mailer, received, origin, hosts }
}

test.each(['X-PM-Message-Stream', 'x-pm-message-stream'])(
  'Postmark gets the message in its own form, with its stream (%s) and our Message-ID',
  async (stream) => {
    const mail = { ...INVOICE, headers: { 'X-Case': 'é', [stream]: 'broadcast' } }
    const { mailer, received } = await api('postmark', () => ({
      status: 200,
      body: { MessageID: 'b7bc', ErrorCode: 0 },
    }))
    expect(await mailer.send(mail)).toEqual({ kind: 'sent', id: 'b7bc' })
    const { html, text, messageId } = await mailer.compose(mail)
    expect(received[0]).toMatchObject({
      method: 'POST',
      url: '/email',
      headers: {
        'x-postmark-server-token': 'pm-token',
        accept: 'application/json',
        'content-type': 'application/json',
      },
    })
    expect(JSON.parse(received[0]?.body ?? '')).toEqual({
      From: '"Grüße" <course@example.com>',
      To: 'ada@example.com',
      ReplyTo: 'help@example.com',
      MessageStream: 'broadcast',
      Subject: 'Welcome',
      HtmlBody: html,
      TextBody: text,
      Headers: expect.arrayContaining([
        { Name: 'X-Case', Value: 'é' },
        { Name: 'Message-ID', Value: `<${messageId}>` },
        { Name: 'X-PM-KeepID', Value: 'true' },
      ]),
      Attachments: [{ Name: 'Rechnung „7“.pdf', ContentType: 'application/pdf', Content: 'JVBERg==' }],
    })
  },
)

/** Computes the signature once more, as Amazon’s documentation writes it. */
function expectSigned(request: Received | undefined, origin: string) {
  const { method, url, headers, body } = request as Received
  const [, id, day, region, service] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, /.exec(
      headers.authorization ?? '',
    ) ?? []
  expect([id, region, service]).toEqual(['AKIDEXAMPLE', 'eu-central-1', 'ses'])
  const hex = (text: string) => createHash('sha256').update(text).digest('hex')
  const mac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
  const date = String(headers['x-amz-date'])
  const canonical = [
    method,
    url,
    '',
    `host:${origin.slice(7)}`,
    `x-amz-date:${date}`,
    '',
    'host;x-amz-date',
    hex(body),
  ].join('\n')
  const toSign = ['AWS4-HMAC-SHA256', date, `${day}/${region}/ses/aws4_request`, hex(canonical)].join('\n')
  const key = mac(mac(mac(mac('AWS4canary/secret+key', day ?? ''), 'eu-central-1'), 'ses'), 'aws4_request')
  expect(headers.authorization).toMatch(new RegExp(`Signature=${mac(key, toSign).toString('hex')}$`))
}

test('SES gets the whole message as MIME, in a request that its key signed for the region of the address', async () => {
  const { mailer, received, origin } = await api('ses', () => ({ status: 200, body: { MessageId: '0100' } }))
  expect(await mailer.send(INVOICE)).toEqual({ kind: 'sent', id: '0100' })
  const { method, url, body } = received[0] as Received
  expect({ method, url }).toEqual({ method: 'POST', url: '/v2/email/outbound-emails' })
  const sent = JSON.parse(body)
  expect(sent).toEqual({
    FromEmailAddress: 'course@example.com',
    Destination: { ToAddresses: ['ada@example.com'] },
    Content: { Raw: { Data: expect.any(String) } },
  })
  const mime = Buffer.from(sent.Content.Raw.Data, 'base64').toString()
  expect(mime).toMatch(
    /^From: =\?UTF-8\?B\?R3LDvMOfZQ==\?= <course@example\.com>\r\nTo: ada@example\.com\r\n/,
  )
  expect(mime).toContain("filename*=UTF-8''Rechnung%20%E2%80%9E7%E2%80%9C.pdf")
  expectSigned(received[0], origin)
})

test.each([
  ['https://email-fips.us-gov-west-1.amazonaws.com', 'us-gov-west-1'],
  ['https://email.eu-central-1.api.aws', 'eu-central-1'],
  ['https://storage.example.com', undefined],
])('the region in %s is %s', (address, region) => expect(awsRegion(address)).toBe(region))

test.each([
  ['GET', '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'],
  ['POST', '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b'],
])('Amazon’s own example of a signed %s has the signature that they publish', (method, signature) => {
  const signed = awsSigned(
    { method, host: 'example.amazonaws.com', path: '/', body: '' },
    {
      id: 'AKIDEXAMPLE',
      secret: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
      region: 'us-east-1',
      service: 'service',
    },
    Date.UTC(2015, 7, 30, 12, 36),
  )
  expect(signed.authorization).toBe(
    `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=${signature}`,
  )
})

test('Resend gets attachments and headers too, and its key', async () => {
  const { mailer, received } = await api('resend', () => ({ status: 200, body: { id: 'r1' } }))
  expect(await mailer.send(INVOICE)).toEqual({ kind: 'sent', id: 'r1' })
  expect(received[0]).toMatchObject({
    url: '/emails',
    headers: { authorization: 'Bearer re_key', 'idempotency-key': expect.stringMatching(/^welcome\./) },
  })
  expect(JSON.parse(received[0]?.body ?? '')).toMatchObject({
    headers: { 'X-Case': 'é' },
    attachments: [{ filename: 'Rechnung „7“.pdf', content_type: 'application/pdf', content: 'JVBERg==' }],
  })
})

const named = (type: string) => ({ headers: { 'x-amzn-errortype': type } })
/** Answers, and the row that decides; every provider gives the first ones. */
const STATUSES: readonly (readonly [row: HttpRow, answer: Answer | 'drop', only?: Provider])[] = [
  ...(
    [
      ['request-refused', 400],
      ['request-refused', 422],
      ['key-refused', 401],
      ['message-deferred', 409],
      ['message-too-large', 413],
      ['rate-limited', 429],
      ['message-deferred', 503],
      ['wrong-address', 404],
    ] as const
  ).map(([row, status]) => [row, { status, body: { message: 'canary' } }] as const),
  ['dropped', 'drop'],
  ['recipient-inactive', { status: 422, body: { ErrorCode: 406, Message: 'canary' } }, 'postmark'],
  ['request-refused', { status: 422, body: { ErrorCode: 300 } }, 'postmark'],
  ['key-refused', { status: 400, ...named('SendingPausedException') }, 'ses'],
  ['key-refused', { status: 400, ...named('MailFromDomainNotVerifiedException:http://x/') }, 'ses'],
  ['rate-limited', { status: 400, ...named('ThrottlingException') }, 'ses'],
  ['rate-limited', { status: 400, ...named('LimitExceededException') }, 'ses'],
  ['request-refused', { status: 404, ...named('NotFoundException') }, 'ses'],
  ['request-refused', { status: 400, ...named('MessageRejected') }, 'ses'],
]
const CASES = PROVIDERS.flatMap((provider) =>
  STATUSES.flatMap(([row, answer, only = provider]) =>
    only === provider ? [{ provider, row, answer }] : [],
  ),
)

test.each(CASES)(
  '$provider: $answer.status is $row, and says nothing of the answer',
  async ({ provider, row, answer }) => {
    const { mailer } = await api(provider, () => answer)
    const outcome = await mailer.send(INVOICE)
    const expected = HTTP_OUTCOMES[row].outcome
    expect(outcome).toEqual({ ...expected, reason: expect.stringContaining(expected?.reason ?? '?') })
    expect(JSON.stringify(outcome)).not.toMatch(/canary|token|AKID/)
  },
)

test.each(PROVIDERS)(
  '%s: a Retry-After is kept, and an aborted wait for an answer is unknown',
  async (provider) => {
    const limited = await api(provider, () => ({ status: 429, headers: { 'retry-after': '90' } }))
    expect(await limited.mailer.send(INVOICE)).toMatchObject({ scope: 'connection', retryAfterMs: 90_000 })
    // By itself, and as one of many that are recorded one after the other.
    for (const recorded of [undefined, async () => {}]) {
      const stop = new AbortController()
      const hanging = await api(provider, () => {
        setImmediate(() => stop.abort())
        return 'hang'
      })
      expect(await hanging.mailer.send(INVOICE, stop.signal, recorded)).toMatchObject({ kind: 'unknown' })
    }
  },
)

const CHECKS = { resend: 'HEAD /emails', postmark: 'GET /server', ses: 'GET /v2/email/account' }

test.each(PROVIDERS)('%s: the key is checked without sending anything', async (provider) => {
  let status = 200
  let error = 'UnrecognizedClientException'
  const { mailer, received, origin, hosts } = await api(provider, () => ({ status, ...named(error) }))
  await mailer.verify()
  if (provider === 'ses') expectSigned(received[0], origin)
  expect(received.map(({ method, url }) => `${method} ${url}`)).toEqual([CHECKS[provider]])
  // What honors keys is `api`.
  expect(mailer.transport).toBe(provider === 'resend' ? 'api' : provider)
  status = 403
  await expect(mailer.verify()).rejects.toThrow('the mail provider refused the key (403)')
  // A key of SES that may send and nothing else.
  error = 'AccessDeniedException'
  if (provider === 'ses') await mailer.verify()
  // Its clock is compared with ours, also where it refuses the key.
  expect(hosts).toEqual(Array(received.length).fill('127.0.0.1'))
})

/** A transport over one that answers so, and a message for it by number. */
async function transportTo(provider: 'postmark' | 'ses', answer: () => Answer | 'drop', now = Date.now) {
  const { received, origin } = await api(provider, answer)
  const transport = openApi({ url: origin, key: secret(KEYS[provider]), provider, now })
  onTestFinished(() => transport.close())
  const mailer = openMailer({ mail: undefined, transport, from: INVOICE.to, compiled: compiledMails })
  const send = async (number: number, recorded?: () => Promise<void>) =>
    transport.send(await mailer.compose({ ...INVOICE, about: `user.${number}` }), undefined, recorded)
  return { received, send }
}
const NOT_RECORDED = HTTP_OUTCOMES['not-recorded'].outcome

test('each request to SES is signed with the time at which it is sent', async () => {
  let now = Date.UTC(2026, 0, 1)
  const { received, send } = await transportTo(
    'ses',
    () => ({ status: 200 }),
    () => now,
  )
  await send(1)
  now += DAY_MS
  await send(2)
  const signedAt = received.map(({ headers }) => headers['x-amz-date'])
  expect(signedAt).toEqual(['20260101T000000Z', '20260102T000000Z'])
  // The address names no region.
  expect(received[0]?.headers.authorization).toContain('/20260101/us-east-1/ses/aws4_request')
})

test('a message whose outcome is unknown is recorded before the next one leaves in its place', async () => {
  const { received, send } = await transportTo('postmark', () => 'drop')
  const record = Promise.withResolvers<void>()
  expect(await send(1, () => record.promise)).toMatchObject({ kind: 'unknown' })
  const next = send(1, async () => {})
  expect(received).toHaveLength(1)
  record.reject(new Error('disk full'))
  expect(await next).toEqual(NOT_RECORDED)
  expect(received).toHaveLength(1)
})

test.each(['postmark', 'ses'] as const)(
  '%s honors no key: each open request has at most one message whose outcome is not recorded',
  async (provider) => {
    const { received, send } = await transportTo(provider, () => ({ status: 200 }))
    const record = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
    const both = record.map(({ promise }, number) => send(number, () => promise))
    expect(await Promise.all(both)).toMatchObject([{ kind: 'sent' }, { kind: 'sent' }])
    // Both slots hold a message that is not recorded: the next one waits for the first, another for the second.
    const third = send(2, async () => {})
    const fourth = send(3, async () => {})
    await send(4)
    expect(received).toHaveLength(3)
    record[0].resolve()
    expect(await third).toMatchObject({ kind: 'sent' })
    expect(received).toHaveLength(4)
    record[1].reject(new Error('disk full'))
    expect(await fourth).toEqual(NOT_RECORDED)
    expect(received).toHaveLength(4)
  },
)
