import { connect, isIP, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { codeError } from '../errors.ts'
import { loginOf, proxyOf } from './proxy.ts'

export interface Address {
  readonly address: string
  readonly family: number
}

/** Name resolution as a parameter. Rejects with Node's error codes (`ENOTFOUND` …). */
export type Lookup = (host: string) => Promise<readonly Address[]>

/** How long one address may take before the next is tried beside it (RFC 8305 §5, Connection Attempt Delay). */
const STAGGER_MS = 250

/** Shares one resolution per host: one that hangs cannot be cancelled, and holds a thread of a small pool. */
export function sharedLookup(lookup: Lookup): Lookup {
  const running = new Map<string, Promise<readonly Address[]>>()
  return (host) => {
    const started = running.get(host) ?? lookup(host).finally(() => running.delete(host))
    running.set(host, started)
    return started
  }
}

const systemLookup = sharedLookup(async (host) => {
  // Loaded only to resolve names: a HEALTHCHECK connects to an address.
  const { lookup } = await import('node:dns/promises')
  return lookup(host, { all: true, order: 'verbatim' })
})

/** The addresses of a host in the order in which to try them; an IP address is returned as it is. */
export async function addressesOf(host: string, resolve: Lookup = systemLookup): Promise<readonly Address[]> {
  const family = isIP(host)
  return family === 0 ? alternate(await resolve(host)) : [{ address: host, family }]
}

/** Takes turns between the two address families, beginning with the resolver's first (RFC 8305 §4). */
function alternate(addresses: readonly Address[]): readonly Address[] {
  const first = addresses.filter(({ family }) => family === addresses[0]?.family)
  const other = addresses.filter(({ family }) => family !== addresses[0]?.family)
  return first
    .flatMap((address, index) => [address, ...other.slice(index, index + 1)])
    .concat(other.slice(first.length))
}

/**
 * Connects to the first address that accepts (Happy Eyeballs, RFC 8305 §5). Beside one that is silent the next is
 * tried; Node's own implementation ends the silent attempt, so that a slow connection never succeeds.
 */
export function connectFirst(
  addresses: readonly Address[],
  port: number,
  /** Aborting ends every attempt, and leaves the promise pending. */
  signal: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const waiting = [...addresses]
    const open = new Set<Socket>()
    let timer: NodeJS.Timeout | undefined
    let fault: NodeJS.ErrnoException | undefined
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      for (const socket of open) socket.destroy()
    }
    const next = () => {
      clearTimeout(timer)
      const address = waiting.shift()
      if (address === undefined && open.size > 0) return
      if (address === undefined) {
        end()
        return reject(fault ?? codeError('ENOTFOUND'))
      }
      const socket = connect({ host: address.address, port, noDelay: true })
      open.add(socket)
      socket.once('connect', () => {
        open.delete(socket)
        end()
        resolve(socket)
      })
      // The winner keeps this listener: an error before its new owner listens would end the process.
      socket.on('error', (error) => {
        if (!open.delete(socket)) return
        // A refusal says the most: the machine is there, and nothing listens.
        if (fault?.code !== 'ECONNREFUSED') fault = error
        next()
      })
      if (waiting.length > 0) timer = setTimeout(next, STAGGER_MS)
    }
    signal.addEventListener('abort', end, { once: true })
    next()
  })
}

/** The host of an address as resolvers and sockets take it: without the brackets of an IPv6 address. */
export const hostOf = ({ hostname }: URL) => hostname.replace(/^\[(.*)\]$/, '$1')

/** Whether an address is of this machine: between its programs there is nobody to listen or to intervene. */
export const isHere = (url: URL): boolean => {
  const host = hostOf(url)
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

const PORTS: Readonly<Record<string, number>> = { 'https:': 443, 'smtps:': 465, 'smtp:': 587 }
export const portOf = ({ port, protocol }: URL) => Number(port || (PORTS[protocol] ?? 80))

interface ConnectOptions {
  readonly lookup?: Lookup | undefined
  readonly signal: AbortSignal
  readonly onResolved?: (tookPlace: boolean) => void
  /** In place of the port of the address. */
  readonly port?: number
}

/** Connects to the server of an address, through its proxy if it has one. */
export async function connectTo(url: URL, options: ConnectOptions): Promise<Socket> {
  const proxy = proxyOf(url)
  if (proxy === undefined) return connectDirectly(url, options)
  let socket: Socket | undefined
  try {
    socket = await connectDirectly(proxy, options)
    await tunnel(socket, proxy, `${url.hostname}:${portOf(url)}`)
    return socket
  } catch {
    socket?.destroy()
    throw codeError('proxy_refused')
  }
}

/** Aborting also closes the connection: the server may accept it and never answer, not even the first message of TLS. */
export async function connectDirectly(url: URL, options: ConnectOptions): Promise<Socket> {
  const { lookup, signal, onResolved, port = portOf(url) } = options
  const host = hostOf(url)
  const addresses = await addressesOf(host, lookup)
  signal.throwIfAborted()
  onResolved?.(addresses[0]?.address !== host)
  const socket = await connectFirst(addresses, port, signal)
  const end = () => socket.destroy(codeError('answer_timeout'))
  signal.addEventListener('abort', end, { once: true })
  return socket.once('close', () => signal.removeEventListener('abort', end))
}

/** Asks a proxy to pass on what follows (RFC 9110 §9.3.6). */
async function tunnel(socket: Socket, proxy: URL, path: string): Promise<void> {
  const { request } = await import('node:http')
  const headers = { host: path, ...loginOf(proxy, 'proxy-authorization') }
  return new Promise((resolve, reject) => {
    if (proxy.protocol !== 'http:') return reject()
    request({ createConnection: () => socket, method: 'CONNECT', path, headers })
      .on('connect', ({ statusCode }) => (statusCode === 200 ? resolve() : reject()))
      .on('response', reject)
      .on('error', reject)
      .end()
  })
}

/** Speaks TLS over a socket. Rejects when the certificate does not hold for `host`, unless any is accepted. */
export async function secure(input: {
  readonly socket: Socket
  /** A name or an address: without its brackets. */
  readonly host: string
  readonly ca: string | undefined
  readonly anyCertificate?: boolean
  /** What is spoken over it. A server may refuse a client that offers another protocol than its own. */
  readonly protocol?: 'http/1.1'
}): Promise<TLSSocket> {
  const { socket, host, ca, anyCertificate = false, protocol } = input
  // Loaded for https only.
  const tls = await import('node:tls')
  const line = tls.connect({
    socket,
    host,
    // An address is no server name (RFC 6066 §3).
    ...(isIP(host) === 0 && { servername: host }),
    ...(ca !== undefined && { ca }),
    rejectUnauthorized: !anyCertificate,
    ...(protocol && { ALPNProtocols: [protocol] }),
  })
  return new Promise((resolve, reject) => {
    line.once('secureConnect', () => resolve(line))
    line.on('error', reject)
    line.once('close', () => reject(codeError('ECONNRESET')))
  })
}
