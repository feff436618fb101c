import { expect, test } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import { createContract } from '../../../src/core/env/contract.ts'
import { baseGroups } from '../../../src/core/env/groups.ts'
import { validate } from '../../../src/core/env/validate.ts'
import { testContext } from '../../support/context.ts'

const MAIL = {
  MAILER_API_KEY: 'k'.repeat(32),
  MAILER_API_URL: 'https://mail.example.com/send',
  MAILER_FROM: 'Kiln <kiln@example.com>',
}

async function preflight(env: Record<string, string>) {
  const { context, stdout } = testContext({ env })
  await runProgram(['preflight', '--format', 'json'], context)
  const { findings, groups } = JSON.parse(stdout()) as {
    findings: { id: string; group: string; severity: string; present: string[]; missing: string[] }[]
    groups: { name: string; state: string; meaning: string; present: string[] }[]
  }
  const found = findings.filter(({ group, severity }) => group === 'alerts' && severity !== 'notice')
  return { found, ids: found.map(({ id }) => id), alerts: groups.find(({ name }) => name === 'alerts') }
}

const PRODUCTION = { DEPLOY_ENVIRONMENT: 'production ' }
const WEBHOOK = { ALERT_WEBHOOK_URL: 'https://ops.example.com/alerts' }

test.each([
  ['nobody, outside production', {}, []],
  ['nobody, in production', PRODUCTION, ['no-alert-channel']],
  ['mail alone', { ...MAIL, ALERT_EMAIL_TO: 'ops@example.com' }, ['alerts-by-mail-only']],
  ['a malformed address', { ...MAIL, ALERT_EMAIL_TO: 'ops' }, ['malformed-value']],
  [
    'a malformed webhook, in production',
    { ...PRODUCTION, ALERT_WEBHOOK_URL: 'ftp://ops.example.com' },
    ['malformed-value', 'no-alert-channel'],
  ],
  ['mail that is off', { ALERT_EMAIL_TO: 'ops@example.com' }, ['alert-mail-off']],
  [
    'mail, and a webhook after a while',
    { ...MAIL, ALERT_EMAIL_TO: 'ops@example.com', ALERT_ESCALATION_URL: 'https://b.example/' },
    [],
  ],
  [
    'a second webhook after a length of time that there is not',
    { ...WEBHOOK, ALERT_ESCALATION_URL: 'https://b.example/', ALERT_ESCALATION_AFTER: '15' },
    ['malformed-value'],
  ],
  ['a second webhook alone', { ALERT_ESCALATION_URL: 'https://b.example/' }, ['alerts-escalation-alone']],
  [
    'a time and no second webhook',
    { ...WEBHOOK, ALERT_ESCALATION_AFTER: '15m' },
    ['alerts-escalation-after-alone'],
  ],
])('with alerts to %s, preflight finds %j', async (_, env, ids) => {
  expect((await preflight(env)).ids).toEqual(ids)
})

test.each([
  [PRODUCTION, [], ['ALERT_WEBHOOK_URL', 'ALERT_EMAIL_TO']],
  [{ ...MAIL, ALERT_EMAIL_TO: 'ops@example.com' }, ['ALERT_EMAIL_TO'], ['ALERT_WEBHOOK_URL']],
  [{ ALERT_EMAIL_TO: 'ops@example.com' }, ['ALERT_EMAIL_TO'], ['ALERT_WEBHOOK_URL']],
])('of %j preflight names what is set, %j, and what is missing, %j', async (env, present, missing) => {
  expect((await preflight(env)).found).toMatchObject([{ severity: 'warning', present, missing }])
})

test('where alerts are also sent to a second place, alert-mail-off speaks of those by mail only', async () => {
  const escalation = { ALERT_ESCALATION_URL: 'https://ops.example.com/second' }
  const { found } = await preflight({ ALERT_EMAIL_TO: 'ops@example.com', ...escalation })
  const cause = 'ALERT_EMAIL_TO is set and mail is not configured, so no alert is sent by mail.'
  expect(found).toMatchObject([{ id: 'alert-mail-off', cause }])
})

test('a platform without a group of mail sends no alerts by mail, and without alerts nothing is found', () => {
  const found = (groups: Parameters<typeof createContract>[0]['groups'], env: Record<string, string>) => {
    const contract = createContract({ services: ['web'], groups })
    // As at boot.
    const { findings } = validate(contract, env, ['web'])
    return findings.flatMap(({ id, severity }) => (severity === 'warning' ? [id] : []))
  }
  expect(found({ alerts: baseGroups.alerts }, { ALERT_EMAIL_TO: 'ops@example.com' })).toEqual([
    'alert-mail-off',
  ])
  const both = { alerts: baseGroups.alerts, mail: baseGroups.mail }
  expect(found(both, { ALERT_EMAIL_TO: 'ops@example.com' })).toEqual(['alert-mail-off'])
  expect(found(both, { ...MAIL, ALERT_EMAIL_TO: 'ops@example.com' })).toEqual([])
  // Mail is read by web alone, and the alerts of each service go through it.
  const shared = createContract({ services: ['web', 'api'], groups: both })
  const findings = ['web', 'api'].flatMap(
    (one) => validate(shared, { ...MAIL, ALERT_EMAIL_TO: 'ops@example.com' }, [one]).findings,
  )
  expect(findings.filter(({ severity }) => severity === 'warning')).toEqual([])
  expect(found({ mail: baseGroups.mail }, {})).toEqual([])
})

test('preflight names the recipients of alerts', async () => {
  expect((await preflight(WEBHOOK)).alerts).toMatchObject({
    state: 'configured',
    present: ['ALERT_WEBHOOK_URL'],
    meaning: 'messages to you when something fails',
  })
  expect((await preflight({})).alerts?.meaning).toMatch(/^no alerts are sent/)
})
