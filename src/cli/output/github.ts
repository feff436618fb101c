import type { Finding } from '../../core/finding.ts'

const COMMAND = { error: 'error', warning: 'warning', notice: 'notice' } as const

/** Workflow commands: GitHub shows each finding beside its line. */
export function githubText(findings: readonly Finding[]): string {
  return findings
    .map(({ severity, id, cause, fix, location }) => {
      const place = location
        ? `file=${property(location.file)},line=${location.line},col=${location.column},`
        : ''
      return `::${COMMAND[severity]} ${place}title=${property(id)}::${message(`${cause} ${fix}`)}\n`
    })
    .join('')
}

function message(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}

function property(text: string): string {
  return message(text).replaceAll(':', '%3A').replaceAll(',', '%2C')
}
