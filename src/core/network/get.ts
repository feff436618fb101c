import { type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import { codeError } from '../errors.ts'
import { given } from '../given.ts'
import { type CauseCode, causeOf, PHASES, type Phase } from './causes.ts'
import { connectTo, hostOf, type Lookup, secure } from './connect.ts'
import { boundedBody, loginOf, proxyOf } from './proxy.ts'

/** The network as a parameter: production gives nothing. */
export interface Network {
  readonly lookup?: Lookup
  /** Authorities to trust instead of Node's, in PEM. */
  readonly ca?: string
  /** Hears the Date of an answer, in UTC milliseconds. */
  readonly onDate?: (host: string, at: number) => void
}

export interface GetInput {
  readonly url: URL
  readonly headers?: Readonly<Record<string, string>>
  /** Puts this there instead. */
  readonly put?: string
  /** A minute if left out, for callers whose own limit arrives as the signal. */
  readonly timeoutMs?: number
  /** Ends the request early, as its time-out does. */
  readonly signal?: AbortSignal
  readonly largestBytes: number
  /** The beginning of a larger body is taken for the whole. */
  readonly isCut?: boolean
  /** False: only the head of the answer is needed. */
  readonly wantsBody: (status: number) => boolean
  /** Accepts an invalid certificate. Never with a key: an impostor could read it. */
  readonly anyCertificate?: boolean
  readonly monotonic: () => number
  readonly network?: Network | undefined
}

/** Milliseconds; a phase that did not take place is absent. `firstByte` lasts until the answer's head is there. */
export interface Phases {
  readonly dns?: number
  readonly tcp?: number
  readonly tls?: number
  readonly firstByte?: number
  readonly total: number
}

type Ended =
  | {
      readonly answered: true
      readonly status: number
      readonly body: string
      /** The last moment of the server's certificate, in UTC milliseconds. */
      readonly certificateEnd: number | undefined
    }
  | { readonly answered: false; readonly cause: CauseCode }
export type GetOutcome = Ended & { readonly phases: Phases }

const LARGEST_HEAD_BYTES = 16 * 1024
const LONGEST_MS = 60_000

/** One bounded GET, or PUT: follows no redirect, decompresses nothing, is over in `timeoutMs`. Never rejects. */
export function get(input: GetInput): Promise<GetOutcome> {
  const { monotonic, signal } = input
  const began = monotonic()
  const round = (ms: number) => Math.round(ms * 10) / 10
  const watch = { phase: 'dns' as Phase, since: began }
  const took: Partial<Record<Phase, number>> = {}
  const enter: Enter = (phase, tookPlace = true) => {
    const now = monotonic()
    if (tookPlace) took[watch.phase] = round(now - watch.since)
    Object.assign(watch, { phase, since: now })
  }
  const connecting = new AbortController()
  const sockets: Socket[] = []
  let over = false
  return new Promise((resolve) => {
    const finish = (outcome: Ended) => {
      if (over) return
      over = true
      clearTimeout(timer)
      signal?.removeEventListener('abort', expire)
      for (const socket of sockets) socket.destroy()
      // Nothing listens once there is a socket, and an abort costs more than the rest of the end.
      if (sockets.length === 0) connecting.abort('closed')
      const { dns, tcp, tls, answer: firstByte } = took
      const phases = { ...given({ dns, tcp, tls, firstByte }), total: round(monotonic() - began) }
      resolve({ ...outcome, phases })
    }
    const expire = () => {
      const isAtProxy = (watch.phase === 'dns' || watch.phase === 'tcp') && proxyOf(input.url) !== undefined
      finish({ answered: false, cause: isAtProxy ? 'proxy_refused' : PHASES[watch.phase].timeout })
    }
    const timer = setTimeout(expire, input.timeoutMs ?? LONGEST_MS)
    signal?.addEventListener('abort', expire, { once: true })
    if (signal?.aborted) expire()
    const use = (socket: Socket) => {
      if (over) socket.destroy()
      sockets.push(socket)
    }
    exchange(input, connecting.signal, use, enter).then(finish, (error: unknown) =>
      finish({ answered: false, cause: causeOf(error, watch.phase) }),
    )
  })
}

/** Starts a phase and ends the one before. `tookPlace` false leaves out the time of the phase that ends. */
type Enter = (phase: Phase, tookPlace?: boolean) => void

async function exchange(
  input: GetInput,
  connecting: AbortSignal,
  /** Takes each socket, to be destroyed with the request however far it came. */
  use: (socket: Socket) => void,
  enter: Enter,
): Promise<Ended> {
  const { url, network = {}, anyCertificate = false } = input
  const { lookup, ca } = network
  const onResolved = (tookPlace: boolean) => enter('tcp', tookPlace)
  let socket = await connectTo(url, { lookup, signal: connecting, onResolved })
  use(socket)
  let certificateEnd: number | undefined
  if (url.protocol === 'https:') {
    enter('tls')
    const secured = await secure({ socket, host: hostOf(url), ca, anyCertificate, protocol: 'http/1.1' })
    use(secured)
    certificateEnd = Date.parse(secured.getPeerCertificate().valid_to)
    socket = secured
  }
  enter('answer')
  const answer = await ask(input, socket)
  network.onDate?.(hostOf(url), Date.parse(answer.headers.date ?? ''))
  enter('body')
  const status = answer.statusCode ?? 0
  const body = input.wantsBody(status) ? await read(answer, input) : ''
  return { answered: true, status, body, certificateEnd }
}

function ask({ url, headers, put }: GetInput, line: Socket): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request({
      createConnection: () => line,
      method: put === undefined ? 'GET' : 'PUT',
      host: url.hostname,
      path: `${url.pathname}${url.search}`,
      maxHeaderSize: LARGEST_HEAD_BYTES,
      headers: {
        host: url.host,
        'accept-encoding': 'identity',
        'user-agent': 'platformctl',
        ...loginOf(url),
        ...headers,
      },
    })
      .on('response', resolve)
      .on('upgrade', () => reject(codeError('bad_http')))
      .on('error', reject)
      .end(put)
  })
}

async function read(answer: IncomingMessage, { largestBytes, isCut = false }: GetInput): Promise<string> {
  if ((answer.headers['content-encoding'] ?? 'identity') !== 'identity') throw codeError('encoded')
  if (!isCut && Number(answer.headers['content-length'] ?? 0) > largestBytes) throw codeError('too_large')
  return (await boundedBody(answer, largestBytes, isCut)).toString()
}
