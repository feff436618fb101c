import { splitList } from '../secret.ts'
import { parseProxies, postgresServers } from './values.ts'

/** Ranges this wide hold half the internet; nobody's proxies do. */
const WIDEST = { ipv4: 2, ipv6: 3 } as const

export function trustsEverybody(value: string): boolean {
  return (parseProxies(value) ?? []).some((proxy) => {
    const [address = '', bits] = proxy.split('/')
    return bits !== undefined && Number(bits) <= (address.includes(':') ? WIDEST.ipv6 : WIDEST.ipv4)
  })
}

/** Whether one of these addresses is http:// and not on a private network. */
export function travelsInClear(value: string): boolean {
  return splitList(value).some((one) => /^http:/i.test(one) && !isPrivate(URL.parse(one)?.hostname ?? ''))
}

/** Whether only a private network knows this name or address. */
function isPrivate(host: string): boolean {
  return (
    !/[.:]/.test(host) ||
    /\.(?:internal|local|localhost|lan|home\.arpa|svc|test)$/i.test(host) ||
    /^(?:127|10|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.[\d.]+$|^\[(?:::1|f[cd][0-9a-f]{2}:.*)\]$/i.test(host)
  )
}

const THIS_MACHINE = /^(?:(?:.+\.)?localhost\.?|0\.0\.0\.0|127(?:\.\d+){3}|\[::1?\])$/i

/** Whether this address leads everybody to their own machine. */
export const leadsToItself = (url: string): boolean => THIS_MACHINE.test(new URL(url).hostname)

/** Whether the connection to a PostgreSQL on another machine may go without TLS. */
export function connectsInClear(value: string): boolean {
  return (postgresServers(value) ?? []).some((server) => {
    const url = new URL(server)
    // Asking for searchParams loads their class.
    const parameter = (name: string) => (url.search === '' ? '' : (url.searchParams.get(name) ?? ''))
    const isHere = leadsToItself(server) || /^%2f/i.test(url.hostname) || parameter('host').startsWith('/')
    return !isHere && !/^(?:require|verify-ca|verify-full)$/.test(parameter('sslmode'))
  })
}

const SECRET_KEY =
  /^(?:sk[-_](?:live|test|ant|proj)[-_]|rk_(?:live|test)_|whsec_|gh[pousr]_|xox[abpr]-|-----BEGIN [A-Z ]*PRIVATE KEY)/

/** A secret key, or a token of the data store that was signed for its servers (RFC 7519: the claims are readable). */
export function looksSecret(value: string): boolean {
  if (SECRET_KEY.test(value)) return true
  const claims = /^eyJ[\w-]+\.(eyJ[\w-]+)\.[\w-]*$/.exec(value)?.[1]
  return (
    claims !== undefined && /"role"\s*:\s*"service_role"/.test(Buffer.from(claims, 'base64url').toString())
  )
}
