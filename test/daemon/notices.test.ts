import { expect, onTestFinished, test } from 'vitest'
import { openInbox } from '../../src/cli/demo/inbox.ts'
import { silentLog } from '../../src/core/host.ts'
import { visitorsHear } from '../../src/daemon/alerts.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { startLearningDaemon } from '../support/daemon.ts'
import { emptyFolder } from '../support/folder.ts'
import { healthBody, serve, serveBodies } from '../support/servers.ts'
import { standingClock } from '../support/standing-clock.ts'

const START = Date.UTC(2026, 10, 21, 9, 30)
const BROWSER = { Accept: 'text/html', 'User-Agent': 'Mozilla/5.0' }

test('a visitor subscribes on the status page, and is mailed when an incident begins and when it ends', async () => {
  const inbox = await openInbox({ pagePort: 0 })
  onTestFinished(() => inbox.close())
  const told: { readonly type: string; readonly at: number }[] = []
  const hook = await serveBodies((body, response) => {
    told.push({ type: JSON.parse(body).type, at: clock.now() })
    response.end()
  })
  let isUp = true
  const api = await serve((_, response) => {
    response.statusCode = isUp ? 200 : 500
    response.end(isUp ? healthBody({ service: 'api' }) : '')
  })
  const { clock, waits, pass } = standingClock(START)
  const daemon = await startLearningDaemon({
    env: {
      ALERT_WEBHOOK_URL: hook,
      API_URL: api,
      MAILER_API_KEY: 'a-key-of-the-mail-provider',
      MAILER_SMTP_URL: inbox.smtpUrl,
      MAILER_FROM: 'Status <status@example.com>',
    },
    dataFolder: await emptyFolder(),
    clock,
  })
  onTestFinished(() => daemon.close())
  const web = daemon.urls.web ?? ''
  const mailTo = (to: string) => inbox.mails.filter((mail) => mail.to === to)
  /** Looks until so many mails have arrived, or for so long. */
  const look = async (count: number, ms = 300_000) => {
    for (let passed = 0; passed < ms && mailTo('ada@example.com').length < count; passed += 5000) {
      await expect.poll(waits, { timeout: 15_000, interval: 10 }).toBe(true)
      // The notices of this check are on their way.
      await new Promise((resolve) => setTimeout(resolve, 50))
      pass(5000)
    }
    return mailTo('ada@example.com')
  }

  expect(await (await fetch(web, { headers: BROWSER })).text()).toContain('Get incident updates by mail')
  await fetch(`${web}/api/email/subscribe`, {
    method: 'POST',
    headers: { ...BROWSER, 'Content-Type': 'application/x-www-form-urlencoded' },
    body: 'email=ada%40example.com&course=status',
  })
  const confirmation = await inbox.waitFor(({ to }) => to === 'ada@example.com', AbortSignal.timeout(10_000))
  expect(confirmation.subject).toBe('Confirm your address for incident mails')
  const [link = ''] = /http\S+\/api\/email\/confirm\S+/.exec(confirmation.text) ?? []
  expect(await (await fetch(link, { headers: BROWSER })).text()).toContain('You are subscribed to incidents')

  isUp = false
  const broken = clock.now()
  const [, opened] = await look(2)
  expect(clock.now() - broken).toBeLessThanOrEqual(90_000)
  // The operators first.
  expect(told.map(({ type }) => type)).toEqual(['incident.opened'])
  expect(opened?.subject).toMatch(/: API is not working$/)
  expect(opened?.text).toContain('Since 21 Nov 2026, 09:')
  expect(opened?.text).toContain(`Open the status page: ${web}/`)
  expect(opened?.source).toContain('List-Unsubscribe-Post: List-Unsubscribe=One-Click')
  // Neither the reason nor what operators are to do.
  expect(opened?.source).not.toContain(new URL(api).host)
  expect(opened?.text).not.toMatch(/HTTP \d|runbook|alert ack|Start with/)

  isUp = true
  const closed = (await look(3))[2]
  expect(closed?.subject).toMatch(/: API works again$/)
  expect(closed?.text).toMatch(/It was not working from 21 Nov 2026, 09:\d\d UTC to 21 Nov 2026, 09:\d\d UTC/)

  const unsubscribe = closed?.headers.find(({ name }) => name === 'List-Unsubscribe')?.value ?? ''
  const answer = await fetch(unsubscribe.slice(1, -1), {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: 'List-Unsubscribe=One-Click',
  })
  expect(answer.status).toBe(200)
  isUp = false
  expect(await look(4, 100_000)).toHaveLength(3)
  expect(told.filter(({ type }) => type === 'incident.opened')).toHaveLength(2)
}, 60_000)

test('mails sent within one second are all counted after the next check, without another mail', async () => {
  const api = await serve((_, response) => {
    response.end('{"id":"one"}')
  })
  const { clock, waits, pass } = standingClock(START)
  let sent = 0
  const daemon = await startLearningDaemon({
    log: {
      ...silentLog,
      info(event) {
        if (event === 'confirmation_sent') sent += 1
      },
    },
    env: { MAILER_API_KEY: 'a-key', MAILER_API_URL: api, MAILER_FROM: 'course@example.com' },
    dataFolder: await emptyFolder(),
    clock,
  })
  onTestFinished(() => daemon.close())
  const web = daemon.urls.web ?? ''
  await expect.poll(waits).toBe(true)
  pass(2000)
  for (const name of ['ada', 'bob', 'eve']) {
    const body = JSON.stringify({ email: `${name}@example.com` })
    const headers = { 'Content-Type': 'application/json' }
    expect((await fetch(`${web}/api/email/subscribe`, { method: 'POST', headers, body })).status).toBe(202)
  }
  const counted = async () => {
    const lines = (await (await fetch(`${web}/metrics`)).text()).split('\n')
    return lines.find((line) => line.startsWith('platformctl_mail_today{') && line.includes('"sent"'))
  }
  await expect.poll(() => sent).toBe(3)
  await expect
    .poll(
      () => {
        if (waits()) pass(5000)
        return counted()
      },
      { interval: 20, timeout: 10_000 },
    )
    .toMatch(/ 3$/)
  const metrics = await (await fetch(`${web}/metrics`)).text()
  const [, recordedAt] = /^platformctl_history_recorded_timestamp_seconds (\S+)$/m.exec(metrics) ?? []
  expect(Number(recordedAt)).toBeGreaterThan(START / 1000)
})

test('visitors hear of probes and services that they would miss, and not of what is for operators', () => {
  const hears = visitorsHear(learning)
  expect(['api', 'disk_nearly_full', 'gone'].map(hears)).toEqual([true, false, false])
  const withJob = resolvePlatform(
    { preset: 'base', heartbeats: { backup: { every: '1d' } } },
    { folder: '.' },
  )
  expect(['heartbeat-backup', 'web'].map(visitorsHear(withJob))).toEqual([false, true])
  const ofWeb = learning.probes.flatMap(({ name, service }) => (service === 'web' ? name : []))
  expect(ofWeb.filter((name) => !hears(name)).sort()).toEqual(['analytics', 'errortrack', 'sharedstore'])
})
