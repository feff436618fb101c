import * as z from 'zod'
import { policiesOf } from '../../core/access/limit/policy.ts'
import { ERRORS, type ErrorCode } from '../../core/errors.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { ROUTES, type RouteName, routesOf, type WebRoute } from '../../core/routes.ts'
import { type ServiceDefinition, WEB } from '../../core/service.ts'
import { SIGNATURE_HEADER } from '../routes/payments.ts'
import { SERVICE_MARK } from '../service-schema.ts'
import { ErrorAnswer } from './answers.ts'
import type { Body, Operation, Parameter, ResponseSpec, RouteOperations, Security } from './operation.ts'
import { healthOperation } from './operations/health.ts'
import { operationsOf } from './operations.ts'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }
type JsonObject = { readonly [key: string]: Json }

export interface Document {
  readonly openapi: '3.1.1'
  readonly [key: string]: Json
}

const { policyOf } = policiesOf(undefined)

const SECURITY: Readonly<Record<Security, JsonObject>> = {
  identity: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'A token of the datastore, with expiry, subject and e-mail; or the service role’s.',
  },
  dispatchSecret: { type: 'http', scheme: 'bearer', description: 'EMAIL_DISPATCH_SECRET.' },
  deepToken: {
    type: 'http',
    scheme: 'bearer',
    description:
      'HEALTH_DEEP_TOKEN: for deep checks, where it is set, and for the details of the status page.',
  },
  witnessProof: {
    type: 'http',
    scheme: 'bearer',
    description:
      '`REPORT.PROOF`, both in base64url: the name of the witness, a nonce and the time as JSON, and HMAC-SHA256 over `asks`, a line feed and that JSON under the secret of the witness.',
  },
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

/** One route of one service: its operations by method. */
interface DescribedRoute {
  readonly id: string
  readonly route: RouteName
  readonly service: string
  readonly path: string
  readonly operations: readonly (readonly [method: string, operation: Operation])[]
}

type Described = Pick<
  ResolvedPlatform,
  'name' | 'contract' | 'services' | 'probes' | 'mails' | 'courses' | 'events' | 'heartbeats'
>

