import type { Frame, Sample } from './profile.ts'

/** A part of the work. `ours` marks code that we can make faster; the rest is Node, V8 or waiting. */
export interface Part {
  readonly name: string
  readonly ours?: true
}

const NODE = { name: 'Node and V8, in native code' }
const GC = { name: 'garbage collection' }
const LOADING: Part = {
  name: 'finding, reading and compiling modules',
  ours: true,
}

type Place = (frame: Frame) => boolean
const of =
  (pattern: RegExp): Place =>
  ({ source }) =>
    source !== undefined && pattern.test(source)

/** Where frames belong, tried in this order. The innermost frame with a match decides. */
const LESSON_PLACES: readonly (readonly [Place, Part])[] = [
  [
    of(/node_modules\/undici\/|src\/core\/mail\/transports\/api(?:-exchange)?\.ts$/),
    {
      name: 'HTTP client and sockets',
      ours: true,
    },
  ],
  [
    of(/src\/core\/mail\//),
    {
      name: 'filling and encoding the mail',
      ours: true,
    },
  ],
  [
    of(/src\/core\/(?:course|delivery)\/|src\/core\/(?:clock|random|semaphore|store\/together)\.ts$/),
    {
      name: 'the dispatcher itself',
      ours: true,
    },
  ],
  [
    of(/src\/|bin\/|dist\/|node_modules\/(?:commander|chalk|ora)\//),
    {
      name: 'the command line',
      ours: true,
    },
  ],
]

const COMMITS: Part = {
  name: 'SQLite: commits, until the disk confirms',
  ours: true,
}
const MARKS: Part = {
  name: 'SQLite: writing marks',
  ours: true,
}
const CLAIMS: Part = {
  name: 'SQLite: reading and writing claims',
  ours: true,
}
const LOOKS: Part = {
  name: 'SQLite: the last look before handing over',
  ours: true,
}

/** The part of a drain that a sample belongs to. */
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
  const place = placeOf(stack, LESSON_PLACES)
  if (place) return place
  if (stack.some(of(/^node:(?:net|internal\/stream)/))) return LESSON_PLACES[0]?.[1] ?? NODE
  return { name: 'Node: event loop, promises, timers' }
}

const PREFLIGHT_PLACES: readonly (readonly [Place, Part])[] = [
  [
    of(/src\/core\/(?:env\/|finding|service|secret)/),
    {
      name: 'reading and judging the environment',
      ours: true,
    },
  ],
  [of(/node_modules\/commander\//), { name: 'commander', ours: true }],
  [
    of(/src\/|bin\/|dist\/|node_modules\//),
    {
      name: 'the command and its report',
      ours: true,
    },
  ],
]

/** The part of a cold preflight that a sample belongs to. */
export function preflightPart(stack: readonly Frame[]): Part {
  return (
    runtimePart(stack, 'waiting') ??
    placeOf(stack, PREFLIGHT_PLACES) ?? { name: 'Node: start, streams and files', ours: true }
  )
}

const START_PLACES: readonly (readonly [Place, Part])[] = [
  [
    of(/node_modules\/better-sqlite3\/|src\/core\/store\//),
    { name: 'SQLite: opening and migrating the store', ours: true },
  ],
  [of(/src\/(?:platform|presets)\/|examples\//), { name: 'reading and judging the definition', ours: true }],
  [of(/src\/core\/env\//), { name: 'reading and judging the environment', ours: true }],
  [of(/node_modules\/(?:pino|sonic-boom|thread-stream)\/|\/log\.ts$/), { name: 'the log', ours: true }],
  [of(/node_modules\/commander\//), { name: 'commander', ours: true }],
  [of(/src\/|bin\/|dist\/|node_modules\//), { name: 'the daemon itself', ours: true }],
]

/** The part of a daemon's start that a sample belongs to. */
export function startPart(stack: readonly Frame[]): Part {
  return (
    runtimePart(stack, 'waiting for the disk') ??
    placeOf(stack, START_PLACES) ?? { name: 'Node: sockets, streams and files' }
  )
}

/** Builtins of V8 have no frame of their own: their time is that of the function that calls them. */
const called =
  (name: string, pattern: RegExp): Place =>
  (frame) =>
    frame.name === name && of(pattern)(frame)
const INGEST_PLACES: readonly (readonly [Place, Part])[] = [
  [called('measure', /http\/body\.ts$/), { name: 'measuring depth', ours: true }],
  [called('parseJson', /http\/body\.ts$/), { name: 'JSON.parse', ours: true }],
  [called('append', /sqlite\/analytics\.ts$/), { name: 'JSON.stringify of the events', ours: true }],
  [
    of(/node_modules\/better-sqlite3\/|src\/core\/store\//),
    { name: 'SQLite: a row a batch and its commit', ours: true },
  ],
  [of(/src\/core\/analytics\//), { name: 'sanitizing and counting', ours: true }],
  [of(/src\/|node_modules\//), { name: 'the routes', ours: true }],
]

/** The part of a batch of events, from socket to socket, that a sample belongs to. */
export function ingestPart(stack: readonly Frame[]): Part {
  return (
    runtimePart(stack, 'waiting for the client') ??
    placeOf(stack, INGEST_PLACES) ?? { name: 'Node: HTTP, sockets and streams' }
  )
}

function placeOf(stack: readonly Frame[], places: readonly (readonly [Place, Part])[]): Part | undefined {
  for (const frame of stack) {
    const place = places.find(([matches]) => matches(frame))
    if (place) return place[1]
  }
  return undefined
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
