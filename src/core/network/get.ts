import { type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import { given } from '../given.ts'
import { type CauseCode, causeOf, PHASES, type Phase } from './causes.ts'
import { connectTo, hostOf, type Lookup, secure } from './connect.ts'

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
  readonly timeoutMs: number
  /** Ends the request early, as its time-out does. */
  readonly signal?: AbortSignal
  readonly largestBytes: number
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

export type GetOutcome = { readonly phases: Phases } & (
  | {
      readonly answered: true
      readonly status: number
      readonly body: string
      /** The last moment of the server's certificate, in UTC milliseconds. */
      readonly certificateEnd: number | undefined
    }
  | { readonly answered: false; readonly cause: CauseCode }
)

const LARGEST_HEAD_BYTES = 16 * 1024

/**
 * One bounded GET, or PUT, over `node:http` that follows no redirect, decompresses nothing and is over in `timeoutMs`
 * whatever hangs: a name resolution listens to no signal, so the time-out is raced against all of it. Never rejects.
 */
export function get(input: GetInput): Promise<GetOutcome> {
  const { monotonic, signal } = input
  const began = monotonic()
  const watch = { phase: 'dns' as Phase, since: began, took: {} as Partial<Record<Phase, number>> }
  const enter = (phase: Phase, tookPlace = true) => {
    const now = monotonic()
    if (tookPlace) watch.took[watch.phase] = now - watch.since
    Object.assign(watch, { phase, since: now })
  }
  const line = openLine()
  return new Promise((resolve) => {
    let over = false
    const finish = (outcome: Ended) => {
      if (over) return
      over = true
      clearTimeout(timer)
      signal?.removeEventListener('abort', expire)
      line.close()
      resolve({ ...outcome, phases: phasesOf(watch.took, monotonic() - began) })
    }
    const expire = () => finish({ answered: false, cause: PHASES[watch.phase].timeout })
    const timer = setTimeout(expire, input.timeoutMs)
    signal?.addEventListener('abort', expire, { once: true })
    if (signal?.aborted) expire()
    exchange(input, line, enter).then(finish, (error: unknown) =>
      finish({
        answered: false,
        cause: error instanceof Refusal ? error.reason : causeOf(error, watch.phase),
      }),
    )
  })
}

/** The connection of one request, closed with it however far it came. */
type Line = ReturnType<typeof openLine>

function openLine() {
  const connecting = new AbortController()
  const sockets: Socket[] = []
  let closed = false
  return {
    /** Aborted when it is closed before there is a socket. */
    connecting: connecting.signal,
    /** The socket that it goes over from now on; destroyed at once where the line is closed. */
    use(socket: Socket): Socket {
      if (closed) socket.destroy()
      sockets.push(socket)
      return socket
    },
    close() {
      closed = true
      for (const socket of sockets) socket.destroy()
      // Nothing listens once there is a socket, and an abort costs more than the rest of the end.
      if (sockets.length === 0) connecting.abort('closed')
    },
  }
}

type Ended =
  | Omit<Extract<GetOutcome, { answered: true }>, 'phases'>
  | Omit<Extract<GetOutcome, { answered: false }>, 'phases'>

/** Ends an answer before its end, because its beginning already decides the cause. */
class Refusal extends Error {
  readonly reason: CauseCode
  constructor(reason: CauseCode) {
    super(reason)
    this.reason = reason
  }
}

/** Starts a phase and ends the one before. `tookPlace` false leaves out the time of the phase that ends. */
type Enter = (phase: Phase, tookPlace?: boolean) => void

async function exchange(input: GetInput, line: Line, enter: Enter): Promise<Ended> {
  const { url, network = {} } = input
  const { lookup, ca } = network
  const socket = line.use(
    await connectTo(url, {
      lookup,
      signal: line.connecting,
      onResolved: (tookPlace) => enter('tcp', tookPlace),
    }),
  )
  let secured = socket
  let certificateEnd: number | undefined
  if (url.protocol === 'https:') {
    enter('tls')
    const handshake = await secure({
      socket,
      host: hostOf(url),
      ca,
      anyCertificate: input.anyCertificate ?? false,
      protocol: 'http/1.1',
    })
    secured = line.use(handshake)
    certificateEnd = Date.parse(handshake.getPeerCertificate().valid_to)
  }
  enter('answer')
  const answer = await ask(input, secured)
  network.onDate?.(hostOf(url), Date.parse(answer.headers.date ?? ''))
  enter('body')
  const status = answer.statusCode ?? 0
  const body = input.wantsBody(status) ? await read(answer, input.largestBytes) : ''
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
      headers: { host: url.host, 'accept-encoding': 'identity', 'user-agent': 'platformctl', ...headers },
    })
      .on('response', resolve)
      .on('upgrade', () => reject(new Refusal('bad_http')))
      .on('error', reject)
      .end(put)
  })
}

function read(answer: IncomingMessage, largestBytes: number): Promise<string> {
  return new Promise((resolve, reject) => {
    if ((answer.headers['content-encoding'] ?? 'identity') !== 'identity') throw new Refusal('encoded')
    if (Number(answer.headers['content-length'] ?? 0) > largestBytes) throw new Refusal('too_large')
    const chunks: Buffer[] = []
    let bytes = 0
    answer
      .on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > largestBytes) reject(new Refusal('too_large'))
        else chunks.push(chunk)
      })
      .on('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
      .on('error', reject)
  })
}

function phasesOf(took: Partial<Record<Phase, number>>, total: number): Phases {
  const { dns, tcp, tls, answer } = took
  const round = (ms: number) => Math.round(ms * 10) / 10
  const rounded = (ms: number | undefined) => (ms === undefined ? undefined : round(ms))
  const each = { dns: rounded(dns), tcp: rounded(tcp), tls: rounded(tls), firstByte: rounded(answer) }
  return { ...given(each), total: round(total) }
}
