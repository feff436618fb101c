import { type Finding, sentencesOf } from '../../core/finding.ts'
import type { LiveResult } from '../../core/live/live.ts'
import { workflowCommand } from '../terminal.ts'
import { liveCounts } from './live-text.ts'

const COMMAND = { error: 'error', warning: 'warning', notice: 'notice' } as const

/** Workflow commands: GitHub shows each finding beside its line. */
export function githubText(findings: readonly Finding[], live: readonly LiveResult[] = []): string {
  const found = findings
    .map((finding) => {
      const { severity, id, location } = finding
      const place = location
        ? `file=${property(location.file)},line=${location.line},col=${location.column},`
        : ''
      return `${workflowCommand()}::${COMMAND[severity]} ${place}title=${property(id)}::${message(sentencesOf(finding))}\n`
    })
    .join('')
  return live.length === 0
    ? found
    : `${found}${workflowCommand()}::notice title=live checks::${message(liveCounts(live))}\n`
}

function message(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}

function property(text: string): string {
  return message(text).replaceAll(':', '%3A').replaceAll(',', '%2C')
}
