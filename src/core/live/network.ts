import { Resolver } from 'node:dns/promises'
import { isIP, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { systemClock } from '../clock.ts'
import { codeOf } from '../error-code.ts'
import { probeRemote, type RemoteHealth } from '../health/prober.ts'
import { causeOf, type Phase } from '../network/causes.ts'
import { addressesOf, connectFirst, type Lookup } from '../network/connect.ts'
import { get, type Network } from '../network/get.ts'
import type { ServiceDefinition } from '../service.ts'
import { faultOf, NetworkFault } from './live.ts'

/** The certificate that a server presents. */
export interface Certificate {
  /** Why it cannot be trusted, as OpenSSL or Node names it (`CERT_HAS_EXPIRED`); undefined when it can. */
  readonly fault: string | undefined
  /** UTC milliseconds. */
  readonly validFrom: number
  readonly validTo: number
}

interface Input {
  /** A name or an address: without its brackets. */
  readonly host: string
  readonly port: number
  readonly startTls: boolean
  readonly network: Network
  readonly signal: AbortSignal
}

/** Connects and reads the certificate, trusted or not, so that a bad one is reported with its reason. */
export async function certificateOf({ host, port, startTls, network, signal }: Input): Promise<Certificate> {
  const { lookup, ca } = network
  const tcp = await connectFirst({ addresses: await addressesOf(host, lookup), port, signal })
  const stop = () => tcp.destroy(new NetworkFault('timeout'))
  signal.addEventListener('abort', stop, { once: true })
  try {
    if (startTls) await upgrade(tcp)
    const socket = connectTls({
      socket: tcp,
      // Connect without verifying, so that a fault can be read and reported.
      rejectUnauthorized: false,
      ...(isIP(host) ? { host } : { servername: host }),
      ...(ca === undefined ? {} : { ca }),
    })
    await event(socket, 'secureConnect')
    return read(socket)
  } finally {
    signal.removeEventListener('abort', stop)
    tcp.destroy()
  }
}

function read(socket: TLSSocket): Certificate {
  const presented = socket.getPeerCertificate()
  const error: unknown = socket.authorizationError
  const fault = socket.authorized ? undefined : String(error instanceof Error ? error.message : error)
  return { fault, validFrom: Date.parse(presented.valid_from), validTo: Date.parse(presented.valid_to) }
}

/**
 * Upgrades an SMTP connection (EHLO and STARTTLS, RFC 3207 §4); rejects with `no tls` when the server does
 * not offer it.
 */
async function upgrade(socket: Socket): Promise<void> {
  await reply(socket)
  socket.write('EHLO platformctl.localhost\r\n')
  if (!/^250[ -]STARTTLS\r?$/im.test(await reply(socket))) throw new NetworkFault('no tls')
  socket.write('STARTTLS\r\n')
  if (!(await reply(socket)).startsWith('220')) throw new NetworkFault('no tls')
}

const LONGEST_REPLY = 8192

/** One SMTP reply, of one line or several (RFC 5321 §4.2.1). */
function reply(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const onData = (chunk: Buffer) => {
      text += chunk.toString('latin1')
      // Every line but the last has a hyphen behind its code.
      if (text.endsWith('\n') && /^\d{3}(?: |$)/.test(text.split(/\r?\n/).at(-2) ?? '')) end()
      else if (text.length > LONGEST_REPLY) end(new NetworkFault('broken'))
    }
    const onEnd = () => end(new NetworkFault('broken'))
    const end = (error?: Error) => {
      socket.off('data', onData).off('error', end).off('end', onEnd)
      if (error) reject(error)
      else resolve(text)
    }
    socket.on('data', onData).on('error', end).on('end', onEnd)
  })
}

function event(socket: Socket, name: 'secureConnect'): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once(name, () => resolve())
    socket.once('error', reject)
    socket.once('close', () => reject(new NetworkFault('broken')))
  })
}

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

const LARGEST_BODY_BYTES = 64 * 1024
/** Longer than any check may take: the check's own limit arrives as its signal. */
const LONG_MS = 60_000

export function openNetwork(
  options: {
    readonly lookup?: Lookup
    /** Name servers for TXT records, as `127.0.0.1:5353`; the system's when absent. */
    readonly nameServers?: readonly string[]
    /** Further authorities, in PEM. If set, the system's own are not trusted. */
    readonly ca?: string
  } = {},
): LiveNetwork {
  const { lookup, nameServers, ca } = options
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
