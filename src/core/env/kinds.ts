import { type Mailbox, parseAddress, parseMailbox } from '../address.ts'
import { durationText } from '../durations.ts'
import { isRecord, parsedJson } from '../is-record.ts'
import { isBearerToken, type Secret, splitList } from '../secret.ts'
import { connectsInClear, travelsInClear, trustsEverybody } from './exposure.ts'
import {
  hasControl,
  parseBaseUrl,
  parseBoolean,
  parseBytes,
  parseDuration,
  parseEach,
  parseHost,
  parseHttpUrl,
  parseInteger,
  parseNumber,
  parseOrigin,
  parsePem,
  parseProxies,
  parseSmtpUrl,
  parseStoreAddress,
  postgresServers,
} from './values.ts'

/** A validator that follows Standard Schema (standardschema.dev); only its synchronous answer is used. */
export interface StandardSchema {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => unknown
  }
}

interface Narrowed {
  /** Bounds of a number, a duration (ms) or a size (bytes), both included. */
  readonly range?: readonly [lowest: number, highest: number]
  readonly of?: readonly string[]
  /** An address that paths are put behind: it takes no user name, query or fragment. */
  readonly base?: boolean
}

/** All that is known of a kind of value. Add one here: types, checks, `init`, pages and schemas follow. Parsers of more than a line are in `values.ts`. */
export interface KindOfValue {
  /** Gives the value as a program uses it; undefined if it is malformed. */
  readonly parse: (text: string, narrowed: Narrowed) => unknown
  readonly expected: string | ((narrowed: Narrowed) => string)
  /** The type of what `parse` gives, as a declaration file names it; `string` when left out. */
  readonly type?: string
  /** What code gets, where the type does not say it. */
  readonly gives?: string
  /** Written to env files without quotes, where `#` begins a comment. Values that begin with one: accept them without it too. */
  readonly example: string
  /** Its values are secret, whatever the variable says. */
  readonly secret?: true
  /** Its values may begin with `[` or `<`, which elsewhere marks a placeholder. */
  readonly bracketed?: true
  /** A range may bound it. */
  readonly measured?: true
  /** A warning about a well-formed value that leaves something open to others on the network. */
  readonly exposure?: { readonly id: Exposure; readonly in: (text: string) => boolean }
  /** For `init`: names that suggest it. */
  readonly called?: RegExp
  /** For `init`: other words for it that an `.env.schema` may use. */
  readonly aliases?: readonly string[]
  /** For `init`: a value of this form is one. */
  readonly shows?: true
}

export type Exposure = 'trusts-everybody' | 'plain-http' | 'store-without-tls'

const matching = (pattern: RegExp) => (text: string) => (pattern.test(text) ? text : undefined)
const uncontrolled = (text: string) => (hasControl(text) ? undefined : text)
/** `1m to 1d`, `512 to 10,000 bytes` */
export function rangeText(kind: string, range: readonly number[]): string {
  if (kind === 'duration') return range.map((ms) => durationText(ms).replace(/ |in/g, '')).join(' to ')
  return range.map((bound) => bound.toLocaleString('en')).join(' to ') + (kind === 'bytes' ? ' bytes' : '')
}

const bounded =
  (kind: string, what: string, unbounded = what) =>
  ({ range }: Narrowed) =>
    range ? `${what} from ${rangeText(kind, range)}` : unbounded
const WHOLE_NUMBERS = [0, Number.MAX_SAFE_INTEGER] as const

const PLAIN_HTTP = { id: 'plain-http', in: travelsInClear } as const
const WITHOUT_TLS = { id: 'store-without-tls', in: connectsInClear } as const

