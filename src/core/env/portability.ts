import type { Finding } from '../finding.ts'
import type { Contract } from './contract.ts'
import { type Dialect, readAs } from './dialects/read.ts'
import { differenceIn, list } from './difference.ts'
import { type Assignment, MASK } from './reader.ts'

/** The readers that a deployment of ours goes through, unless it says otherwise. */
const DEPLOYMENT_READERS: readonly Dialect[] = ['node', 'compose', 'docker', 'systemd']

/**
 * Warns wherever the given readers would see different values of a name, or where one refuses the file. A name that
 * every reader that accepts the file sees alike is portable, however oddly it is written.
 */
export function portability(
  contract: Contract,
  text: string,
  file: string,
  assignments: readonly Assignment[],
  readers: readonly Dialect[] = DEPLOYMENT_READERS,
): Finding[] {
  const read = readers.map((dialect) => ({ dialect, ...readAs(dialect, text) }))
  const accepting = read.filter(({ rejected }) => !rejected)
  const common = { severity: 'warning', services: contract.services, group: 'file', missing: [] } as const
  const findings: Finding[] = []
  for (const [line, refusing] of Map.groupBy(
    read.filter(({ rejected }) => rejected),
    ({ rejectedLine }) => rejectedLine ?? 1,
  )) {
    findings.push({
      ...common,
      id: 'refused-by-reader',
      present: [],
      cause: `${list(refusing.map(({ dialect }) => dialect))} would refuse the whole file because of this line.`,
      fix: 'Write it as NAME=value, without export, without white space around the equals sign, and with every quote closed.',
      location: { file, line, column: 1 },
      // Without a name, the line may be part of a value.
      excerpt: assignments.find(({ location }) => location.line === line)?.excerpt ?? MASK,
    })
  }
  const lines = text.split(/\r\n|\n|\r/)
  // Only the last assignment of a name counts, so findings point at it.
  const last = new Map(assignments.map((assignment) => [assignment.name, assignment]))
  for (const { name, value, location, excerpt } of last.values()) {
    const sight = accepting.map(({ dialect, values }) => ({ dialect, value: values.get(name)?.trim() }))
    const line = lines[location.line - 1] ?? ''
    // If a byte order mark hides the first name from every reader that accepts the file, compare them with
    // dotenv, which finds the name as our own reader does.
    const hidden = line.startsWith('\uFEFF') && sight.length > 0 && sight.every((one) => !one.value)
    const seen = hidden ? [...sight, { dialect: 'dotenv' as const, value: value.trim() }] : sight
    const difference = differenceIn(name, line, seen)
    if (difference)
      findings.push({ ...common, id: 'reader-difference', present: [name], ...difference, location, excerpt })
  }
  // Look for our variables that only other readers find, for example between two quotes that our reader takes
  // for one value.
  for (const [index, line] of lines.entries()) {
    const name = assigned(contract, line)
    if (name === undefined || last.has(name)) continue
    const sees = ({ values }: (typeof accepting)[number]) => (values.get(name)?.trim() ?? '') !== ''
    const seeing = accepting.filter(sees).map(({ dialect }) => dialect)
    const blind = accepting.filter((one) => !sees(one)).map(({ dialect }) => dialect)
    if (seeing.length === 0 || blind.length === 0) continue
    findings.push({
      ...common,
      id: 'reader-difference',
      present: [name],
      cause: `${name} depends on the reader: ${list(seeing)} ${seeing.length === 1 ? 'reads' : 'read'} an assignment of it here, and ${list(blind)} ${blind.length === 1 ? 'does' : 'do'} not.`,
      fix: 'Write it as NAME=value on a line of its own, and close every quote above it.',
      location: { file, line: index + 1, column: line.indexOf(name) + 1 },
      excerpt: `${name} ${MASK}`,
    })
  }
  return findings
}

/** The variable of ours that a line would assign if it were read by itself. */
function assigned(contract: Contract, line: string): string | undefined {
  const name = /^\s*(?:export\s+)?([A-Z_]+)\s*[=:]/.exec(line)?.[1]
  return name !== undefined && contract.find(name) ? name : undefined
}
