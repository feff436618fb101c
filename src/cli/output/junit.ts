import { type Finding, sentencesOf } from '../../core/finding.ts'
import type { ProbeResult } from '../../core/health/probe.ts'
import type { RemoteHealth } from '../../core/health/prober.ts'
import { becauseOf, conclusion, type Verdict } from '../../core/health/verdict.ts'
import type { LiveResult } from '../../core/live/live.ts'

/**
 * JUnit XML: one test case a finding; an error is a failure, and with `strict` a warning is one too. Live checks that
 * passed or were skipped are cases of their own; the others are among the findings.
 */
export function junitText(
  name: string,
  findings: readonly Finding[],
  strict: boolean,
  live: readonly LiveResult[] = [],
): string {
  const fails = ({ severity }: Finding) => severity === 'error' || (strict && severity === 'warning')
  const failures = findings.filter(fails).length
  const cases = findings.map((finding) => {
    const { location } = finding
    const place = location ? `\n${location.file}:${location.line}:${location.column}` : ''
    const body = escapeXml(`${sentencesOf(finding)}${place}`)
    const inside = fails(finding)
      ? `<failure message="${escapeXml(finding.cause)}" type="${finding.severity}">${body}</failure>`
      : `<system-out>${finding.severity}: ${body}</system-out>`
    return `    <testcase classname="${escapeXml(`${name}.${finding.group}`)}" name="${escapeXml(`${finding.id} ${finding.present.join(' ')}`.trim())}" time="0">${inside}</testcase>\n`
  })
  const others = live.filter((result) => !('id' in result))
  const liveCases = others.map(({ target, check, state, detail, latencyMs = 0 }) => {
    const attributes = `classname="${escapeXml(`${name}.live.${target}`)}" name="${escapeXml(check)}" time="${(latencyMs / 1000).toFixed(3)}"`
    return state === 'skipped'
      ? `    <testcase ${attributes}><skipped>${escapeXml(detail)}</skipped></testcase>\n`
      : `    <testcase ${attributes}/>\n`
  })
  const skipped = others.filter(({ state }) => state === 'skipped').length
  // A suite without a case reads as "nothing ran": a clean environment is one passed case.
  const passed = `    <testcase classname="${escapeXml(name)}" name="no findings" time="0"/>\n`
  const count = Math.max(1, findings.length + others.length)
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="platformctl" tests="${count}" failures="${failures}" errors="0" time="0">
  <testsuite name="${escapeXml(name)}" tests="${count}" failures="${failures}" errors="0" skipped="${skipped}" time="0">
${[...cases, ...liveCases].join('') || passed}  </testsuite>
</testsuites>
`
}

/** Text for an element or an attribute of XML 1.0. */
export function escapeXml(text: string): string {
  let clean = ''
  for (const char of text) {
    const code = char.codePointAt(0) ?? 0
    // Characters that XML 1.0 cannot hold, even escaped (XML §2.2).
    const isOther = code >= 0xfffe && code <= 0xffff
    const isHalf = code >= 0xd800 && code <= 0xdfff
    if ((code >= 32 && !isOther && !isHalf) || char === '\n' || char === '\t') clean += char
  }
  return clean
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&apos;')
}

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