/** Every kind of value, as documents show them. `init` takes the first by `aliases`, `called` and `shows`: the strictest first. */
export const KINDS = {
  text: {
    parse: uncontrolled,
    expected: 'text without control characters',
    example: 'Kiln School',
    aliases: ['string'],
  },
  secret: {
    parse: (text) => (parsePem(text) === undefined ? uncontrolled(text) : text),
    expected: 'a key without control characters',
    example: 'mZ8k2vQx4tR7pW1c',
    secret: true,
  },
  pem: {
    parse: parsePem,
    expected:
      'keys or certificates in PEM, each from -----BEGIN … to -----END …, with its line ends or \\n for each',
    gives: 'the text with its line ends',
    example: '-----BEGIN CERTIFICATE-----\\nMIIBszCC\\n-----END CERTIFICATE-----',
    secret: true,
    shows: true,
  },
  path: {
    parse: uncontrolled,
    expected: 'a path without control characters',
    example: './file',
    called: /(?:^|_)(?:PATH|FILE|DIR|FOLDER)$/,
  },
  url: {
    parse: (text, { base }) => (base ? parseBaseUrl(text) : parseHttpUrl(text)),
    expected: ({ base }) =>
      base
        ? 'an http:// or https:// address without user name, query or fragment'
        : 'an http:// or https:// address',
    gives: 'without a slash at its end',
    example: 'https://www.example.com',
    exposure: PLAIN_HTTP,
    called: /(?:^|_)(?:URL|URI|ENDPOINT)$/,
    shows: true,
  },
  urls: {
    parse: (text) => parseEach(text, parseHttpUrl),
    expected: 'http:// or https:// addresses, separated by commas',
    type: 'readonly string[]',
    gives: 'each without a slash at its end',
    example: 'https://a.example.com,https://b.example.com',
    exposure: PLAIN_HTTP,
    called: /(?:^|_)(?:URLS|ENDPOINTS)$/,
    shows: true,
  },
  dsn: {
    // At least as strict as the SDK, which prints what it cannot take for one.
    parse: matching(/^https?:\/\/\w+(?::\w*)?@(?:\[[:.\w]+\]|[\w.-]+)(?::\d{1,5})?\/(?:[\w./-]*\/)?\d+$/),
    expected: 'https://KEY@HOST/NUMBER, as the project’s settings show it',
    example: 'https://key@errors.example.com/1',
  },
  'store-url': {
    parse: parseStoreAddress,
    expected:
      'sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE, in which a # of the password is written %23',
    example: 'sqlite:./platform.db',
    secret: true,
    exposure: WITHOUT_TLS,
  },
  'postgres-url': {
    parse: (text) => (postgresServers(text) === undefined ? undefined : text),
    expected: 'postgres://USER:PASSWORD@HOST:PORT/DATABASE, in which a # of the password is written %23',
    example: 'postgres://app@db.internal/app',
    secret: true,
    exposure: WITHOUT_TLS,
    shows: true,
  },
  'smtp-url': {
    parse: parseSmtpUrl,
    expected: 'smtp://host:port or smtps://host:port, in which a # of the user name is written %23',
    example: 'smtps://user@smtp.example.com:465',
    secret: true,
    shows: true,
  },
  integer: {
    parse: (text, { range: [low, high] = WHOLE_NUMBERS }) => parseInteger(text, low, high),
    expected: bounded('integer', 'a whole number', 'a whole number, 0 or more'),
    type: 'number',
    example: '10',
    measured: true,
    shows: true,
  },
  number: {
    parse: parseNumber,
    expected: bounded('number', 'a number'),
    type: 'number',
    example: '1.5',
    measured: true,
    shows: true,
  },
  boolean: { parse: parseBoolean, expected: 'true or false', type: 'boolean', example: 'true' },
  enum: {
    parse: (text, { of = [] }) => (of.includes(text) ? text : undefined),
    expected: ({ of = [] }) => `one of ${of.join(', ')}`,
    gives: 'one of the values in `of`',
    example: 'eu',
  },
  duration: {
    parse: parseDuration,
    expected: bounded('duration', 'a duration such as 500ms, 30s, 5m, 2h or 1d'),
    type: 'number',
    gives: 'milliseconds',
    example: '30s',
    measured: true,
    called: /(?:^|_)(?:TIMEOUT|TTL|INTERVAL|LIFETIME|MAX_AGE)$/,
    shows: true,
  },
  bytes: {
    parse: parseBytes,
    expected: bounded('bytes', 'a size such as 512B, 10MB or 1GiB'),
    type: 'number',
    gives: 'bytes',
    example: '10MB',
    measured: true,
    shows: true,
  },
  email: {
    parse: emailOf,
    expected: 'an address, as help@example.com',
    example: 'help@example.com',
    called: /(?:^|_)(?:EMAIL|MAIL_TO)$/,
    shows: true,
  },
  emails: {
    parse: (text) => parseEach(text, emailOf),
    expected: 'addresses such as help@example.com, separated by commas',
    type: 'readonly string[]',
    example: 'ada@example.com,ben@example.com',
    called: /(?:^|_)(?:EMAILS|RECIPIENTS)$/,
    shows: true,
  },
  mailbox: {
    parse: (text): Mailbox | undefined => {
      const parsed = parseMailbox(text)
      return parsed.ok ? parsed.mailbox : undefined
    },
    expected: 'an address, as course@example.com or Course <course@example.com>',
    type: '{ readonly name: string | undefined; readonly address: string }',
    example: 'Team <team@example.com>',
    bracketed: true,
  },
  host: {
    parse: parseHost,
    expected: 'a host name or an IP address, without a scheme or a port',
    example: 'db.example.com',
    bracketed: true,
    called: /(?:^|_)HOST(?:NAME)?$/,
    aliases: ['ip', 'hostname'],
  },
  port: {
    parse: (text) => parseInteger(text, 1, 65_535),
    expected: 'a port from 1 to 65,535',
    type: 'number',
    example: '8080',
    called: /(?:^|_)PORT$/,
  },
  list: {
    parse: (text) => (hasControl(text) ? undefined : parseEach(text, (entry) => entry)),
    expected: 'entries separated by commas',
    type: 'readonly string[]',
    example: 'one,two',
  },
  json: {
    parse: parsedJson,
    expected: 'JSON',
    type: 'unknown',
    gives: 'the parsed value, or what the schema makes of it',
    example: '{"seats":12}',
    bracketed: true,
  },
  origins: {
    parse: (text) => parseEach(text, parseOrigin),
    expected: 'origins such as https://www.example.com, separated by commas',
    type: 'readonly string[]',
    example: 'https://www.example.com',
    called: /(?:^|_)ORIGINS$/,
  },
  proxies: {
    parse: parseProxies,
    expected: 'IP addresses or ranges such as 10.0.0.0/8, separated by commas',
    type: 'readonly string[]',
    example: '10.0.0.0/8',
    exposure: { id: 'trusts-everybody', in: trustsEverybody },
  },
  'log-level': {
    parse: (text) => (['debug', 'info', 'warn', 'error'] as const).find((one) => one === text.toLowerCase()),
    expected: 'debug, info, warn or error',
    type: "'debug' | 'info' | 'warn' | 'error'",
    example: 'info',
  },
  table: {
    // SQLite and PostgreSQL keep these beginnings for themselves.
    parse: matching(/^(?!sqlite_|pg_)[a-z_][a-z0-9_]{0,62}$/i),
    expected: 'a table name: letters, digits and underscores, at most 63, not beginning with sqlite_ or pg_',
    example: 'events',
  },
  price: {
    parse: matching(/^[A-Za-z0-9_-]{3,255}$/),
    expected: 'a price id: letters, digits, underscores and hyphens',
    example: 'price_monthly',
  },
} as const satisfies Readonly<Record<string, KindOfValue>>

