import { randomUUID } from 'node:crypto'
import { type Context, Hono } from 'hono'
import { isLoopback, type Peer } from '../../core/access/client.ts'
import { PlatformError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { reportError } from '../../core/reporting/facade.ts'
import { ROUTES, type RouteName } from '../../core/routes.ts'
import type { Service } from '../../core/service.ts'
import type { Answered } from '../metrics/metrics.ts'
import { type Frame, frameIn, languagesOf } from '../pages/layout.ts'
import type { Gate } from './gate.ts'
import { errorResponse } from './problem.ts'
import { type AllowsOrigin, addCorsHeaders, prefersHtml, preflight } from './respond.ts'
import { type BodyShare, PURPOSES, type RouteRequest, type RouteTable } from './route.ts'

export interface AppOptions {
  readonly service: Service
  readonly gate: Gate
  /** The client's key for the limits, from its socket and X-Forwarded-For. */
  readonly clientOf: (peer: Peer) => string
  /** The client that an untrusted proxy names in X-Forwarded-For. */
  readonly behindOf: (peer: Peer) => string | undefined
  readonly bodies: (client: string) => BodyShare
  readonly allowsOrigin: AllowsOrigin
  /** The only path that they may call; undefined: every path. */
  readonly crossOriginPath: string | undefined
  readonly frame: Frame
  readonly table: RouteTable
  /** The path of the service's health, where that is not a route of web. */
  readonly healthPath: string
  readonly log: Log
  readonly monotonic: () => number
  readonly onAnswer: (answered: Answered) => void
}

/** A service as one `fetch`: routing, request ids, one error shape, one log line a request. */
export function createApp(
  options: AppOptions,
): (request: Request, environment?: unknown) => Promise<Response> {
  const {
    service,
    table,
    healthPath,
    gate,
    clientOf,
    behindOf,
    bodies,
    allowsOrigin: allowed,
    crossOriginPath,
    frame,
    log,
    monotonic,
    onAnswer,
  } = options

  const app = new Hono<{ Bindings: Bindings }>()
  const methods = new Map<string, { readonly name: RouteName; readonly allowed: string[] }>()
  for (const [name, handler] of Object.entries(table) as [RouteName, NonNullable<RouteTable[RouteName]>][]) {
    const route = routeOf(name, healthPath)
    const allowed = route.methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    methods.set(route.path, { name, allowed })
    app.on([...route.methods], route.path, async (context) => {
      context.env.facts.route = name
      const asked = new Asked(context, { clientOf, behindOf, bodies, frame })
      try {
        return await gate(name, asked, handler)
      } finally {
        asked.release()
      }
    })
  }
  for (const [path, { name, allowed }] of methods) {
    app.all(path, (context) => {
      context.env.facts.route = name
      const error = new PlatformError('method_not_allowed', `This route takes ${allowed.join(', ')}.`)
      return errorResponse(error, new Asked(context, { clientOf, behindOf, bodies, frame }), {
        Allow: allowed.join(', '),
      })
    })
  }
  app.notFound((context) =>
    errorResponse(
      new PlatformError('not_found', 'There is no such page or route.'),
      new Asked(context, { clientOf, behindOf, bodies, frame }),
    ),
  )
  app.onError((error, context) => {
    if (!(error instanceof PlatformError)) {
      log.error('request_failed', 'a request met a fault of the platform', {
        requestId: context.env.facts.id,
        fault: error.name,
        at: firstFrame(error),
      })
      reportError(error, {
        service,
        route: context.env.facts.route,
        requestId: context.env.facts.id,
      })
    }
    return errorResponse(error, new Asked(context, { clientOf, behindOf, bodies, frame }))
  })

  return async (request, environment) => {
    const began = monotonic()
    const facts = newFacts(request)
    const refusal = tooLong(request, environment)
    const allowsOrigin =
      crossOriginPath === undefined || (isCrossOrigin(request) && pathOf(request) === crossOriginPath)
        ? allowed
        : undefined
    const response = refusal
      ? errorResponse(refusal, {
          requestId: facts.id,
          route: undefined,
          frame,
          wantsHtml: prefersHtml(request.headers.get('accept') ?? ''),
        })
      : ((allowsOrigin && preflight(request, facts.id, allowsOrigin)) ??
        (await app.fetch(request, { facts, socket: incomingOf(environment)?.socket })))
    if (allowsOrigin) addCorsHeaders(request, response, allowsOrigin)
    const durationMs = monotonic() - began
    const route = facts.route === undefined ? undefined : routeOf(facts.route, healthPath).path
    const { status } = response
    const isQuiet = status === 200 && facts.route !== undefined && POLLED.has(facts.route)
    const answered = { service, method: request.method, route, status, durationMs }
    noteAnswer({ log, onAnswer }, answered, facts.id, isQuiet)
    return response
  }
}

/** Counts an answer in the metrics and logs it. Quiet for health polls that pass: they would fill most of the log. */
export function noteAnswer(
  { log, onAnswer }: Pick<AppOptions, 'log' | 'onAnswer'>,
  answered: Answered,
  requestId: string,
  isQuiet: boolean,
): void {
  onAnswer(answered)
  const { route = '(none)', durationMs } = answered
  log[isQuiet ? 'debug' : 'info']('request', 'a request was answered', {
    ...answered,
    route,
    durationMs: Math.round(durationMs * 10) / 10,
    requestId,
  })
}

const isCrossOrigin = ({ headers }: Request) => headers.has('origin')
const pathOf = ({ url }: Request) => new URL(url).pathname

/** Pages that readers of mails come to: in their language, as far as it is known. */
const IN_READERS_LANGUAGE: ReadonlySet<RouteName | undefined> = new Set([
  'confirm',
  'unsubscribe',
  'subscribe',
  'lesson',
])

const POLLED: ReadonlySet<RouteName> = new Set(['webHealth', 'serviceHealth', 'metrics'])

function routeOf(
  name: RouteName,
  healthPath: string,
): { readonly methods: readonly string[]; readonly path: string } {
  return name === 'serviceHealth' ? { methods: ['GET'], path: healthPath } : ROUTES[name]
}

/** Values that the listener passes with a request. Empty in an embedding program. */
interface Environment {
  readonly incoming?: {
    readonly rawHeaders?: readonly string[]
    readonly socket?: { readonly remoteAddress?: string }
  }
}

function incomingOf(environment: unknown): Environment['incoming'] {
  return (environment as Environment | undefined)?.incoming
}

const LONGEST_URL = 4096
const MOST_HEADERS = 100

/** Limits the length of the URL and the number of headers. Node's parser only limits their bytes together. */
function tooLong(request: Request, environment: unknown): PlatformError | undefined {
  if (request.url.length > LONGEST_URL)
    return new PlatformError('uri_too_long', `Addresses here have at most ${LONGEST_URL} characters.`)
  const fields = incomingOf(environment)?.rawHeaders?.length ?? 0
  if (fields > 2 * MOST_HEADERS)
    return new PlatformError('headers_too_large', `Requests here have at most ${MOST_HEADERS} header fields.`)
  return undefined
}

interface Facts {
  /** The caller's request id if it is well-formed, so that both sides log the same id; otherwise a new one. */
  readonly id: string
  /** The declared route, never the requested path, which can contain a token. */
  route: RouteName | undefined
}

/** The form that a caller's request id must have to be kept. */
export const REQUEST_ID = /^[A-Za-z0-9_.-]{8,64}$/

function newFacts(request: Request): Facts {
  const given = request.headers.get('x-request-id')
  return {
    id: given !== null && REQUEST_ID.test(given) ? given : randomUUID(),
    route: undefined,
  }
}

/**
 * Values that the router passes with each request. Not kept in a WeakMap, which would slow every garbage collection.
 */
interface Bindings {
  readonly facts: Facts
  readonly socket: { readonly remoteAddress?: string } | undefined
}
type AppContext = Context<{ Bindings: Bindings }>

/**
 * Input of a handler, each part computed on first use: most routes use little of it, and health almost nothing. A
 * class, because an object literal with getters gets a hidden class of its own each time.
 */
class Asked implements RouteRequest {
  readonly #context: AppContext
  readonly #clientOf: AppOptions['clientOf']
  readonly #behindOf: AppOptions['behindOf']
  readonly #bodies: AppOptions['bodies']
  passed: () => void = () => {}
  #frame: Frame
  #isLocalized = false
  #url: URL | undefined
  #client: string | undefined
  #bodyShare: BodyShare | undefined

  constructor(
    context: AppContext,
    { clientOf, behindOf, bodies, frame }: Pick<AppOptions, 'clientOf' | 'behindOf' | 'bodies' | 'frame'>,
  ) {
    this.#context = context
    this.#clientOf = clientOf
    this.#behindOf = behindOf
    this.#bodies = bodies
    this.#frame = frame
  }

  get frame(): Frame {
    if (!this.#isLocalized && IN_READERS_LANGUAGE.has(this.route))
      this.#frame = frameIn(this.#frame, languagesOf(this.request, this.url))
    this.#isLocalized = true
    return this.#frame
  }

  get request(): Request {
    return this.#context.req.raw
  }
  get requestId(): string {
    return this.#context.env.facts.id
  }
  get route(): RouteName | undefined {
    return this.#context.env.facts.route
  }
  get url(): URL {
    this.#url ??= new URL(this.request.url)
    return this.#url
  }
  get params(): Record<string, string> {
    return this.#context.req.param() as Record<string, string>
  }
  get client(): string {
    this.#client ??= this.#clientOf(this.#peer)
    return this.#client
  }
  get behind(): string | undefined {
    return this.#behindOf(this.#peer)
  }
  get isLocal(): boolean {
    return isLoopback(this.#peer.socket) && FORWARDING.every((name) => !this.request.headers.has(name))
  }
  get #peer(): Peer {
    return {
      socket: this.#context.env.socket?.remoteAddress,
      forwarded: this.request.headers.get('x-forwarded-for'),
    }
  }
  get bodyShare(): BodyShare {
    this.#bodyShare ??= this.#bodies(this.client)
    return this.#bodyShare
  }
  /** The request is answered. */
  release(): void {
    this.#bodyShare?.release()
  }
  get wantsHtml(): boolean {
    return prefersHtml(this.request.headers.get('accept') ?? '')
  }
  get isPassive(): boolean {
    return (
      this.request.method === 'HEAD' ||
      PURPOSES.some((name) => /prefetch|preview|prerender/i.test(this.request.headers.get(name) ?? ''))
    )
  }
}

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

function firstFrame(error: Error): string | undefined {
  return error.stack
    ?.split('\n')
    .find((line) => /^\s+at /.test(line))
    ?.trim()
    .slice(0, 200)
}
