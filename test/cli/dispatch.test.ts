import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { progressLine } from '../../src/cli/commands/dispatch.ts'
import { openInbox } from '../../src/cli/demo/inbox.ts'
import { courseStatusText } from '../../src/cli/output/course-text.ts'
import { openStore } from '../../src/core/store/open.ts'
import { startLearningDaemon } from '../support/daemon.ts'
import { emptyFolder } from '../support/folder.ts'
import { begin } from '../support/learning.ts'
import { run } from '../support/run.ts'
import { serve } from '../support/servers.ts'

const SECRET = 'a-secret-of-sixteen-or-more'

/** A data folder with people whose first lessons are due, a mail server of its own, and a service over both. */
async function due(people: number) {
  const data = await emptyFolder()
  const store = await openStore({ kind: 'sqlite', file: path.join(data, 'platform.sqlite') })
  for (let n = 0; n < people; n += 1) {
    const address = `p${n}@example.com`
    await store.course.requestConfirmation({
      course: 'quantum',
      identity: address,
      address,
      id: `person-${n}`,
      tokenHash: `h${n}`,
      now: 0,
    })
    await store.course.confirm({ begin, tokenHash: `h${n}`, now: n })
  }
  await store.close()
  const inbox = await openInbox({ pagePort: 0 })
  onTestFinished(() => inbox.close())
  const env = {
    MAILER_API_KEY: 'key-for-tests',
    MAILER_SMTP_URL: inbox.smtpUrl,
    MAILER_FROM: 'course@example.com',
  }
  const daemon = async (more: Partial<Parameters<typeof startLearningDaemon>[0]> = {}) => {
    const it = await startLearningDaemon({
      ...more,
      env: { ...env, EMAIL_DISPATCH_SECRET: SECRET, ...more.env },
      dataFolder: data,
    })
    onTestFinished(() => it.close())
    return { close: () => it.close(), url: it.urls.web ?? '' }
  }
  return { data, inbox, env, daemon }
}

test('without mail a dispatch passes while no lesson is due, and fails once one is', async () => {
  const none = await run(['dispatch', '--local', '--data', (await due(0)).data])
  expect(none).toMatchObject({ code: 0, stdout: '0 sent, 0 still due: mail is not configured\n' })
  const one = await run(['dispatch', '--local', '--data', (await due(1)).data])
  expect(one).toMatchObject({ code: 1, stdout: '0 sent, 1 still due: mail is not configured\n' })
})

test('a drain sends one lesson to everybody whose lessons are due, as many as the dry run says', async () => {
  const { data, inbox, env } = await due(30)
  const dry = await run(['dispatch', '--local', '--dry-run', '--data', data], { env })
  expect(dry.stdout).toContain('30 due')
  const { code, stdout, stderr } = await run(['dispatch', '--local', '--drain', '--data', data], {
    env: { ...env, EMAIL_DISPATCH_LIMIT: '2' },
  })
  // Their second lessons are due as well, and are the next run's.
  expect(stdout).toMatch(/^30 sent in \d+ s, 30 still due\n$/)
  expect(code).toBe(0)
  expect(new Set(inbox.mails.map(({ to }) => String(to))).size).toBe(30)
  // Off a terminal, a drain this short says nothing of its progress.
  expect(stderr).toBe('')
  // Who asks again does not mean to wait for the hour that the daemon leaves between overdue lessons.
  const again = await run(['dispatch', '--local', '--drain', '--data', data], { env })
  expect(again.stdout).toMatch(/^30 sent in /)
}, 30_000)

test('a drain through the endpoint is one run of several calls that sends no lesson twice, even while the secret rotates', async () => {
  const { inbox, daemon } = await due(25)
  const secret = `${SECRET},the-secret-of-before`
  const { url } = await daemon({ env: { EMAIL_DISPATCH_SECRET: secret } })
  const args = ['dispatch', '--drain', '--limit', '10', '--url', url]
  const { code, stdout } = await run(args, { env: { EMAIL_DISPATCH_SECRET: secret } })
  expect(stdout).toMatch(/^25 sent in \d+ s, 25 still due\n$/)
  expect(code).toBe(0)
  expect(new Set(inbox.mails.map(({ to }) => String(to))).size).toBe(25)
}, 30_000)

test('the hour of a daemon sends to everybody whose lesson is due, whatever the limit of a call, and is handled then', async () => {
  const { data, inbox, daemon } = await due(25)
  await daemon({ env: { EMAIL_DISPATCH_LIMIT: '10' }, schedule: true })
  await inbox.waitFor(() => inbox.mails.length >= 25, AbortSignal.timeout(10_000))
  const store = await openStore({ kind: 'sqlite', file: path.join(data, 'platform.sqlite') })
  onTestFinished(() => store.close())
  const isHandled = async () => {
    const hour = (await store.lastHour()) ?? ''
    return store.claimHour({ hour, leaseMs: 60_000 })
  }
  await expect.poll(isHandled).toBe('handled')
  // One lesson each: the second ones are the next hour's.
  expect(new Set(inbox.mails.map(({ to }) => String(to))).size).toBe(25)
  expect(inbox.mails).toHaveLength(25)
}, 30_000)

