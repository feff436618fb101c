import { splitList } from '../secret.ts'
import { trimEnd } from '../trim-end.ts'

/** One block of PEM or several (RFC 7468), each line ended; an old encrypted key begins with headers. */
const PEM =
  /^(?:-----BEGIN ([A-Z0-9 ]+)-----\n(?:(?:[A-Za-z0-9-]+: .+\n)+\n)?(?:[A-Za-z0-9+/]+={0,2}\n)+-----END \1-----\n\n*)+$/

/** The text of a PEM file. A written `\n` for a line end, and quotes that a reader has left around it, are undone. */
export function parsePem(value: string): string | undefined {
  const bare = /^(["'])([\s\S]*)\1$/.exec(value)?.[2] ?? value
  const text = bare
    .split(/\r\n|\\r\\n|\\n|\n|\r/)
    .map((line) => line.trim())
    .join('\n')
    .trim()
  return PEM.test(`${text}\n`) ? text : undefined
}

/** What `parse` makes of each entry of a list; undefined if it has none, or one is malformed. */
export function parseEach(
  value: string,
  parse: (entry: string) => string | undefined,
): readonly string[] | undefined {
  const entries = splitList(value).map(parse)
  return entries.length > 0 && entries.every((entry) => entry !== undefined) ? entries : undefined
}

/** Whether a text holds a control character of ASCII. */
export const hasControl = (value: string) => /(?![\x80-\x9f])\p{Cc}/u.test(value)

export function parseInteger(value: string, low: number, high: number): number | undefined {
  if (!(low < 0 ? /^-?\d{1,15}$/ : /^\d{1,15}$/).test(value)) return undefined
  // Adding zero makes zero of minus zero.
  const number = Number(value) + 0
  return number >= low && number <= high ? number : undefined
}

/** One http(s) address without a trailing slash, or undefined. Two with a comma between them would be a path of the first. */
export function parseHttpUrl(value: string): string | undefined {
  const url = /,https?:/i.test(value) ? undefined : parseUrl(value)
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.hostname === '') return undefined
  return trimEnd(value, '/')
}

/** An address for links: ASCII, no slash at its end. A user name, query or fragment would be in the middle of them. */
export function parseBaseUrl(value: string): string | undefined {
  const url = parseHttpUrl(value) === undefined ? undefined : parseUrl(value)
  if (url === undefined || /[?#]/.test(value) || url.username !== '' || url.password !== '') return undefined
  const path = url.pathname.replace(/[^A-Za-z0-9\-._~:/@!$&'()*+,;=%]/g, encodeURIComponent)
  return trimEnd(`${url.origin}${path}`, '/')
}

export function parseSmtpUrl(value: string): URL | undefined {
  const url = parseUrl(value)
  return url && /^smtps?:$/.test(url.protocol) && url.hostname !== '' && url.hash === '' ? url : undefined
}

export type StoreAddressOf<Url> =
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'postgres'; readonly url: Url }

export function parseStoreAddress(value: string): StoreAddressOf<string> | undefined {
  const file = /^(?:sqlite|file):(?:\/\/(?=\/))?\s*(\S.*)$/i.exec(value)?.[1]
  // SQLite takes `:memory:` for a store that ends with the process.
  if (file !== undefined)
    return file.startsWith('//') || file === ':memory:' ? undefined : { kind: 'sqlite', file }
  return postgresServers(value) ? { kind: 'postgres', url: value } : undefined
}

/** An origin in its serialised form (RFC 6454 §6.2), or undefined when it is malformed. */
export function parseOrigin(value: string): string | undefined {
  const url = parseUrl(value)
  const isBare = url?.pathname === '/' && !url.search && !url.hash && !url.username
  return isBare && /^https?:$/.test(url.protocol) ? url.origin : undefined
}

/** Addresses and CIDR ranges, or undefined when one is malformed. */
export function parseProxies(value: string): readonly string[] | undefined {
  return parseEach(value, (proxy) => {
    const [address = '', bits = '0', ...rest] = proxy.split('/')
    const size = isIPv4(address) ? 32 : isIPv6(address) ? 128 : -1
    return rest.length === 0 && parseInteger(bits, 0, size) !== undefined ? proxy : undefined
  })
}

/** A host name (RFC 1123) or an IP address, without scheme, port or path; otherwise undefined. */
export function parseHost(value: string): string | undefined {
  const bare = /^\[(.*)\]$/.exec(value)?.[1]
  if (bare !== undefined) return isIPv6(bare) ? bare : undefined
  if (isIPv4(value) || isIPv6(value)) return value
  // Only numbers and dots: a mistyped IP address.
  return HOST.test(value) && !/^[\d.]+$/.test(value) ? value : undefined
}

const HOST =
  /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?)*$/i

const isIPv4 = (text: string) =>
  /^(\d{1,3}\.){3}\d{1,3}$/.test(text) && text.split('.').every((part) => Number(part) <= 255)

const isIPv6 = (text: string) => text.includes(':') && parseUrl(`http://[${text}]/`) !== undefined

function parseUrl(value: string): URL | undefined {
  return /\s/.test(value) ? undefined : (URL.parse(value) ?? undefined)
}

export function parseNumber(value: string): number | undefined {
  if (!/^[-+]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:e[-+]?\d{1,3})?$/i.test(value)) return undefined
  const number = Number(value)
  return Number.isFinite(number) ? number : undefined
}

export function parseBoolean(value: string): boolean | undefined {
  if (/^(?:true|yes|on|1)$/i.test(value)) return true
  return /^(?:false|no|off|0)$/i.test(value) ? false : undefined
}

const MS = { w: 604_800_000, d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 }
/** Largest unit first, each once: 30m1h is a slip of the pen. */
const DURATION = new RegExp(
  `^(?=.)${Object.keys(MS)
    .map((unit) => `(?:(\\d{1,12}(?:\\.\\d{1,6})?)${unit})?`)
    .join('')}$`,
)

/** Milliseconds of `500ms`, `1.5h` or `1h30m`. A number without a unit is refused: programs disagree about it. */
export function parseDuration(value: string): number | undefined {
  const counts = DURATION.exec(value)?.slice(1)
  const total = counts && Object.values(MS).reduce((sum, size, at) => sum + Number(counts[at] ?? 0) * size, 0)
  return safeInteger(total)
}

/** Bytes of `512`, `512B`, `10MB` (decimal) or `1.5GiB` (binary), or undefined. */
export function parseBytes(value: string): number | undefined {
  const [, number, prefix = '', binary] =
    /^(\d{1,15}(?:\.\d{1,6})?) ?(?:(?:([kmgt])(i)?)?b)?$/i.exec(value) ?? []
  const power = ['', 'k', 'm', 'g', 't'].indexOf(prefix.toLowerCase())
  return number === undefined ? undefined : safeInteger(Number(number) * (binary ? 1024 : 1000) ** power)
}

const safeInteger = (value: number | undefined): number | undefined =>
  value !== undefined && Number.isSafeInteger(Math.round(value)) ? Math.round(value) : undefined

/** The `target_session_attrs` that suit a store. The other values of libpq ask for a server that cannot be written. */
const SESSIONS = new Set(['any', 'read-write', 'primary'])

/** The servers of a PostgreSQL address, whose hosts are separated by commas as in libpq; undefined if malformed. */
export function postgresServers(value: string): readonly string[] | undefined {
  const [, before = '', hosts = '', after = ''] =
    /^(postgres(?:ql)?:\/\/(?:[^/?#\s]*@)?)([^@/?#\s]+)([/?#]\S*)?$/i.exec(value) ?? []
  const servers = hosts.split(',').map((host) => `${before}${host}${after}`)
  return servers.every(isServer) ? servers : undefined
}

/** `a.example:5432,b.example:5432/platform`: never the user or the password. */
export function postgresLocation(value: string): string {
  const servers = (postgresServers(value) ?? []).map((server) => new URL(server))
  const hosts = servers.map(({ hostname, port }) => `${hostname}:${port || '5432'}`)
  return `${hosts.join(',')}${servers[0]?.pathname ?? ''}`
}

function isServer(server: string): boolean {
  const url = URL.parse(server)
  // An unescaped # would end the URL, and the text before it would be taken for the host.
  if (url === null || url.hostname === '' || url.hash !== '') return false
  // The driver cannot read a percent sign at the end that begins no code.
  if (/%[0-9a-f]?$/i.test(server)) return false
  return url.search === '' || SESSIONS.has(url.searchParams.get('target_session_attrs') ?? 'any')
}
