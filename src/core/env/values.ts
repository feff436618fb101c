import { parseAddress, parseMailbox } from '../address.ts'
import { isBearerToken, secretPair, splitSecrets } from '../secret.ts'
import { trimEnd } from '../trim-end.ts'
import type { Kind, StandardSchema } from './definition.ts'
import { postgresServers } from './postgres-url.ts'
import { parseBoolean, parseBytes, parseDuration, parseNumber } from './quantities.ts'

/** Options that control how a value is read. */
export interface Reading {
  readonly kind: Kind
  /** Bounds of a number, both included. */
  readonly range?: readonly [number, number]
  /** The values of an enum. */
  readonly of?: readonly string[]
  /** Pattern that the whole value must match. */
  readonly pattern?: RegExp
  readonly schema?: StandardSchema
  /** An address that paths are put behind: no user name, query or fragment. */
  readonly base?: boolean
  /** Takes two values, separated by a comma, while it is rotated. */
  readonly rotates?: boolean
  /** Sent as a bearer token. */
  readonly bearer?: boolean
}

/** Gives what a malformed value should be, never what it is; undefined if the value is well-formed. */
export function malformed(reading: Reading, value: string): string | undefined {
  // A wildcard is an error of its own rule; saying "malformed" as well would say it twice.
  if (reading.kind === 'origins' && value.includes('*')) return undefined
  if (reading.base && parseBaseUrl(value) === undefined)
    return 'an http:// or https:// address without user name, query or fragment'
  if (reading.rotates) {
    const pair = secretPair(value)
    if (pair === undefined) return 'one key, or two separated by a comma'
    if (splitSecrets(value).some((one) => one.length < SHORTEST_SECRET))
      return `a secret of at least ${SHORTEST_SECRET} characters, better 32`
    if (reading.bearer && !splitSecrets(value).every(isBearerToken))
      return 'a secret that an HTTP header can carry: ASCII letters, digits and signs, no space, at most 4,096'
  }
  const parsed = parseValue(reading, value)
  return parsed.ok ? undefined : parsed.expected
}

/** The value as a program uses it, or what it should be. */
export function parseValue(
  reading: Reading,
  text: string,
): { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly expected: string } {
  const { kind, range, pattern, schema } = reading
  const { parse, expected } = READERS[kind]
  const value = parse(text, reading)
  const within = range === undefined || typeof value !== 'number' || (value >= range[0] && value <= range[1])
  if (value === undefined || !within) return { ok: false, expected: expected(reading) }
  if (pattern && !pattern.test(text)) return { ok: false, expected: `text that matches ${pattern.source}` }
  return schema === undefined ? { ok: true, value } : bySchema(schema, text)
}

function bySchema(schema: StandardSchema, text: string): ReturnType<typeof parseValue> {
  const refused = { ok: false, expected: 'what its schema accepts' } as const
  try {
    const result = schema['~standard'].validate(text)
    // The validator's own messages may quote the value, so none of them is repeated.
    if (typeof result !== 'object' || result === null || !('value' in result) || 'then' in result)
      return refused
    return 'issues' in result && result.issues !== undefined ? refused : { ok: true, value: result.value }
  } catch {
    return refused
  }
}

interface Reader {
  /** Gives the value as a program uses it; undefined if it is malformed. */
  readonly parse: (value: string, reading: Reading) => unknown
  readonly expected: (reading: Reading) => string
}

const reader = (parse: Reader['parse'], expected: string | Reader['expected']): Reader => ({
  parse,
  expected: typeof expected === 'string' ? () => expected : expected,
})
const matching = (pattern: RegExp) => (value: string) => (pattern.test(value) ? value : undefined)
const uncontrolled = (value: string) => (hasControl(value) ? undefined : value)
/** A key file in PEM is the one secret that holds line ends. */
const PEM = /^-----BEGIN [A-Z ]+-----[\sA-Za-z0-9+/=]+-----END [A-Z ]+-----$/
const secretText = (value: string) => (PEM.test(value) ? value : uncontrolled(value))
const bounded =
  (what: string, unit = '') =>
  ({ range }: Reading) =>
    range ? `${what} from ${range[0]} to ${range[1].toLocaleString('en')}${unit}` : what

