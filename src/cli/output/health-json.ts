import { stateOf } from '../../core/health/diagnosis.ts'
import type { Verdict } from '../../core/health/verdict.ts'

/** `platformctl health --format json`, version 1: phases in milliseconds, times in ISO 8601 (UTC). */
export function healthJson(verdict: Verdict, passed: boolean, now: number): Record<string, unknown> {
  const { results, diagnosis, outcome, sentence, warnings } = verdict
  return {
    version: 1,
    passed,
    outcome,
    sentence,
    time: new Date(now).toISOString(),
    services: results.map((health) => ({
      state: stateOf(health),
      because: diagnosis.followers.get(health.service) ?? [],
      ...health,
    })),
    rootCauses: diagnosis.rootCauses,
    builds: Object.fromEntries(diagnosis.builds),
    skew: diagnosis.skew,
    warnings,
  }
}
