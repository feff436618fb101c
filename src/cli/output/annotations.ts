import { createHash } from 'node:crypto'
import path from 'node:path'
import packageJson from '../../../package.json' with { type: 'json' }
import { type Finding, sentencesOf } from '../../core/finding.ts'
import type { LiveResult } from '../../core/live/live.ts'
import { type Context, ours } from '../context.ts'
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
  // The mark before a workflow command of our own.
  return lines.map((line) => `${ours('\u001b[Z')}::${line}\n`).join('')
}

const message = (text: string) => text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')

const property = (text: string) => message(text).replaceAll(':', '%3A').replaceAll(',', '%2C')

const LEVEL = { error: 'error', warning: 'warning', notice: 'note' } as const

/**
 * SARIF 2.1.0: one run, one rule for each id that was found. Code scanning refuses a file with a result that is nowhere, so
 * one without a place is at the first of `files`, or at the definition. It takes every result for a failure, so live checks
 * are results only if they failed or are in doubt: those are among the findings.
 */
export function sarifText(
  { cwd, platform }: Pick<Context, 'cwd' | 'platform'>,
  findings: readonly Finding[],
  files: readonly string[] = [],
) {
  const ids = [...new Set(findings.map(({ id }) => id))]
  const fingerprint = fingerprints()
  const nowhere = { file: files[0] ?? platform.definition?.file ?? 'package.json', line: 1, column: 1 }
  const results = findings.map((finding) => {
    const { id, severity, location: { file, line, column } = nowhere } = finding
    return {
      ruleId: id,
      ruleIndex: ids.indexOf(id),
      level: LEVEL[severity],
      message: { text: sentencesOf(finding) },
      locations: [
        {
          physicalLocation: {
            artifactLocation: { uri: uri(path.relative(cwd, path.resolve(cwd, file))) },
            region: { startLine: line, startColumn: column },
          },
        },
      ],
      partialFingerprints: { primaryLocationLineHash: fingerprint(finding) },
    }
  })
  const { version } = packageJson
  const rules = ids.map((id) => rule(id, findings))
  return jsonText({
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [{ tool: { driver: { name: 'platformctl', version, rules } }, results }],
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
