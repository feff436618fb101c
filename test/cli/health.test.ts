import type { RequestListener } from 'node:http'
import { expect, test } from 'vitest'
import { run } from '../support/run.ts'
import { healthBody, serve } from '../support/servers.ts'

const report = (state: string, build: string | null = null) => healthBody({ state, build })
const saying =
  (body: string, status = 200): RequestListener =>
  (_, response) =>
    void response.writeHead(status, { 'Content-Type': 'application/json' }).end(body)

async function health(url: string, args: string[] = [], env: Record<string, string> = {}) {
  const told = await run(['health', '--url', `web=${url}`, '--format', 'json', ...args], { env })
  const document = JSON.parse(told.stdout) as { passed: boolean; services: { cause?: string }[] }
  return { ...told, passed: document.passed, cause: document.services[0]?.cause }
}

test.each([
  ['ok', [], 0],
  ['degraded', [], 0],
  ['degraded', ['--strict'], 1],
  ['failing', [], 1],
] as const)('a service that is %s with %j gives exit code %d', async (state, args, code) => {
  const url = await serve(saying(report(state), state === 'failing' ? 503 : 200))
  expect(await health(url, [...args])).toMatchObject({ code, passed: code === 0 })
})

test.each([
  ['a page that says unhealthy', saying('<p>unhealthy: state ok</p>'), 'bad_json'],
  ['another service', saying(healthBody({ service: 'api' })), 'wrong_service'],
  ['invalid JSON', saying('{"state":"ok"'), 'bad_json'],
  [
    'a body without end',
    (_: unknown, response: { write(text: string): boolean; on(event: string, then: () => void): void }) => {
      const more = () => {
        while (response.write('x'.repeat(65_536)));
      }
      response.on('drain', more)
      more()
    },
    'too_large',
  ],
  [
    'a line that drops',
    (_: unknown, response: { destroy(): void }) => response.destroy(),
    'connection_closed',
  ],
  ['no answer at all', () => {}, 'answer_timeout'],
  ['a refusal', saying('{}', 401), 'unauthorised'],
] as [string, RequestListener, string][])(
  '%s has its own cause code, and is exit code 3',
  async (_, answer, fault) => {
    expect(await health(await serve(answer), ['--timeout', '300ms'])).toMatchObject({
      code: 3,
      passed: false,
      cause: fault,
    })
  },
)

test('a deep check without the token says that it is missing, and not that nothing was reached', async () => {
  const url = await serve(saying('{}', 401))
  expect(await health(url, ['--deep'])).toMatchObject({ code: 3, passed: false, cause: 'token_missing' })
  const { stdout } = await run(['health', '--deep', '--service', 'web', '--url', `web=${url}`])
  expect(stdout).toMatch(/token missing: web/)
  expect(stdout).not.toMatch(/not reached|unreached/)
})

test('a redirect is not followed, and the token goes to the named origin only, with --deep', async () => {
  const received: (string | undefined)[] = []
  const heard = async (more: { Location?: string }) =>
    serve((request, response) => {
      received.push(request.headers.authorization)
      response.writeHead(302, more).end()
    })
  const url = await heard({ Location: await heard({}) })
  const token = 'a-health-token-of-thirty-two-bytes'
  for (const args of [['--deep'], []])
    expect(await health(url, args, { HEALTH_DEEP_TOKEN: token })).toMatchObject({
      code: 3,
      cause: 'redirect',
    })
  expect(received).toEqual([`Bearer ${token}`, undefined])
})

test('--wait passes once the service has passed as often in a row as asked', async () => {
  const states = ['failing', 'ok', 'failing', 'ok', 'ok', 'ok', 'ok']
  let asked = 0
  const url = await serve((_, response) => response.end(report(states[asked++] ?? 'ok')))
  let now = 0
  const clock = {
    now: () => now,
    monotonic: () => now,
    sleep: async (ms: number) => {
      now += ms
    },
  }
  const args = ['health', '--url', `web=${url}`, '--wait', '60s', '--consecutive', '3', '--quiet']
  expect(await run(args, { clock })).toEqual({ code: 0, stdout: '', stderr: '' })
  expect(asked).toBe(6)
})

test('no service takes longer than --timeout, nor than what is left of --wait', async () => {
  let asked = 0
  const url = await serve(() => {
    asked += 1
  })
  expect(await health(url, ['--wait', '300ms', '--timeout', '1h'])).toMatchObject({ code: 3, passed: false })
  expect((await health(url, ['--wait', '2s', '--timeout', '300ms'])).code).toBe(3)
  expect(asked).toBe(3)
})

test('--expect-build fails while another build answers', async () => {
  const url = await serve(saying(report('ok', 'new')))
  expect((await health(url, ['--expect-build', 'new'])).code).toBe(0)
  expect((await health(url, ['--expect-build', 'old'])).code).toBe(1)
  // A service without a stamp may run anything.
  const unstamped = await serve(saying(report('ok')))
  expect(await health(unstamped, ['--expect-build', 'new'])).toMatchObject({ code: 1, passed: false })
})
