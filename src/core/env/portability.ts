import type { Finding } from '../finding.ts'
import { SERVICES } from '../service.ts'
import { type Dialect, readAs } from './dialects/read.ts'
import { differenceIn, list } from './difference.ts'
import type { Assignment } from './reader.ts'

/** The readers that a deployment of ours goes through, unless it says otherwise. */
const DEPLOYMENT_READERS: readonly Dialect[] = ['node', 'compose', 'docker', 'systemd']

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
  const read = readers.map((dialect) => ({ dialect, ...readAs(dialect, text) }))
  const accepting = read.filter(({ rejected }) => !rejected)
  const common = { severity: 'warning', services: SERVICES, group: 'file', missing: [] } as const
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
    })
  }
  const lines = text.split(/\r\n|\n|\r/)
  // The last assignment of a name is the one that counts, and the one to point at.
  const last = new Map(assignments.map((assignment) => [assignment.name, assignment]))
  for (const { name, location, excerpt } of last.values()) {
    const sight = accepting.map(({ dialect, values }) => ({ dialect, value: values.get(name)?.trim() }))
    const difference = differenceIn(name, lines[location.line - 1] ?? '', sight)
    if (difference)
      findings.push({ ...common, id: 'reader-difference', present: [name], ...difference, location, excerpt })
  }
  return findings
}
