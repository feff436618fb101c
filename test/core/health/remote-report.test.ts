import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readReport } from '../../../src/core/health/remote-report.ts'
import { isCauseCode } from '../../../src/core/network/causes.ts'
import { anyText } from '../../support/any-text.ts'
import { healthBody } from '../../support/servers.ts'

const status = fc.constantFrom(200, 204, 301, 401, 404, 418, 429, 500, 503)
const state = fc.constantFrom('ok', 'degraded', 'failing', 'skipped', 'healthy', 1, null)
/** Near enough to a report that some are one. */
const nearly = fc.record(
  {
    service: fc.constantFrom('web', 'api', 'Web', 7),
    state,
    build: fc.oneof(anyText(), fc.constant(null), fc.integer()),
    time: fc.anything(),
    latencyMs: fc.oneof(fc.double(), fc.string()),
    probes: fc.oneof(
      fc.dictionary(
        fc.oneof(fc.string(), fc.constantFrom('store', 'api', '__proto__')),
        fc.record(
          { state, checked: fc.anything(), reason: anyText({ maxLength: 600 }) },
          { requiredKeys: [] },
        ),
      ),
      fc.array(fc.anything()),
    ),
  },
  { requiredKeys: [] },
)

const words = anyText({ maxLength: 600 })
const valid = fc.constantFrom('ok', 'degraded', 'failing')
/** A report in form, with whatever text in it. */
const shaped = fc.record({
  service: fc.constant('web'),
  state: valid,
  build: words,
  probes: fc.dictionary(
    fc.constantFrom('store', 'api', 'constructor'),
    fc.record({ state: valid, reason: words }),
  ),
})

test('any body is a report that is safe to show, or a cause code', () => {
  let reports = 0
  fc.assert(
    fc.property(status, fc.oneof(fc.string(), fc.jsonValue(), nearly, shaped), (code, value) => {
      const body = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
      const read = readReport({ status: code, body }, 'web')
      if ('cause' in read) {
        expect(isCauseCode(read.cause)).toBe(true)
        return
      }
      reports += 1
      const { report } = read
      expect(['ok', 'degraded', 'failing']).toContain(report.state)
      expect(report.service).toBe('web')
      for (const [name, probe] of Object.entries(report.probes)) {
        expect(name).toMatch(/^[a-z][a-z0-9_]*$/)
        expect(['ok', 'degraded', 'failing', 'skipped']).toContain(probe.state)
        expect((probe.reason ?? '').length).toBeLessThanOrEqual(300)
        expect(probe.reason ?? '').not.toMatch(/[\p{Cc}\p{Bidi_Control}\p{Surrogate}]/u)
      }
      expect(report.build ?? '').not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u)
    }),
    { numRuns: 400 },
  )
  expect(reports).toBeGreaterThan(20)
})

test('a service is failing if its report says so, or if the HTTP status tells a load balancer so', () => {
  expect(readReport({ status: 200, body: healthBody({ state: 'failing' }) }, 'web')).toMatchObject({
    report: { state: 'failing' },
  })
  expect(readReport({ status: 503, body: healthBody({ state: 'ok' }) }, 'web')).toMatchObject({
    report: { state: 'failing' },
  })
})

test('a probe of a platform may have any name that its definition may give it', () => {
  const probes = {
    'heartbeat-backup': { state: 'ok', checked: true },
    kiln_queue: { state: 'ok', checked: true },
  }
  expect(readReport({ status: 200, body: healthBody({ probes }) }, 'web')).toMatchObject({
    report: { probes },
  })
})
