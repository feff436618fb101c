import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openInbox } from '../../src/cli/demo/inbox.ts'
import { platformctl, startDaemon } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { command } from '../support/in-process.ts'

const SECRET = 'a-dispatch-secret-of-thirty-two-b'

async function platform() {
  const cwd = await emptyFolder()
  const inbox = await openInbox({ pagePort: 0 })
  onTestFinished(() => inbox.close())
  const env = {
    MAILER_API_KEY: 'local-mail-key-without-any-meaning',
    MAILER_SMTP_URL: inbox.smtpUrl,
    MAILER_FROM: 'Course <course@example.com>',
    EMAIL_DISPATCH_SECRET: SECRET,
    HEALTH_DEEP_TOKEN: 'a-health-token-of-thirty-two-bytes',
  }
  const daemon = await startDaemon(['--data', 'data', '--no-schedule'], { cwd, env })
  onTestFinished(() => void daemon.stop())
  return { cwd, inbox, env, daemon }
}

const patience = () => AbortSignal.timeout(10_000)
const json = (body: unknown) => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(body),
})

test('subscribe, confirm, one lesson a call and none twice, unsubscribe: over real HTTP and SMTP', async () => {
  const { cwd, inbox, env, daemon } = await platform()
  const dispatch = () =>
    command(['dispatch', '--limit', '10', '--url', daemon.urls.web, '--format', 'json'], { cwd, env })

  const subscribed = await fetch(`${daemon.urls.web}/api/email/subscribe`, json({ email: 'ada@example.com' }))
  expect(subscribed.status).toBe(202)
  expect(await subscribed.json()).toMatchObject({ status: 'pending' })
  const confirmation = await inbox.waitFor(
    (mail) => mail.text.includes('/api/email/confirm?token='),
    patience(),
  )
  expect(confirmation.to).toBe('ada@example.com')

  // No lesson is due before the link has been followed.
  expect(JSON.parse((await dispatch()).stdout)).toMatchObject({ processed: 0, sent: 0 })

  const token = new URL(confirmation.text.match(/https?:\S+\/api\/email\/confirm\?token=[\w.~-]+/)?.[0] ?? '')
    .search
  const confirm = () =>
    fetch(`${daemon.urls.web}/api/email/confirm${token}`, { headers: { Accept: 'text/html' } })
  const [first, second] = [await confirm(), await confirm()]
  expect([first.status, second.status]).toEqual([200, 200])
  expect(first.headers.get('content-type')).toMatch(/^text\/html/)

  const sent = await dispatch()
  expect(sent.exitCode).toBe(0)
  expect(JSON.parse(sent.stdout)).toMatchObject({
    processed: 1,
    sent: 1,
    failed: 0,
    unknown: 0,
    remaining: 0,
    limit: 10,
    results: [{ day: 1, sent: true }],
  })
  // Day 2 is due a day later: a second call sends nothing.
  expect(JSON.parse((await dispatch()).stdout)).toMatchObject({ processed: 0, sent: 0 })

  const lesson = inbox.mails.at(-1)
  expect(inbox.mails).toHaveLength(2)
  const header = (name: string) => lesson?.headers.find((one) => one.name.toLowerCase() === name)?.value ?? ''
  expect(header('list-unsubscribe-post')).toBe('List-Unsubscribe=One-Click')
  const link = new URL(header('list-unsubscribe').match(/<(https?:[^>]+)>/)?.[1] ?? '')
  const oneClick = await fetch(`${daemon.urls.web}${link.pathname}${link.search}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: 'List-Unsubscribe=One-Click',
    redirect: 'manual',
  })
  expect(oneClick.status).toBe(200)
  const shown = await command(['course', 'show', 'ada@example.com', '--data', 'data', '--format', 'json'], {
    cwd,
    env,
  })
  expect(JSON.parse(shown.stdout)).toMatchObject({ state: 'unsubscribed' })

  expect(await daemon.stop()).toBe(0)
})

test('a killed daemon loses nothing that it acknowledged, and sends nothing twice', async () => {
  const { cwd, inbox, env, daemon } = await platform()
  await fetch(`${daemon.urls.web}/api/email/subscribe`, json({ email: 'ada@example.com' }))
  const confirmation = await inbox.waitFor(
    (mail) => mail.text.includes('/api/email/confirm?token='),
    patience(),
  )
  const { search } = new URL(
    confirmation.text.match(/https?:\S+\/api\/email\/confirm\?token=[\w.~-]+/)?.[0] ?? '',
  )
  expect(
    (await fetch(`${daemon.urls.web}/api/email/confirm${search}`, { headers: { Accept: 'text/html' } }))
      .status,
  ).toBe(200)
  await daemon.stop('SIGKILL')

  const local = () => platformctl(['dispatch', '--local', '--data', 'data', '--format', 'json'], { cwd, env })
  expect(JSON.parse((await local()).stdout)).toMatchObject({ sent: 1, results: [{ day: 1 }] })
  const again = await startDaemon(['--data', 'data'], { cwd, env })
  onTestFinished(() => void again.stop())
  await expect.poll(() => again.lines.some(({ event }) => event === 'dispatched')).toBe(true)
  expect(await again.stop()).toBe(0)
  expect(inbox.mails).toHaveLength(2)
})

test('health --deep probes the running services, with the exit codes of the contract', async () => {
  const { cwd, env, daemon } = await platform()
  const urls = Object.entries(daemon.urls).map(([service, url]) => `${service}=${url}`)
  const health = (HEALTH_DEEP_TOKEN: string) =>
    command(['health', '--deep', '--url', ...urls, '--format', 'json'], { cwd, env: { HEALTH_DEEP_TOKEN } })
  const deep = await health(env.HEALTH_DEEP_TOKEN)
  expect(deep.exitCode).toBe(0)
  expect(JSON.parse(deep.stdout)).toMatchObject({ version: 1 })
  expect((await health('wrong')).exitCode).toBe(3)
  await daemon.stop()
  expect((await health(env.HEALTH_DEEP_TOKEN)).exitCode).toBe(3)
  expect(await command(['dispatch', '--url', daemon.urls.web], { cwd, env })).toMatchObject({
    exitCode: 3,
    stdout: '',
  })
})

test('the daemon refuses a half-configured environment before anything listens, of the services that it runs', async () => {
  const cwd = await emptyFolder()
  const half = 'MAILER_API_KEY=key-without-sender-or-address\nHARDWARE_A_TOKEN=token-of-the-api\n'
  await writeFile(path.join(cwd, 'half.env'), half)
  await expect(startDaemon(['--env-file', 'half.env', '--service', 'web'], { cwd })).rejects.toThrow(
    /ended with 1 before it listened: (?![\s\S]*HARDWARE)[\s\S]*half\.env:1:1[\s\S]*MAILER_FROM/,
  )
})

test('a lost secret file of another service keeps no daemon from starting, which notes whole paths of env files', async () => {
  const cwd = await emptyFolder()
  await writeFile(path.join(cwd, 'own.env'), 'EMAIL_DISPATCH_SECRET_FILE=./absent\n')
  const args = ['--service', 'agent', '--env-file', 'own.env', '--data', 'data']
  const daemon = await startDaemon(args, { cwd })
  onTestFinished(() => void daemon.stop())
  const { envFiles } = JSON.parse(await readFile(path.join(cwd, 'data', 'daemon.json'), 'utf8'))
  expect(envFiles).toEqual([path.join(cwd, 'own.env')])
})

test('the daemon refuses a webhook key that decodes to nothing, and names the form that it takes', async () => {
  const cwd = await emptyFolder()
  const key = 'p=Zk8!vQ2#mN5$xR7%tL9&wJ3'
  const env = { MAILER_FEEDBACK_PROVIDER: 'standard', MAILER_FEEDBACK_SECRET: key }
  const refused = await command(['daemon', '--web-port', '0'], { cwd, env })
  expect(refused).toMatchObject({ exitCode: 2 })
  expect(refused.stderr).toMatch(/MAILER_FEEDBACK_SECRET[\s\S]*base64\s+of\s+at\s+least\s+24\s+bytes/)
  expect(refused.stderr).not.toContain(key)
})

test('a port in use and a store that cannot be written are one sentence with the fix, exit 2', async () => {
  const { cwd, daemon } = await platform()
  const taken = new URL(daemon.urls.web).port
  await writeFile(path.join(cwd, 'file'), '')
  const free = ['--api-port', '0', '--agent-port', '0']
  const port = await command(['daemon', '--data', 'other', '--web-port', taken, ...free], { cwd })
  expect(port).toMatchObject({ exitCode: 2, stderr: expect.stringMatching(new RegExp(`port ${taken}`)) })
  const store = await command(['daemon', '--data', 'file', '--web-port', '0', ...free], { cwd })
  expect(store).toMatchObject({ exitCode: 2 })
  expect(port.stderr + store.stderr).not.toMatch(/^\s+at /m)
})

test.each([
  [['daemon', '--env-file', 'missing.env'], /cannot read missing\.env: there is no such file/],
  [['daemon', '--web-port', '70000'], /--web-port.*A whole number from 0 to 65535 is needed/],
  [['dispatch', '--limit', '0'], /A whole number from 1 to 10000 is needed/],
  [['dispatch'], /the address of the web service is needed/],
  [['dispatch', '--local'], /there is no store at .*platform\.sqlite/],
  [['course', 'status'], /there is no store at .*platform\.sqlite/],
  [['email', 'render', 'nope'], /unknown template 'nope'\. Choose one of organisation-invite/],
])(
  'wrong usage %j is a sentence on standard error and exit 2, without a stack trace',
  async (args, sentence) => {
    const result = await command(args, { cwd: await emptyFolder() })
    expect(result).toMatchObject({ exitCode: 2, stdout: '', stderr: expect.stringMatching(sentence) })
    expect(result.stderr).not.toMatch(/^\s+at /m)
  },
)

test('the recorded health and its open incidents survive killing the daemon', async () => {
  const cwd = await emptyFolder()
  // Another machine's API, and it is down: an incident that must not be forgotten.
  const env = { BUILD_STAMP: 'b1', API_URL: 'http://127.0.0.1:1' }
  const start = () => startDaemon(['--data', 'data', '--no-schedule'], { cwd, env })
  const recorded = async (web: string) => {
    const answer = await fetch(`${web}/status.json`)
    return (await answer.json()) as {
      recorded: string
      since: string
      checkedAt: string | null
      services: { service: string; buildSince: string }[]
      incidents: { probe: string; beganAt: string }[]
    }
  }
  const first = await start()
  onTestFinished(() => void first.stop('SIGKILL'))
  await expect.poll(async () => (await recorded(first.urls.web)).checkedAt).not.toBeNull()
  const before = await recorded(first.urls.web)
  expect(before).toMatchObject({ recorded: 'file', since: before.checkedAt })
  expect(before.services.map(({ service }) => service)).toEqual(['web', 'api', 'agent'])
  expect(before.incidents.map(({ probe }) => probe)).toContain('api')
  await first.stop('SIGKILL')

  const again = await start()
  onTestFinished(() => void again.stop())
  const after = await recorded(again.urls.web)
  expect(after.since).toBe(before.since)
  expect(after.services.map(({ buildSince }) => buildSince)).toEqual(
    before.services.map(({ buildSince }) => buildSince),
  )
  expect(after.incidents).toMatchObject(before.incidents.map(({ probe, beganAt }) => ({ probe, beganAt })))
})