/** How a value is read (docs/reference/kinds.md). */
export type Kind = keyof typeof KINDS

type ParsedValue<Name extends Kind> = Exclude<ReturnType<(typeof KINDS)[Name]['parse']>, undefined>

export type ParsedVariable<Of extends { readonly kind: Kind }> = Of extends {
  readonly kind: 'enum'
  readonly of: readonly (infer Value)[]
}
  ? Value
  : ParsedValue<Of['kind']>

export type SecretKind = {
  [Name in Kind]: (typeof KINDS)[Name] extends { readonly secret: true } ? Name : never
}[Kind]

export type ValueOfKind<Name extends Kind> = Name extends SecretKind ? Secret : ParsedValue<Name>

export const VALUE_KINDS = Object.keys(KINDS) as readonly Kind[]

export interface Reading extends Narrowed {
  readonly kind: Kind
  readonly pattern?: RegExp
  /** A synchronous Standard Schema (Zod, Valibot, ArkType …), given the trimmed text; of `json`, the parsed value. */
  readonly schema?: StandardSchema
  /** Several values, separated by commas, are accepted while it is rotated; the first is used. */
  readonly rotates?: boolean
  /** It is sent as a bearer token, so it holds what an HTTP header can carry. */
  readonly bearer?: boolean
}

