import { isIP, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { addressesOf, connectFirst } from '../network/connect.ts'
import type { Network } from '../network/get.ts'
import { NetworkFault } from './fault.ts'

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