/** OpenAPI 3.1 of every service that the platform serves, made from the schemas that validate. */
export function openapiDocument(
  { name, contract, services, probes, mails, courses, events, heartbeats }: Described,
  addressOf: (service: string) => string,
): Document {
  const described = operationsOf({ mails, courses, events, heartbeats })
  const served = routesOf({ contract, courses, heartbeats })
  const schemas: Record<string, Json> = { Error: jsonSchema(ErrorAnswer, 'output') }
  const paths: Record<string, Record<string, Json>> = {}
  const others = services.filter(({ name, port }) => name !== WEB && port !== undefined)
  for (const { id, route, path, service, operations } of [
    ...webRoutes(described, served),
    ...others.map((one) => healthRouteOf(one, probes)),
  ]) {
    const template = path.replace(/:(\w+)/g, '{$1}')
    for (const [method, operation] of operations) {
      paths[template] ??= {}
      const [item, key] = [paths[template], method.toLowerCase()]
      const server = { url: addressOf(service), description: service }
      const same = item[key] as { readonly servers: readonly Json[]; readonly summary: string } | undefined
      // Two services may serve one path: it is described once, with the servers of both.
      item[key] = same
        ? { ...same, summary: `${same.summary}; ${operation.summary}`, servers: [...same.servers, server] }
        : { ...describe(id, route, operation, schemas), servers: [server] }
    }
  }
  const document: Document = {
    openapi: '3.1.1',
    info: {
      title: name,
      version: '1.0.0',
      description:
        'Errors have one shape everywhere; a person’s browser (`Accept: text/html`) gets a page instead. Every answer has `X-Request-Id`.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: addressOf(WEB), description: WEB }],
    tags: [...new Set(served.flatMap((route) => Object.values(described[route]).map(({ tag }) => tag)))].map(
      (name) => ({ name }),
    ),
    paths,
    components: { schemas, securitySchemes: SECURITY },
  }
  return withNames(
    document,
    services.map(({ name }) => name),
  ) as Document
}

function webRoutes(described: RouteOperations, served: readonly WebRoute[]): readonly DescribedRoute[] {
  return served.flatMap((route) => {
    const { path, methods } = ROUTES[route]
    const operations = Object.entries(described[route]) as [string, Operation][]
    const id = (method: string) => `${route}${method[0]}${method.slice(1).toLowerCase()}`
    return operations.map(([method, operation]) => ({
      id: methods.length === 1 ? route : id(method),
      route,
      service: WEB,
      path,
      operations: [[method, operation] as const],
    }))
  })
}

function healthRouteOf(
  { name, health, summary }: ServiceDefinition,
  probes: ResolvedPlatform['probes'],
): DescribedRoute {
  const own = probes.filter(({ service }) => service === name)
  const operation = healthOperation({
    service: name,
    summary: `Health of ${name}${summary === undefined ? '' : `: ${summary}`}`,
    probe: own.find(({ group }) => group === undefined)?.name ?? own[0]?.name ?? 'store',
    notConfigured: own.flatMap((probe) => (probe.group === undefined ? [] : [probe.name])).slice(0, 2),
  })
  return {
    id: `${name}Health`,
    route: 'serviceHealth',
    service: name,
    path: health,
    operations: [['GET', operation]],
  }
}

/** Where a schema asks for the name of a service, the names that there are. */
function withNames(value: Json, names: readonly string[]): Json {
  if (Array.isArray(value)) return value.map((one) => withNames(one, names))
  if (typeof value !== 'object' || value === null) return value
  const { [SERVICE_MARK]: marked, ...rest } = value as JsonObject
  const entries = Object.entries(rest).map(([key, one]) => [key, withNames(one, names)])
  return marked === true ? { ...Object.fromEntries(entries), enum: names } : Object.fromEntries(entries)
}

function describe(
  operationId: string,
  route: RouteName,
  operation: Operation,
  schemas: Record<string, Json>,
): JsonObject {
  const { security, securityOptional = false, body, parameters = [], answers } = operation
  return {
    operationId,
    tags: [operation.tag],
    summary: operation.summary,
    ...(operation.description === undefined ? {} : { description: operation.description }),
    security: security ? [...(securityOptional ? [{}] : []), { [security]: [] }] : [],
    ...(parameters.length === 0 ? {} : { parameters: parameters.map(parameterOf) }),
    ...(body ? { requestBody: bodyOf(body, schemas) } : {}),
    responses: {
      ...answersOf(answers, schemas),
      ...errorsOf(route, operation, answers),
      default: {
        description: 'Any other error.',
        content: {
          'application/json': { schema: ref('Error') },
          'text/html': { schema: { type: 'string' } },
        },
      },
    },
  }
}

function parameterOf({ schema, required = false, ...rest }: Parameter): JsonObject {
  return { ...rest, required, schema: jsonSchema(schema, 'input') }
}

function bodyOf(
  { type, also, name, schema, required, examples }: Body,
  schemas: Record<string, Json>,
): JsonObject {
  schemas[name] = jsonSchema(schema, 'input')
  const media = { schema: ref(name), examples: examplesOf(examples) }
  return { required, content: { [type]: media, ...(also && { [also]: media }) } }
}

function answersOf(answers: readonly ResponseSpec[], schemas: Record<string, Json>): JsonObject {
  return Object.fromEntries(
    answers.map(({ status, description, content }) => {
      const media = Object.entries(content).map(([type, form]): [string, Json] => {
        if (form === 'text') return [type, { schema: { type: 'string' } }]
        schemas[form.name] = jsonSchema(form.schema, 'output')
        return [type, { schema: ref(form.name), examples: examplesOf(form.examples) }]
      })
      const headers = { 'X-Request-Id': { schema: { type: 'string' } } }
      return [
        String(status),
        { description, headers, ...(media.length > 0 ? { content: Object.fromEntries(media) } : {}) },
      ]
    }),
  )
}

/** The listener's own: any request can be too slow or too long before its route is known. */
const EVERYWHERE = ['request_timeout', 'uri_too_long', 'headers_too_large', 'internal'] as const

/** Codes of one status share a response, with an example for each. */
function errorsOf(
  route: RouteName,
  { errors, security }: Operation,
  answers: readonly ResponseSpec[],
): JsonObject {
  // Guessing secrets is rate limited, even on routes that are not limited otherwise.
  const limited = policyOf(route) !== undefined || security !== undefined
  const codes: readonly ErrorCode[] = [
    ...errors,
    ...(limited ? (['rate_limited'] as const) : []),
    ...EVERYWHERE,
  ]
  const byStatus = Map.groupBy(codes, (code) => ERRORS[code].status)
  const taken = new Set(answers.map(({ status }) => status))
  return Object.fromEntries(
    [...byStatus].flatMap(([status, same]) => {
      if (taken.has(status)) return []
      const examples = Object.fromEntries(same.map((code) => [code, { value: exampleError(code) }]))
      const headers = { 'X-Request-Id': { schema: { type: 'string' } }, ...HEADERS[status] }
      const content = {
        'application/json': { schema: ref('Error'), examples },
        'text/html': { schema: { type: 'string' } },
      }
      return [
        [
          String(status),
          { description: same.map((code) => ERRORS[code].meaning).join(' '), headers, content },
        ],
      ]
    }),
  )
}

const HEADERS: Readonly<Record<number, JsonObject>> = {
  401: { 'WWW-Authenticate': { schema: { type: 'string' } } },
  429: {
    'Retry-After': { description: 'Seconds.', schema: { type: 'integer' } },
    RateLimit: { schema: { type: 'string' } },
    'RateLimit-Policy': { schema: { type: 'string' } },
  },
}

export function exampleError(code: ErrorCode): JsonObject {
  const { status, meaning } = ERRORS[code]
  return {
    code,
    status,
    message: meaning,
    requestId: '2f1c9c1e-0f0a-4f5e-9d39-5f2f9a0c6a11',
    ...(code === 'bad_request' ? { issues: [{ path: 'email', message: 'an address is needed' }] } : {}),
  }
}

function examplesOf(examples: Readonly<Record<string, unknown>>): JsonObject {
  // Examples are written as JSON values in the table; the test validates each against its schema.
  return Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value: value as Json }]))
}

function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, target: 'draft-2020-12' })
  // zod's type allows undefined members, which it does not write.
  return rest as Json
}

function ref(name: string): JsonObject {
  return { $ref: `#/components/schemas/${name}` }
}
