import { createHash } from 'node:crypto'
import { type Finding, sentencesOf } from '../../core/finding.ts'
import type { LiveResult } from '../../core/live/live.ts'
import { workflowCommand } from '../context.ts'
import { liveCounts } from './findings-text.ts'
import { jsonText } from './text.ts'

/** Workflow commands: GitHub shows each finding beside its line. */
export function githubText(findings: readonly Finding[], live: readonly LiveResult[] = []): string {
  const lines = findings.map((finding) => {
    const { severity, id, location } = finding
    const place = location
      ? `file=${property(location.file)},line=${location.line},col=${location.column},`
      : ''
    return `${severity} ${place}title=${property(id)}::${message(sentencesOf(finding))}`
  })
  if (live.length > 0) lines.push(`notice title=live checks::${message(liveCounts(live))}`)
  return lines.map((line) => `${workflowCommand()}::${line}\n`).join('')
}

const message = (text: string) => text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')

const property = (text: string) => message(text).replaceAll(':', '%3A').replaceAll(',', '%2C')

const LEVEL = { error: 'error', warning: 'warning', notice: 'note' } as const

/** SARIF 2.1.0: one run, one rule for each id that was found. */
export function sarifText(findings: readonly Finding[], version: string, live: readonly LiveResult[] = []) {
  const ids = [...new Set(findings.map(({ id }) => id))]
  const fingerprint = fingerprints()
  const found = findings.map((finding) => ({
    ruleId: finding.id,
    ruleIndex: ids.indexOf(finding.id),
    level: LEVEL[finding.severity],
    message: { text: sentencesOf(finding) },
    locations: [finding.location ?? []].flat().map(({ file, line, column }) => ({
      physicalLocation: {
        artifactLocation: { uri: uri(file) },
        region: { startLine: line, startColumn: column },
      },
    })),
    partialFingerprints: { primaryLocationLineHash: fingerprint(finding) },
  }))
  // Failed and doubtful live checks are among the findings.
  const others = live.filter((result) => !('id' in result)).map(liveResult)
  const rules = ids.map((id) => rule(id, findings))
  return jsonText({
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [{ tool: { driver: { name: 'platformctl', version, rules } }, results: [...found, ...others] }],
  })
}

/**
 * Gives each finding a fingerprint that stays the same while lines above it come and go, so that code scanning
 * recognizes it (SARIF §3.27.17). It is made from the finding's id, file and names, never from the line's text, which
 * may be a secret. Equal findings are counted.
 */
function fingerprints(): (finding: Finding) => string {
  const seen = new Map<string, number>()
  return ({ id, location, present, missing }) => {
    const about = JSON.stringify([id, location?.file.replaceAll('\\', '/'), present, missing])
    const hash = createHash('sha256').update(about).digest('hex').slice(0, 16)
    const count = (seen.get(hash) ?? 0) + 1
    seen.set(hash, count)
    return `${hash}:${count}`
  }
}

/** A result that is no failure has no level (SARIF §3.27.9, §3.27.10). */
function liveResult({ target, check, state, detail }: LiveResult): Record<string, unknown> {
  return {
    ruleId: `live/${target}/${check.toLowerCase().replaceAll(' ', '-')}`,
    kind: state === 'passed' ? 'pass' : 'notApplicable',
    level: 'none',
    message: { text: `${target}: ${check} ${state}: ${detail}` },
  }
}

function rule(id: string, findings: readonly Finding[]): Record<string, unknown> {
  const first = findings.find((finding) => finding.id === id)
  return {
    id,
    shortDescription: { text: first?.cause ?? id },
    help: { text: `platformctl env explain ${id}` },
    defaultConfiguration: { level: LEVEL[first?.severity ?? 'warning'] },
  }
}

/** A relative reference with forward slashes, also on Windows (RFC 3986 §4.2). */
const uri = (file: string) => file.replaceAll('\\', '/').split('/').map(encodeURIComponent).join('/')
