import type { Finding } from '../finding.ts'
import { SERVICES } from '../service.ts'
import { type Dialect, readAs } from './dialects/read.ts'
import type { Assignment } from './reader.ts'

/** The readers that a deployment of ours goes through, unless it says otherwise. */
const DEPLOYMENT_READERS: readonly Dialect[] = ['node', 'compose', 'docker', 'systemd']

/**
 * A line that all readers take alike: a comment without a backslash, or a name with a value of printable ASCII that holds
 * no quote, dollar, hash, backslash or backtick. A file of nothing else that names nothing twice need not be read by each
 * of them.
 */
const PLAIN_LINE =
  /^(?:#[^\\\r]*|(?!__proto__=)[A-Za-z_][A-Za-z0-9_]*=(?:[!%&(-[\]-_a-~](?: *[!%&(-[\]-_a-~])*)?)?$/

/**
 * Warns wherever the given readers would see different values of a name, or where one refuses the file. A name that
 * every reader that accepts the file sees alike is portable, however oddly it is written.
 */
export function portability(
  text: string,
  file: string,
  assignments: readonly Assignment[],
  readers: readonly Dialect[] = DEPLOYMENT_READERS,
): Finding[] {
  // The last assignment of a name is the one that counts, and the one to point at.
  const last = new Map(assignments.map((assignment) => [assignment.name, assignment]))
  const unique = last.size === assignments.length
  if (unique && text.split('\n').every((line) => PLAIN_LINE.test(line))) return []
  const read = readers.map((dialect) => ({ dialect, ...readAs(dialect, text) }))
  const refusing = read.filter(({ rejected }) => rejected).map(({ dialect }) => dialect)
  const accepting = read.filter(({ rejected }) => !rejected)
  const common = { severity: 'warning', services: SERVICES, group: 'file', missing: [] } as const
  const findings: Finding[] = []
  if (refusing.length > 0) {
    findings.push({
      ...common,
      id: 'refused-by-reader',
      present: [],
      cause: `${refusing.join(' and ')} would refuse this file.`,
      fix: 'Write every line as NAME=value, without white space around the equals sign, and close every quote.',
      location: { file, line: 1, column: 1 },
    })
  }
  for (const { name, location, excerpt } of last.values()) {
    const seen = new Set(accepting.map(({ values }) => values.get(name)?.trim() ?? ''))
    if (seen.size <= 1) continue
    const [first, ...others] = accepting
    const different = others.filter(
      ({ values }) => (values.get(name)?.trim() ?? '') !== (first?.values.get(name)?.trim() ?? ''),
    )
    findings.push({
      ...common,
      id: 'reader-difference',
      present: [name],
      cause: `${different.map(({ dialect }) => dialect).join(' and ')} would see another value of ${name} than ${first?.dialect}.`,
      fix: 'Write it as NAME=value without quotes, comments, backslashes and dollars on the line, or see platformctl env dialects.',
      location,
      excerpt,
    })
  }
  return findings
}
