import type { Finding } from '../../core/finding.ts'
import type { LiveResult } from '../../core/live/live.ts'
import { escapeXml } from './xml.ts'

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
    const body = escapeXml(`${finding.cause} ${finding.fix}${place}`)
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
