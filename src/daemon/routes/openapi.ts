import * as z from 'zod'
import { once } from '../../core/calls.ts'
import { ERRORS, type ErrorCode } from '../../core/errors.ts'
import { SIGNATURE_HEADER } from '../../core/payments/webhook.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { type ServiceDefinition, WEB } from '../../core/service.ts'
import type { BodySpec } from '../http/body.ts'
import type { RouteFacts } from '../http/context.ts'
import { jsonResponse } from '../http/respond.ts'
import { type Answer, defineRoute, json, type Parameter, type Route, type Site } from '../http/route.ts'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }
type JsonObject = { readonly [key: string]: Json }
type Schemas = Record<string, Json>

export interface Document {
  readonly openapi: '3.1.1'
  readonly [key: string]: Json
}

const CODES = Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]]
const ErrorAnswer = z.strictObject({
  code: z.enum(CODES).describe('Stable; programs decide by it.'),
  status: z.int().min(400).max(599).describe('The HTTP status, again.'),
  message: z.string().describe('A sentence for a person, which may change.'),
  requestId: z.string().describe('The same as X-Request-Id; finds the request in the log.'),
  issues: z
    .array(z.strictObject({ path: z.string(), message: z.string() }))
    .optional()
    .describe('One for each fault of a request; `path` is dotted, empty for the whole body.'),
})

const bearer = (description: string, more: JsonObject = {}) => {
  return { type: 'http', scheme: 'bearer', ...more, description }
}
const SECURITY: Readonly<Record<NonNullable<Route['security']>, JsonObject>> = {
  identity: bearer('A token of the datastore, with expiry, subject and e-mail; or the service role’s.', {
    bearerFormat: 'JWT',
  }),
  dispatchSecret: bearer('EMAIL_DISPATCH_SECRET.'),
  deepToken: bearer(
    'HEALTH_DEEP_TOKEN: for deep checks, where it is set, and for the details of the status page.',
  ),
  witnessProof: bearer(
    '`REPORT.PROOF`, both in base64url: the name of the witness, a nonce and the time as JSON, and HMAC-SHA256 over `asks`, a line feed and that JSON under the secret of the witness.',
  ),
  webhookSignature: {
    type: 'apiKey',
    in: 'header',
    name: SIGNATURE_HEADER,
    description: '`t=UNIX_SECONDS,v1=HEX`: HMAC-SHA256 over `t.body` under PAYMENTS_WEBHOOK_SECRET.',
  },
  feedbackSignature: {
    type: 'apiKey',
    in: 'header',
    name: 'webhook-signature',
    description:
      'As the provider documents, under MAILER_FEEDBACK_SECRET: `webhook-signature` for standard, `svix-signature` for resend, `X-Twilio-Email-Event-Webhook-Signature` for sendgrid, basic authorization for postmark, within the body for mailgun and ses.',
  },
}

