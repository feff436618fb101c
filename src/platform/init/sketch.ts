import type { GroupDefinition } from '../../core/env/definition.ts'
import { looksSecret } from '../../core/env/exposure.ts'
import { KINDS, type Kind, type KindOfValue, parseValue, VALUE_KINDS } from '../../core/env/kinds.ts'

/** One variable of an example or a schema file, as far as its lines say. */
export interface Sketch {
  readonly name: string
  readonly value: string
  readonly comments: readonly string[]
  /** Decorators of an `.env.schema` above it: `@type=enum(a,b)`, `@sensitive`, `@required`. */
  readonly marks: ReadonlyMap<string, string>
  readonly heading: string | undefined
}

const ASSIGNMENT = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]{0,99})\s*=(.*)$/s
/** A variable that is commented out, as in most examples. */
const COMMENTED = /^\s*#\s?([A-Z][A-Z0-9_]{0,99})=(.*)$/s
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
      heading = (ruled ?? hashed)?.replace(/[:.].*$/s, '').trim()
      forget()
    } else if (/^\s*#/.test(line)) {
      const said = line.replace(/^\s*#+\s?/, '').trim()
      if (said.startsWith('@'))
        for (const [, mark = '', value = ''] of said.matchAll(MARK))
          marks.set(mark, value.replace(/^"(.*)"$/, '$1'))
      else if (/[\p{L}\p{N}]/u.test(said)) comments.push(said)
    } else {
      forget()
    }
  }
  return [...sketches.values()]
}

