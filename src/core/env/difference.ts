import type { Dialect } from './dialects/read.ts'

/** The value that each reader gives to one name, trimmed; undefined: no value at all. */
export type DialectReadings = readonly { readonly dialect: Dialect; readonly value: string | undefined }[]

export interface Difference {
  readonly cause: string
  readonly fix: string
}

/**
 * Why readers see different values: what one reader does, the same for several readers, and what to do about
 * it.
 */
interface Habit {
  readonly one: string
  readonly several: string
  readonly fix: string
  /** Quotes settle it, unless a reader takes them for part of the value. */
  readonly quotable?: true
}

/** Docker takes every character literally, so quotes and escapes that others need are wrong for it. */
const ELSEWHERE = 'No form suits all of these readers: set it outside the file'
const QUOTED = 'Put the value in single quotes.'

type HabitName =
  | 'byte order mark'
  | 'export'
  | 'line'
  | 'lines'
  | 'needless quotes'
  | 'quotes'
  | 'comment'
  | 'hash'
  | 'after hash'
  | 'dollar'
  | 'backslash'
  | 'other'

const HABITS: Readonly<Record<HabitName, Habit>> = {
  'byte order mark': {
    one: 'takes the byte order mark before it as a part of the name',
    several: 'take the byte order mark before it as a part of the name',
    fix: 'Save the file as UTF-8 without a byte order mark (BOM).',
  },
  export: {
    one: 'skips lines that begin with export',
    several: 'skip lines that begin with export',
    fix: 'Remove the word export.',
  },
  line: { one: 'skips the line', several: 'skip the line', fix: 'Write it as NAME=value.' },
  lines: {
    one: 'ends the value with its first line',
    several: 'end the value with its first line',
    fix: 'Put the value on one line, for example in base64, or in a file of its own.',
  },
  'needless quotes': {
    one: 'keeps the quotes',
    several: 'keep the quotes',
    fix: 'Remove the quotes: this value needs none.',
  },
  quotes: {
    one: 'keeps the quotes',
    several: 'keep the quotes',
    fix: `${ELSEWHERE}, or choose a value that needs no quotes.`,
  },
  comment: {
    one: 'takes the comment as part of the value',
    several: 'take the comment as part of the value',
    fix: 'Put the comment on a line of its own.',
  },
  hash: {
    one: 'cuts the value at the #',
    several: 'cut the value at the #',
    fix: `${ELSEWHERE}, or choose a value without #.`,
    quotable: true,
  },
  'after hash': {
    one: 'keeps what follows the #',
    several: 'keep what follows the #',
    fix: `${ELSEWHERE}, or choose a value without #.`,
    quotable: true,
  },
  dollar: {
    one: 'replaces what follows a dollar sign',
    several: 'replace what follows a dollar sign',
    fix: `${ELSEWHERE}, or choose a value without a dollar sign.`,
    quotable: true,
  },
  backslash: {
    one: 'reads the backslash differently',
    several: 'read the backslash differently',
    fix: `${ELSEWHERE}, or choose a value without a backslash.`,
    quotable: true,
  },
  other: {
    one: 'reads the line differently',
    several: 'read the line differently',
    fix: 'Write it as NAME=value, or see platformctl env dialects.',
  },
}

/**
 * How readers differ about a name; undefined if all see the same value. `line` is the whole line of the
 * assignment, as it is in the file.
 */
export function differenceIn(name: string, line: string, sight: DialectReadings): Difference | undefined {
  const groups = [...Map.groupBy(sight, ({ value }) => value ?? '').values()]
  const [first, ...rest] = groups
  if (first === undefined || rest.length === 0) return undefined
  // The value is what most readers see; in a tie, what the first of them sees. Readers from which a byte
  // order mark hides the name are wrong, however many there are.
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
      `${list(readers.map(({ dialect }) => dialect))} ${HABITS[habit][readers.length === 1 ? 'one' : 'several']}`,
  )
  const [habit = 'other'] = byHabit.keys()
  const { fix, quotable } = HABITS[habit]
  return {
    cause: `${name} depends on the reader: ${list(clauses)}.`,
    fix: quotable && sight.every(({ dialect }) => dialect !== 'docker') ? QUOTED : fix,
  }
}

function habitOf(line: string, value: string, other: string | undefined): HabitName {
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

/** `a`, `a and b`, `a, b and c`. */
export function list(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
}
