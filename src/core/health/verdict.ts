import type { Service } from '../service.ts'
import {
  becauseOf,
  type Dependencies,
  type Diagnosis,
  diagnose,
  isRefused,
  type RemoteState,
  stateOf,
} from './diagnosis.ts'
import type { RemoteHealth } from './prober.ts'

export interface Expectations {
  /** Degraded and warnings fail too. */
  readonly strict: boolean
  /** Every service must run this build. */
  readonly expectBuild: string | undefined
  readonly asks: Dependencies
}

export interface Verdict {
  readonly outcome: 'passed' | 'failed' | 'unreached'
  /** All of it in one line. */
  readonly sentence: string
  /** Trouble that does not fail the check yet: different builds, a certificate that ends soon. */
  readonly warnings: readonly string[]
  readonly results: readonly RemoteHealth[]
  readonly diagnosis: Diagnosis
}

/** Let's Encrypt renews 30 days before the end: within 14 a renewal has failed. */
const CERTIFICATE_DAYS = 14

/** The verdict on one round of requests. */
export function verdictOf(
  results: readonly RemoteHealth[],
  { strict, expectBuild, asks }: Expectations,
): Verdict {
  const diagnosis = diagnose(results, asks)
  const states = results.map(stateOf)
  const otherBuild = [...diagnosis.builds].filter(
    ([, build]) => expectBuild !== undefined && build !== expectBuild,
  )
  const warnings = [
    ...(diagnosis.skew ? [`different builds run: ${buildsText(diagnosis.builds)}`] : []),
    ...results.flatMap(({ service, certificate }) =>
      certificate && certificate.daysLeft < CERTIFICATE_DAYS
        ? [
            `the certificate of ${service} ${certificate.daysLeft < 0 ? 'has expired' : `ends in ${days(certificate.daysLeft)}`}`,
          ]
        : [],
    ),
  ]
  const failed =
    states.includes('failing') ||
    otherBuild.length > 0 ||
    (strict && (states.includes('degraded') || warnings.length > 0))
  const named = (state: RemoteState) =>
    results.filter((health) => stateOf(health) === state && !isRefused(health)).map(nameOf)
  const nameOf = ({ service }: RemoteHealth) => {
    const because = becauseOf(diagnosis, service)
    return because === undefined ? service : `${service} (${because})`
  }
  const list = (label: string, names: readonly string[]) =>
    names.length === 0 ? [] : [`${label}: ${names.join(', ')}`]
  const parts = [
    ...list('not reached', named('unreached')),
    ...list('token missing', results.filter(lacksToken).map(nameOf)),
    ...list('refused', results.filter((health) => isRefused(health) && !lacksToken(health)).map(nameOf)),
    ...list('failing', named('failing')),
    ...list('degraded', named('degraded')),
    ...(otherBuild.length === 0
      ? []
      : [`expected build ${expectBuild}, found ${buildsText(new Map(otherBuild))}`]),
    ...warnings,
  ]
  return {
    outcome: states.includes('unreached') ? 'unreached' : failed ? 'failed' : 'passed',
    sentence: parts.length === 0 ? allOk(results) : parts.join('; '),
    warnings,
    results,
    diagnosis,
  }
}

function lacksToken(health: RemoteHealth): boolean {
  return !health.reached && health.cause === 'token_missing'
}

/** The verdict's sentence, or that the checks passed but not as often in a row as asked. */
export function conclusion({ outcome, sentence }: Verdict, passed: boolean): string {
  return outcome === 'passed' && !passed ? `not often enough in a row: ${sentence}` : sentence
}

function allOk(results: readonly RemoteHealth[]): string {
  const [first, ...more] = results
  return more.length === 0 ? `${first?.service ?? 'nothing'} is ok` : `all ${results.length} services are ok`
}

function buildsText(builds: ReadonlyMap<Service, string | null>): string {
  return [...builds].map(([service, build]) => `${service} ${build ?? 'unstamped'}`).join(', ')
}

function days(count: number): string {
  return count === 1 ? '1 day' : `${count} days`
}
