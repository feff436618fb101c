/** One variable of an example or a schema file, as far as its lines say. */
export interface Sketch {
  readonly name: string
  /** The value beside it, without quotes. */
  readonly value: string
  /** The lines of comment above it. */
  readonly comments: readonly string[]
  /** Decorators of an `.env.schema` above it: `@type=enum(a,b)`, `@sensitive`. */
  readonly marks: ReadonlyMap<string, string>
  /** The heading above it. */
  readonly heading: string | undefined
}

const ASSIGNMENT = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)$/s
/** A variable that is commented out, as in most examples. */
const COMMENTED = /^\s*#\s?([A-Z][A-Z0-9_]*)=(.*)$/s
/** `# --- Payments ---`, `# === Payments` or `## Payments`. */
const HEADING = /^\s*#+\s*[-=*#]{2,}\s*([^-=*#\s].*?)\s*[-=*#]*$|^\s*##+\s*([^#\s].*)$/

/** Reads an `.env.example` or an `.env.schema`: every variable once, with its heading and comment. */
export function readExample(text: string): readonly Sketch[] {
  const sketches = new Map<string, Sketch>()
  let heading: string | undefined
  let comments: string[] = []
  let marks = new Map<string, string>()
  const forget = () => {
    comments = []
    marks = new Map()
  }
  for (const line of text.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/)) {
    const [, name, rest = ''] = ASSIGNMENT.exec(line) ?? COMMENTED.exec(line) ?? []
    const [titled, ruled, hashed] = HEADING.exec(line) ?? []
    if (name !== undefined) {
      if (!sketches.has(name)) sketches.set(name, { name, value: valueIn(rest), comments, marks, heading })
      forget()
    } else if (titled !== undefined) {
      heading = (ruled ?? hashed)?.replace(/[:.].*$/, '').trim()
      forget()
    } else if (/^\s*#/.test(line)) {
      const said = line.replace(/^\s*#+\s?/, '').trim()
      if (said.startsWith('@')) for (const [mark, value] of marksOf(said)) marks.set(mark, value)
      else if (/[\p{L}\p{N}]/u.test(said)) comments.push(said)
    } else {
      forget()
    }
  }
  return [...sketches.values()]
}

function valueIn(rest: string): string {
  const text = rest.trim()
  const quoted = /^(["'`])(.*?)\1/.exec(text)?.[2]
  return (quoted ?? text.replace(/(?:^|\s)#.*$/, '')).trim()
}

function marksOf(line: string): readonly (readonly [string, string])[] {
  return [...line.matchAll(/@(\w+)(?:=("[^"]*"|\w+\([^)]*\)|[^\s@]+))?/g)].map(
    ([, mark = '', value = '']) => [mark, value.replace(/^"(.*)"$/, '$1')] as const,
  )
}
