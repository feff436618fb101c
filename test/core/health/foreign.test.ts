import fc from 'fast-check'
import { expect, test } from 'vitest'
import { probeRemote } from '../../../src/core/health/prober.ts'
import { readHealth } from '../../../src/core/health/remote-report.ts'
import { verdictOf } from '../../../src/core/health/verdict.ts'
import { systemClock } from '../../../src/core/host.ts'
import type { HealthFormat } from '../../../src/core/service.ts'
import { healthBody, serve } from '../../support/servers.ts'

const ask = async (format: HealthFormat | 'any', status: number, body: string) =>
  probeRemote({
    service: 'bookings',
    url: await serve((_, response) => void response.writeHead(status).end(body)),
    health: '/healthz',
    format,
    deep: false,
    token: undefined,
    timeoutMs: 5000,
    clock: systemClock,
  })

const SPRING = {
  status: 'DOWN',
  components: {
    db: { status: 'DOWN', details: { database: 'PostgreSQL' } },
    diskSpace: { status: 'UP', details: { total: 1 } },
  },
}
const ASPNET = {
  status: 'Degraded',
  totalDuration: '00:00:00.01',
  entries: {
    sql: { status: 'Healthy', duration: '00:00:00.01' },
    queue: { status: 'Degraded', description: 'long' },
  },
}
/** As older versions say it: Spring Boot's parts are details, and those of AspNetCore.HealthChecks results. */
const OLDER = {
  spring: { status: 'DOWN', details: { mailQueue: { status: 'DOWN' }, ping: { status: 'UP' } } },
  aspnet: { status: 'Unhealthy', results: { sql: { status: 'Unhealthy' }, queue: { status: 'Healthy' } } },
}
/** A check that is no list, as some libraries write it. */
const BARE_CHECK = { status: 'fail', checks: { disk: { status: 'fail', output: 'full' } } }
const HEALTH_JSON = {
  status: 'warn',
  releaseId: '4.2',
  checks: { 'cassandra:responseTime': [{ status: 'pass' }, { status: 'warn', output: 'slow' }] },
}

test.each<[HealthFormat | 'any', number, string, string, Record<string, string>]>([
  ['status', 200, 'ok', 'ok', {}],
  ['status', 500, 'no', 'failing', {}],
  ['status', 400, 'ok', 'failing', {}],
  ['spring', 200, '{"status":"UP"}', 'ok', {}],
  ['spring', 503, JSON.stringify(SPRING), 'failing', { db: 'failing', disk_space: 'ok' }],
  ['spring', 503, JSON.stringify(OLDER.spring), 'failing', { mail_queue: 'failing', ping: 'ok' }],
  ['spring', 503, '{"status":"OUT_OF_SERVICE"}', 'failing', {}],
  ['spring', 200, '{"status":"UNKNOWN"}', 'degraded', {}],
  // A word of its own, as Spring allows.
  ['spring', 200, '{"status":"RESTARTING"}', 'degraded', {}],
  ['aspnet', 200, 'Healthy', 'ok', {}],
  ['aspnet', 200, 'Degraded\n', 'degraded', {}],
  ['aspnet', 503, 'Unhealthy', 'failing', {}],
  ['aspnet', 200, JSON.stringify(ASPNET), 'degraded', { sql: 'ok', queue: 'degraded' }],
  ['aspnet', 503, JSON.stringify(OLDER.aspnet), 'failing', { sql: 'failing', queue: 'ok' }],
  ['health+json', 200, '{"status":"pass"}', 'ok', {}],
  ['health+json', 200, '{"status":"ok"}', 'ok', {}],
  ['health+json', 200, '{"status":"UP"}', 'ok', {}],
  ['health+json', 200, '{"status":"error"}', 'failing', {}],
  ['health+json', 200, '{"status":"Down"}', 'failing', {}],
  ['health+json', 200, JSON.stringify(HEALTH_JSON), 'degraded', { cassandra_response_time: 'degraded' }],
  ['health+json', 503, '{"status":"fail"}', 'failing', {}],
  ['health+json', 503, JSON.stringify(BARE_CHECK), 'failing', { disk: 'failing' }],
  // A response that a load balancer counts as a failure is one.
  ['health+json', 503, '{"status":"pass"}', 'failing', {}],
  ['any', 200, 'ok\n', 'ok', {}],
  ['any', 200, '"OK"', 'ok', {}],
  ...['okay', 'UP', 'alive', 'Healthy.', 'pass', 'pong', 'Success!'].map(
    (word): [HealthFormat | 'any', number, string, string, Record<string, string>] => [
      'any',
      200,
      word,
      'ok',
      {},
    ],
  ),
  ['any', 500, '', 'failing', {}],
  ['any', 503, JSON.stringify(SPRING), 'failing', { db: 'failing', disk_space: 'ok' }],
  ['any', 200, JSON.stringify(ASPNET), 'degraded', { sql: 'ok', queue: 'degraded' }],
  ['any', 200, JSON.stringify(HEALTH_JSON), 'degraded', { cassandra_response_time: 'degraded' }],
  ['any', 200, healthBody({ service: 'shop', state: 'degraded' }), 'degraded', {}],
])('%s: %i %s is %s', async (format, status, body, state, probes) => {
  const health = await ask(format, status, body)
  expect(health).toMatchObject({ reached: true, foreign: true, report: { service: 'bookings', state } })
  const states = health.reached
    ? Object.entries(health.report.probes).map(([name, probe]) => [name, probe.state])
    : []
  expect(Object.fromEntries(states)).toEqual(probes)
})

test.each<[HealthFormat | 'any', number, string, string]>([
  ['spring', 200, 'UP', 'not_health'],
  ['aspnet', 200, '<html>', 'not_health'],
  ['health+json', 502, '<html>bad gateway', 'server_error'],
  ['any', 200, '<!doctype html><title>ok</title>', 'not_health'],
  ['any', 200, '{"message":"ok"}', 'not_health'],
  ['any', 200, 'not ok', 'not_health'],
  ['status', 302, '', 'redirect'],
])('%s: %i %s is no health, because %s', async (format, status, body, cause) => {
  expect(await ask(format, status, body)).toMatchObject({ reached: false, cause })
})

test('another program’s version is no build of the platform: it makes no skew, and none is expected of it', async () => {
  const answer = { status: 'pass', version: '1', releaseId: '4.2' }
  const health = await ask('health+json', 200, JSON.stringify(answer))
  expect(health).toMatchObject({ report: { build: '4.2' } })
  const older = await ask('health+json', 200, JSON.stringify({ status: 'pass', version: '1' }))
  expect(older).toMatchObject({ report: { build: '1' } })
  const verdict = verdictOf([health], { strict: true, expectBuild: 'new', asks: new Map() })
  expect(verdict).toMatchObject({ outcome: 'passed', warnings: [] })
})

test('any answer gives a state or a cause, and its texts cannot control a terminal', () => {
  const bodies = fc.oneof(
    fc.json(),
    fc.string(),
    fc.constantFrom(JSON.stringify(SPRING), JSON.stringify(ASPNET)),
  )
  fc.assert(
    fc.property(
      fc.integer({ min: 200, max: 599 }),
      bodies,
      fc.constantFrom('status', 'spring', 'aspnet', 'health+json', 'any'),
      (status, body, format) => {
        const read = readHealth({ status, body }, 'bookings', format)
        if ('cause' in read) return
        for (const [name, { reason = '' }] of Object.entries(read.report.probes)) {
          expect(name).toMatch(/^[a-z][a-z0-9_]{0,63}$/)
          expect(reason).not.toMatch(/\p{Cc}/u)
        }
      },
    ),
  )
})
