import { createServer as createHttpServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, isIP } from 'node:net'
import dns2 from 'dns2'
import { generate } from 'selfsigned'
import { onTestFinished } from 'vitest'
import type { Lookup } from '../../src/core/network/connect.ts'

/** A world of our own on loopback: names, an authority that signs certificates, servers. Nothing real is asked. */

type Records = Readonly<Record<string, string | readonly string[]>>

/** A name server that goes away with the test; gives its address. */
export async function nameServer(records: Records): Promise<string> {
  const { address, close } = await startNameServer(records)
  onTestFinished(close)
  return address
}

/** Serves the TXT records given and nothing else. A name that has children exists without records. */
export async function startNameServer(
  records: Records,
): Promise<{ readonly address: string; readonly close: () => void }> {
  const server = dns2.createUDPServer((request, send) => {
    const response = dns2.Packet.createResponseFromRequest(request)
    const name = (request.questions[0]?.name ?? '').toLowerCase()
    const found = records[name]
    if (found !== undefined) {
      for (const data of [found].flat())
        response.answers.push(
          new dns2.Packet.Resource({
            name,
            type: dns2.Packet.TYPE.TXT,
            class: dns2.Packet.CLASS.IN,
            ttl: 1,
            data: split(data),
          }),
        )
    } else if (!Object.keys(records).some((known) => known.endsWith(`.${name}`))) {
      // NXDOMAIN: neither this name nor anything below it (RFC 8020).
      response.header.rcode = 3
    }
    void send(response)
  })
  await new Promise<void>((resolve) => {
    server.on('listening', () => resolve())
    void server.listen(0, '127.0.0.1')
  })
  return { address: `127.0.0.1:${server.address().port}`, close: () => void server.close() }
}

/** Strings of a TXT record hold at most 255 octets (RFC 1035 §3.3). */
function split(text: string): string[] {
  return text.match(/.{1,255}/gs) ?? ['']
}

/** Resolves every name to this machine, except names under `.invalid`, which do not exist (RFC 2606). */
export const loopbackLookup: Lookup = async (host) => {
  if (host.endsWith('.invalid')) throw Object.assign(new Error(host), { code: 'ENOTFOUND' })
  return [{ address: '127.0.0.1', family: 4 }]
}

export interface Authority {
  /** The authority's certificate in PEM, for clients that should trust it. */
  readonly ca: string
  readonly issue: (input: CertificateInput) => Promise<{ readonly key: string; readonly cert: string }>
}

interface CertificateInput {
  readonly host?: string
  /** Days from now; negative are past. */
  readonly from?: number
  readonly to?: number
}

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000)

export async function authority(name: string): Promise<Authority> {
  const own = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    algorithm: 'sha256',
    notBeforeDate: inDays(-1000),
    notAfterDate: inDays(1000),
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  })
  return {
    ca: own.cert,
    async issue({ host = 'service.example', from = -10, to = 80.5 }) {
      const made = await generate([{ name: 'commonName', value: host }], {
        keyType: 'ec',
        algorithm: 'sha256',
        notBeforeDate: inDays(from),
        notAfterDate: inDays(to),
        ca: { key: own.private, cert: own.cert },
        extensions: [
          {
            name: 'subjectAltName',
            altNames: [isIP(host) === 0 ? { type: 2, value: host } : { type: 7, ip: host }],
          },
        ],
      })
      return { key: made.private, cert: made.cert }
    },
  }
}

export interface Served {
  readonly port: number
  readonly requests: readonly Pick<IncomingMessage, 'url' | 'headers'>[]
}

/** An http server, or with a certificate an https one, which remembers what it was asked. */
export async function serve(
  answer: RequestListener,
  certificate?: { readonly key: string; readonly cert: string },
): Promise<Served> {
  const requests: Pick<IncomingMessage, 'url' | 'headers'>[] = []
  const listener: RequestListener = (request, response) => {
    requests.push({ url: request.url, headers: request.headers })
    answer(request, response)
  }
  const server = certificate ? createHttpsServer(certificate, listener) : createHttpServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, requests }
}

/** Answers each path with a status and a JSON body; 404 elsewhere. */
export function answers(
  paths: Readonly<Record<string, readonly [status: number, body?: unknown]>>,
): RequestListener {
  return (request, response) => {
    const [status, body = {}] = paths[request.url ?? ''] ?? [404]
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }
}
