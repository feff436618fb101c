import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { accountPlatform, token } from '../support/accounts.ts'

const SECRET = 'a-dispatch-secret-of-thirty-two-b'
const KB = 1024
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' }

interface Asked {
  readonly form?: boolean
  readonly bearer?: 'secret' | 'person'
}

/** Every route that reads a body, with the bytes that it reads. */
const ROUTES: [route: string, bytes: number, asked: Asked][] = [
  ['/api/email/subscribe', 8 * KB, {}],
  ['/api/email/unsubscribe', 8 * KB, { form: true }],
  ['/api/email/dispatch', 8 * KB, { bearer: 'secret' }],
  ['/api/email', 8 * KB, { bearer: 'person' }],
  ['/api/email/feedback/standard', 1024 * KB, {}],
  ['/api/alerts/silence', 4 * KB, { bearer: 'secret' }],
  ['/api/analytics', 256 * KB, {}],
  ['/api/checkout', 8 * KB, { bearer: 'person' }],
  ['/api/payments/webhook', 256 * KB, {}],
]

const ENV = {
  EMAIL_DISPATCH_SECRET: SECRET,
  ALERT_WEBHOOK_URL: 'https://hooks.example.com/x',
  PAYMENTS_SECRET_KEY: 'sk_test_4eC39HqLyjWDarjtT1zdp7dc',
  PAYMENTS_WEBHOOK_SECRET: 'whsec_of-thirty-two-bytes-at-least',
  PAYMENTS_PRICE_PRO_MONTHLY: 'price_pro_monthly',
  PAYMENTS_PRICE_TEAM_YEARLY: 'price_team_yearly',
  MAILER_FEEDBACK_PROVIDER: 'standard',
  MAILER_FEEDBACK_SECRET: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
}

test.each(ROUTES)('%s reads %d bytes of a body, and answers 413 to one more', async (route, bytes, asked) => {
  const { platform } = await accountPlatform({ env: ENV })
  const bearer = asked.bearer === 'secret' ? SECRET : await token()
  const post = (body: string) =>
    platform.web.fetch(
      new Request(`http://web.example${route}`, {
        method: 'POST',
        body,
        headers: {
          'Content-Type': 'application/json',
          ...(asked.form && FORM),
          ...(asked.bearer && { Authorization: `Bearer ${bearer}` }),
        },
      }),
    )
  const taken = await post(' '.repeat(bytes))
  expect([404, 405, 413]).not.toContain(taken.status)
  expect((await post(' '.repeat(bytes + 1))).status).toBe(413)
})

test('each of these routes has its row in the table of budgets', () => {
  const table = readFileSync('docs/security.md', 'utf8')
  for (const [route, bytes] of ROUTES) {
    const size = bytes === 1024 * KB ? '1 MB' : `${bytes / KB} KB`
    expect(table, route).toMatch(
      new RegExp(`^\\| .*\`${route.replace('standard', '\\{provider\\}')}\`.* \\| ${size} `, 'm'),
    )
  }
})
