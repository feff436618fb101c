import { expect, onTestFinished, test } from 'vitest'
import { startDaemon } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'

interface Status {
  readonly recorded: string
  readonly since: string | null
  readonly checkedAt: string | null
  readonly services: readonly { readonly service: string }[]
  readonly incidents: readonly { readonly probe: string; readonly beganAt: string }[]
}

test('the recorded health survives a SIGKILL', async () => {
  const cwd = await emptyFolder()
  // Another machine's API, and it is down: an incident that must not be forgotten.
  const env = { API_URL: 'http://127.0.0.1:1' }
  const start = async () => {
    const daemon = await startDaemon(['--data', 'data', '--no-schedule'], { cwd, env })
    onTestFinished(() => void daemon.stop('SIGKILL'))
    const status = async () =>
      (await (await fetch(new URL('/status.json', daemon.urls.web))).json()) as Status
    return { daemon, status }
  }
  const first = await start()
  await expect.poll(async () => (await first.status()).services.length, { timeout: 10_000 }).toBe(3)
  const before = await first.status()
  expect(before).toMatchObject({ recorded: 'file', since: before.checkedAt })
  expect(before.incidents.map(({ probe }) => probe)).toContain('api')
  await first.daemon.stop('SIGKILL')

  const second = await start()
  await expect
    .poll(async () => (await second.status()).checkedAt, { timeout: 15_000 })
    .not.toBe(before.checkedAt)
  const after = await second.status()
  expect(after.since).toBe(before.since)
  expect(after.incidents).toMatchObject(before.incidents.map(({ probe, beganAt }) => ({ probe, beganAt })))
})
