import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { probeRemote } from '../../src/core/health/prober.ts'
import { systemClock } from '../../src/core/host.ts'
import { platformctl, startDaemon } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'

/** A signal makes the daemon's event loop stand still for a second and a half. */
const BLOCKER = `import { writeFileSync } from 'node:fs'
writeFileSync(new URL('pid', import.meta.url), String(process.pid))
process.on('SIGUSR2', () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500))`

test('a daemon with a blocked event loop is distinguished from one that is gone, and recovers', async () => {
  const cwd = await emptyFolder()
  await writeFile(path.join(cwd, 'block.mjs'), BLOCKER)
  const env = { NODE_OPTIONS: `--import=${pathToFileURL(path.join(cwd, 'block.mjs'))}` }
  const daemon = await startDaemon(['--no-schedule'], { cwd, env })
  onTestFinished(() => void daemon.stop('SIGKILL'))
  const ask = (timeoutMs: number) =>
    probeRemote({
      service: 'api',
      health: '/api/health',
      url: daemon.urls.api,
      deep: false,
      token: undefined,
      timeoutMs,
      clock: systemClock,
    })
  expect(await ask(5000)).toMatchObject({ reached: true, report: { state: 'ok' } })

  process.kill(Number(await readFile(path.join(cwd, 'pid'), 'utf8')), 'SIGUSR2')
  const began = performance.now()
  const [impatient, patient, healthcheck] = await Promise.all([
    ask(800),
    ask(8000),
    platformctl(['health', '--url', `api=${daemon.urls.api}`, '--timeout', '800ms', '--quiet'], { cwd }),
  ])
  expect(impatient).toMatchObject({ reached: false, cause: 'answer_timeout' })
  expect(healthcheck).toMatchObject({ exitCode: 1, stdout: '', stderr: '' })
  // A caller that waits gets a true answer: a probe is not called slow because the event loop was.
  expect(patient).toMatchObject({ reached: true, report: { state: 'ok' } })
  expect(performance.now() - began).toBeGreaterThan(1000)
  expect(await ask(5000)).toMatchObject({ reached: true, report: { state: 'ok' } })

  expect(await daemon.stop()).toBe(0)
  expect(await ask(5000)).toMatchObject({ reached: false, cause: 'connect_refused' })
})