test('a disconnected caller stops nothing: the service finishes the call and records it', async () => {
  const { inbox, daemon } = await due(60)
  const { url } = await daemon()
  const interrupt = new AbortController()
  void inbox.waitFor(() => inbox.mails.length >= 3, AbortSignal.timeout(10_000)).then(() => interrupt.abort())
  const env = { EMAIL_DISPATCH_SECRET: SECRET }
  const { code } = await run(['dispatch', '--url', url], { env, signal: interrupt.signal })
  expect(code).toBe(3)
  await inbox.waitFor(() => inbox.mails.length >= 60, AbortSignal.timeout(10_000))
}, 30_000)

test('one call sends as many as its limit, and says what is left', async () => {
  const { data, inbox, env } = await due(5)
  const args = ['dispatch', '--local', '--data', data, '--limit', '3', '--format', 'json']
  const { code, stdout } = await run(args, { env })
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({ version: 1, processed: 3, sent: 3, remaining: 5, limit: 3 })
  expect(inbox.mails.map(({ to }) => to)).toEqual(expect.arrayContaining(['p0@example.com']))
})

test('names the next command if lessons are still due or failed', async () => {
  const { data, env } = await due(3)
  const args = ['dispatch', '--local', '--data', data, '--limit', '2']
  expect((await run(args, { env })).stdout).toMatch(
    `still due\nNext: platformctl dispatch --drain --local --data ${data} sends the rest.\n`,
  )
  const { MAILER_SMTP_URL: _, ...rest } = env
  await writeFile(path.join(data, 'it is.env'), 'MAILER_SMTP_URL=smtp://127.0.0.1:1\n')
  const nowhere = [...args, '--env-file', path.join(data, 'it is.env')]
  const { stdout } = await run(nowhere, { env: rest })
  // What waits after a failure is in no list of what a drain would send.
  const [, left] = /(\d+) still due, \d+ waiting/.exec(stdout) ?? []
  const dry = await run(['dispatch', '--local', '--dry-run', '--data', data], { env })
  expect(dry.stdout).toContain(`\n${left} due; nothing was sent`)
  const files = `--env-file '${data}/it is.env'`
  expect(stdout).toContain(' failed, ')
  expect(stdout).toContain(
    `\nNext: platformctl course status ${files} --data ${data} shows what waits for a decision; platformctl preflight --deep ${files} looks for the cause.\n`,
  )
})

test('a dry run lists what the same call would send, oldest first: as many as its limit, or all with --drain; and sends nothing', async () => {
  const { data, inbox, env } = await due(130)
  const listed = async (limit: string | undefined, ...more: string[]) => {
    const args = ['dispatch', '--local', '--dry-run', '--data', data, ...more]
    const limited = limit === undefined ? env : { ...env, EMAIL_DISPATCH_LIMIT: limit }
    const { code, stdout } = await run(args, { env: limited })
    expect(code).toBe(0)
    return stdout.trimEnd().split('\n')
  }
  // A limit shortens the list, never the count.
  expect(await listed('3', '--limit', '2')).toEqual([
    'day 1 of person-0, due since 1970-01-01T00:00:00.000Z',
    'day 1 of person-1, due since 1970-01-01T00:00:00.001Z',
    '130 due, the first 2 shown; nothing was sent',
  ])
  for (const [limit, count, ...options] of [
    [undefined, 100, '--dry-run'],
    ['120', 120, '--dry-run'],
    ['3', 130, '--drain'],
    ['3', 130, '--drain', '--limit', '2'],
  ] as const)
    expect((await listed(limit, ...options)).filter((line) => line.startsWith('day 1'))).toHaveLength(count)
  expect((await listed('3', '--drain')).at(-1)).toBe('130 due; nothing was sent')
  const json = (await listed(undefined, '--limit', '1', '--format', 'json')).join('\n')
  expect(JSON.parse(json).due).toEqual([{ id: 'person-0', day: 1, nextAttemptAt: 0 }])
  expect(inbox.mails).toEqual([])
})

test('a drain that the service cuts by its shutdown fails, and says what is left', async () => {
  const { inbox, daemon } = await due(150)
  const { url, close } = await daemon()
  void inbox.waitFor(() => inbox.mails.length >= 5, AbortSignal.timeout(10_000)).then(close)
  const args = ['dispatch', '--drain', '--limit', '10000', '--url', url]
  const { code, stdout } = await run(args, { env: { EMAIL_DISPATCH_SECRET: SECRET } })
  expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringContaining('it was stopped before all') })
  expect(inbox.mails.length).toBeLessThan(150)
}, 30_000)