/** OpenAPI 3.1 of every service that the platform serves, made from the schemas that validate. */
export async function openapiDocument(
  platform: ResolvedPlatform,
  /** Of web. */
  routes: Site['routes'],
  addressOf: (service: string) => string,
): Promise<Document> {
  const schemas: Schemas = { Error: jsonSchema(ErrorAnswer, 'output') }
  const paths: Record<string, Record<string, Json>> = {}
  const tags = new Set<string>()
  const served = platform.services.filter(({ name, port }) => name === WEB || port !== undefined)
  for (const service of served.toSorted((a, b) => Number(b.name === WEB) - Number(a.name === WEB))) {
    const server = { url: addressOf(service.name), description: service.name }
    for (const row of routes) {
      if (service.name !== WEB && row.name !== 'health') continue
      const route = (await row.load()).route(platform, service)
      const path = (row.name === 'health' ? service.health : row.path).replace(/:(\w+)/g, '{$1}')
      paths[path] ??= {}
      const item = paths[path]
      for (const method of row.methods) {
        const key = method.toLowerCase()
        const operation = describe(idOf(row, service, method), row, method, route, schemas)
        const same = item[key] as { readonly servers: readonly Json[]; readonly summary: string } | undefined
        // Two services may serve one path: it is described once, with the servers of both.
        item[key] = same
          ? { ...same, summary: `${same.summary}; ${route.summary}`, servers: [...same.servers, server] }
          : { ...operation, servers: [server] }
      }
      tags.add(route.tag)
    }
  }
  return {
    openapi: '3.1.1',
    info: {
      title: platform.name,
      version: '1.0.0',
      description:
        'Errors have one shape everywhere; a person’s browser (`Accept: text/html`) gets a page instead. Every answer has `X-Request-Id`.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: addressOf(WEB), description: WEB }],
    tags: [...tags].map((name) => ({ name })),
    paths,
    components: { schemas, securitySchemes: SECURITY },
  }
}

function idOf({ name, methods }: RouteFacts, service: ServiceDefinition, method: string): string {
  if (name === 'health') return `${service.name}Health`
  return methods.length === 1 ? name : `${name}${method[0]}${method.slice(1).toLowerCase()}`
}

function describe(operationId: string, of: RouteFacts, method: string, route: Route, schemas: Schemas) {
  const { security, securityOptional = false, parameters = [] } = route
  const isPost = method === 'POST'
  const { summary, description } = isPost && route.post ? route.post : route
  const body = isPost ? route.body : undefined
  const answers = typeof route.answers === 'function' ? route.answers(z) : route.answers
  return {
    operationId,
    tags: [route.tag],
    summary,
    ...(description !== undefined && { description }),
    security: security ? [...(securityOptional ? [{}] : []), { [security]: [] }] : [],
    ...(parameters.length > 0 && { parameters: parameters.map(parameterOf) }),
    ...(body && { requestBody: bodyOf(body, schemas) }),
    responses: {
      ...answersOf(answers, schemas),
      ...errorsOf(errorCodesOf(route, body !== undefined, of.limits.length > 0), answers),
      default: { description: 'Any other error.', content: problem() },
    },
  }
}

function parameterOf({ schema, required, ...rest }: Parameter): JsonObject {
  const form = schema ? jsonSchema(schema, 'input') : { type: 'string' }
  return { ...rest, required: required === true, schema: form }
}

const MB = 1024 * 1024

function bodyOf(body: BodySpec<unknown>, schemas: Schemas): JsonObject {
  const { name, schema, examples, bytes, type = 'application/json', also, optional = false } = body
  schemas[name] = jsonSchema(schema, 'input')
  const media = { schema: ref(name), examples: examplesOf(examples) }
  const description = `At most ${bytes >= MB ? `${bytes / MB} MB` : `${bytes / 1024} KB`}.`
  return { description, required: !optional, content: { [type]: media, ...(also && { [also]: media }) } }
}

function answersOf(answers: readonly Answer<unknown>[], schemas: Schemas): JsonObject {
  return Object.fromEntries(
    answers.map(({ status, description, content }) => {
      const media = Object.entries(content).map(([type, form]): [string, Json] => {
        if (form === 'text') return [type, { schema: { type: 'string' } }]
        schemas[form.name] = jsonSchema(form.schema, 'output')
        return [type, { schema: ref(form.name), examples: examplesOf(form.examples) }]
      })
      const all = media.length > 0 && { content: Object.fromEntries(media) }
      return [String(status), { description, headers: ID, ...all }]
    }),
  )
}

/** The codes that follow from what a route reads and demands, with its own. */
function errorCodesOf({ security, errors = [] }: Route, hasBody: boolean, isLimited: boolean) {
  return new Set<ErrorCode>([
    ...(hasBody ? (['bad_request', 'payload_too_large', 'unsupported_media_type'] as const) : []),
    ...(security?.endsWith('Signature') ? (['signature_invalid'] as const) : []),
    ...(security && security !== 'webhookSignature' ? (['unauthenticated'] as const) : []),
    ...errors,
    // Guessing secrets is rate limited, even on routes that are not limited otherwise.
    ...(isLimited || security ? (['rate_limited'] as const) : []),
    // The listener's own: any request can be too slow or too long before its route is known.
    ...(['request_timeout', 'uri_too_long', 'headers_too_large', 'internal'] as const),
  ])
}

function errorsOf(codes: ReadonlySet<ErrorCode>, answers: readonly Answer<unknown>[]): JsonObject {
  const taken = new Set(answers.map(({ status }) => status))
  return Object.fromEntries(
    [...Map.groupBy(codes, (code) => ERRORS[code].status)].flatMap(([status, same]) => {
      if (taken.has(status)) return []
      const examples = examplesOf(Object.fromEntries(same.map((code) => [code, exampleError(code)])))
      const description = same.map((code) => ERRORS[code].meaning).join(' ')
      return [
        [String(status), { description, headers: { ...ID, ...FIELDS[status] }, content: problem(examples) }],
      ]
    }),
  )
}

const ID: JsonObject = { 'X-Request-Id': { schema: { type: 'string' } } }
const FIELDS: Readonly<Record<number, JsonObject>> = {
  401: { 'WWW-Authenticate': { schema: { type: 'string' } } },
  429: {
    'Retry-After': { description: 'Seconds.', schema: { type: 'integer' } },
    RateLimit: { schema: { type: 'string' } },
    'RateLimit-Policy': { schema: { type: 'string' } },
  },
}

const problem = (examples?: JsonObject): JsonObject => ({
  'application/json': { schema: ref('Error'), ...(examples && { examples }) },
  'text/html': { schema: { type: 'string' } },
})

export function exampleError(code: ErrorCode): JsonObject {
  const { status, meaning } = ERRORS[code]
  return {
    code,
    status,
    message: meaning,
    requestId: '2f1c9c1e-0f0a-4f5e-9d39-5f2f9a0c6a11',
    ...(code === 'bad_request' && { issues: [{ path: 'email', message: 'an address is needed' }] }),
  }
}

function examplesOf(examples: Readonly<Record<string, unknown>>): JsonObject {
  // Examples are written as JSON values; a test validates each against its schema.
  return Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value: value as Json }]))
}

function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, target: 'draft-2020-12' })
  // zod's type allows undefined members, which it does not write.
  return rest as Json
}

const ref = (name: string): JsonObject => ({ $ref: `#/components/schemas/${name}` })

const OpenapiAnswer = z.looseObject({ openapi: z.string(), paths: z.record(z.string(), z.unknown()) })

export const route = () =>
  defineRoute({
    tag: 'Operations',
    summary: 'This document',
    answers: [
      json('OpenAPI 3.1, made from the schemas that validate.', 'OpenApi', OpenapiAnswer, {
        document: { openapi: '3.1.1', paths: {} },
      }),
    ],
    handle: ({ platform, routes, settings: { addresses, site } }) => {
      const portOf = (name: string) => platform.services.find((service) => service.name === name)?.port
      const addressOf = (name: string) =>
        name === WEB ? site.siteUrl : (addresses.get(name) ?? `http://127.0.0.1:${portOf(name)}`)
      const document = once(() => openapiDocument(platform, routes, addressOf))
      return async () => jsonResponse(await document())
    },
  })
