import { type Finding, sentencesOf } from '../../core/finding.ts'
import type { ProbeResult } from '../../core/health/probe.ts'
import { becauseOf, conclusion, reasonOf, type Verdict } from '../../core/health/verdict.ts'
import type { LiveResult } from '../../core/live/live.ts'
import { escapeXml } from '../../core/xml.ts'
import { compact } from './text.ts'

interface Case {
  readonly name: string
  readonly classname: string
  readonly ms?: number | undefined
  /** Absent: it passed, with `said` on its standard output. */
  readonly kind?: 'failure' | 'error' | 'skipped'
  readonly type?: string
  readonly message?: string
  readonly said?: string | undefined
}

type Suite = { readonly name: string; readonly cases: readonly Case[] }

/** JUnit XML. A suite without a case reads as "nothing ran", so each has at least one. */
function junit(name: string, suites: readonly Suite[]): string {
  const counts = (cases: readonly Case[]) => {
    const of = (kind: Case['kind']) => cases.filter((one) => one.kind === kind).length
    const seconds = cases.reduce((sum, { ms = 0 }) => sum + ms, 0) / 1000
    return {
      tests: `tests="${cases.length}" failures="${of('failure')}" errors="${of('error')}"`,
      skipped: `skipped="${of('skipped')}"`,
      time: `time="${seconds.toFixed(4)}"`,
    }
  }
  const all = counts(suites.flatMap(({ cases }) => cases))
  const texts = suites.map((suite) => {
    const { tests, skipped, time } = counts(suite.cases)
    return `  <testsuite name="${escapeXml(suite.name)}" ${tests} ${skipped} ${time}>\n${suite.cases.map(caseText).join('')}  </testsuite>\n`
  })
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="${escapeXml(name)}" ${all.tests} ${all.time}>
${texts.join('')}</testsuites>
`
}

function caseText({ name, classname, ms = 0, kind, type, message, said = '' }: Case): string {
  const tag = kind ?? 'system-out'
  const opening = compact(
    tag,
    type !== undefined && `type="${escapeXml(type)}"`,
    message !== undefined && `message="${escapeXml(message)}"`,
  ).join(' ')
  const inside = kind === undefined && said === '' ? '' : `<${opening}>${escapeXml(said)}</${tag}>`
  return `    <testcase classname="${escapeXml(classname)}" name="${escapeXml(name)}" time="${(ms / 1000).toFixed(4)}">${inside}</testcase>\n`
}

/** One case a finding: a failure if it is an error, or with `strict` a warning. Other live checks are cases of their own. */
export function junitText(
  name: string,
  findings: readonly Finding[],
  strict: boolean,
  live: readonly LiveResult[] = [],
): string {
  const cases = findings.map((finding): Case => {
    const { id, severity, group, present, location, cause } = finding
    const place = location ? `\n${location.file}:${location.line}:${location.column}` : ''
    const said = `${sentencesOf(finding)}${place}`
    const about = { name: `${id} ${present.join(' ')}`.trim(), classname: `${name}.${group}` }
    return severity === 'error' || (strict && severity === 'warning')
      ? { ...about, kind: 'failure', type: severity, message: cause, said }
      : { ...about, said: `${severity}: ${said}` }
  })
  const others = live.flatMap((result): Case[] => {
    const { target, check, state, detail, latencyMs } = result
    if ('id' in result) return []
    const about = { name: check, classname: `${name}.live.${target}`, ms: latencyMs }
    return [{ ...about, ...(state === 'skipped' && { kind: 'skipped', said: detail }) }]
  })
  const all = [...cases, ...others]
  const none = [{ name: 'no findings', classname: name }]
  return junit('platformctl', [{ name, cases: all.length > 0 ? all : none }])
}

/** A suite for each service, and a last case with the verdict: what fails outside of any probe is red too. */
export function healthJunit(verdict: Verdict, passed: boolean): string {
  const { results, diagnosis } = verdict
  const message = conclusion(verdict, passed)
  const suites = results.map((health): Suite => {
    const { service: name, phases } = health
    const reached = { name: 'reached', classname: name, ms: phases.total }
    if (!health.reached) {
      const { cause: type, reason: message, fix: said } = health
      return { name, cases: [{ ...reached, kind: 'error', type, message, said }] }
    }
    const because = becauseOf(diagnosis, name)
    const probes = Object.entries(health.report.probes).map(([probe, result]) => ({
      ...probeCase(result, `${reasonOf(diagnosis, result)}${because ? ` (${because})` : ''}`),
      name: probe,
      classname: name,
      ms: result.latencyMs,
    }))
    return { name, cases: [reached, ...probes] }
  })
  const last: Case = {
    name: 'verdict',
    classname: 'platform',
    ...(!passed && { kind: 'failure', type: 'verdict', message }),
  }
  return junit(`platformctl health: ${message}`, [...suites, { name: 'platform', cases: [last] }])
}

function probeCase({ state, reason }: ProbeResult, message: string) {
  if (state === 'failing') return { kind: 'failure', type: 'failing', message } as const
  if (state === 'skipped') return { kind: 'skipped', said: reason } as const
  return state === 'degraded' ? { said: `degraded: ${message}` } : {}
}
