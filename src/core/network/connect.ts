import { connect, isIP, type Socket } from 'node:net'

export interface Address {
  readonly address: string
  readonly family: number
}

/** Name resolution as a parameter. Rejects with Node's error codes (`ENOTFOUND` …). */
export type Lookup = (host: string) => Promise<readonly Address[]>

/** How long one address may take before the next is tried beside it (RFC 8305 §5, Connection Attempt Delay). */
const STAGGER_MS = 250

/**
 * Shares one resolution per host among all callers that need it. A resolver that hangs cannot be cancelled
 * and holds a thread of a small pool; if each probe started its own, an hour's outage would queue thousands
 * of them.
 */
export function sharedLookup(lookup: Lookup): Lookup {
  const running = new Map<string, Promise<readonly Address[]>>()
  return (host) => {
    const known = running.get(host)
    if (known) return known
    const started = lookup(host).finally(() => running.delete(host))
    running.set(host, started)
    return started
  }
}

const systemLookup = sharedLookup(async (host) => {
  // Loaded only to resolve names: a HEALTHCHECK connects to an address.
  const { lookup } = await import('node:dns')
  return new Promise((resolve, reject) => {
    lookup(host, { all: true, order: 'verbatim' }, (error, addresses) =>
      error ? reject(error) : resolve(addresses),
    )
  })
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
 * Connects to the first address that accepts (Happy Eyeballs, RFC 8305 §5). If one refuses, the next is tried
 * at once; if one is silent for a quarter of a second, the next is tried beside it. Node's own implementation
 * ends the silent attempt instead, so a slow connection never succeeds.
 */
export function connectFirst(input: {
  readonly addresses: readonly Address[]
  readonly port: number
  /** Aborting ends every attempt, and leaves the promise pending. */
  readonly signal: AbortSignal
}): Promise<Socket> {
  const { addresses, port, signal } = input
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
      if (address === undefined) {
        if (open.size > 0) return
        end()
        reject(fault ?? Object.assign(new Error('no address'), { code: 'ENOTFOUND' }))
        return
      }
      const socket = connect({ host: address.address, port, noDelay: true })
      open.add(socket)
      socket.once('connect', () => {
        open.delete(socket)
        end()
        resolve(socket)
      })
      // The winner keeps this listener: without one, an error before its new owner listens would end the
      // process.
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
