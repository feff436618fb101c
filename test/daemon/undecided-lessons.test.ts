import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { HOUR_MS, MINUTE_MS } from '../../src/core/durations.ts'
import { silentLog, systemRandom } from '../../src/core/host.ts'
import { openStore } from '../../src/core/store/open.ts'
import { startDaemon } from '../../src/daemon/start.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder } from '../support/folder.ts'
import { enrolIn } from '../support/learning.ts'
import { serveBodies } from '../support/servers.ts'
import { standingClock } from '../support/standing-clock.ts'

const START = Date.UTC(2026, 10, 21, 9, 30)
const SECRET = 'a-secret-of-the-dispatcher-0123456789'

test('a lesson whose outcome stays unknown raises an alert until an operator decides, whatever else is sent or paused', async () => {
  const alerts: { readonly said: string; readonly text: string }[] = []
  const hook = await serveBodies((body, response) => {
    const { type, data } = JSON.parse(body)
    alerts.push({ said: `${data.cause} ${type}`, text: data.text })
    response.end()
  })
  let isAnswering = false
  const provider = await serveBodies((_, response, { method }) =>
    isAnswering || method !== 'POST' ? response.end('{"id":"provider-1"}') : response.destroy(),
  )
  const { clock, waits, pass } = standingClock(START)
  const dataFolder = await emptyFolder()
  const store = await openStore({ kind: 'sqlite', file: path.join(dataFolder, 'platform.sqlite') })
  onTestFinished(() => store.close())
  await enrolIn(store, 'ada', START)
  const daemon = await startDaemon({
    env: {
      ALERT_WEBHOOK_URL: hook,
      EMAIL_DISPATCH_SECRET: SECRET,
      MAILER_API_KEY: 'a-key-of-the-mail-provider',
      MAILER_API_URL: provider,
      MAILER_FROM: 'Kiln <kiln@example.com>',
    },
    platform: learning,
    services: ['web'],
    host: '127.0.0.1',
    ports: { web: 0 },
    dataFolder,
    schedule: false,
    clock,
    random: systemRandom,
    log: silentLog,
  })
  onTestFinished(() => daemon.close())
  const dispatch = async () => {
    const headers = { Authorization: `Bearer ${SECRET}` }
    return (await fetch(`${daemon.urls.web}/api/email/dispatch`, { method: 'POST', headers })).json()
  }
  const said = () => alerts.map((one) => one.said)
  /** Time passes as the daemon looks at itself. */
  const until = (isOver: () => boolean) =>
    expect
      .poll(
        () => {
          if (waits()) pass(5000)
          return isOver()
        },
        { timeout: 15_000, interval: 10 },
      )
      .toBe(true)
  const untilSaid = (text: string) => until(() => said().includes(text))
  const minutes = (count: number) => {
    const end = clock.now() + count * MINUTE_MS
    return until(() => clock.now() >= end)
  }
  const platformctl = (...args: string[]) =>
    runProgram([...args, '--data', dataFolder], testContext({ clock }).context)

  expect(await dispatch()).toMatchObject({ unknown: 1 })
  // It is tried again, and nobody needs to decide.
  await minutes(3)
  expect(said()).toEqual([])
  pass(20 * HOUR_MS - 5 * MINUTE_MS)
  expect(await dispatch()).toMatchObject({ unknown: 1 })
  await untilSaid('lessons_undecided incident.opened')
  await untilSaid('lessons_late incident.opened')
  expect(alerts.find((one) => one.said.startsWith('lessons_undecided'))?.text).toMatch(
    /^Cause: given up: 1 lesson\.\n.*\nWhat it means: .* platformctl course resolve .*\nStart with: platformctl course status .*\nRunbook: platformctl runbook unknown-deliveries\n/,
  )

  isAnswering = true
  await enrolIn(store, 'grace', clock.now())
  expect(await dispatch()).toMatchObject({ sent: 1 })
  await untilSaid('lessons_late incident.closed')
  expect(await platformctl('mail', 'pause', '--stream', 'course', '--reason', 'a wrong link')).toBe(0)
  await untilSaid('courses_paused incident.opened')
  await minutes(3)
  expect(said()).not.toContain('lessons_undecided incident.closed')

  expect(await platformctl('course', 'resolve', 'ada', 'retry')).toBe(0)
  await untilSaid('lessons_undecided incident.closed')
  expect(said().filter((one) => one === 'lessons_undecided incident.opened')).toHaveLength(1)
}, 60_000)
