import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/core/host.ts'
import type { StoredIncident } from '../../src/core/incidents/incident.ts'
import { openStore } from '../../src/core/store/open.ts'
import { emptyFolder } from '../support/folder.ts'
import { change, channelOf, closeIncident, hostAt, tellDue } from '../support/incidents.ts'
import { openLearning } from '../support/learning.ts'
import { run as runWith } from '../support/run.ts'
import { serveBodies } from '../support/servers.ts'

const SECRET = 'a-secret-of-the-dispatch-for-tests-only'
const NOW = Date.UTC(2026, 10, 21, 9)

const CHANNELS = [{ name: 'webhook' }]
const OPEN: StoredIncident = {
  id: 'abc',
  cause: 'mail',
  service: 'web',
  reason: 'no answer in time',
  affected: ['agent'],
  openedAt: NOW - 60_000,
  seenAt: NOW,
  closedAt: undefined,
  acknowledgedAt: undefined,
  acknowledgedBy: undefined,
}

async function folder() {
  const data = await emptyFolder()
  const store = await openStore({ kind: 'sqlite', file: path.join(data, 'platform.sqlite') })
  onTestFinished(() => store.close())
  const opens = async (...opens: StoredIncident[]) => {
    await change(store.incidents, NOW, { opens }, CHANNELS)
  }
  await opens(OPEN)
  const run = (args: string[], env: Record<string, string> = {}, columns?: number) =>
    runWith(args, {
      env,
      clock: { ...systemClock, now: () => NOW },
      operator: () => ({ name: 'ada', place: 'box-1' }),
      ...(columns !== undefined && { columns }),
    })
  const alert = (args: string[], env?: Record<string, string>, columns?: number) =>
    run(['alert', ...args], env, columns)
  return { data, store, opens, alert, run }
}

async function receiver(status: number) {
  const bodies: string[] = []
  const signed: boolean[] = []
  const url = await serveBodies((body, response, request) => {
    signed.push('webhook-signature' in request.headers)
    bodies.push(body)
    response.writeHead(status).end()
  })
  return { url: `${url}/`, bodies, signed }
}

test('list shows open incidents, due alerts and their channels; with a silence, the alerts that it holds back', async () => {
  const { data, alert, store } = await folder()
  const env = { ALERT_WEBHOOK_URL: 'https://ops.example.com/alerts' }
  const shown = await alert(['list', '--data', data], env)
  expect(shown).toMatchObject({ code: 0, stderr: '' })
  expect(shown.stdout).toBe(`alerts    by webhook

abc  mail (web, agent), open
  since   2026-11-21 08:59 UTC
  cause   no answer in time
  due     opened by webhook
`)
  for (const line of (await alert(['list', '--data', data], env, 60)).stdout.split('\n'))
    expect(line.length, line).toBeLessThanOrEqual(60)
  const later = { ...env, ALERT_ESCALATION_URL: 'https://b.example.com/', ALERT_ESCALATION_AFTER: '5m' }
  const escalation = (afterMs: number) => change(store.incidents, NOW, {}, [{ name: 'escalation', afterMs }])
  await escalation(300_000)
  const escalates = (await alert(['list', '--data', data], later)).stdout
  expect(escalates).toContain('by webhook and by escalation if nobody acknowledges')
  expect(escalates).toContain('later   opened by escalation, 2026-11-21 09:04 UTC, unless acknowledged')
  expect(escalates).not.toMatch(/due .*escalation/)
  await escalation(60_000)
  expect((await alert(['list', '--data', data], later)).stdout).toMatch(/due .*escalation\n$/)
  for (const duration of ['15m', '5m'])
    expect(await alert(['silence', duration, '--reason', 'deploy of 4.3', '--data', data])).toMatchObject({
      code: 0,
      stdout: 'silent until 2026-11-21T09:15:00.000Z\n',
    })
  const silent = await alert(['list', '--data', data, '--all'], env)
  expect(silent.stdout).toContain('silence   until 2026-11-21 09:15 UTC, by ada: deploy of 4.3')
  expect(silent.stdout).toContain('held    opened by webhook, by the silence')
  expect(await alert(['silence', '0', '--reason', ' ', '--data', data])).toMatchObject({ code: 2 })
  await alert(['silence', '0', '--reason', 'done', '--data', data])
  expect((await alert(['list', '--data', data], env)).stdout).toContain('due     opened by webhook')
  await closeIncident(store.incidents, 'mail', NOW)
  expect((await alert(['list', '--data', data])).stdout).toBe(
    'alerts    none in this environment; ALERT_WEBHOOK_URL and ALERT_EMAIL_TO belong in the daemon’s --env-file\n\nno open incidents\n',
  )
  const { stdout } = await alert(['list', '--all', '--data', data, '--format', 'json'])
  expect(JSON.parse(stdout)).toMatchObject({ version: 1, incidents: [{ id: 'abc', closedAt: NOW }] })
  const told = (['closed', 'opened'] as const).map((kind) => {
    return { incident: 'abc', kind, channel: 'webhook', at: kind === 'opened' ? NOW - 60_000 : NOW }
  })
  await change(store.incidents, NOW, { told })
  // In the order in which they were sent.
  expect((await alert(['list', '--all', '--data', data])).stdout).toMatch(/sent +opened [\s\S]*sent +closed /)
})

