import type { Finding } from '../finding.ts'
import { and } from '../sentences.ts'
import type { Contract } from './contract.ts'
import type { Dialect } from './dialects/dialect.ts'
import { readAs } from './dialects/read.ts'
import { parseValue } from './kinds.ts'
import { type Assignment, MASK } from './reader.ts'

/** The value that each reader gives to one name, trimmed; undefined: no value at all. */
export type DialectReadings = readonly { readonly dialect: Dialect; readonly value: string | undefined }[]

/** Why readers see different values: what several of them do, and what to do about it. */
interface Habit {
  readonly does: string
  readonly fix: string
  /** Quotes settle it, unless a reader takes them for part of the value. */
  readonly quotable?: true
}

/** Docker takes every character literally, so quotes and escapes that others need are wrong for it. */
const ELSEWHERE = 'No form suits all of these readers: set it outside the file, or choose a value'

const HABITS = {
  'byte order mark': {
    does: 'take the byte order mark before it as a part of the name',
    fix: 'Save the file as UTF-8 without a byte order mark (BOM).',
  },
  export: { does: 'skip lines that begin with export', fix: 'Remove the word export.' },
  line: { does: 'skip the line', fix: 'Write it as NAME=value.' },
  lines: {
    does: 'end the value with its first line',
    fix: 'Put the value on one line (a key with \\n for each line end, in double quotes), or in a file of its own.',
  },
  'needless quotes': { does: 'keep the quotes', fix: 'Remove the quotes: this value needs none.' },
  quotes: { does: 'keep the quotes', fix: `${ELSEWHERE} that needs no quotes.` },
  comment: { does: 'take the comment as part of the value', fix: 'Put the comment on a line of its own.' },
  hash: { does: 'cut the value at the #', fix: `${ELSEWHERE} without #.`, quotable: true },
  'after hash': { does: 'keep what follows the #', fix: `${ELSEWHERE} without #.`, quotable: true },
  dollar: {
    does: 'replace what follows a dollar sign',
    fix: `${ELSEWHERE} without a dollar sign.`,
    quotable: true,
  },
  backslash: {
    does: 'read the backslash differently',
    fix: `${ELSEWHERE} without a backslash.`,
    quotable: true,
  },
  other: { does: 'read the line differently', fix: 'Write it as NAME=value; see platformctl env dialects.' },
} as const satisfies Readonly<Record<string, Habit>>

/** How readers differ about a name; undefined if all see the same value. `line` is that of the assignment. */
export function differenceIn(name: string, line: string, sight: DialectReadings) {
  const groups = [...Map.groupBy(sight, ({ value }) => value ?? '').values()]
  const [first, ...rest] = groups
  if (first === undefined || rest.length === 0) return undefined
  // The value is what most readers see. Those from which a byte order mark hides the name are wrong.
  const hidden = line.startsWith('\uFEFF') && !first[0]?.value
  const most = rest.reduce(
    (largest, group) => (group.length > largest.length ? group : largest),
    hidden ? (rest[0] ?? first) : first,
  )
  const value = most[0]?.value ?? ''
  const others = groups.filter((group) => group !== most).flat()
  const byHabit = Map.groupBy(others, (other) => habitOf(line, value, other.value))
  const clauses = [...byHabit].map(
    ([habit, readers]) =>
      `${and(readers.map(({ dialect }) => dialect))} ${HABITS[habit].does.replace(/^\w+/, readers.length === 1 ? '$&s' : '$&')}`,
  )
  const [habit = 'other'] = byHabit.keys()
  const { fix, quotable }: Habit = HABITS[habit]
  const isQuoted = quotable && sight.every(({ dialect }) => dialect !== 'docker')
  const cause = `${name} depends on the reader: ${and(clauses)}.`
  return { cause, fix: isQuoted ? 'Put the value in single quotes.' : fix }
}

