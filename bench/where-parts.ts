import type { Frame, Sample } from './profile.ts'

/** A part of the work: what it is called, and what was done about it where something was. */
export interface Part {
  readonly name: string
  readonly done?: string
}

const NODE = { name: 'Node and V8, in native code' }
const GC = { name: 'garbage collection' }
const LOADING: Part = {
  name: 'finding, reading and compiling modules',
  done: 'What always loads together is bundled into one file, so a cold command starts in three; a command loads its own file and no other. V8’s compile cache is on. Built-in modules are taken without their facade, whose properties load a diff algorithm and ICU when they are read: 5 ms of a cold preflight. Commander’s import of `node:child_process` is taken out at build time: 2 ms.',
}

type Place = (frame: Frame) => boolean
const of =
  (pattern: RegExp): Place =>
  ({ source }) =>
    source !== undefined && pattern.test(source)

/** In the order in which they are asked, each of the innermost frame that is nobody's helper. */
const LESSON_PLACES: readonly (readonly [Place, Part])[] = [
  [
    of(/node_modules\/undici\/|src\/core\/mail\/transports\/api(?:-lanes|-exchange)?\.ts$/),
    {
      name: 'HTTP client and sockets',
      done: 'Mails are handed to undici’s dispatcher itself, without `fetch`, over connections that are kept. A body is written into one buffer that its connection keeps and not into fresh memory, which had cost a fifth of a request.',
    },
  ],
  [
    of(/src\/core\/mail\//),
    {
      name: 'filling and encoding the mail',
      done: 'Templates are compiled on build to static parts and slots; MJML and Markdown are not loaded at all. Static parts are encoded once for the process, so a mail costs its slots and a copy. Slots are checked and escaped by hand-written loops, at a third of a regular expression’s cost.',
    },
  ],
  [
    of(/src\/core\/course\/|src\/core\/(?:clock|random|store\/together)\.ts$/),
    {
      name: 'the dispatcher itself',
      done: 'Claims of one batch share one deadline instead of a timer for each message, and are taken before the slots run dry, so that none waits for the store.',
    },
  ],
  [
    of(/src\/|bin\/|dist\/|node_modules\/(?:commander|chalk|ora)\//),
    {
      name: 'the command line',
      done: 'Progress is drawn ten times a second at most, whatever is sent meanwhile.',
    },
  ],
]

const COMMITS: Part = {
  name: 'SQLite: commits, until the disk confirms',
  done: 'Marks are grouped: those that finish within some milliseconds share one durable commit, and the group waits longer where commits take longer. There are more slots than messages that are out at once, so that a hundred marks and more share one, and still none takes other work before its mark is durable. Claims are taken 400 in one transaction.',
}
const MARKS: Part = {
  name: 'SQLite: writing marks',
  done: 'A mark is one statement by id and fencing number; the row is read only when that finds nothing.',
}
const CLAIMS: Part = {
  name: 'SQLite: reading and writing claims',
  done: 'A claim binds and writes the columns that it changes instead of all seventeen: 5 µs a row instead of 9.',
}
const LOOKS: Part = {
  name: 'SQLite: the last look before handing over',
  done: 'What is asked in one turn of the event loop is asked in one read transaction, instead of taking the file’s lock for each message.',
}

/** Which part of a drain a sample belongs to. */
export function lessonPart(stack: readonly Frame[]): Part {
  const early = runtimePart(stack, 'waiting for the mail API or a group of marks')
  if (early) return early
  if (stack.some(of(/node_modules\/better-sqlite3\/|src\/core\/store\/sqlite\//))) {
    const within = (name: string) => stack.some((frame) => frame.name === name)
    const innermost = stack.find(({ source }) => source !== undefined)
    const writes = within('settle') || within('claimDue')
    if (writes && innermost?.name === 'sqliteTransaction') return COMMITS
    return within('settle') ? MARKS : within('claimDue') ? CLAIMS : LOOKS
  }
  if (stack.some(of(/^node:internal\/crypto\//))) return { name: 'HMAC of the unsubscribe link' }
  for (const frame of stack) {
    const place = LESSON_PLACES.find(([matches]) => matches(frame))
    if (place) return place[1]
  }
  if (stack.some(of(/^node:(?:net|internal\/stream)/))) return LESSON_PLACES[0]?.[1] ?? NODE
  return { name: 'Node: event loop, promises, timers' }
}

const PREFLIGHT_PLACES: readonly (readonly [Place, Part])[] = [
  [
    of(/src\/core\/(?:env\/|finding|service|secret)/),
    {
      name: 'reading and judging the environment',
      done: 'The contract is a table and the rules are data, without a schema library. Each value is parsed once. A file of plain lines, on which no two readers can disagree, is not read as four of them would.',
    },
  ],
  [
    of(/node_modules\/commander\//),
    { name: 'commander', done: 'It is bundled, and only the command that was named configures its options.' },
  ],
  [
    of(/src\/|bin\/|dist\/|node_modules\//),
    {
      name: 'the command and its report',
      done: 'chalk is loaded only where there is colour to write.',
    },
  ],
]

/** Which part of a cold preflight a sample belongs to. */
export function preflightPart(stack: readonly Frame[]): Part {
  const early = runtimePart(stack, 'waiting')
  if (early) return early
  for (const frame of stack) {
    const place = PREFLIGHT_PLACES.find(([matches]) => matches(frame))
    if (place) return place[1]
  }
  return {
    name: 'Node: start, streams and files',
    done: 'Standard streams are opened when they are first used.',
  }
}

function runtimePart(stack: readonly Frame[], waiting: string): Part | undefined {
  const innermost = stack[0]?.name
  if (innermost === '(idle)') return { name: waiting }
  if (innermost === '(garbage collector)') return GC
  if (innermost === '(program)') return NODE
  return stack.some(of(/^node:internal\/(?:modules|bootstrap)\//)) ? LOADING : undefined
}

export interface Share {
  readonly part: Part
  readonly ms: number
}

/** Milliseconds by part, most first. */
export function shares(
  samples: readonly Sample[],
  partOf: (stack: readonly Frame[]) => Part,
): readonly Share[] {
  const byName = new Map<string, Share>()
  for (const { stack, ms } of samples) {
    const part = partOf(stack)
    byName.set(part.name, { part, ms: (byName.get(part.name)?.ms ?? 0) + ms })
  }
  return [...byName.values()].sort((a, b) => b.ms - a.ms)
}