test('an alert that a pause or a silence holds is held in alert list and in mail queue; the one about the pause is not', async () => {
  const { data, alert, run, store, opens } = await folder()
  const env = { ALERT_WEBHOOK_URL: 'https://ops.example.com/alerts' }
  const queued = async () =>
    JSON.parse((await run(['mail', 'queue', '--format', 'json', '--data', data], env)).stdout).streams.find(
      ({ stream }: { stream: string }) => stream === 'alert',
    )
  expect(await queued()).toMatchObject({ due: 1, held: 0, oldestAt: NOW - 60_000 })
  await run(['mail', 'pause', '--stream', 'alert', 'course', '--reason', 'new pager', '--data', data])
  await opens({ ...OPEN, id: 'pause', cause: 'mail_paused' })
  expect(await queued()).toMatchObject({ due: 2, held: 1, paused: { at: NOW, reason: 'new pager' } })
  const { stdout } = await alert(['list', '--data', data], env)
  expect(stdout).toContain('pause     alerts are paused since 2026-11-21 09:00 UTC: new pager')
  expect(stdout.match(/held {4}.*/g)).toEqual(['held    opened by webhook, by the pause'])
  expect(stdout.match(/due {5}.*/g)).toEqual(['due     opened by webhook'])
  expect((await run(['mail', 'resume', '--stream', 'course', '--data', data])).stdout).toMatch(
    /^resumed: course \(.*\n$/,
  )
  const said = (await store.audit.list(9)).map(({ action, details }) => `${action} ${details}`)
  expect(said).toEqual(expect.arrayContaining(['pause alert, course: new pager', 'resume course: new pager']))
  expect(await queued()).toMatchObject({ due: 2, held: 1 })
  await run(['mail', 'resume', '--data', data])
  expect(await queued()).toMatchObject({ due: 2, held: 0 })
  await alert(['silence', '15m', '--reason', 'deploy', '--data', data])
  expect(await queued()).toMatchObject({ due: 2, held: 1 })
  const refuses = channelOf('webhook', async () => ({ kind: 'transient', reason: 'r', scope: 'message' }))
  await tellDue(
    hostAt(() => NOW),
    store.incidents,
    [refuses],
  )
  expect(await queued()).toMatchObject({ due: 1, waiting: 1, held: 1 })
})

test('an alert that was given up counts as failed in the queue of mail until its incident is over', async () => {
  const { data, alert, store } = await folder()
  const reason = 'the webhook answered 410'
  const gone = channelOf('webhook', async () => ({ kind: 'permanent', reason, hardBounce: true }))
  const host = hostAt(() => NOW)
  for (let round = 0; round < 2; round += 1) await tellDue(host, store.incidents, [gone])
  const failed = async () =>
    (await store.sending.queue(NOW)).find(({ stream }) => stream === 'alert')?.failed ?? 0
  expect(await failed()).toBe(1)
  await alert(['resolve', OPEN.id, '--reason', 'the probe was removed', '--data', data])
  expect(await failed()).toBe(0)
})

test('ack records once who is looking at an incident', async () => {
  const { data, alert } = await folder()
  expect(await alert(['ack', 'abc', '--data', data])).toMatchObject({
    code: 0,
    stdout: 'acknowledged abc by ada\n',
  })
  expect((await alert(['list', '--data', data])).stdout).toContain('open, acknowledged by ada')
  expect(await alert(['ack', 'abc', '--data', data])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no incident abc is left to acknowledge: run platformctl alert list'),
  })
})

