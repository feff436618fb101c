import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { systemClock } from '../../src/core/clock.ts'
import { openStore } from '../../src/core/store/open.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder } from '../support/folder.ts'

const NOW = Date.UTC(2026, 10, 21, 9)

async function folder() {
  const data = await emptyFolder()
  const store = await openStore({ kind: 'sqlite', file: path.join(data, 'platform.sqlite') })
  onTestFinished(() => store.close())
  await store.incidents.open({
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
  })
  const alert = async (args: string[], env: Record<string, string> = {}, columns?: number) => {
    const { context, stdout, stderr } = testContext({
      env,
      clock: { ...systemClock, now: () => NOW },
      operator: () => ({ name: 'ada', place: 'box-1' }),
    })
    const write = context.stdout.write.bind(context.stdout)
    const code = await runProgram(['alert', ...args], {
      ...context,
      stdout: { write, ...(columns !== undefined && { columns }) },
    })
    return { code, stdout: stdout(), stderr: stderr() }
  }
  return { data, store, alert }
}

async function receiver(status: number) {
  const bodies: string[] = []
  const server = createServer(async (request, response) => {
    const chunks: Uint8Array[] = []
    for await (const chunk of request) chunks.push(chunk)
    bodies.push(Buffer.concat(chunks).toString())
    response.writeHead(status).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, bodies }
}

test('list shows what is open, what is due and who is told; with a silence, what it holds back', async () => {
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
  expect(await alert(['silence', '15m', '--reason', 'deploy of 4.3', '--data', data])).toMatchObject({
    code: 0,
    stdout: 'silent until 2026-11-21T09:15:00.000Z\n',
  })
  const silent = await alert(['list', '--data', data, '--all'], env)
  expect(silent.stdout).toContain('silence   until 2026-11-21 09:15 UTC, by ada: deploy of 4.3')
  expect(silent.stdout).toContain('held    opened by webhook, by the silence')
  await alert(['silence', '0', '--reason', 'done', '--data', data])
  expect((await alert(['list', '--data', data], env)).stdout).toContain('due     opened by webhook')
  await store.incidents.close({ cause: 'mail', now: NOW, unseenSince: NOW })
  expect((await alert(['list', '--data', data])).stdout).toBe(
    'alerts    off; set ALERT_WEBHOOK_URL or ALERT_EMAIL_TO\n\nno incidents\n',
  )
  expect(
    JSON.parse((await alert(['list', '--all', '--data', data, '--format', 'json'])).stdout),
  ).toMatchObject({
    version: 1,
    incidents: [{ id: 'abc', closedAt: NOW }],
  })
})

test.each([60, 80, 120])('list fits into %d columns', async (columns) => {
  const { data, alert } = await folder()
  const { stdout } = await alert(['list', '--data', data], {}, columns)
  for (const line of stdout.split('\n')) expect(line.length, line).toBeLessThanOrEqual(columns)
})

test('ack names who looks at an incident, once', async () => {
  const { data, alert } = await folder()
  expect(await alert(['ack', 'abc', '--data', data])).toMatchObject({
    code: 0,
    stdout: 'acknowledged abc by ada\n',
  })
  expect((await alert(['list', '--data', data])).stdout).toContain('open, acknowledged by ada')
  expect(await alert(['ack', 'abc', '--data', data])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('alert list shows them'),
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
  expect(await alert(['test'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no channel for alerts'),
  })
})
