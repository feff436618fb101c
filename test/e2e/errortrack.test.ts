import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startDaemon } from '../support/cli.ts'
import { recordEnvelopes } from '../support/envelopes.ts'
import { emptyFolder } from '../support/folder.ts'
import { serve } from '../support/servers.ts'

const module = (code: string) => `--import=data:text/javascript,${encodeURIComponent(code)}`

/** Notes every file of the SDK as Node loads it. */
const NOTE_MODULES = module(`import { registerHooks } from 'node:module'
import { appendFileSync } from 'node:fs'
registerHooks({ load(url, context, next) {
  if (/node_modules\\/@sentry/.test(url)) appendFileSync(process.env.LOADED, url + '\\n')
  return next(url, context)
} })`)

const REJECT = module(
  `process.on('SIGUSR2', () => Promise.reject(new TypeError('at https://www.example.com/play?c=canary for canary@example.com')))`,
)

async function daemon(env: Record<string, string>) {
  const cwd = await emptyFolder()
  const it = await startDaemon([], { cwd, env: { LOADED: path.join(cwd, 'loaded'), ...env } })
  onTestFinished(async () => void (await it.stop('SIGKILL')))
  return { ...it, loaded: () => readFile(path.join(cwd, 'loaded'), 'utf8').catch(() => '') }
}

test('without a DSN no module of the SDK is loaded, whatever the daemon serves', async () => {
  const it = await daemon({ NODE_OPTIONS: NOTE_MODULES })
  for (const route of ['/', '/insights', '/lessons/1', '/api/health?deep=1', '/nowhere'])
    await fetch(it.urls.web + route)
  await fetch(`${it.urls.web}/api/analytics`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{"events":[]}',
  })
  expect(await it.stop()).toBe(0)
  expect(await it.loaded()).toBe('')
})

test('with a DSN the daemon loads the SDK and reports its own fault, scrubbed and stamped, before it ends', async () => {
  const { dsn, envelopes, raw } = await recordEnvelopes()
  const it = await daemon({
    NODE_OPTIONS: `${NOTE_MODULES} ${REJECT}`,
    NEXT_PUBLIC_ERRORTRACK_DSN: dsn,
    BUILD_STAMP: '2026.11.21-abc',
    DEPLOY_ENVIRONMENT: 'staging',
  })
  expect(await (await fetch(`${it.urls.web}/api/health`)).json()).toMatchObject({
    probes: { errortrack: { state: 'ok' } },
  })
  process.kill(it.pid, 'SIGUSR2')
  expect((await it.ended).exitCode).toBe(1)
  // Other envelopes may come before it: a trace of the request above.
  const faults = () =>
    envelopes.flatMap(({ items }) => items).filter(({ payload }) => 'exception' in Object(payload))
  expect(faults().length).toBeGreaterThan(0)
  expect(await it.loaded()).toContain('@sentry/node')
  expect(envelopes.flatMap(({ items }) => items.map(({ payload }) => payload))).toContainEqual(
    expect.objectContaining({
      release: '2026.11.21-abc',
      environment: 'staging',
      exception: {
        values: [
          expect.objectContaining({
            type: 'TypeError',
            value: 'at https://www.example.com/play for [address]',
          }),
        ],
      },
    }),
  )
  expect(raw.join('\n')).not.toContain('canary')
})

test('a server of reports that never answers keeps a broken daemon for a second and no longer', async () => {
  const { port } = new URL(await serve(() => {}))
  const it = await daemon({
    NODE_OPTIONS: REJECT,
    NEXT_PUBLIC_ERRORTRACK_DSN: `http://publickey@127.0.0.1:${port}/1`,
  })
  const began = performance.now()
  process.kill(it.pid, 'SIGUSR2')
  expect((await it.ended).exitCode).toBe(1)
  expect(performance.now() - began).toBeLessThan(4000)
  expect(it.lines.at(-1)).toMatchObject({ event: 'fault' })
})
