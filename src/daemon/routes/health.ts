import type * as z from 'zod'
import { perTick, spaced } from '../../core/calls.ts'
import { type HealthReport, httpStatus, type ProbeResult, toHealthJson } from '../../core/health/probe.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { type ServiceDefinition, WEB } from '../../core/service.ts'
import { acceptedOf, jsonResponse } from '../http/respond.ts'
import { type Answer, defineRoute, query, requireSecret } from '../http/route.ts'

/** The health of a service. If a token is set, only requests to web with it run deep (live) checks. */
export const route = (platform: ResolvedPlatform, { name, summary }: ServiceDefinition) =>
  defineRoute({
    tag: 'Health',
    summary:
      name === WEB
        ? 'Health of the web service'
        : `Health of ${name}${summary === undefined ? '' : `: ${summary}`}`,
    description:
      'Computed for each request. `ok` and `degraded` are 200, `failing` is 503 with the same body. Clients that accept `application/health+json` get that format.',
    ...(name === WEB && {
      security: 'deepToken',
      securityOptional: true,
      parameters: [
        query(
          'deep',
          '`1` or `true` also tries what is configured: reachability, not configuration alone. Of the web service; the API has one depth, and takes no token.',
          '1',
        ),
      ],
    }),
    answers: (zod) => answersOf(zod, platform, name),
    handle(site) {
      const { health, timer, settings } = site
      // A probe that need not wait, as a ping of SQLite, is over before the next request: no single flight would hold it.
      const shallow = perTick(() => health.check({ deep: false }))
      const full = perTick(() => health.check({ deep: true }))
      const open = spaced(() => health.check({ deep: true }), timer)
      const isOpen = settings.health.deepToken === undefined
      return async (c) => {
        const deep = name === WEB && /^(?:1|true)$/.test(c.query('deep') ?? '')
        if (deep && !isOpen) requireSecret(site, c, 'health')
        // Without a token anybody may run deep checks, and each one logs in to other servers: so run them less often.
        const report = await (!deep ? shallow() : isOpen ? open() : full())
        const status = httpStatus(report.state)
        // Named, and not for less than plain JSON (RFC 9110 §12.5.1): wildcards get the platform's own body.
        const accepted = acceptedOf(c.request.headers.get('accept'))
        const quality = (wanted: string) => accepted.find(({ type }) => type === wanted)?.q ?? 0
        const named = quality(HEALTH_JSON)
        return named > 0 && named >= quality('application/json')
          ? jsonResponse(toHealthJson(report), status, { 'Content-Type': `${HEALTH_JSON}; charset=utf-8` })
          : jsonResponse(report, status)
      }
    },
  })

const HEALTH_JSON = 'application/health+json'

/** Of both statuses, in both formats. zod comes as an argument, because no answer needs its schemas. */
function answersOf(
  zod: typeof z,
  { probes, services }: ResolvedPlatform,
  service: string,
): readonly Answer<unknown>[] {
  // Web is described by its own store, whatever else its platform has.
  const described = service === WEB ? [] : probes.filter((one) => one.service === service)
  const groups = described.flatMap(({ group, name }) => (group === undefined ? [] : name))
  const probe = described.find(({ group }) => group === undefined)?.name ?? described[0]?.name ?? 'store'
  const notConfigured = service === WEB ? ['mail', 'sharedstore'] : groups.slice(0, 2)
  const serviceName = zod.enum(services.map(({ name }) => name))
  const probeState = zod.enum(['ok', 'degraded', 'failing', 'skipped'])
  const pass = zod.enum(['pass', 'warn', 'fail'])
  const moments = { startedAt: zod.iso.datetime(), time: zod.iso.datetime(), latencyMs: zod.number().min(0) }
  const report = zod.strictObject({
    service: serviceName,
    state: zod.enum(['ok', 'degraded', 'failing']),
    build: zod.string().nullable(),
    ...moments,
    probes: zod.record(
      zod.string(),
      zod.strictObject({
        state: probeState,
        checked: zod.boolean().describe('False: nothing live was tried.'),
        reason: zod.string().exactOptional(),
        latencyMs: zod.number().min(0).exactOptional(),
      }),
    ),
  }) satisfies z.ZodType<HealthReport>
  // draft-inadarei-api-health-check-06. Fields that the draft does not define have our names.
  const draft = zod.strictObject({
    status: pass,
    releaseId: zod.string().exactOptional(),
    serviceId: serviceName,
    description: zod.string(),
    ...moments,
    checks: zod.record(
      zod.string(),
      zod.array(
        zod.strictObject({
          componentId: zod.string(),
          componentType: zod.literal('component'),
          status: pass,
          state: probeState,
          checked: zod.boolean(),
          time: zod.iso.datetime(),
          observedValue: zod.number().exactOptional(),
          observedUnit: zod.literal('ms').exactOptional(),
          output: zod.string().exactOptional().describe('With warn and fail only.'),
          reason: zod.string().exactOptional().describe('With pass only.'),
        }),
      ),
    ),
  })
  const times = { startedAt: '2026-11-21T04:00:00.000Z', time: '2026-11-21T08:00:00.000Z', latencyMs: 1.2 }
  const absent = { state: 'skipped', checked: false, reason: 'not configured' } as const
  const unset = Object.fromEntries(notConfigured.map((name) => [name, absent]))
  return [true, false].map((isUp) => {
    const own: ProbeResult = isUp
      ? { state: 'ok', checked: true, latencyMs: 0.4 }
      : { state: 'failing', checked: true, reason: 'did not answer in time', latencyMs: 0.4 }
    const state = isUp ? 'degraded' : 'failing'
    const shown = { ...(isUp && unset), [probe]: own }
    const body = { service, state, build: '2026-11-21.1', ...times, probes: shown }
    const alone: HealthReport = { ...body, state: isUp ? 'ok' : state, build: null, probes: { [probe]: own } }
    return {
      status: isUp ? 200 : 503,
      description: isUp ? 'Healthy, perhaps with limits.' : 'A probe fails.',
      content: {
        'application/json': { name: 'Health', schema: report, examples: { [state]: body } },
        [HEALTH_JSON]: { name: 'HealthJson', schema: draft, examples: { draft: toHealthJson(alone) } },
      },
    }
  })
}
