import { becauseOf } from '../../core/health/diagnosis.ts'
import type { ProbeResult } from '../../core/health/probe.ts'
import type { RemoteHealth } from '../../core/health/prober.ts'
import { conclusion, type Verdict } from '../../core/health/verdict.ts'
import { escapeXml } from './xml.ts'

interface Case {
  readonly name: string
  readonly seconds: number
  readonly inside: string
  /** Undefined: it passed. */
  readonly kind?: 'failure' | 'error' | 'skipped'
}

/**
 * JUnit XML: a suite per service, with a case for reaching it and one for each probe. A last case has the verdict, so
 * that failures outside of any probe (another build, --strict, too few passes in a row) are red too.
 */
export function healthJunit(verdict: Verdict, passed: boolean): string {
  const { results, diagnosis } = verdict
  const sentence = escapeXml(conclusion(verdict, passed))
  const whole: Case = passed
    ? { name: 'verdict', seconds: 0, inside: '' }
    : {
        name: 'verdict',
        seconds: 0,
        inside: `<failure type="verdict" message="${sentence}"/>`,
        kind: 'failure',
      }
  const suites = [
    ...results.map((health) => ({
      name: health.service,
      cases: casesOf(health, becauseOf(diagnosis, health.service)),
    })),
    { name: 'platform', cases: [whole] },
  ]
  const all = suites.flatMap(({ cases }) => cases)
  const count = (cases: readonly Case[], kind: NonNullable<Case['kind']>) =>
    cases.filter((one) => one.kind === kind).length
  const counts = (cases: readonly Case[]) =>
    `tests="${cases.length}" failures="${count(cases, 'failure')}" errors="${count(cases, 'error')}"`
  const seconds = (cases: readonly Case[]) => cases.reduce((sum, one) => sum + one.seconds, 0).toFixed(4)
  const body = suites.map(({ name, cases }) => {
    const rows = cases.map(
      (one) =>
        `    <testcase classname="${name}" name="${escapeXml(one.name)}" time="${one.seconds.toFixed(4)}">${one.inside}</testcase>\n`,
    )
    return `  <testsuite name="${name}" ${counts(cases)} skipped="${count(cases, 'skipped')}" time="${seconds(cases)}">\n${rows.join('')}  </testsuite>\n`
  })
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="platformctl health: ${sentence}" ${counts(all)} time="${seconds(all)}">
${body.join('')}</testsuites>
`
}

function casesOf(health: RemoteHealth, because: string | undefined): Case[] {
  const seconds = health.phases.total / 1000
  if (!health.reached) {
    const inside = `<error type="${health.cause}" message="${escapeXml(health.reason)}">${escapeXml(health.fix)}</error>`
    return [{ name: 'reached', seconds, inside, kind: 'error' }]
  }
  const reached: Case = { name: 'reached', seconds, inside: '' }
  return [
    reached,
    ...Object.entries(health.report.probes).map(([name, probe]) => caseOf(name, probe, because)),
  ]
}

function caseOf(name: string, probe: ProbeResult, because: string | undefined): Case {
  const seconds = (probe.latencyMs ?? 0) / 1000
  const reason = escapeXml(`${probe.reason ?? probe.state}${because ? ` (${because})` : ''}`)
  switch (probe.state) {
    case 'failing':
      return { name, seconds, kind: 'failure', inside: `<failure type="failing" message="${reason}"/>` }
    case 'skipped':
      return {
        name,
        seconds,
        kind: 'skipped',
        inside: `<skipped>${escapeXml(probe.reason ?? '')}</skipped>`,
      }
    case 'degraded':
      return { name, seconds, inside: `<system-out>degraded: ${reason}</system-out>` }
    case 'ok':
      return { name, seconds, inside: '' }
  }
}
