import { parseMailbox } from '../mail/address.ts'
import { secretPair } from '../secret.ts'
import type { Kind, Variable } from './table.ts'

/** Undefined: the value is well-formed. Otherwise what it should be, never what it is. */
export function malformed(variable: Variable, value: string): string | undefined {
  // A wildcard is an error of its own rule; saying "malformed" as well would say it twice.
  if (variable.kind === 'origins' && value.includes('*')) return undefined
  if (variable.kind === 'integer') {
    const [low, high] = variable.range ?? [0, Number.MAX_SAFE_INTEGER]
    return parseInteger(value, low, high) === undefined
      ? `a whole number from ${low} to ${high.toLocaleString('en')}`
      : undefined
  }
  if (variable.rotates && secretPair(value) === undefined) return 'one key, or two separated by a comma'
  return EXPECTED[variable.kind](value)
}

const EXPECTED: Readonly<Record<Exclude<Kind, 'integer'>, (value: string) => string | undefined>> = {
  text: (value) => (hasControl(value) ? 'text without control characters' : undefined),
  secret: (value) => (hasControl(value) ? 'a key without control characters' : undefined),
  path: (value) => (hasControl(value) ? 'a path without control characters' : undefined),
  url: (value) => (parseHttpUrl(value) ? undefined : 'an http:// or https:// address'),
  // At least as strict as the SDK, which prints what it cannot take for one.
  dsn: (value) =>
    DSN.test(value) ? undefined : 'https://KEY@HOST/NUMBER, as the project’s settings show it',
  'store-url': (value) =>
    parseStoreAddress(value)
      ? undefined
      : 'sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE, in which a # of the password is written %23',
  'smtp-url': (value) =>
    parseSmtpUrl(value)
      ? undefined
      : 'smtp://host:port or smtps://host:port, in which a # of the user name is written %23',
  mailbox: (value) =>
    parseMailbox(value).ok ? undefined : 'an address, as course@example.com or Course <course@example.com>',
  origins: (value) =>
    parseOrigins(value) ? undefined : 'origins such as https://www.example.com, separated by commas',
  proxies: (value) =>
    parseProxies(value) ? undefined : 'IP addresses or ranges such as 10.0.0.0/8, separated by commas',
  'log-level': (value) =>
    /^(debug|info|warn|error)$/i.test(value) ? undefined : 'debug, info, warn or error',
  table: (value) =>
    // SQLite and PostgreSQL keep these beginnings for themselves.
    /^(?!sqlite_|pg_)[a-z_][a-z0-9_]{0,62}$/i.test(value)
      ? undefined
      : 'a table name: letters, digits and underscores, at most 63, not beginning with sqlite_ or pg_',
  price: (value) =>
    /^[A-Za-z0-9_-]{3,255}$/.test(value) ? undefined : 'a price id: letters, digits, underscores and hyphens',
}

const DSN = /^https?:\/\/\w+(?::\w*)?@(?:\[[:.\w]+\]|[\w.-]+)(?::\d{1,5})?\/(?:[\w./-]*\/)?\d+$/

function hasControl(value: string): boolean {
  for (let index = 0; index < value.length; index += 1) {
    const code = value.charCodeAt(index)
    if (code < 32 || code === 127) return true
  }
  return false
}

export function parseInteger(value: string, low: number, high: number): number | undefined {
  if (!/^\d{1,15}$/.test(value)) return undefined
  const number = Number(value)
  return number >= low && number <= high ? number : undefined
}

/** An http(s) address without a trailing slash, or undefined. */
export function parseHttpUrl(value: string): string | undefined {
  const url = parseUrl(value)
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.hostname === '') return undefined
  return value.replace(/\/+$/, '')
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
  const file = /^(?:sqlite|file):(?:\/\/(?=\/))?(.+)$/i.exec(value)?.[1]
  if (file !== undefined) return file.startsWith('//') ? undefined : { kind: 'sqlite', file }
  const url = parseUrl(value)
  // A # that is not escaped would end the address, and what stands before it would be taken for the host.
  return url && /^postgres(ql)?:$/.test(url.protocol) && url.hostname !== '' && url.hash === ''
    ? { kind: 'postgres', url: value }
    : undefined
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
