import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { environmentSchema } from '../../src/core/env/schema.ts'
import { readSettings } from '../../src/core/env/settings.ts'
import { validate } from '../../src/core/env/validate.ts'
import { decodeWebhookKey } from '../../src/core/webhook-key.ts'
import { announceEnvironment, InvalidEnvironmentError } from '../../src/daemon/announce.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { contract } from '../support/learning.ts'
import { schemaFaults } from '../support/schemas.ts'

const bytes = (length: number) => Buffer.alloc(length, 7).toString('base64')
const PUBLIC = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  .publicKey.export({ format: 'der', type: 'spki' })
  .toString('base64')

const REFUSED = [
  ['a prefix alone', 'whsec_'],
  ['a prefix before an empty pair', 'whsec_,whsec_whsec_'],
  ['23 bytes', `whsec_${bytes(23)}`],
  ['no padding', bytes(25).replaceAll('=', '')],
  ['the alphabet of URLs', `${'-_'.repeat(20)}`],
  ['stray bits at the end', `${bytes(25).slice(0, -3)}x==`],
  ['another text', 'a passphrase that somebody thought of'],
] as const

const nothing = () => undefined
const quiet = { debug: nothing, info: nothing, warn: nothing, error: nothing }
const schema = environmentSchema(contract)
const fits = (env: Record<string, string>) => schemaFaults(schema, env).length === 0

function errorsOf(env: Record<string, string>) {
  const { findings } = validate(contract, env)
  return findings.filter(({ severity }) => severity === 'error')
}

describe.each(['standard', 'resend', 'sendgrid'])('the secret of %s', (provider) => {
  const envOf = (secret: string) => ({ MAILER_FEEDBACK_PROVIDER: provider, MAILER_FEEDBACK_SECRET: secret })

  test.each(REFUSED)('is refused by preflight and at start when it is %s', (_, secret) => {
    const env = envOf(secret)
    const errors = errorsOf(env)
    expect(errors.map(({ id }) => id)).toContain(
      provider === 'sendgrid' ? 'feedback-public-key' : 'feedback-signing-key',
    )
    expect(JSON.stringify(errors)).not.toContain(secret.length > 6 ? secret : 'whsec_,')
    expect(() => announceEnvironment({ platform: learning, env, services: ['web'], log: quiet })).toThrow(
      InvalidEnvironmentError,
    )
    // An embedding program goes on without it.
    expect(readSettings(learning, env).feedback).toBeUndefined()
    expect(fits(env)).toBe(false)
  })

  test('is refused when one of two is', () => {
    const good = provider === 'sendgrid' ? PUBLIC : bytes(32)
    expect(errorsOf(envOf(`${good}, ${good}`))).toEqual([])
    expect(errorsOf(envOf(`${good}, not-a-key-of-any-length`))).toHaveLength(1)
  })
})

test.each([
  ['standard', bytes(24)],
  ['standard', `whsec_${bytes(25)},${bytes(64)}`],
  ['resend', `whsec_${bytes(26)}`],
  ['sendgrid', PUBLIC],
  ['mailgun', 'key-mailgun-signing'],
  ['postmark', 'any password: with "signs" of length'],
  ['ses', 'arn:aws:sns:eu-central-1:123456789012:ses-feedback'],
])('%s takes its own form of secret', (provider, secret) => {
  const env = { MAILER_FEEDBACK_PROVIDER: provider, MAILER_FEEDBACK_SECRET: secret }
  expect(errorsOf(env)).toEqual([])
  expect(readSettings(learning, env).feedback).toBeDefined()
  expect(fits(env)).toBe(true)
})

describe('the signing key of alerts', () => {
  const envOf = (secret: string) => ({
    ALERT_WEBHOOK_URL: 'https://alerts.example.com/',
    ALERT_WEBHOOK_SECRET: secret,
  })

  test.each(['whsec_', `whsec_${bytes(23)}`, 'whsec_p=Zk8!vQ2#mN5$xR7%tL9&wJ3', `whsec_ ${bytes(32)}`])(
    'is refused as %s, and no alert is sent with it',
    (secret) => {
      const env = envOf(secret)
      expect(errorsOf(env).map(({ id }) => id)).toEqual(['alerts-signing-key'])
      expect(readSettings(learning, env).alerts.webhook).toBeUndefined()
      expect(fits(env)).toBe(false)
    },
  )

  test.each([`whsec_${bytes(24)}`, 'any text without the prefix'])('may be %s', (secret) => {
    expect(errorsOf(envOf(secret))).toEqual([])
    expect(fits(envOf(secret))).toBe(true)
  })
})

const CHAT = 'https://api.telegram.org/bot1:x/sendMessage'
const PAGER = 'https://events.pagerduty.com/v2/enqueue'

test.each([
  [{ ALERT_WEBHOOK_URL: CHAT }, ['alerts-telegram-chat']],
  [{ ALERT_WEBHOOK_URL: `${CHAT}?chat_id=` }, ['alerts-telegram-chat']],
  [{ ALERT_WEBHOOK_URL: `${CHAT}?chat_id=-100` }, []],
  [{ ALERT_WEBHOOK_URL: `${CHAT}?a=b&chat_id=@ops` }, []],
  [
    { ALERT_WEBHOOK_URL: 'http://bots.internal/', ALERT_WEBHOOK_FORMAT: 'telegram' },
    ['alerts-telegram-format-chat'],
  ],
  [{ ALERT_WEBHOOK_URL: 'http://bots.internal/?chat_id=7', ALERT_WEBHOOK_FORMAT: 'telegram' }, []],
  [{ ALERT_WEBHOOK_URL: PAGER }, ['alerts-pagerduty-key']],
  [{ ALERT_WEBHOOK_URL: PAGER, ALERT_WEBHOOK_SECRET: 'k'.repeat(32) }, []],
  [{ ALERT_WEBHOOK_URL: `${PAGER}?routing_key=${'k'.repeat(32)}` }, []],
  [
    { ALERT_WEBHOOK_URL: 'http://relay.internal/', ALERT_WEBHOOK_FORMAT: 'pagerduty' },
    ['alerts-pagerduty-format-key'],
  ],
  [{ ALERT_WEBHOOK_URL: 'http://relay.internal/', ALERT_WEBHOOK_FORMAT: 'slack' }, []],
  [{ ALERT_WEBHOOK_URL: 'https://a.example/', ALERT_ESCALATION_URL: PAGER }, ['alerts-escalation-key']],
  [{ ALERT_WEBHOOK_URL: 'https://a.example/', ALERT_ESCALATION_URL: CHAT }, ['alerts-escalation-chat']],
  [{ ALERT_WEBHOOK_URL: 'https://a.example/', ALERT_ESCALATION_URL: `${PAGER}?routing_key=k` }, []],
  [{ ALERT_WEBHOOK_FORMAT: 'slack' }, ['alerts-format-without-webhook']],
])('alerts by %j break %j, in the schema too', (env, ids) => {
  expect(errorsOf(env).map(({ id }) => id)).toEqual(ids)
  expect(readSettings(learning, env).alerts.webhook !== undefined).toBe(ids.length === 0)
  expect(fits(env)).toBe(ids.length === 0)
})

test('a key is decoded only from canonical base64 of at least 24 bytes', () => {
  for (let length = 0; length < 100; length += 1)
    expect(decodeWebhookKey(bytes(length))?.length, `${length} bytes`).toBe(length < 24 ? undefined : length)
  for (const [, text] of REFUSED) expect(decodeWebhookKey(text)).toBeUndefined()
})