test('an interrupted drain ends after the messages in flight, fails and says so, and the next goes on', async () => {
  const { data, inbox, env } = await due(150)
  const interrupt = new AbortController()
  void inbox.waitFor(() => inbox.mails.length >= 5, AbortSignal.timeout(10_000)).then(() => interrupt.abort())
  const args = ['dispatch', '--local', '--drain', '--data', data]
  const cut = await run(args, { env, signal: interrupt.signal })
  expect(cut).toMatchObject({ code: 1, stdout: expect.stringContaining('it was stopped before all') })
  const sent = Number(/^(\d+) sent/m.exec(cut.stdout)?.[1])
  expect(sent).toBe(inbox.mails.length)
  expect(sent).toBeLessThan(150)
  expect(await run(args, { env })).toMatchObject({ code: 0 })
  const keys = inbox.mails.map(
    ({ headers }) => headers.find(({ name }) => name.toLowerCase() === 'message-id')?.value,
  )
  expect(new Set(keys).size).toBe(keys.length)
  expect(new Set(inbox.mails.map(({ to }) => String(to))).size).toBe(150)
}, 30_000)

test('reports a response that is not a dispatch endpoint’s, with the service’s own reason if it gives one', async () => {
  const env = { EMAIL_DISPATCH_SECRET: SECRET }
  const answer = async (status: number, body: string) => {
    const url = await serve((_, response) => void response.writeHead(status).end(body))
    return run(['dispatch', '--url', url], { env })
  }
  const problem = { code: 'store_not_persistent', status: 503, message: 'Set STORE_URL.', requestId: 'r' }
  for (const [status, body, said] of [
    [200, '{"processed":"many"}', 'the service answered 200, and not as a dispatch endpoint'],
    [503, JSON.stringify(problem), 'the service answered 503: Set STORE_URL.'],
    [401, '', 'refused EMAIL_DISPATCH_SECRET'],
  ] as const)
    expect(await answer(status, body)).toMatchObject({ code: 3, stderr: expect.stringContaining(said) })
})

test.each([0, 3])(
  'a drain that leaves lessons waiting after a failure fails, having sent %d, and a single call only with one that failed or is unknown',
  async (sent) => {
    const total = { processed: sent, sent, failed: 0, unknown: 0, remaining: 0, limit: 100, results: [] }
    const waiting = { ...total, waiting: 2, nextTryAt: '2026-11-21T08:00:00.000Z' }
    const answering = (answer: object) => serve((_, response) => void response.end(JSON.stringify(answer)))
    const url = await answering(waiting)
    const env = { EMAIL_DISPATCH_SECRET: SECRET }
    const waits = expect.stringContaining('2 waiting after a failure')
    expect(await run(['dispatch', '--url', url, '--drain'], { env })).toMatchObject({
      code: 1,
      stdout: waits,
    })
    expect(await run(['dispatch', '--url', url], { env })).toMatchObject({ code: 0, stdout: waits })
    for (const outcome of ['failed', 'unknown']) {
      const other = await answering({ ...waiting, [outcome]: 1 })
      expect(await run(['dispatch', '--url', other], { env })).toMatchObject({ code: 1 })
    }
  },
)

test('the progress says what was done, what is left, how fast and how long', () => {
  expect(progressLine({ sent: 7000, failed: 3, unknown: 0, left: 2997, seconds: 7.37 })).toBe(
    '████████████████░░░░░░░░  70 %  7,000 sent, 3 failed, 2,997 left, 950/s, about 4 s',
  )
  expect(progressLine({ sent: 4, failed: 0, unknown: 1, left: 40_000, seconds: 1 })).toMatch(
    /^░{24} {3}0 % {2}4 sent, 1 unknown, 40,000 left, 5\.0\/s, about 2 h 13 min$/,
  )
  expect(progressLine({ sent: 0, failed: 0, unknown: 0, left: undefined, seconds: 0 })).toBe('0 sent')
})

test('the age of the oldest lesson is shown beside those that wait after a failure if none is due', () => {
  const now = Date.UTC(2026, 10, 21, 9)
  const counts = {
    byCourse: {},
    byState: { unconfirmed: 0, confirmed: 12, unsubscribed: 0 },
    byLessons: [12],
    dueNow: 0,
    waiting: 12,
    nextTryAt: now + 300_000,
    oldestDueAt: now - 3_600_000,
    dueByHour: [],
    parked: 0,
    unknown: 0,
  }
  expect(courseStatusText({ now, counts, problems: [] })).toMatch(
    /^due now {7}0\nin backoff {4}12 .*; next try 2026-11-21T09:05:00\.000Z {2}the oldest for 1 h, since/m,
  )
  const problem = { kind: 'bounced', reason: 'gone', since: 0 }
  const left = { id: 'sub-1', address: 'a@example.com', state: 'unsubscribed', sentDays: [1], problem }
  const text = courseStatusText({ now, counts, problems: [left as never] })
  expect(text).toContain('sub-1  day 2  gone; the subscription has ended')
})