test('resolve closes an incident once, with who and why in alert list and the audit', async () => {
  const { data, alert, store } = await folder()
  const resolve = (...args: string[]) => alert(['resolve', ...args, '--data', data])
  expect(await resolve('abc')).toMatchObject({ code: 2, stderr: expect.stringContaining('--reason') })
  expect(await resolve('abc', '--reason', ' ')).toMatchObject({ code: 2 })
  expect((await store.incidents.list(1))[0]?.closedAt).toBeUndefined()
  expect(await resolve('abc', '--reason', 'probe removed')).toMatchObject({
    code: 0,
    stdout: 'resolved abc by ada\n',
  })
  expect((await alert(['list', '--data', data])).stdout).toContain('no open incidents')
  expect((await alert(['list', '--all', '--data', data])).stdout).toContain('by ada: probe removed')
  expect(await store.audit.list(5)).toMatchObject([
    { action: 'resolve-incident', who: 'ada', subject: 'abc', details: 'probe removed' },
  ])
  for (const id of ['abc', 'nowhere'])
    expect(await resolve(id, '--reason', 'again')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`no incident ${id} is left to resolve`),
    })
})

test('test sends on every channel without a store, and says what did not arrive', async () => {
  const { alert } = await folder()
  const good = await receiver(200)
  expect(await alert(['test'], { ALERT_WEBHOOK_URL: good.url })).toMatchObject({
    code: 0,
    stdout: 'sent by webhook\n',
  })
  expect(JSON.parse(good.bodies[0] ?? '')).toMatchObject({
    type: 'alert.test',
    data: { title: 'platformctl: test alert' },
  })
  const bad = await receiver(500)
  expect(await alert(['test'], { ALERT_WEBHOOK_URL: bad.url })).toMatchObject({
    code: 3,
    stdout: 'not sent by webhook: the webhook answered 500\n',
  })
  expect(await alert(['test'], { ALERT_WEBHOOK_URL: good.url, ALERT_ESCALATION_URL: bad.url })).toMatchObject(
    {
      code: 3,
      stdout: 'sent by webhook\nnot sent by escalation: the webhook answered 500\n',
    },
  )
  const both = { ALERT_WEBHOOK_URL: good.url, ALERT_ESCALATION_URL: good.url }
  await alert(['test'], { ...both, ALERT_WEBHOOK_SECRET: 'a-secret-that-signs-alerts-of-both' })
  expect(good.signed).toEqual([false, false, true, true])
  // Each under an id of its own, or a provider takes the next for a repeat.
  expect(new Set(good.bodies.map((body) => JSON.parse(body).data.incident)).size).toBe(3)
  // The format that is set is that of the first address.
  await alert(['test'], { ...both, ALERT_WEBHOOK_FORMAT: 'slack' })
  const isJson = (body: string) => 'data' in JSON.parse(body)
  expect(good.bodies.slice(4).map(isJson).toSorted()).toEqual([false, true])
  expect(await alert(['test'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no channel for alerts'),
  })
})

test('status update on a probe or a service reaches visitors, and on what is for operators only is refused', async () => {
  const { data, opens, run } = await folder()
  await opens({ ...OPEN, id: 'service', cause: 'web' })
  await opens({ ...OPEN, id: 'disk', cause: 'disk_nearly_full' })
  const update = (id: string) => run(['status', 'update', id, 'Being replaced', '--data', data])
  for (const id of [OPEN.id, 'service'])
    expect(await update(id)).toMatchObject({ code: 0, stdout: `updated ${id}\n` })
  expect(await update('disk')).toMatchObject({ code: 2, stderr: expect.stringContaining('status announce') })
})

test('silence reaches the running service from a machine without its store, and follows no redirect with the secret', async () => {
  const { alert, store } = await folder()
  const opened = openLearning({
    env: { EMAIL_DISPATCH_SECRET: SECRET },
    store,
    clock: { ...systemClock, now: () => NOW },
  })
  onTestFinished(() => opened.close())
  const asked: string[] = []
  const service = async (handle: (request: Request) => Promise<Response>) =>
    serveBodies(async (body, response, request) => {
      asked.push(request.url ?? '')
      const answer = await handle(
        new Request(`http://web.example${request.url}`, {
          method: 'POST',
          headers: { authorization: request.headers.authorization ?? '', 'content-type': 'application/json' },
          body,
        }),
      )
      response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
    })
  const url = await service((request) => opened.web.fetch(request))
  const silence = (args: string[], env: Record<string, string> = { EMAIL_DISPATCH_SECRET: SECRET }) =>
    alert(['silence', ...args, '--reason', 'deploy of 4.3'], env)
  expect(await silence(['15m', '--url', url])).toEqual({
    code: 0,
    stdout: 'silent until 2026-11-21T09:15:00.000Z\n',
    stderr: '',
  })
  expect(await store.incidents.silenceAt(NOW)).toMatchObject({
    until: NOW + 15 * 60_000,
    reason: 'deploy of 4.3',
    by: 'ada',
  })
  expect((await silence(['20h', '--url', url])).stdout).toBe('silent until 2026-11-22T05:00:00.000Z\n')
  expect((await silence(['15m', '--url', url])).stdout).toBe('silent until 2026-11-22T05:00:00.000Z\n')
  // The endpoint takes a few digits of a unit: rather longer than asked for.
  for (const seconds of [0.5, 9999, 10_001, 59_941, 86_400]) {
    await silence(['0', '--url', url])
    const { stdout } = await silence([`${seconds * 1000}ms`, '--url', url])
    const ms = Date.parse(stdout.trim().replace('silent until ', '')) - NOW
    expect(ms).toBeGreaterThanOrEqual(seconds * 1000)
    expect(ms).toBeLessThan(Math.max(1001, seconds * 1000 * 1.05))
  }
  expect((await silence(['0', '--url', url])).stdout).toBe('no silence any more\n')
  expect((await silence(['15m', '--url', url], { EMAIL_DISPATCH_SECRET: `${SECRET}x` })).code).toBe(3)
  expect((await silence(['15m', '--url', url], {})).stderr).toContain('EMAIL_DISPATCH_SECRET is not set')
  expect((await silence(['15m', '--url', url, '--data', 'x'])).code).toBe(2)
  const before = asked.length
  const elsewhere = await service(
    async () => new Response(null, { status: 307, headers: { location: `${url}/x` } }),
  )
  expect(await silence(['15m', '--url', elsewhere])).toMatchObject({ code: 3, stdout: '' })
  expect(asked.slice(before)).toEqual(['/api/alerts/silence'])
  const page = await service(async () => new Response('<!doctype html>'))
  expect(await silence(['15m', '--url', page])).toMatchObject({ code: 3, stdout: '' })
})

test('a pause while another one is open ends the incident of that one, so that it gets an alert of its own', async () => {
  const { data, store, opens, run } = await folder()
  const pause = async (...streams: string[]) => {
    const named = streams.length === 0 ? [] : ['--stream', ...streams]
    expect(await run(['mail', 'pause', ...named, '--reason', 'wrong prices', '--data', data])).toMatchObject({
      code: 0,
    })
    return (await store.incidents.find('paused')) ?? {}
  }
  await pause('notice')
  await opens({ ...OPEN, id: 'paused', cause: 'mail_paused', acknowledgedAt: NOW, acknowledgedBy: 'bob' })
  // The same again is no other pause, and courses have an incident of their own.
  expect(await pause('notice')).toMatchObject({ closedAt: undefined })
  expect(await pause('course')).toMatchObject({ closedAt: undefined })
  expect(await pause()).toMatchObject({
    closedAt: NOW,
    resolvedBy: 'ada',
    resolvedReason: 'another pause began: wrong prices',
  })
  // What is about courses alone resumes nothing else.
  expect((await run(['course', 'resume', '--data', data])).code).toBe(0)
  const held = (await store.sending.holds()).map(({ stream }) => stream)
  expect(held).toEqual(['sign-in', 'confirmation', 'notice', 'mail'])
})
