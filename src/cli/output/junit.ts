import type { Finding } from '../../core/finding.ts'

/** JUnit XML: one test case a finding; an error is a failure, and with `strict` a warning is one too. */
export function junitText(name: string, findings: readonly Finding[], strict: boolean): string {
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
  // A suite without a case reads as "nothing ran": a clean environment is one passed case.
  const passed = `    <testcase classname="${escapeXml(name)}" name="no findings" time="0"/>\n`
  const count = Math.max(1, findings.length)
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="platformctl" tests="${count}" failures="${failures}" errors="0" time="0">
  <testsuite name="${escapeXml(name)}" tests="${count}" failures="${failures}" errors="0" skipped="0" time="0">
${cases.join('') || passed}  </testsuite>
</testsuites>
`
}

function escapeXml(text: string): string {
  let clean = ''
  for (const char of text) {
    const code = char.codePointAt(0) ?? 0
    // Characters that XML 1.0 cannot hold, even escaped (XML §2.2).
    if (code >= 32 || char === '\n' || char === '\t') clean += char
  }
  return clean
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&apos;')
}
