import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import { systemClock } from '../clock.ts'
import { codeOf } from '../error-code.ts'
import { probeRemote, type RemoteHealth } from '../health/prober.ts'
import { causeOf, type Phase } from '../network/causes.ts'
import { addressesOf, connectFirst, type Lookup } from '../network/connect.ts'
import { get } from '../network/get.ts'
import type { ServiceDefinition } from '../service.ts'
import { type Certificate, certificateOf } from './certificate.ts'
import { faultOf, NetworkFault } from './fault.ts'

/** The outside, as the live checks need it: a port, so that tests bring servers, names and certificates of their own. */
export interface LiveNetwork {
  /** How many addresses a name has, as the system's own resolution sees it (also its hosts file). */
  addresses(host: string, signal: AbortSignal): Promise<number>
  /** The TXT records of a name, each joined; undefined when neither the name nor anything below it exists (RFC 8020). */
  txt(name: string, signal: AbortSignal): Promise<readonly string[] | undefined>
  /** The certificate as it is presented, also a bad one. `startTls`: after an SMTP upgrade (RFC 3207). */
  certificate(
    input: { readonly host: string; readonly port: number; readonly startTls: boolean },
    signal: AbortSignal,
  ): Promise<Certificate>
  /** One bounded GET that follows no redirect. The body is empty unless it is wanted. */
  get(input: GetInput, signal: AbortSignal): Promise<{ readonly status: number; readonly body: string }>
  /** Asks a service of the platform for its shallow health, in its format. */
  health(service: ServiceDefinition, url: string, signal: AbortSignal): Promise<RemoteHealth>
  /** Opens a connection and closes it again. */
  connect(host: string, port: number, signal: AbortSignal): Promise<void>
}

interface GetInput {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly wantsBody?: boolean
  /** Accepts an invalid certificate. Never use it with a key: an impostor could read it. */
  readonly anyCertificate?: boolean
}

export interface NetworkOptions {
  readonly lookup?: Lookup
  /** Name servers for TXT records, as `127.0.0.1:5353`; the system's when absent. */
  readonly nameServers?: readonly string[]
  /** Further authorities, in PEM. If set, the system's own are not trusted. */
  readonly ca?: string
}

const LARGEST_BODY_BYTES = 64 * 1024
/** Longer than any check may take: the check's own limit arrives as its signal. */
const LONG_MS = 60_000

export function openNetwork({ lookup, nameServers, ca }: NetworkOptions = {}): LiveNetwork {
  const network = { ...(lookup && { lookup }), ...(ca !== undefined && { ca }) }
  return {
    addresses: async (host, signal) =>
      (await abortable(signal, 'dns', addressesOf(bare(host), lookup))).length,
    txt: (name, signal) => txtRecords(name, nameServers, signal),
    certificate: ({ host, ...input }, signal) =>
      abortable(signal, 'tls', certificateOf({ ...input, host: bare(host), network, signal })),
    async get({ url, headers = {}, wantsBody = false, anyCertificate = false }, signal) {
      const outcome = await get({
        url: new URL(url),
        headers: { accept: 'application/json', ...headers },
        timeoutMs: LONG_MS,
        signal,
        largestBytes: LARGEST_BODY_BYTES,
        wantsBody: () => wantsBody,
        anyCertificate,
        monotonic: systemClock.monotonic,
        network,
      })
      if (!outcome.answered) throw faultOf(outcome.cause)
      return outcome
    },
    health: ({ name, health, format }, url, signal) =>
      probeRemote({
        service: name,
        url,
        health,
        format,
        deep: false,
        token: undefined,
        timeoutMs: LONG_MS,
        clock: systemClock,
        signal,
        network,
      }),
    async connect(host, port, signal) {
      const addresses = await abortable(signal, 'dns', addressesOf(bare(host), lookup))
      const socket = await abortable(signal, 'tcp', connectFirst({ addresses, port, signal }))
      socket.destroy()
    },
  }
}

/** A host as resolvers and sockets take it: an IPv6 address without its brackets. */
function bare(host: string): string {
  return host.replace(/^\[|\]$/g, '')
}

export function isAddress(host: string): boolean {
  return isIP(bare(host)) !== 0
}

async function txtRecords(
  name: string,
  nameServers: readonly string[] | undefined,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const resolver = new Resolver({ timeout: 2000, tries: 2 })
  if (nameServers) resolver.setServers(nameServers)
  const cancel = () => resolver.cancel()
  signal.addEventListener('abort', cancel, { once: true })
  try {
    // A record of several strings is one text without anything between them (RFC 7208 §3.3).
    return (await resolver.resolveTxt(name)).map((strings) => strings.join(''))
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOTFOUND') return undefined
    if (code === 'ENODATA') return []
    throw new NetworkFault('name server')
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** Ends a promise when the signal aborts, even if the work behind it ignores the signal. */
function abortable<T>(signal: AbortSignal, phase: Phase, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(new NetworkFault('timeout'))
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    work
      .then(resolve, (error: unknown) =>
        reject(error instanceof NetworkFault ? error : faultOf(causeOf(error, phase))),
      )
      .finally(() => signal.removeEventListener('abort', stop))
  })
}