/** A value as text and as a program uses it, or what a malformed one should be; never what it is. */
export type Parsed =
  | { readonly ok: true; readonly text: string; readonly value: unknown }
  | { readonly ok: false; readonly expected: string }

/** A shorter secret is guessed before a rate limit takes effect. */
const SHORTEST_SECRET = 4
const BEARER =
  'a secret that an HTTP header can carry: ASCII letters, digits and signs, no space, at most 4,096'

export function expectedOf(reading: Reading): string {
  const { expected }: KindOfValue = KINDS[reading.kind]
  return typeof expected === 'string' ? expected : expected(reading)
}

export function parseValue(reading: Reading, text: string): Parsed {
  const { range, pattern, schema, rotates, bearer } = reading
  const kind: KindOfValue = KINDS[reading.kind]
  const wrong = (expected: string): Parsed => ({ ok: false, expected })
  const parts = rotates ? splitList(text) : [text]
  if (rotates && (parts.length === 0 || parts.some((one) => one.length < SHORTEST_SECRET)))
    return wrong(`a secret of at least ${SHORTEST_SECRET} characters, better 32`)
  if (bearer && !parts.every(isBearerToken)) return wrong(BEARER)
  const value = kind.parse(text, reading)
  const within = range === undefined || typeof value !== 'number' || (value >= range[0] && value <= range[1])
  if (value === undefined || !within) return wrong(expectedOf(reading))
  if (pattern && !parts.every((one) => pattern.test(one))) return wrong(`text that matches ${pattern.source}`)
  // A secret is handed on as text, in the form that its kind has brought it to.
  const own = kind.secret && typeof value === 'string' ? value : text
  if (schema === undefined) return { ok: true, text: own, value }
  // The validator's own messages may quote the value, so none of them is repeated.
  const refused = 'what its schema accepts'
  try {
    const given = reading.kind === 'json' ? value : own
    const result = schema['~standard'].validate(given)
    if (isRecord(result) && 'value' in result && !('then' in result) && result.issues === undefined)
      return { ok: true, text: own, value: result.value }
    const place = refusedPlace(schema, given, result)
    return wrong(place === '' ? refused : `${refused}: it refuses ${place}`)
  } catch {
    return wrong(refused)
  }
}

/** The place of the first issue, as far as it is positions, and names that the schema also gives for a value that holds none. */
function refusedPlace(schema: StandardSchema, value: unknown, result: unknown): string {
  const known: (string | number)[] = []
  let at = value
  for (const key of issuePaths(result)[0] ?? []) {
    if (typeof key === 'number' ? !Array.isArray(at) || !(key in at) : !isNamed(schema, known, key)) break
    at = Array.isArray(at) || isRecord(at) ? Reflect.get(at, key) : undefined
    known.push(key)
  }
  return known
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`))
    .join('')
    .replace(/^\./, '')
}

function isNamed(schema: StandardSchema, inside: readonly (string | number)[], key: string): boolean {
  const bare = inside.reduceRight<unknown>(
    (held, one) => (typeof one === 'number' ? [...Array(one).fill(null), held] : { [one]: held }),
    {},
  )
  const named = [...inside, key]
  return issuePaths(schema['~standard'].validate(bare)).some((path) =>
    named.every((one, index) => one === path[index]),
  )
}

const issuePaths = (result: unknown): (string | number)[][] =>
  isRecord(result) && Array.isArray(result.issues)
    ? result.issues.map(({ path = [] }) => path.map((one: unknown) => (isRecord(one) ? one.key : one)))
    : []

function emailOf(text: string): string | undefined {
  const parsed = parseAddress(text)
  return parsed.ok ? parsed.mailbox.address : undefined
}
