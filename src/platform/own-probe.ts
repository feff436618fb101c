import type { Settings } from '../core/env/settings.ts'
import { parseDuration } from '../core/env/values.ts'
import { given } from '../core/given.ts'
import { configured } from '../core/health/engine-probes.ts'
import { failing, ok, type ProbeDefinition, type ProbeResult, skipped } from '../core/health/probe.ts'
import { createScrub, type Scrub } from '../core/reporting/scrub.ts'
import { type CheckResult, isVariableName, PROBE_TARGETS, type ProbeInput } from './definition.ts'

export function ownProbe(name: string, probe: ProbeInput): ProbeDefinition {
  const { service, group, label, optional, meaning, deadline, dependsOn } = probe
  return {
    name,
    service,
    hasDeep: true,
    ...given({ group, label, optional, meaning, deadlineMs: parseDuration(deadline ?? '') }),
    ...(dependsOn !== undefined && { dependsOn: () => dependsOn }),
    ...run(probe),
  }
}

function run(probe: ProbeInput): Pick<ProbeDefinition, 'open' | 'target' | 'variable'> {
  const { check, group } = probe
  const kind = PROBE_TARGETS.find((one) => probe[one] !== undefined) ?? 'http'
  const written = probe[kind] ?? ''
  const target = ({ value }: Settings) => (isVariableName(written) ? value(written) : written)
  return {
    ...(check === undefined && { target, variable: isVariableName(written) ? written : '' }),
    open: (parts) => {
      const { settings } = parts
      const scrub = createScrub({ secrets: settings.secretValues })
      const configuration = group === undefined ? undefined : configured(settings, group)
      return async (context) => {
        const result = (await configuration?.(context)) ?? ok(false)
        if (result.state !== 'ok') return result
        if (check !== undefined) {
          const asked = (async () => check({ ...context, value: settings.value }))()
          // Its errors may have codes that mean something else here.
          return resultOf(
            await asked.catch((cause: unknown) => Promise.reject(new Error('', { cause }))),
            scrub,
          )
        }
        const where = target(settings)
        if (where === undefined) return skipped('its address is not set')
        if (!context.deep) return result
        const { probeTarget } = await import('./targets.ts')
        return probeTarget(kind, where, { ...parts, expect: probe.expect }, context)
      }
    },
  }
}

const STATES = ['ok', 'degraded', 'failing', 'skipped'] as const

/** The reason without secrets and addresses: everybody may read it. */
function resultOf({ state, reason }: Partial<CheckResult> = {}, scrub: Scrub): ProbeResult {
  const known = STATES.find((one) => one === state)
  if (known === undefined) return failing('its check gave no state')
  return {
    state: known,
    checked: known !== 'skipped',
    ...(typeof reason === 'string' && { reason: scrub.text(reason).slice(0, 200) }),
  }
}
