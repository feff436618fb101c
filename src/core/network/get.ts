import { type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import { type CauseCode, causeOf, type Phase, TIMEOUTS } from './causes.ts'
import { addressesOf, connectFirst, type Lookup } from './connect.ts'
import { proxyOf } from './proxy.ts'

/** The network as a parameter: production gives nothing. */
export interface Network {
  readonly lookup?: Lookup
  /** Authorities to trust instead of Node's, in PEM. */
  readonly ca?: string
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
    const expire = () => finish({ answered: false, cause: TIMEOUTS[watch.phase] })
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
interface Line {
  /** Aborted when it is closed before there is a socket. */
  readonly connecting: AbortSignal
  /** The socket that it goes over from now on; destroyed at once where the line is closed. */
  use(socket: Socket): Socket
  close(): void
}

function openLine(): Line {
  const connecting = new AbortController()
  const sockets: Socket[] = []
  let closed = false
  return {
    connecting: connecting.signal,
    use(socket) {
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
  const secure = url.protocol === 'https:'
  const host = bare(url)
  const proxy = proxyOf(url)
  const first = proxy ?? url
  const addresses = await addressesOf(bare(first), network.lookup)
  line.connecting.throwIfAborted()
  enter('tcp', addresses[0]?.address !== bare(first))
  const socket = line.use(await connectFirst({ addresses, port: portOf(first), signal: line.connecting }))
  if (proxy) await tunnel(socket, proxy, `${url.hostname}:${portOf(url)}`)
  let secured = socket
  let certificateEnd: number | undefined
  if (secure) {
    enter('tls')
    const tls = await import('./tls.ts')
    const handshake = await tls.secure({
      socket,
      host,
      ca: network.ca,
      anyCertificate: input.anyCertificate ?? false,
    })
    secured = line.use(handshake.line)
    certificateEnd = handshake.certificateEnd
  }
  enter('answer')
  const answer = await ask(input, secured)
  enter('body')
  const status = answer.statusCode ?? 0
  const body = input.wantsBody(status) ? await read(answer, input.largestBytes) : ''
  return { answered: true, status, body, certificateEnd }
}

/** The host without the brackets of an IPv6 address. */
const bare = ({ hostname }: URL) => hostname.replace(/^\[(.*)\]$/, '$1')
const portOf = ({ port, protocol }: URL) => Number(port || (protocol === 'https:' ? 443 : 80))

/** Asks a proxy to pass on what follows (RFC 9110 §9.3.6). */
function tunnel(socket: Socket, { protocol, username, password }: URL, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    if (protocol !== 'http:') throw new Refusal('proxy_refused')
    const login = Buffer.from(decodeURIComponent(`${username}:${password}`)).toString('base64')
    const headers = { host: path, ...(username !== '' && { 'proxy-authorization': `Basic ${login}` }) }
    request({ createConnection: () => socket, method: 'CONNECT', path, headers })
      .on('connect', ({ statusCode }) =>
        statusCode === 200 ? resolve() : reject(new Refusal('proxy_refused')),
      )
      .on('response', () => reject(new Refusal('proxy_refused')))
      .on('error', reject)
      .end()
  })
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
  return {
    ...(dns === undefined ? {} : { dns: round(dns) }),
    ...(tcp === undefined ? {} : { tcp: round(tcp) }),
    ...(tls === undefined ? {} : { tls: round(tls) }),
    ...(answer === undefined ? {} : { firstByte: round(answer) }),
    total: round(total),
  }
}
