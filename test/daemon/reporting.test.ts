import { expect, onTestFinished, test } from 'vitest'
import { silentLog } from '../../src/core/host.ts'
import { reportError } from '../../src/core/reporting/facade.ts'
import { openPlatform } from '../../src/daemon/platform.ts'
import { openReporting } from '../../src/daemon/reporting.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { serveBodies } from '../support/servers.ts'

/** A server of reports: what it was sent. */
async function reports() {
  const bodies: string[] = []
  const url = await serveBodies((body, response) => {
    bodies.push(body)
    response.end('{}')
  })
  return { bodies, dsn: `${url.replace('://', '://0123456789abcdef0123456789abcdef@')}/1` }
}

test('a fault is reported with its build and environment, without any secret of the environment', async () => {
  const { bodies, dsn } = await reports()
  const reporting = await openReporting({
    platform: learning,
    env: {
      NEXT_PUBLIC_ERRORTRACK_DSN: dsn,
      BUILD_STAMP: 'build-7',
      DEPLOY_ENVIRONMENT: 'staging',
      EMAIL_DISPATCH_SECRET: '  canary-dispatch-secret-of-32-bytes ',
      EMAIL_LINK_SECRET: 'canary-link-secret-now, canary-link-secret-before',
      MAILER_API_KEY: 'canary-mailer-key',
    },
    log: silentLog,
  })
  onTestFinished(() => reporting.close(0))
  expect(reporting.outcome).toBe('on')
  reportError(new TypeError('lost canary-dispatch-secret-of-32-bytes and canary-mailer-key'))
  reportError(new TypeError('lost canary-link-secret-now'))
  reportError(new TypeError('lost canary-link-secret-before'))
  await reporting.close(5000)
  const sent = bodies.join('\n')
  expect(sent).toContain('"release":"build-7"')
  expect(sent).toContain('"environment":"staging"')
  expect(sent).toContain('TypeError')
  expect(sent).not.toContain('canary')
  reportError(new Error('after the end'))
  expect(bodies.join('\n')).toBe(sent)
})

test('without an address of reports, or with one that is none, nothing is reported and nothing else told', async () => {
  const told: string[] = []
  const log = { ...silentLog, warn: (event: string) => void told.push(event) }
  for (const dsn of ['', 'https://errors.example/no-key']) {
    const reporting = await openReporting({
      platform: learning,
      env: { NEXT_PUBLIC_ERRORTRACK_DSN: dsn },
      log,
    })
    expect([reporting.outcome, told]).toEqual(['off', []])
    await reporting.close(0)
  }
})

test('reports that the tracker does not take are a line in the log, once, and degrade health until one is taken', async () => {
  let status = 200
  const url = await serveBodies((_body, response) => response.writeHead(status).end('{}'))
  const env = { NEXT_PUBLIC_ERRORTRACK_DSN: `${url.replace('://', '://0123456789abcdef@')}/1` }
  const told: string[] = []
  const warn = (event: string, message: string) => void told.push(`${event}: ${message}`)
  const open = async () => {
    const reporting = await openReporting({ platform: learning, env, log: { ...silentLog, warn } })
    onTestFinished(() => reporting.close(0))
  }
  await open()
  const platform = openPlatform({ platform: learning, env, log: silentLog })
  onTestFinished(() => platform.close())
  const health = async () => (await platform.health('web')).probes.errortrack
  for (const next of [200, 403, 500, 200, 500]) {
    status = next
    reportError(new Error(`a report before ${next}`))
    const reason = `the tracker did not take the last report (HTTP ${next})`
    const lost = { state: 'degraded', checked: false, reason }
    await expect.poll(health).toEqual(next === 200 ? { state: 'ok', checked: false } : lost)
  }
  const lost = 'reports_lost: the error tracker does not take reports: HTTP'
  expect(told).toEqual([`${lost} 403`, `${lost} 500`])
  // One that is opened anew has lost nothing.
  await open()
  expect(await health()).toEqual({ state: 'ok', checked: false })
})
