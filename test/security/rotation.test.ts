import { createHmac } from 'node:crypto'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Message } from '../../src/core/mail/mailer.ts'
import { validateAll } from '../../src/env.ts'
import { accountPlatform, clock, NOW, token } from '../support/accounts.ts'
import { emptyFolder } from '../support/folder.ts'
import { openLearning } from '../support/learning.ts'
import { asking } from '../support/opened.ts'
import { testTransport } from '../support/test-transport.ts'

const [NEW, OLD] = ['the-new-secret-of-thirty-two-bytes', 'the-old-secret-of-thirty-two-bytes']
const BOTH = `${NEW}, ${OLD}`
const OLDEST = 'the-first-secret-of-thirty-two-byte'
const ALL = `${BOTH},${OLDEST}`

test('each of several dispatch secrets and health tokens is accepted, and neither the list nor another', async () => {
  const { platform } = await accountPlatform({
    env: { EMAIL_DISPATCH_SECRET: ALL, HEALTH_DEEP_TOKEN: ALL },
  })
  const ask = async (target: string, method: string, bearer: string) =>
    (await asking(platform).ask(target, { method, headers: { Authorization: `Bearer ${bearer}` } })).status
  for (const good of [NEW, OLD, OLDEST]) {
    expect(await ask('/api/email/dispatch', 'POST', good)).toBe(200)
    expect(await ask('/api/health?deep=1', 'GET', good)).not.toBe(401)
  }
  for (const wrong of [`${NEW},${OLD}`, ALL, ',', 'a-fourth-secret-of-thirty-two-bytes']) {
    expect(await ask('/api/email/dispatch', 'POST', wrong)).toBe(401)
    expect(await ask('/api/health?deep=1', 'GET', wrong)).toBe(401)
  }
})

test('identifies tokens signed with any of several secrets, and rejects expired ones under both', async () => {
  const { post } = await accountPlatform({ env: { DATASTORE_JWT_SECRET: ALL } })
  const ask = async (bearer: string) =>
    (await post('/api/email', { template: 'welcome', inputs: {} }, bearer)).status
  expect(await ask(await token({}, NEW))).toBe(200)
  expect(await ask(await token({}, OLD))).toBe(200)
  expect(await ask(await token({}, OLDEST))).toBe(200)
  expect(await ask(await token({}, BOTH))).toBe(401)
  expect(await ask(await token({ exp: NOW / 1000 - 60 }, OLD))).toBe(401)
})

test('payment events signed with any of several webhook secrets are taken', async () => {
  const { post } = await accountPlatform({
    env: {
      PAYMENTS_SECRET_KEY: 'sk_test_4eC39HqLyjWDarjtT1zdp7dc',
      PAYMENTS_PRICE_PRO_MONTHLY: 'price_pro_monthly',
      PAYMENTS_WEBHOOK_SECRET: [NEW, OLD, OLDEST].map((one) => `whsec_${one}`).join(),
    },
  })
  const deliver = async (key: string) => {
    const body = JSON.stringify({
      id: `evt_${key.length}_${key}`,
      type: 'a.b',
      created: NOW / 1000,
      data: {},
    })
    const v1 = createHmac('sha256', key)
      .update(`${NOW / 1000}.${body}`)
      .digest('hex')
    return (
      await post('/api/payments/webhook', body, undefined, { 'Stripe-Signature': `t=${NOW / 1000},v1=${v1}` })
    ).status
  }
  expect(await deliver(`whsec_${NEW}`)).toBe(200)
  expect(await deliver(`whsec_${OLD}`)).toBe(200)
  expect(await deliver(`whsec_${OLDEST}`)).toBe(200)
  expect(await deliver(NEW)).toBe(400)
})

test('who was erased under a secret of links that is gone gets no mail under the next one', async () => {
  const STORE_URL = `sqlite:${path.join(await emptyFolder(), 'store.sqlite')}`
  const messages: Message[] = []
  const mailer = testTransport(async (message) => {
    messages.push(message)
    return { kind: 'sent', id: 'one' }
  })
  const open = (secret: string) =>
    openLearning({ env: { STORE_URL, EMAIL_LINK_SECRET: secret }, mailer, clock })
  const before = open(OLD)
  await (await before.course()).erase('ada@example.com')
  await before.close()
  const after = open(NEW)
  onTestFinished(() => after.close())
  for (const email of ['ada@example.com', 'grace@example.com']) await after.courses.subscribe({ email })
  await after.close()
  expect(messages.map(({ to }) => to.address)).toEqual(['grace@example.com'])
})

test('the checks of values look at each secret of several', () => {
  const warned = (name: string, value: string) =>
    validateAll({ [name]: value })
      .findings.filter(({ severity }) => severity === 'warning')
      .map(({ id }) => id)
  for (const name of ['EMAIL_DISPATCH_SECRET', 'EMAIL_LINK_SECRET', 'HEALTH_DEEP_TOKEN']) {
    expect(warned(name, BOTH)).toEqual([])
    expect(warned(name, `${NEW},`)).toEqual([])
    expect(warned(name, `${NEW},short`)).toEqual(['weak-secret'])
    expect(warned(name, `${NEW},x`)).toEqual(['malformed-value'])
    expect(warned(name, 'x')).toEqual(['malformed-value'])
    expect(warned(name, `changeme,${OLD}`)).toEqual(['placeholder-value'])
    expect(warned(name, ALL)).toEqual([])
    expect(warned(name, `${BOTH},short`)).toEqual(['weak-secret'])
    expect(warned(name, `${BOTH},x`)).toEqual(['malformed-value'])
    expect(warned(name, ',')).toEqual(['malformed-value'])
  }
  expect(warned('NEXT_PUBLIC_EXTRA', OLD)).toEqual([])
  const twins = validateAll({ HEALTH_DEEP_TOKEN: BOTH, NEXT_PUBLIC_EXTRA: OLD })
  expect(twins.findings.map(({ id }) => id)).toContain('public-secret')
})
