import { Resolver } from 'node:dns/promises'
import { addAbortListener } from 'node:events'
import { isIP, type Socket } from 'node:net'
import type { Settings } from '../env/settings.ts'
import { codeError, codeOf } from '../errors.ts'
import { given } from '../given.ts'
import type { ProbeDefinition } from '../health/probe.ts'
import { probeRemote } from '../health/prober.ts'
import { systemClock } from '../host.ts'
import { causeOf, type Phase } from '../network/causes.ts'
import { addressesOf, connectTo, hostOf, secure } from '../network/connect.ts'
import { type GetInput, get, type Network } from '../network/get.ts'
import type { ServiceDefinition } from '../service.ts'
import { NO_STARTTLS } from './live.ts'

/** Connects and reads the certificate, trusted or not, so that a bad one is reported with its reason. */
export async function certificateOf(url: URL, { lookup, ca }: Network, signal: AbortSignal) {
  const socket = await connectTo(url, { lookup, signal })
  try {
    if (url.protocol === 'smtp:') await upgrade(socket)
    const line = await secure({ socket, host: hostOf(url), ca, anyCertificate: true })
    const { valid_from: from, valid_to: to } = line.getPeerCertificate()
    const error: unknown = line.authorizationError
    return {
      fault: line.authorized ? undefined : String(error instanceof Error ? error.message : error),
      validFrom: Date.parse(from),
      validTo: Date.parse(to),
    }
  } finally {
    socket.destroy()
  }
}

/** Upgrades an SMTP connection (EHLO and STARTTLS, RFC 3207 §4); rejects when the server does not offer it. */
async function upgrade(socket: Socket): Promise<void> {
  await reply(socket)
  socket.write('EHLO platformctl.localhost\r\n')
  if (!/^250[ -]STARTTLS\r?$/im.test(await reply(socket))) throw codeError(NO_STARTTLS)
  socket.write('STARTTLS\r\n')
  if (!(await reply(socket)).startsWith('220')) throw codeError(NO_STARTTLS)
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
      else if (text.length > LONGEST_REPLY) onEnd()
    }
    const onEnd = () => end(codeError('connection_closed'))
    const end = (error?: Error) => {
      socket.off('data', onData).off('error', end).off('end', onEnd)
      if (error) reject(error)
      else resolve(text)
    }
    socket.on('data', onData).on('error', end).on('end', onEnd)
  })
}

/** The outside, as the live checks need it: a port, so that tests bring servers, names and certificates of their own. */
export type LiveNetwork = ReturnType<typeof openNetwork>

const LARGEST_BODY_BYTES = 64 * 1024
export function openNetwork(
  options: Pick<Network, 'lookup' | 'ca'> & {
    /** Name servers for TXT records, as `127.0.0.1:5353`; the system's when absent. */
    readonly nameServers?: readonly string[]
  } = {},
) {
  const { lookup, nameServers, ca } = options
  const network = given({ lookup, ca })
  return {
    /** How many addresses the host has, as the system's own resolution sees it (also its hosts file). */
    addresses: async (url: URL, signal: AbortSignal) =>
      (await abortable(signal, 'dns', addressesOf(hostOf(url), lookup))).length,
    /** The TXT records of a name, each joined; undefined when neither the name nor anything below it exists (RFC 8020). */
    txt: (name: string, signal: AbortSignal) => txtRecords(name, nameServers, signal),
    /** The certificate as it is presented, also a bad one; of `smtp:` after an upgrade (RFC 3207). */
    certificate: (url: URL, signal: AbortSignal) =>
      abortable(signal, 'tls', certificateOf(url, network, signal)),
    /** One bounded GET that follows no redirect. The body is empty unless it is wanted. */
    async get(
      input: Pick<GetInput, 'headers' | 'anyCertificate'> & {
        readonly url: string
        readonly wantsBody?: boolean
      },
      signal: AbortSignal,
    ): Promise<{ readonly status: number; readonly body: string }> {
      const outcome = await get({
        ...input,
        url: new URL(input.url),
        headers: { accept: 'application/json', ...input.headers },
        signal,
        largestBytes: LARGEST_BODY_BYTES,
        wantsBody: () => input.wantsBody === true,
        monotonic: systemClock.monotonic,
        network,
      })
      if (!outcome.answered) throw codeError(outcome.cause)
      return outcome
    },
    /** Asks a service of the platform for its shallow health, in its format. */
    health: ({ name: service, health, format }: ServiceDefinition, url: string, signal: AbortSignal) =>
      probeRemote({ service, url, health, format, clock: systemClock, signal, network }),
    /** Asks a probe that looks at an address, which needs no more of the process than this. */
    probe: ({ open }: ProbeDefinition, settings: Settings, signal: AbortSignal) => {
      const parts = { settings, network, clock: systemClock } as Parameters<typeof open>[0]
      return abortable(signal, 'tcp', open(parts)({ deep: true, signal }))
    },
    async connect(url: URL, signal: AbortSignal) {
      const socket = await abortable(signal, 'tcp', connectTo(url, { lookup, signal }))
      socket.destroy()
    },
  }
}

export const isAddress = (url: URL) => isIP(hostOf(url)) !== 0

async function txtRecords(name: string, nameServers: readonly string[] | undefined, signal: AbortSignal) {
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
    throw codeError('dns_unavailable')
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** Ends a promise when the signal aborts, even if the work behind it ignores the signal. */
function abortable<T>(signal: AbortSignal, phase: Phase, work: Promise<T>): Promise<T> {
  const over = Promise.withResolvers<never>()
  const listener = addAbortListener(signal, () => over.reject(codeError('answer_timeout')))
  const asked = work.catch((error: unknown) => {
    throw codeOf(error) === NO_STARTTLS ? error : codeError(causeOf(error, phase))
  })
  return Promise.race([asked, over.promise]).finally(() => listener[Symbol.dispose]())
}
