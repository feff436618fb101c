import { randomUUID } from 'node:crypto'
import { isLoopback, type Peer } from '../../core/access/client.ts'
import type { PolicyName } from '../../core/access/limit/limiter.ts'
import { type ErrorCode, PlatformError } from '../../core/errors.ts'
import type { ErrorTexts, Messages } from '../../core/messages/en.ts'
import { type Frame, frameIn } from '../pages/layout.ts'
import { type BodyShare, type BodySpec, parseJson, readBytes, readJson, readText } from './body.ts'
import { languagesOf, prefersHtml } from './respond.ts'

/** What the router knows of a route before its file is loaded. */
export interface RouteFacts {
  readonly name: string
  readonly path: string
  readonly methods: readonly ('GET' | 'POST')[]
  /** The policies that its requests are counted by; none: it must answer while everything else is refused. */
  readonly limits: readonly PolicyName[]
  /** People come here: its pages are in their language, as far as it is known. */
  readonly forReaders?: true
}

/** Texts of error pages that can say more than the error's code does. */
export type OwnErrorTexts = (errors: Messages['errors']) => Readonly<Partial<Record<ErrorCode, ErrorTexts>>>

/** What the requests of a process are counted in. */
export interface Counted {
  /** The client's key for the limits, from its socket and X-Forwarded-For. */
  readonly clientOf: (peer: Peer) => string
  /** The client that an untrusted proxy names in X-Forwarded-For. */
  readonly behindOf: (peer: Peer) => string | undefined
  readonly bodies: (client: string) => BodyShare
}

/** The form that a caller's request id must have to be kept. */
export const REQUEST_ID = /^[A-Za-z0-9_.-]{8,64}$/

/**
 * A request as handlers get it, each part computed on first use: most routes use little of it, and health almost
 * nothing. A class, because an object literal with getters gets a hidden class of its own each time.
 */
export class RouteContext<Body = unknown> {
  readonly request: Request
  /** The caller's request id if it is well-formed, so that both sides log the same id; otherwise a new one. */
  readonly requestId: string
  readonly #socket: string | undefined
  readonly #counted: Counted
  /** The declared route, whose path is logged: the requested one can contain a token. */
  route: RouteFacts | undefined
  /** What its file says, once that is loaded. */
  body: BodySpec<Body> | undefined
  errorTexts: OwnErrorTexts | undefined
  params: Readonly<Record<string, string>> = {}
  /** Anybody may have provoked it: that it is refused raises no alert. */
  isForged: true | undefined
  /** Call this as soon as the request's secret has proved right. */
  passed: () => void = () => {}
  #frame: Frame
  #isLocalized = false
  #url: URL | undefined
  #client: string | undefined
  #bodyShare: BodyShare | undefined

  constructor(request: Request, socket: string | undefined, frame: Frame, counted: Counted) {
    const given = request.headers.get('x-request-id')
    this.request = request
    this.requestId = given !== null && REQUEST_ID.test(given) ? given : randomUUID()
    this.#socket = socket
    this.#frame = frame
    this.#counted = counted
  }

  /** Language, name and colors of pages: in their reader's language, where a page is for people and not for programs. */
  get frame(): Frame {
    if (!this.#isLocalized && (this.route === undefined || this.route.forReaders))
      this.#frame = frameIn(this.#frame, languagesOf(this.request, this.url))
    this.#isLocalized = true
    return this.#frame
  }
  get url(): URL {
    this.#url ??= new URL(this.request.url)
    return this.#url
  }
  query(name: string): string | undefined {
    return this.url.searchParams.get(name) ?? undefined
  }
  get #peer(): Peer {
    return { socket: this.#socket, forwarded: this.request.headers.get('x-forwarded-for') }
  }
  /** The client as limits count it: an IPv4 address, an IPv6 /56, or `embedded` when there is no socket. */
  get client(): string {
    this.#client ??= this.#counted.clientOf(this.#peer)
    return this.#client
  }
  /** The client that an untrusted proxy names in X-Forwarded-For; undefined without one. */
  get behind(): string | undefined {
    return this.#counted.behindOf(this.#peer)
  }
  /** The request comes from this machine itself, and through no proxy. */
  get isLocal(): boolean {
    return isLoopback(this.#socket) && FORWARDING.every((name) => !this.request.headers.has(name))
  }
  /** A browser asked, which gets a page; programs get JSON. */
  get wantsHtml(): boolean {
    return prefersHtml(this.request.headers.get('accept'))
  }
  /** HTML for links that people follow; JSON only if the client accepts it and not HTML. */
  get wantsJson(): boolean {
    return !this.wantsHtml && /\bjson\b/.test(this.request.headers.get('accept') ?? '')
  }

  get bodyShare(): BodyShare {
    this.#bodyShare ??= this.#counted.bodies(this.client)
    return this.#bodyShare
  }
  release(): void {
    this.#bodyShare?.release()
  }
  bytes(): Promise<Uint8Array> {
    return readBytes(this, this.#declared.bytes)
  }
  text(): Promise<string> {
    return readText(this, this.#declared.bytes)
  }
  /** The text of the body; undefined if a host has read it before. */
  async #unread(): Promise<string | undefined> {
    const { bodyUsed, headers } = this.request
    const sent = bodyUsed ? undefined : await this.text()
    const isStreamed = headers.has('transfer-encoding') && headers.has('content-type')
    return sent === '' && (isStreamed || Number(headers.get('content-length')) > 0) ? undefined : sent
  }
  /** The fields of a form; `parseWith` checks them. None of a mail program’s one click that a host has read: its link says all. */
  async form(): Promise<Readonly<Record<string, string>>> {
    const sent = await this.#unread()
    // Browsers name the origin of a page’s form, which may say the opposite.
    if (sent === undefined && this.request.headers.has('origin')) throw readBefore()
    return Object.fromEntries(new URLSearchParams(sent))
  }
  /** The JSON body in the form that the route declares. */
  async json(): Promise<Body> {
    const { bytes, schema, lenient, optional } = this.#declared
    if (!lenient && !optional) return readJson(this, schema, bytes)
    const sent = await this.#unread()
    // Not as a body that was left out: a job that failed would count as done.
    if (sent === undefined) throw readBefore()
    return parseJson(sent.trim() || '{}', schema)
  }
  get #declared(): BodySpec<Body> {
    if (this.body === undefined) throw new TypeError('a route that reads a body declares it')
    return this.body
  }
}

const readBefore = () => new PlatformError('bad_request', 'The body was read before the platform got it.')

/** Fields that proxies add, whatever they are called. */
const FORWARDING = [
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
  'cf-connecting-ip',
  'true-client-ip',
] as const
