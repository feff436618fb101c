import { lookup as systemLookup } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect as connectTcp, isIP, type LookupFunction } from 'node:net'
import { type Certificate, certificateOf } from './certificate.ts'
import { type FaultKind, NetworkFault } from './fault.ts'

/** The outside, as the live checks need it: a port, so that tests bring servers, names and certificates of their own. */
export interface Network {
  /** How many addresses a name has, as the system's own resolution sees it (also its hosts file). */
  addresses(host: string, signal: AbortSignal): Promise<number>
  /** The TXT records of a name, each joined; undefined when neither the name nor anything below it exists (RFC 8020). */
  txt(name: string, signal: AbortSignal): Promise<readonly string[] | undefined>
  /** The certificate as it is presented, also a bad one. `startTls`: after an SMTP upgrade (RFC 3207). */
  certificate(
    input: { readonly host: string; readonly port: number; readonly startTls: boolean },
    signal: AbortSignal,
  ): Promise<Certificate>
  /** One bounded GET that follows no redirect. */
  get(input: GetInput, signal: AbortSignal): Promise<{ readonly status: number; readonly body: string }>
  /** Opens a connection and closes it again. */
  connect(host: string, port: number, signal: AbortSignal): Promise<void>
}

interface GetInput {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** Never with a key: whoever answers would read it. */
  readonly anyCertificate?: boolean
}

export interface NetworkOptions {
  readonly lookup?: LookupFunction
  /** Name servers for TXT records, as `127.0.0.1:5353`; the system's when absent. */
  readonly nameServers?: readonly string[]
  /** PEM of further authorities; with it the system's own are not believed. */
  readonly ca?: string
}

const LARGEST_BODY_BYTES = 64 * 1024

export function openNetwork({
  lookup = systemLookup as LookupFunction,
  nameServers,
  ca,
}: NetworkOptions = {}): Network {
  const trust = ca === undefined ? {} : { ca }
  return {
    addresses: (host, signal) =>
      abortable(signal, (resolve, reject) => {
        lookup(host, { all: true }, (error, found) => {
          if (error) reject(faultOf(error))
          else resolve(Array.isArray(found) ? found.length : 1)
        })
      }),
    txt: (name, signal) => txtRecords(name, nameServers, signal),
    certificate: (input, signal) =>
      certificateOf({ ...input, ...trust, lookup, signal }).catch((error: unknown) => {
        throw faultOf(error)
      }),
    get: ({ url, headers = {}, anyCertificate = false }, signal) =>
      abortable(signal, (resolve, reject) => {
        const request = url.startsWith('https:') ? httpsRequest : httpRequest
        const asked = request(
          url,
          {
            agent: false,
            lookup,
            signal,
            ...trust,
            rejectUnauthorized: !anyCertificate,
            headers: { accept: 'application/json', 'user-agent': 'platformctl', ...headers },
          },
          (answer: IncomingMessage) => {
            let body = ''
            answer.setEncoding('utf8')
            answer.on('data', (chunk: string) => {
              body += chunk
              if (body.length > LARGEST_BODY_BYTES) {
                // The status and the beginning are enough to tell what it is.
                resolve({ status: answer.statusCode ?? 0, body: '' })
                asked.destroy()
              }
            })
            answer.on('error', (error) => reject(faultOf(error)))
            answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body }))
          },
        )
        asked.on('error', (error) => reject(faultOf(error)))
        asked.end()
      }),
    connect: (host, port, signal) =>
      abortable(signal, (resolve, reject) => {
        const socket = connectTcp({ host: host.replace(/^\[|\]$/g, ''), port, lookup })
        socket.on('connect', () => {
          resolve()
          socket.destroy()
        })
        socket.on('error', (error) => reject(faultOf(error)))
        signal.addEventListener('abort', () => socket.destroy(), { once: true })
      }),
  }
}

export function isAddress(host: string): boolean {
  return isIP(host.replace(/^\[|\]$/g, '')) !== 0
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

/** A promise that ends with the signal, whatever the work behind it listens to. */
function abortable<T>(
  signal: AbortSignal,
  work: (resolve: (value: T) => void, reject: (error: Error) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(new NetworkFault('timeout'))
    if (signal.aborted) return stop()
    signal.addEventListener('abort', stop, { once: true })
    const done = () => signal.removeEventListener('abort', stop)
    work(
      (value) => {
        done()
        resolve(value)
      },
      (error) => {
        done()
        reject(error)
      },
    )
  })
}

/** Error codes to kinds of fault: the only such table here. The error's own text may quote a host and goes no further. */
function faultOf(error: unknown): NetworkFault {
  if (error instanceof NetworkFault) return error
  const code = codeOf(error)
  const kinds: Readonly<Record<string, FaultKind>> = {
    ENOTFOUND: 'no such name',
    ENODATA: 'no such name',
    EAI_AGAIN: 'name server',
    ESERVFAIL: 'name server',
    ECONNREFUSED: 'refused',
    EHOSTUNREACH: 'no route',
    ENETUNREACH: 'no route',
    ETIMEDOUT: 'timeout',
    ABORT_ERR: 'timeout',
  }
  const kind = kinds[code]
  if (kind) return new NetworkFault(kind)
  if (/CERT|TLS|SSL|UNABLE_TO|SELF_SIGNED|ALTNAME|EPROTO/.test(code)) return new NetworkFault('tls')
  return new NetworkFault('broken')
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
