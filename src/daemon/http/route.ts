import type * as z from 'zod'
import { hasBearer, type Identity } from '../../core/access/identity.ts'
import { type ErrorCode, PlatformError } from '../../core/errors.ts'
import type { Health } from '../../core/health/runner.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import type { ServiceDefinition } from '../../core/service.ts'
import type { App } from '../app.ts'
import type { BodySpec, Form } from './body.ts'
import type { OwnErrorTexts, RouteContext, RouteFacts } from './context.ts'
import { jsonResponse } from './respond.ts'

/** One row of the table: what the router knows, and the file with the rest. */
export interface RouteRow extends Omit<RouteFacts, 'name'> {
  /** A platform without this group of variables, or with none of these, does not serve it. */
  readonly group?: string
  readonly list?: 'courses' | 'heartbeats'
  /** Each service of the process serves it, and not web alone. */
  readonly everywhere?: true
  readonly load: () => Promise<{ readonly route: MakeRoute }>
}

/** A route in the terms of a platform: its courses, mails and services are in the schemas and the words. */
export type MakeRoute = (platform: ResolvedPlatform, service: ServiceDefinition) => Route

export type Handler = (c: RouteContext) => Response | Promise<Response>

export interface Site extends App {
  readonly service: ServiceDefinition
  readonly health: Health
  readonly routes: readonly (RouteFacts & RouteRow)[]
}

export type Security =
  | 'identity'
  | 'dispatchSecret'
  | 'deepToken'
  | 'witnessProof'
  | 'webhookSignature'
  | 'feedbackSignature'

export interface Parameter {
  readonly in: 'query' | 'path'
  readonly name: string
  readonly schema?: z.ZodType
  readonly required?: true
  readonly description: string
  readonly example: string | number
}

/** The answer with a status: a schema and examples for each media type. */
export interface Answer<Value> {
  readonly status: number
  readonly description: string
  readonly content: Readonly<Record<string, Form<Value> | 'text'>>
}

/** What the document says of a route; forms, limits and secrets are also what its requests are held to. */
interface Words<Body, Value> {
  readonly tag: 'Course' | 'Mail' | 'Payments' | 'Health' | 'Pages' | 'Operations' | 'Analytics'
  readonly summary: string
  readonly description?: string
  /** Of POST, where the route has both methods. */
  readonly post?: { readonly summary: string; readonly description: string }
  readonly security?: Security
  /** Without it less is done, not nothing: the handler looks for it. */
  readonly securityOptional?: true
  readonly parameters?: readonly Parameter[]
  readonly body?: BodySpec<Body>
  /** The first is what the handler's value becomes. A function where the schemas are not worth loading for an answer. */
  readonly answers: readonly Answer<Value>[] | ((zod: typeof z) => readonly Answer<Value>[])
  /** Beyond those that follow from the rest. */
  readonly errors?: readonly ErrorCode[]
  readonly errorTexts?: OwnErrorTexts
}

export interface Route extends Words<unknown, unknown> {
  readonly open: (site: Site) => Handler
}

/** A secret that a route demands is checked before anything is read; what its handler gives is answered as JSON. */
export function defineRoute<Body, Value>({
  handle,
  ...words
}: Words<Body, Value> & {
  readonly handle: (site: Site) => (c: RouteContext<Body>) => Promise<Response | NoInfer<Value>>
}): Route {
  const { security, securityOptional, body, answers, errorTexts } = words
  const status = typeof answers === 'function' ? 200 : answers[0]?.status
  return {
    ...words,
    open(site) {
      const answer = handle(site)
      return async (given) => {
        // The body has this form: `json` checks it.
        const c = given as RouteContext<Body>
        c.body = body
        c.errorTexts = errorTexts
        if (security === 'dispatchSecret') requireSecret(site, c, 'dispatch')
        if (security === 'deepToken' && !securityOptional) {
          if (site.settings.health.deepToken === undefined)
            throw new PlatformError('not_found', 'There is no such page or route.')
          requireSecret(site, c, 'health')
        }
        const value = await answer(c)
        return value instanceof Response ? value : jsonResponse(value, status)
      }
    },
  }
}

const SECRETS = {
  dispatch: 'EMAIL_DISPATCH_SECRET',
  health: 'HEALTH_DEEP_TOKEN',
  witness: 'WITNESS_SECRET',
} as const

/** Lets a request pass that brings the secret as its bearer token, and refuses all others. */
export function requireSecret(site: Site, c: RouteContext, name: 'dispatch' | 'health'): void {
  const { dispatch, health } = site.settings
  if (!hasBearer(c.request, name === 'dispatch' ? dispatch.secret : health.deepToken))
    throw refusal(site, c, name, `Send ${SECRETS[name]} as Authorization: Bearer.`)
  c.passed()
}

/** The 401 for a wrong or missing secret, counted: it is somebody guessing, or a caller that missed a rotation. */
export function refusal(
  { metrics, log }: Site,
  { request }: RouteContext,
  name: keyof typeof SECRETS,
  message: string,
): PlatformError {
  const given = request.headers.has('authorization') ? 'wrong' : 'none'
  metrics.series.platformctl_secrets_refused_total.inc({ secret: name, given })
  if (given === 'wrong' || name === 'dispatch')
    log.warn(
      'secret_refused',
      `a request was refused: its ${SECRETS[name]} is ${given === 'wrong' ? 'wrong' : 'missing'}`,
      { secret: SECRETS[name], given },
    )
  return new PlatformError('unauthenticated', message)
}

/** The identity that a request proves, or 401. */
export async function requireIdentity({ identify }: Site, c: RouteContext): Promise<Identity> {
  const identity = await identify(c.request)
  if (identity === undefined)
    throw new PlatformError('unauthenticated', 'This route needs the token of a signed-in account.')
  c.passed()
  return identity
}

type Examples = Readonly<Record<string, unknown>>

export const OPTIONAL = { optional: true } as const

export const jsonBody = <Value>(
  bytes: number,
  name: string,
  schema: z.ZodType<Value>,
  examples: Examples,
  more: Pick<BodySpec<Value>, 'optional' | 'lenient' | 'also'> = {},
): BodySpec<Value> => ({ bytes, name, schema, examples, ...more })

export const json = <Value>(
  description: string,
  name: string,
  schema: z.ZodType<Value>,
  examples: Examples,
  status = 200,
): Answer<Value> => ({ status, description, content: { 'application/json': { name, schema, examples } } })

/** The same, which a browser gets as a page. */
export function jsonOrPage<Value>(...words: Parameters<typeof json<Value>>): Answer<Value> {
  const { content, ...answer } = json(...words)
  return { ...answer, content: { 'text/html': 'text', ...content } }
}

export const text = (type: string, description: string): Answer<never> => ({
  status: 200,
  description,
  content: { [type]: 'text' },
})

export function query(name: string, description: string, example: string | number, schema?: z.ZodType) {
  return { in: 'query', name, description, example, ...(schema && { schema }) } as const
}

export const inPath = (...of: Parameters<typeof query>): Parameter => ({
  ...query(...of),
  in: 'path',
  required: true,
})
