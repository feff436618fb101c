import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { platformctl, startDaemon } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { command } from '../support/in-process.ts'
import { behindProxy } from '../support/proxy.ts'
import { healthBody, serve } from '../support/servers.ts'

test('the smoke test of a deployment waits through the restart for the new build, and passes once it stays', async () => {
  const cwd = await emptyFolder()
  const start = async (build: string, args: string[] = []) => {
    const daemon = await startDaemon(['--no-schedule', ...args], { cwd, env: { BUILD_STAMP: build } })
    onTestFinished(() => void daemon.stop('SIGKILL'))
    return daemon
  }
  const old = await start('build-1')
  const urls = Object.entries(old.urls).map(([service, url]) => `${service}=${url}`)
  const smoke = (...args: string[]) =>
    command(['health', '--url', ...urls, '--format', 'json', ...args], { cwd })
  expect(await smoke('--expect-build', 'build-2')).toMatchObject({ exitCode: 1 })

  const waiting = smoke('--wait', '30s', '--consecutive', '2', '--expect-build', 'build-2')
  await old.stop()
  const ports = Object.entries(old.urls).flatMap(([service, url]) => [`--${service}-port`, new URL(url).port])
  const fresh = await start('build-2', ports)
  const { exitCode, stdout, stderr } = await waiting
  expect(exitCode, stderr).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({
    passed: true,
    builds: { web: 'build-2', api: 'build-2', agent: 'build-2' },
    skew: false,
  })
  expect(stderr).toMatch(/waiting, \d+ s left: /)

  await fresh.stop()
  const gone = await smoke()
  expect(gone).toMatchObject({ exitCode: 3, stderr: '' })
  expect(JSON.parse(gone.stdout)).toMatchObject({
    rootCauses: [{ services: ['web', 'api', 'agent'], cause: 'connect_refused' }],
  })
})

test('as a HEALTHCHECK it loads no fetch, no TLS, no resolver and no child processes', async () => {
  const cwd = await emptyFolder()
  const url = await serve((_, response) => response.end(healthBody()))
  const spy = path.join(cwd, 'spy.mjs')
  await writeFile(spy, `process.on('exit', () => process.stdout.write(process.moduleLoadList.join('\\n')))`)
  const { exitCode, stdout } = await platformctl(
    ['health', '--service', 'web', '--url', `web=${url}`, '--quiet'],
    {
      cwd,
      env: { NODE_OPTIONS: `--import=${pathToFileURL(spy)}` },
    },
  )
  expect(exitCode).toBe(0)
  const loaded = stdout.split('\n').map((line) => line.replace('NativeModule ', ''))
  expect(loaded).toContain('http')
  expect(
    loaded.filter((name) => /undici|^tls$|^https$|^dns$|child_process$|^zlib$|^crypto$/.test(name)),
  ).toEqual([])
})

test('a command goes through the proxy of its environment, and past it to a name in NO_PROXY', async () => {
  const cwd = await emptyFolder()
  const { asked, env } = await behindProxy(await serve((_, response) => response.end(healthBody())))
  const health = async (more: Record<string, string>) =>
    (
      await platformctl(['health', '--url', 'web=http://a.invalid', '--quiet'], {
        cwd,
        env: { ...env, ...more },
      })
    ).exitCode
  expect(await health({})).toBe(0)
  expect(await health({ NO_PROXY: 'a.invalid' })).toBe(1)
  expect(asked).toEqual(['CONNECT a.invalid:80'])
})
