import type { Finding, Location, Severity } from '../finding.ts'
import type { Contract } from './contract.ts'

/** A line that all readers take alike: a comment without a backslash, or a name with a plain value in ASCII. */
const PLAIN_LINE =
  /^(?:#[^\\\r]*|(?!__proto__=)[A-Za-z_][A-Za-z0-9_]*=(?:[!%&(-[\]-_a-~](?: *[!%&(-[\]-_a-~])*)?)?$/

/** The expression needs room on the stack for each character. */
const LONG_LINE = 64 * 1024

/** A file of plain lines that names nothing twice: no reader can disagree, so none needs to be asked. Most files are. */
export function readsAlike(text: string, assignments: readonly Assignment[]): boolean {
  const lines = text.split('\n')
  // One line each: what looks like the end of a wrapped key is no assignment here, and one for other readers.
  const written = lines.filter((line) => line !== '' && !line.startsWith('#')).length
  const names = new Set(assignments.map(({ name }) => name))
  return names.size === written && lines.every((line) => line.length < LONG_LINE && PLAIN_LINE.test(line))
}

/** One assignment of an env file, with its line and column. */
export interface Assignment {
  readonly name: string
  readonly value: string
  readonly location: Location
  readonly excerpt: string
}

const SECRET_NAME = /KEY|TOKEN|SECRET|PASSWORD/i
const NAME = /^[A-Za-z_][A-Za-z0-9_.-]*/
/** Shown in an excerpt in place of a value, or of a line that may be part of one. */
export const MASK = '••••'

/**
 * Reads an env file: `NAME=value`, `export`, quotes over several lines, `#` comments, a BOM, CRLF. Nothing is executed
 * or expanded, and the cost is linear. Lines that are not assignments become findings.
 */
export function parseEnvFile(contract: Contract, text: string, file: string) {
  /** In the order of the file; a name may occur twice. */
  const assignments: Assignment[] = []
  const findings: Finding[] = []
  const common = { services: contract.services, group: 'file', missing: [] } as const
  const complain = (
    id: string,
    { name, location, excerpt }: Omit<Assignment, 'value'>,
    cause: string,
    fix: string,
    severity: Severity = 'warning',
  ) => {
    const present = name === '' ? [] : [name]
    findings.push({ ...common, id, severity, present, cause, fix, location, excerpt })
  }
  const lines = text.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/)
  // The lines right after a secret may be the rest of it, broken when it was pasted.
  let afterSecret = false
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] ?? ''
    const lead = /^\s*(?:export\s+)?/.exec(line)?.[0] ?? ''
    const rest = line.slice(lead.length)
    if (rest === '' || rest.startsWith('#')) continue
    const location = { file, line: index + 1, column: lead.length + 1 }
    const name = NAME.exec(rest)?.[0]
    const equals = name === undefined ? undefined : /^[ \t]*=[ \t]*/.exec(rest.slice(name.length))?.[0]
    const known = name === undefined ? undefined : contract.find(name)
    if (name === undefined || equals === undefined || (!known && endsWrapped(rest, afterSecret))) {
      // The text may be the rest of a secret: repeat it only if it is a name of ours.
      const ours = known?.name ?? ''
      complain(
        'unreadable-line',
        { name: ours, location, excerpt: `${lead}${ours === '' ? '' : `${ours} `}${MASK}` },
        'This line is not an assignment, and readers skip or refuse it.',
        'Write it as NAME=value, or put a # before it.',
      )
      continue
    }
    afterSecret = known?.secret ?? SECRET_NAME.test(name)
    const found = { name, location, excerpt: `${lead}${name}=${MASK}` }
    const start = rest.slice(name.length + equals.length)
    const quote = /^["'`]/.exec(start)?.[0]
    const quoted = quote === undefined ? undefined : readQuoted(lines, index, start.slice(1), quote)
    const end = start.startsWith('-----BEGIN ') ? endOfKey(lines, index) : index
    const bare = quote === undefined && end === index ? start.replace(/(^|\s)#.*$/s, '') : start
    assignments.push({ ...found, value: quoted?.value ?? bare.trim() })
    if (end > index)
      complain(
        'unquoted-lines',
        found,
        `The value of ${name} has several lines and no quotes, so only its first line is read.`,
        'Put the whole value in double quotes, or in a file of its own.',
      )
    else if (quote !== undefined && quoted === undefined)
      complain(
        'unterminated-quote',
        found,
        `The value of ${name} opens a quote that nothing closes.`,
        'Close the quote, or remove it.',
      )
    else if (quoted && /^[^#]/.test(quoted.after)) {
      // If the value has several lines, the opening quote of another value probably closed this one.
      const several = quoted.lastLine > index
      complain(
        'text-after-quote',
        found,
        several
          ? `The quote that ${name} opens is closed on line ${quoted.lastLine + 1}, where text follows, so the lines between are part of its value.`
          : `Text follows the closing quote of ${name}, and readers disagree about it.`,
        several
          ? 'Close the quote on the line where it should end.'
          : 'Put the whole value in quotes, or remove the rest.',
      )
    }
    // Skip the lines of a key without quotes: each holds a part of it.
    index = quoted?.lastLine ?? end
  }
  const seen = new Map<string, Assignment>()
  for (const assignment of assignments) {
    const { name } = assignment
    const earlier = seen.get(name)
    seen.set(name, assignment)
    if (earlier)
      complain(
        'duplicate-name',
        assignment,
        `${name} is set again: line ${earlier.location.line} of the same file is overridden.`,
        'Keep one of the two lines.',
      )
  }
  // Node itself obeys these where a reader passes the file on to it: NODE_OPTIONS can make it run any code.
  for (const assignment of assignments.filter(({ name }) => name.startsWith('NODE_')))
    complain(
      'runtime-variable',
      assignment,
      `${assignment.name} configures Node and not the platform: platformctl ignores it here, but Docker, systemd, npx and node --env-file pass it to Node.`,
      'Set it where the program is started, and remove the line.',
      // Harmless, and in most env files.
      assignment.name === 'NODE_ENV' ? 'notice' : 'warning',
    )
  return { assignments, findings }
}

/** Whether what looks like an empty assignment is the end of a wrapped key with its padding: part of a secret. */
function endsWrapped(rest: string, afterSecret: boolean): boolean {
  const [, name = '', padding = ''] = /^([\w.-]+)(=+)\s*$/.exec(rest) ?? []
  if (padding === '') return false
  return afterSecret || padding.length > 1 || (/[a-z]/.test(name) && /[A-Z0-9]/.test(name))
}

/** The line on which a PEM key (RFC 7468) that begins here ends; the line itself if it does not end. */
function endOfKey(lines: readonly string[], first: number): number {
  for (let index = first; index < lines.length; index += 1) {
    const line = lines[index] ?? ''
    if (line.includes('-----END ')) return index
    // At the next beginning at the latest, so that no line is looked at twice.
    if (index > first && (line.includes('-----BEGIN ') || !/^[A-Za-z0-9+/=:, -]*$/.test(line))) return first
  }
  return first
}

function readQuoted(lines: readonly string[], first: number, start: string, quote: string) {
  const parts: string[] = []
  for (let index = first; index < lines.length; index += 1) {
    const line = index === first ? start : (lines[index] ?? '')
    let end = 0
    while (end < line.length && line[end] !== quote) end += quote === '"' && line[end] === '\\' ? 2 : 1
    if (end >= line.length) {
      parts.push(line)
      continue
    }
    parts.push(line.slice(0, end))
    const raw = parts.join('\n')
    const value = quote === '"' ? unescapeDouble(raw) : raw
    return { value, after: line.slice(end + 1).trim(), lastLine: index }
  }
  return undefined
}

function unescapeDouble(raw: string): string {
  return raw.replace(/\\([nrt"\\$])/g, (_, char: string) => ({ n: '\n', r: '\r', t: '\t' })[char] ?? char)
}