const READERS: Readonly<Record<Kind, Reader>> = {
  text: reader(uncontrolled, 'text without control characters'),
  secret: reader(secretText, 'a key without control characters'),
  path: reader(uncontrolled, 'a path without control characters'),
  url: reader(parseHttpUrl, 'an http:// or https:// address'),
  // At least as strict as the SDK, which prints what it cannot take for one.
  dsn: reader((value) => matching(DSN)(value), 'https://KEY@HOST/NUMBER, as the project’s settings show it'),
  'store-url': reader(
    parseStoreAddress,
    'sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE, in which a # of the password is written %23',
  ),
  'smtp-url': reader(
    parseSmtpUrl,
    'smtp://host:port or smtps://host:port, in which a # of the user name is written %23',
  ),
  integer: reader(
    (value, { range: [low, high] = WHOLE_NUMBERS }) => parseInteger(value, low, high),
    ({ range: [low, high] = WHOLE_NUMBERS }) => `a whole number from ${low} to ${high.toLocaleString('en')}`,
  ),
  number: reader(parseNumber, bounded('a number')),
  boolean: reader(parseBoolean, 'true or false'),
  enum: reader(
    (value, { of = [] }) => (of.includes(value) ? value : undefined),
    ({ of = [] }) => `one of ${of.join(', ')}`,
  ),
  duration: reader(parseDuration, bounded('a duration such as 500ms, 30s, 5m, 2h or 1d', ' ms')),
  bytes: reader(parseBytes, bounded('a size such as 512B, 10MB or 1GiB', ' bytes')),
  email: reader((value) => {
    const parsed = parseAddress(value)
    return parsed.ok ? parsed.mailbox.address : undefined
  }, 'an address, as help@example.com'),
  mailbox: reader((value) => {
    const parsed = parseMailbox(value)
    return parsed.ok ? parsed.mailbox : undefined
  }, 'an address, as course@example.com or Course <course@example.com>'),
  host: reader(parseHost, 'a host name or an IP address, without a scheme or a port'),
  port: reader((value) => parseInteger(value, 1, 65_535), 'a port from 1 to 65,535'),
  list: reader((value) => {
    const parts = hasControl(value) ? [] : list(value)
    return parts.length > 0 ? parts : undefined
  }, 'entries separated by commas'),
  json: reader((value) => {
    try {
      return JSON.parse(value) as unknown
    } catch {
      return undefined
    }
  }, 'JSON'),
  origins: reader(parseOrigins, 'origins such as https://www.example.com, separated by commas'),
  proxies: reader(parseProxies, 'IP addresses or ranges such as 10.0.0.0/8, separated by commas'),
  'log-level': reader(matching(/^(debug|info|warn|error)$/i), 'debug, info, warn or error'),
  table: reader(
    // SQLite and PostgreSQL keep these beginnings for themselves.
    matching(/^(?!sqlite_|pg_)[a-z_][a-z0-9_]{0,62}$/i),
    'a table name: letters, digits and underscores, at most 63, not beginning with sqlite_ or pg_',
  ),
  price: reader(matching(/^[A-Za-z0-9_-]{3,255}$/), 'a price id: letters, digits, underscores and hyphens'),
}

/** Every kind of value, in the order in which documents show them. */
export const VALUE_KINDS = Object.keys(READERS) as readonly Kind[]

const WHOLE_NUMBERS: readonly [number, number] = [0, Number.MAX_SAFE_INTEGER]

/** A shorter secret is guessed before a rate limit takes effect. */
const SHORTEST_SECRET = 4

const DSN = /^https?:\/\/\w+(?::\w*)?@(?:\[[:.\w]+\]|[\w.-]+)(?::\d{1,5})?\/(?:[\w./-]*\/)?\d+$/

function hasControl(value: string): boolean {
  for (let index = 0; index < value.length; index += 1) {
    const code = value.charCodeAt(index)
    if (code < 32 || code === 127) return true
  }
  return false
}

