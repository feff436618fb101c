import { BlockList, isIP, isIPv4 } from 'node:net'
import { HOUR_MS } from '../durations.ts'
import type { Host } from '../host.ts'

export interface Peer {
  /** The address at the other end of the socket; undefined where an embedding program has none. */
  readonly socket: string | undefined
  /** X-Forwarded-For as it came. */
  readonly forwarded: string | null
}

/** The key of every client where the host passes no socket on, and no trusted proxy says for whom it asks. */
export const UNKNOWN_CLIENT = 'embedded'

/** The key that requests are counted by. X-Forwarded-For is read from the right, through trusted proxies only. */
export function clientKey(trustProxy: readonly string[]): (peer: Peer) => string {
  const isTrusted = isIn(trustProxy)

  return ({ socket, forwarded }) => {
    const peer = socket === undefined ? undefined : plain(socket)
    // Without a socket (embedded), the host program is in front. It is trusted if any proxy is.
    const mayForward = peer === undefined ? trustProxy.length > 0 : isTrusted(peer)
    if (!mayForward || forwarded === null) return peer === undefined ? UNKNOWN_CLIENT : prefix(peer)
    let client = peer
    for (const hop of forwarded.split(',').reverse()) {
      const address = plain(hop.trim())
      if (address === undefined) break
      client = address
      if (!isTrusted(address)) break
    }
    return client === undefined ? UNKNOWN_CLIENT : prefix(client)
  }
}

/** The client that a proxy says it forwards for while TRUST_PROXY names none: it tells visitors apart, and never lifts a limit. */
export function untrustedClient(trustProxy: readonly string[]): (peer: Peer) => string | undefined {
  return ({ forwarded }) => {
    if (trustProxy.length > 0 || forwarded === null) return undefined
    const last = plain(forwarded.slice(forwarded.lastIndexOf(',') + 1).trim())
    return last === undefined ? undefined : prefix(last)
  }
}

const familyOf = (address: string) => (isIPv4(address) ? 'ipv4' : 'ipv6')

/** Whether an address is one of these, or in one of these ranges. */
function isIn(entries: readonly string[]) {
  const list = new BlockList()
  for (const entry of entries) {
    const [address = '', bits] = entry.split('/')
    if (bits === undefined) list.addAddress(address, familyOf(address))
    else list.addSubnet(address, Number(bits), familyOf(address))
  }
  return (socket: string | undefined) => {
    const address = socket === undefined ? undefined : plain(socket)
    return address !== undefined && list.check(address, familyOf(address))
  }
}

/** Did the request come from this machine itself, and through no proxy? */
export const isLoopback = isIn(['127.0.0.0/8', '::1'])
const isPrivate = isIn([
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  'fc00::/7',
  'fe80::/10',
])
/** Whether this is the address of a machine nearby, where proxies run. */
export const isNearby = (socket: string | undefined) => isLoopback(socket) || isPrivate(socket)

/** An address without port, brackets, zone or IPv4-in-IPv6 form; undefined if the text is not an address. */
function plain(text: string): string | undefined {
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text
  const address = bare.replace(/%.*$/s, '')
  if (isIP(address) !== 6) return isIPv4(address) ? address : undefined
  // The URL parser gives every spelling of an address one form.
  const form = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const mapped = /^::ffff:(\w+):(\w+)$/.exec(form)
  if (mapped === null) return form
  const [high = 0, low = 0] = mapped.slice(1).map((group) => Number.parseInt(group, 16))
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.')
}

/** The part of an address that counts as one client: IPv6 customers hold whole prefixes, so a /56. */
function prefix(address: string): string {
  if (isIPv4(address)) return address
  const [left = [], right = []] = address.split('::').map((part) => part.split(':').filter(Boolean))
  const missing = Array<string>(8 - left.length - right.length).fill('0')
  const [a, b, c, d = '0'] = [...left, ...missing, ...right]
  return `${a}:${b}:${c}:${(Number.parseInt(d, 16) & 0xff00).toString(16)}::/56`
}

const SEEN_FOR_MS = HOUR_MS
const NOT_TRUSTED =
  'a proxy that TRUST_PROXY does not name forwards requests: all its visitors count as one client'

/** Notices a machine nearby that TRUST_PROXY does not name and that forwards for several clients: they count as one client. */
export function createProxyWatch({ clock, log }: Pick<Host, 'clock' | 'log'>, trustProxy: readonly string[]) {
  const clientOf = untrustedClient([])
  const isTrusted = isIn(trustProxy)
  let first: string | undefined
  let lastSeen = Number.NEGATIVE_INFINITY
  const seen = () => clock.monotonic() - lastSeen < SEEN_FOR_MS
  return {
    note(peer: Peer): void {
      const client = clientOf(peer)
      if (client === undefined || !isNearby(peer.socket) || isTrusted(peer.socket)) return
      first ??= client
      if (client === first) return
      if (!seen()) log.warn('proxy_not_trusted', NOT_TRUSTED)
      lastSeen = clock.monotonic()
    },
    seen,
  }
}