function habitOf(line: string, value: string, other: string | undefined): keyof typeof HABITS {
  // Check this before white space, because a regular expression takes the mark for white space.
  if (!other && line.startsWith('\uFEFF')) return 'byte order mark'
  if (!other && value.includes('$')) return 'dollar'
  if (!other) return /^\s*export\s/.test(line) ? 'export' : value === '' ? 'other' : 'line'
  if (/^(['"`])/.test(other) && !value.startsWith(other[0] ?? '')) {
    if (value.includes('\n')) return 'lines'
    return /^[\w!%&()*+,./:;<=>?@[\]^{|}~-]*(?: +[\w!%&()*+,./:;<=>?@[\]^{|}~-]+)*$/.test(value)
      ? 'needless quotes'
      : 'quotes'
  }
  if (value.startsWith(other) && value.slice(other.length).includes('#')) return 'hash'
  if (other.startsWith(value) && /^\s*#/.test(other.slice(value.length)))
    return value === '' || /^\s/.test(other.slice(value.length)) ? 'comment' : 'after hash'
  if (value.includes('\n') && !other.includes('\n')) return 'lines'
  if (line.includes('$')) return 'dollar'
  return line.includes('\\') ? 'backslash' : 'other'
}

const PORTABLE =
  'Write it as NAME=value, without export, without white space around the equals sign, and with every quote closed.'

/** The readers that a deployment of ours goes through, unless it says otherwise. */
const DEPLOYMENT_READERS: readonly Dialect[] = ['node', 'compose', 'docker', 'systemd']

/** Warns where readers see different values of a name, or one refuses the file; odd but portable forms are fine. */
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
  const refusing = read.filter(({ rejected }) => rejected)
  for (const [line, all] of Map.groupBy(refusing, ({ rejectedLine }) => rejectedLine ?? 1)) {
    const above = assignments.findLast(({ location }) => location.line < line)
    const isInside = above !== undefined && above.location.line + above.value.split('\n').length > line
    const cause = `${and(all.map(({ dialect }) => dialect))} would refuse the whole file because of this line.`
    const fix = isInside ? HABITS.lines.fix : PORTABLE
    const location = { file, line, column: 1 }
    // Without a name, the line may be part of a value.
    const excerpt = assignments.find((one) => one.location.line === line)?.excerpt ?? MASK
    findings.push({ ...common, id: 'refused-by-reader', present: [], cause, fix, location, excerpt })
  }
  const lines = text.split(/\r\n|\n|\r/)
  // Only the last assignment of a name counts, so findings point at it.
  const last = new Map(assignments.map((assignment) => [assignment.name, assignment]))
  for (const { name, value, location, excerpt } of last.values()) {
    const variable = contract.find(name)
    const sight = accepting.map(({ dialect, values }) => {
      const given = values.get(name)?.trim()
      const parsed = variable && given ? parseValue(variable, given) : undefined
      return { dialect, value: parsed?.ok ? parsed.text : given }
    })
    const line = lines[location.line - 1] ?? ''
    // If a byte order mark hides the first name from every reader, compare them with dotenv, which finds it.
    const hidden = line.startsWith('\uFEFF') && sight.length > 0 && sight.every((one) => !one.value)
    const seen = hidden ? [...sight, { dialect: 'dotenv' as const, value: value.trim() }] : sight
    const difference = differenceIn(name, line, seen)
    if (difference)
      findings.push({ ...common, id: 'reader-difference', present: [name], ...difference, location, excerpt })
  }
  // Look for our variables that only other readers find, for example between two quotes.
  for (const [index, line] of lines.entries()) {
    const name = /^\s*(?:export\s+)?([A-Z_]+)\s*[=:]/.exec(line)?.[1]
    if (name === undefined || !contract.find(name) || last.has(name)) continue
    const sees = ({ values }: (typeof accepting)[number]) => (values.get(name)?.trim() ?? '') !== ''
    const seeing = accepting.filter(sees).map(({ dialect }) => dialect)
    const blind = accepting.filter((one) => !sees(one)).map(({ dialect }) => dialect)
    if (seeing.length === 0 || blind.length === 0) continue
    const cause = `${name} depends on the reader: ${and(seeing)} ${seeing.length === 1 ? 'reads' : 'read'} an assignment of it here, and ${and(blind)} ${blind.length === 1 ? 'does' : 'do'} not.`
    const fix = 'Write it as NAME=value on a line of its own, and close every quote above it.'
    const location = { file, line: index + 1, column: line.indexOf(name) + 1 }
    const excerpt = `${name} ${MASK}`
    findings.push({ ...common, id: 'reader-difference', present: [name], cause, fix, location, excerpt })
  }
  return findings
}
