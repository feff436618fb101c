import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import { base } from '../../../src/presets/base/platform.ts'
import { testContext } from '../../support/context.ts'
import { emptyFolder } from '../../support/folder.ts'

const MAIL = { MAILER_SMTP_URL: 'smtps://mail.example.com', MAILER_FROM: 'Kiln <kiln@example.com>' }
const PRODUCTION = {
  ...MAIL,
  DEPLOY_ENVIRONMENT: 'production',
  ALERT_WEBHOOK_URL: 'https://ops.example.com/alerts',
}
const at = (url: string) => ({ ...PRODUCTION, NEXT_PUBLIC_SITE_URL: url })

/** What `preflight --strict` finds, apart from notices, and its exit code. */
async function preflight(env: Record<string, string>, platform?: typeof base) {
  const { context, stdout } = testContext({ env, ...(platform && { platform }) })
  const code = await runProgram(['preflight', '--strict', '--format', 'json'], context)
  const { findings }: { findings: { id: string; severity: string }[] } = JSON.parse(stdout())
  return { code, found: findings.filter(({ severity }) => severity !== 'notice') }
}

const WARNING = { id: 'localhost-links', severity: 'warning', group: 'site', services: ['web'] }

test('in production, preflight warns of mails while no address of the site is set', async () => {
  const missing = { ...WARNING, present: [], missing: ['NEXT_PUBLIC_SITE_URL'] }
  for (const platform of [undefined, base])
    expect(await preflight(PRODUCTION, platform)).toMatchObject({ code: 1, found: [missing] })
})

test.each([
  'http://localhost:3000',
  'https://kiln.localhost',
  'http://127.0.0.1:3000',
  'http://127.1',
  'http://[::1]:3000',
  'https://0.0.0.0',
])('in production, preflight warns that mails link to %s', async (url) => {
  const local = { ...WARNING, present: ['NEXT_PUBLIC_SITE_URL'], missing: [] }
  expect(await preflight(at(url))).toMatchObject({ code: 1, found: [local] })
})

test.each([
  ['an address for readers', at('https://www.example.com')],
  ['an address in a private network', at('http://192.168.0.7')],
  ['a name that only begins as one of this machine', at('https://localhost.example.com')],
  ['no mail', { DEPLOY_ENVIRONMENT: 'production', ALERT_WEBHOOK_URL: 'https://ops.example.com/alerts' }],
  ['no production', MAIL],
  ['staging on this machine', { ...at('http://localhost:3000'), DEPLOY_ENVIRONMENT: 'staging' }],
])('with %s, preflight has nothing to say of links in mails', async (_, env) => {
  expect(await preflight(env)).toEqual({ code: 0, found: [] })
})

test('env check warns of a file for production whose mails would link to this machine', async () => {
  const cwd = await emptyFolder()
  const lines = Object.entries(at('http://localhost:3000')).map(([name, value]) => `${name}="${value}"\n`)
  await writeFile(path.join(cwd, 'production.env'), lines.join(''))
  const { context, stdout } = testContext({ cwd })
  expect(await runProgram(['env', 'check', 'production.env'], context)).toBe(0)
  expect(stdout()).toContain('production.env:5')
  expect(stdout()).toContain('Set NEXT_PUBLIC_SITE_URL to the address that readers can open.')
})
