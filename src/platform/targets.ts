import { connect, type Socket } from 'node:net'
import { postgresServers } from '../core/env/values.ts'
import { codeError } from '../core/errors.ts'
import { failing, ok, type ProbeContext, type ProbeParts, type ProbeResult } from '../core/health/probe.ts'
import { reachable } from '../core/health/reach.ts'
import { percentDecoded } from '../core/is-record.ts'
import { causeOf } from '../core/network/causes.ts'
import { addressesOf, connectDirectly, hostOf, secure } from '../core/network/connect.ts'
import type { PROBE_TARGETS, ProbeInput } from './definition.ts'

type Run = (
  target: string,
  parts: ProbeParts & { readonly expect?: ProbeInput['expect'] | undefined },
  context: ProbeContext,
) => Promise<ProbeResult>

/** A protocol in which the server speaks, or answers a first message, before anybody signs in. */
interface Greeting {
  readonly port: number
  /** The scheme that begins with TLS. */
  readonly secure?: string
  readonly send?: Uint8Array
  readonly answer: RegExp
}

const SMTP: Greeting = { port: 25, secure: 'smtps:', answer: /^220/ }
/** An SSLRequest (PostgreSQL protocol 55.2.10), which is answered S or N before anybody signs in. */
const POSTGRES: Greeting = { port: 5432, send: Uint8Array.of(0, 0, 0, 8, 4, 210, 22, 47), answer: /^[SNE]/ }
const REDIS: Greeting = {
  port: 6379,
  secure: 'rediss:',
  send: new TextEncoder().encode('PING\r\n'),
  // A server that asks for a password first is reachable, too.
  answer: /^\+PONG|^-(?:NOAUTH|NOPERM)/,
}

/** Probes a target; rejects with the code of a cause. */
export const probeTarget = (kind: keyof typeof TARGETS, ...asked: Parameters<Run>): Promise<ProbeResult> =>
  TARGETS[kind](...asked).catch((error: unknown) => {
    asked[2].signal.throwIfAborted()
    throw codeError(causeOf(error, kind === 'dns' ? 'dns' : 'answer'))
  })

const TARGETS: Readonly<Record<(typeof PROBE_TARGETS)[number], Run>> = {
  http: (url, parts, context) => reachable({ ...parts, url }, context),
  tcp: async (target, ...asked) => connected(await line(new URL(`tcp://${target}`), 0, ...asked)),
  tls: async (target, ...asked) => connected(await encrypted(new URL(`tls://${target}`), 443, ...asked)),
  dns: async (host, { network }) =>
    (await addressesOf(host.replace(/\.$/, ''), network?.lookup)).length > 0
      ? ok(true)
      : failing('has no address'),
  smtp: greeted(SMTP),
  postgres: (target, parts, { deep, signal }) => {
    const over = new AbortController()
    const context = { deep, signal: AbortSignal.any([signal, over.signal]) }
    const all = (postgresServers(target) ?? [target]).map((one) => greeted(POSTGRES)(one, parts, context))
    const well = all.map(async (one) => ((await one).state === 'ok' ? one : Promise.reject(new Error())))
    const found = Promise.any(well).catch(() => Promise.race(all))
    return found.finally(() => over.abort())
  },
  redis: greeted(REDIS),
}

function connected(socket: Socket): ProbeResult {
  socket.destroy()
  return ok(true)
}

/** By its host and port, or by the socket in a folder of this machine that libpq takes for a host. */
const line = async (url: URL, usual: number, { network }: ProbeParts, { signal }: ProbeContext) => {
  const port = Number(url.port) || usual
  const hosts = [percentDecoded(url.hostname), url.searchParams.get('host')]
  const folder = hosts.find((one) => one?.startsWith('/'))
  if (folder === undefined) return connectDirectly(url, { lookup: network?.lookup, port, signal })
  return connect({ path: `${folder}/.s.PGSQL.${port}`, signal }).on('error', () => {})
}

async function encrypted(url: URL, usual: number, parts: ProbeParts, context: ProbeContext) {
  const socket = await line(url, usual, parts, context)
  return secure({ socket, host: hostOf(url), ca: parts.network?.ca })
}

function greeted(greeting: Greeting): Run {
  return async (target, parts, context) => {
    const url = new URL(target)
    const usual = url.protocol === 'smtps:' ? 465 : greeting.port
    const open = url.protocol === greeting.secure ? encrypted : line
    const socket = await open(url, usual, parts, context)
    if (greeting.send) socket.write(greeting.send)
    // Leaving the loop closes the connection.
    for await (const chunk of socket)
      return greeting.answer.test(chunk.toString('latin1'))
        ? ok(true)
        : failing('answers, but not in its protocol')
    throw new Error('closed')
  }
}