export function parseInteger(value: string, low: number, high: number): number | undefined {
  if (!(low < 0 ? /^-?\d{1,15}$/ : /^\d{1,15}$/).test(value)) return undefined
  // Adding zero makes zero of minus zero.
  const number = Number(value) + 0
  return number >= low && number <= high ? number : undefined
}

/** An http(s) address without a trailing slash, or undefined. */
export function parseHttpUrl(value: string): string | undefined {
  const url = parseUrl(value)
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.hostname === '') return undefined
  return trimEnd(value, '/')
}

/**
 * An address that paths are put behind, in ASCII and without a trailing slash, so that it fits into every link;
 * undefined when it has a user name, a query or a fragment, which would end up in the middle of links.
 */
export function parseBaseUrl(value: string): string | undefined {
  const url = parseHttpUrl(value) === undefined ? undefined : parseUrl(value)
  if (url === undefined || /[?#]/.test(value) || url.username !== '' || url.password !== '') return undefined
  const path = url.pathname.replace(/[^A-Za-z0-9\-._~:/@!$&'()*+,;=%]/g, encodeURIComponent)
  return trimEnd(`${url.origin}${path}`, '/')
}

function parseSmtpUrl(value: string): URL | undefined {
  const url = parseUrl(value)
  return url && /^smtps?:$/.test(url.protocol) && url.hostname !== '' && url.hash === '' ? url : undefined
}

export function parseStoreAddress(
  value: string,
):
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'postgres'; readonly url: string }
  | undefined {
  const file = /^(?:sqlite|file):(?:\/\/(?=\/))?\s*(\S.*)$/i.exec(value)?.[1]
  // SQLite takes `:memory:` for a store that ends with the process.
  if (file !== undefined)
    return file.startsWith('//') || file === ':memory:' ? undefined : { kind: 'sqlite', file }
  return postgresServers(value) ? { kind: 'postgres', url: value } : undefined
}

/** Origins in their serialised form (RFC 6454 §6.2), or undefined when one is malformed. */
export function parseOrigins(value: string): string[] | undefined {
  const origins: string[] = []
  for (const part of list(value)) {
    const url = parseUrl(part)
    if (
      url === undefined ||
      !/^https?:$/.test(url.protocol) ||
      url.pathname !== '/' ||
      url.search ||
      url.hash ||
      url.username
    )
      return undefined
    origins.push(url.origin)
  }
  return origins.length > 0 ? origins : undefined
}

/** Addresses and CIDR ranges, or undefined when one is malformed. */
export function parseProxies(value: string): string[] | undefined {
  const proxies = list(value)
  const wellFormed = proxies.every((proxy) => {
    const [address = '', bits, ...rest] = proxy.split('/')
    const size = isIPv4(address) ? 32 : isIPv6(address) ? 128 : undefined
    return (
      size !== undefined &&
      rest.length === 0 &&
      (bits === undefined || parseInteger(bits, 0, size) !== undefined)
    )
  })
  return wellFormed && proxies.length > 0 ? proxies : undefined
}

/** A host name (RFC 1123) or an IP address, without scheme, port or path; otherwise undefined. */
function parseHost(value: string): string | undefined {
  const bare = /^\[(.*)\]$/.exec(value)?.[1]
  if (bare !== undefined) return isIPv6(bare) ? bare : undefined
  if (isIPv4(value) || isIPv6(value)) return value
  // Only numbers and dots: a mistyped IP address.
  return HOST.test(value) && !/^[\d.]+$/.test(value) ? value : undefined
}

const HOST =
  /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?)*$/i

function list(value: string): string[] {
  return value.split(',').flatMap((part) => part.trim() || [])
}

function isIPv4(text: string): boolean {
  return /^(\d{1,3}\.){3}\d{1,3}$/.test(text) && text.split('.').every((part) => Number(part) <= 255)
}

function isIPv6(text: string): boolean {
  return text.includes(':') && parseUrl(`http://[${text}]/`) !== undefined
}

function parseUrl(value: string): URL | undefined {
  return /\s/.test(value) ? undefined : (URL.parse(value) ?? undefined)
}