function valueIn(rest: string): string {
  const text = rest.trim()
  return (/^(["'`])(.*?)\1/.exec(text)?.[2] ?? text.replace(/(?:^|\s)#.*$/s, '')).trim()
}

const MARK = /@(\w+)(?:=("[^"]*"|\w+\([^)]*\)|[^\s@]+))?/g

const SECRET =
  /(?:^|_)(?:SECRET|TOKEN|PASSWORD|PASSWD|PASS|PRIVATE_KEY|KEY|CREDENTIALS?|SALT|PEPPER|SIGNATURE)(?:_|$)/
const PUBLIC = /^(?:NEXT_PUBLIC|VITE|PUBLIC|EXPO_PUBLIC|REACT_APP|NUXT_PUBLIC|GATSBY)_/
/** A number or a duration under such a name is a secret too: these never count anything. */
const PASSWORD = /(?:^|_)(?:SECRET|PASSWORD|PASSWD|PASS)$/
/** Names with such a word in them that are no secrets. */
const NOT_SECRET =
  /(?:PUBLISHABLE|PUBLIC|ANON)_?KEY|KEY_ID$|_KEY_NAME$|TOKEN_(?:URL|TTL|LIFETIME)$|_(?:URL|URI|HOST|PORT)$/

const kindsThat = (has: (kind: KindOfValue, name: Kind) => boolean) =>
  VALUE_KINDS.filter((name) => has(KINDS[name], name))
const isList = ({ type }: KindOfValue) => type === 'readonly string[]'
/** Kinds that a value shows by itself, the strictest first. */
const BY_VALUE = kindsThat((kind) => kind.shows === true && kind.secret !== true && !isList(kind))
/** Kinds of lists: a list of addresses may also pass for a single one. */
const LISTS = kindsThat((kind) => kind.shows === true && isList(kind))
/** Kinds of secrets that a value shows; any other is just a secret. */
const SECRETS = kindsThat((kind) => kind.shows === true && kind.secret === true)
const LONGEST_EXAMPLE = 300
const BLANK = /[\s\p{Cc}]+/gu

/** Guesses what a variable is. A value that may be a secret is never taken over. */
function infer(sketch: Sketch, takesValues: boolean) {
  const { name, value, comments, marks } = sketch
  const said = comments.join(' ').replaceAll(BLANK, ' ').trim().slice(0, 200)
  // A comment may hold a value that was commented out.
  const quotes = /[=:]\S/.test(said.replaceAll(/https?:\/\//g, '')) || said.split(/\s/).some(looksSecret)
  const summary = said === '' || quotes ? {} : { summary: said }
  const required = /^(?:true)?$/.test(marks.get('required') ?? 'false') ? { required: true as const } : {}
  const { kind, of, because } = kindOf(sketch)
  if (!PUBLIC.test(name) && isSecret(sketch, kind))
    return {
      name,
      variable: { kind: secretKind(kind, value), ...summary, ...required },
      because:
        'secret' in KINDS[kind]
          ? because
          : marks.has('sensitive')
            ? 'it is marked @sensitive'
            : 'its name or its value says so',
    }
  const given = { kind, ...summary, ...(of && { of }) }
  const fits =
    takesValues &&
    value !== '' &&
    value.length <= LONGEST_EXAMPLE &&
    !looksSecret(value) &&
    !PUBLIC.test(name) &&
    parseValue(given, value).ok
  // Beside a schema's decorators a value is the default; in an example it is an example.
  const taken = fits ? (marks.size > 0 ? { default: value } : { example: value }) : required
  return { name, variable: { ...given, ...taken }, because }
}

const secretKind = (kind: Kind, value: string): Kind =>
  'secret' in KINDS[kind] ? kind : (SECRETS.find((one) => parseValue({ kind: one }, value).ok) ?? 'secret')

function isSecret({ name, value, marks }: Sketch, kind: Kind): boolean {
  if ('secret' in KINDS[kind]) return true
  if (marks.get('sensitive') === 'false' || marks.has('public')) return false
  if (marks.has('sensitive') || looksSecret(value)) return true
  // Addresses of databases, queues and mail servers hold passwords.
  if (/^[a-z][a-z0-9+]*:\/\//i.test(value) && !/^https?:\/\/[^@]*$/i.test(value)) return true
  const isWord = PASSWORD.test(name) && BY_VALUE.includes(kind)
  return SECRET.test(name) && !NOT_SECRET.test(name) && (kind === 'text' || value === '' || isWord)
}

function kindOf(sketch: Sketch): { kind: Kind; of?: readonly string[]; because: string } {
  const { name, value, comments, marks } = sketch
  const [, type = '', parameters = ''] = /^([\w-]+)(?:\((.*)\))?$/.exec(marks.get('type') ?? '') ?? []
  const declared = type === 'enum' ? listOf(parameters.split(',')) : undefined
  if (declared) return { kind: 'enum', of: declared, because: 'it is marked @type=enum' }
  const [kind] = kindsThat(
    ({ aliases = [] }, one) => type !== 'enum' && (one === type || aliases.includes(type)),
  )
  if (kind !== undefined) return { kind, because: `it is marked @type=${type}` }
  const values = enumIn(comments, value)
  if (values) return { kind: 'enum', of: values, because: 'its comment lists the values' }
  if (/^(?:true|false)$/i.test(value)) return { kind: 'boolean', because: 'its value is true or false' }
  const fits = (one: Kind) => value === '' || parseValue({ kind: one }, value).ok
  const list = value.includes(',') ? LISTS.find(fits) : undefined
  const [named = list] = kindsThat(({ called }, one) => called?.test(name) === true && fits(one))
  if (list && named !== 'origins') return { kind: list, because: 'its value is a list' }
  if (named) return { kind: named, because: 'its name says so' }
  const shown = value === '' ? undefined : BY_VALUE.find(fits)
  return shown ? { kind: shown, because: 'its value is one' } : { kind: 'text', because: 'nothing says more' }
}

/** `one of eu, us` or `eu | us` in a comment, when the value beside it is one of them. */
function enumIn(comments: readonly string[], value: string): readonly string[] | undefined {
  const said = comments.join(' ')
  const word = '[\\w-]{1,40}'
  const [, list] =
    new RegExp(`\\bone of:? (${word}(?:(?:, (?:or )?| or | ?\\| ?)${word})+)`, 'i').exec(said) ?? []
  const [piped] = new RegExp(`\\b${word}(?: ?\\| ?${word})+`).exec(said) ?? []
  const values = listOf((list ?? piped ?? '').split(/, (?:or )?| or | ?\| ?/))
  return values && (value === '' || values.includes(value)) ? values : undefined
}

function listOf(parts: readonly string[]): readonly string[] | undefined {
  const values = parts.map((part) => part.trim().replace(/^["']|["']$/g, '')).filter((part) => part !== '')
  return values.length > 1 ? [...new Set(values)] : undefined
}

/** The groups that `init` makes of a file, and the variables that it leaves out. */
export type DefinitionSketch = ReturnType<typeof sketchDefinition>

/** A name with other signs than those of variables. */
const ODD = /^\s*(?:export\s+)?[A-Za-z_]\w*[.-][\w.-]*\s*=/

/** Groups the variables of an example by their headings, or by the first word of their names. Any value of an env file in use may be a secret: `takesValues` is false. */
export function sketchDefinition(
  text: string,
  preset: Readonly<Record<string, GroupDefinition>>,
  takesValues = true,
) {
  const ofPreset = new Set(Object.values(preset).flatMap(({ variables }) => Object.keys(variables)))
  const all = readExample(text)
  const own = all.filter(
    ({ name }) => !ofPreset.has(name) && !/^(?:NODE_|__)/.test(name) && !(name in Object.prototype),
  )
  const byGroup = Map.groupBy(own, (sketch) => groupOf(sketch, own, Object.keys(preset)))
  return {
    groups: [...byGroup].map(([name, sketches]) => {
      const names = sketches.map((sketch) => sketch.name)
      /** Variables that belong together, judging by their names. */
      const pairs = pairsOf(names, PAIRS)
      const guesses = pairsOf(names, GUESSES).filter(([one = '']) => !pairs.flat().includes(one))
      return { name, variables: sketches.map((one) => infer(one, takesValues)), pairs, guesses }
    }),
    known: all.map(({ name }) => name).filter((name) => ofPreset.has(name)),
    odd: text.split('\n').filter((line) => ODD.test(line)).length,
    /** Variables of the runtime itself, which no platform reads. */
    skipped: all.map(({ name }) => name).filter((name) => name.startsWith('NODE_')),
  }
}

function groupOf(sketch: Sketch, all: readonly Sketch[], taken: readonly string[]): string {
  const first = firstWord(sketch.name)
  const shared = all.filter(({ name }) => firstWord(name) === first).length > 1
  const name = slug(sketch.heading ?? (shared ? first : '')) || 'app'
  return taken.includes(name) ? `own-${name}` : name
}

const bare = (name: string) => name.replace(/^(?:NEXT_PUBLIC|VITE|PUBLIC)_/, '')
const firstWord = (name: string) => bare(name).split('_')[0] ?? ''

function slug(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .slice(0, 30)
    .replace(/-+$/, '')
}

/** Suffixes of variables that only work together. */
const PAIRS = [
  ['API_KEY', 'API_SECRET'],
  ['ACCESS_KEY_ID', 'SECRET_ACCESS_KEY'],
  ['CLIENT_ID', 'CLIENT_SECRET'],
  ['USERNAME', 'PASSWORD'],
  ['USER', 'PASSWORD'],
  ['REST_URL', 'REST_TOKEN'],
  ['ACCOUNT_SID', 'AUTH_TOKEN'],
] as const

const GUESSES = [
  ['_KEY', '_SECRET'],
  ['_SECRET_KEY', '_PUBLISHABLE_KEY'],
  ['_SECRET_KEY', '_WEBHOOK_SECRET'],
] as const

function pairsOf(names: readonly string[], suffixes: readonly (readonly [string, string])[]) {
  return suffixes.flatMap(([one, other]) =>
    names.flatMap((name) => {
      const partner = `${bare(name).slice(0, -one.length)}${other}`
      const found = names.find((candidate) => candidate !== name && bare(candidate) === partner)
      return name.endsWith(one) && found !== undefined ? [[name, found]] : []
    }),
  )
}
