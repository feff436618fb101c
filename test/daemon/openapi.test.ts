import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Validator } from '@seriousme/openapi-schema-validator'
import Ajv from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ERRORS } from '../../src/core/errors.ts'
import { secret } from '../../src/core/secret.ts'
import type { Service } from '../../src/core/service.ts'
import { tokenOf } from '../../src/core/witness.ts'
import { openPlatform, type Platform } from '../../src/daemon/index.ts'
import { openapiDocument } from '../../src/daemon/routes/openapi.ts'
import { ROUTES, routesOf } from '../../src/daemon/routes.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { NOW, token } from '../support/accounts.ts'

const SECRETS = {
  EMAIL_DISPATCH_SECRET: 'a-dispatch-secret-of-thirty-two-b',
  HEALTH_DEEP_TOKEN: 'a-health-token-of-thirty-two-bytes',
  PAYMENTS_WEBHOOK_SECRET: 'whsec_of-thirty-two-bytes-at-least',
}

interface Media {
  readonly schema: object
  readonly examples?: Record<string, { readonly value: unknown }>
}
interface Operation {
  readonly operationId: string
  readonly servers: readonly { readonly url: string; readonly description: Service }[]
  readonly security: readonly Record<string, unknown>[]
  readonly parameters?: readonly {
    readonly in: string
    readonly name: string
    readonly required: boolean
    readonly schema: { readonly type: string; readonly minimum?: number; readonly maximum?: number }
    readonly example: string | number
  }[]
  readonly requestBody?: { readonly required: boolean; readonly content: Record<string, Media> }
  readonly responses: Record<string, { readonly content?: Record<string, Media> }>
}

const urls = {
  web: 'https://www.example.com',
  api: 'https://api.example.com',
  agent: 'https://agent.example.com',
}
// With a heartbeat, so that every route is served.
const definition = { preset: 'learning', heartbeats: { backup: { every: '1d' } } } as const
const resolved = resolvePlatform(definition, { folder: '/' })
const document = await openapiDocument(
  resolved,
  routesOf(resolved),
  (service) => urls[service as keyof typeof urls],
)
// The document is JSON; the validator below says that it has the form of OpenAPI.
const paths = document.paths as unknown as Record<string, Record<string, Operation>>
const operations = Object.entries(paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
)

// The validator above vouches for the schemas; most are compiled for a few values.
const FAST = { validateSchema: false, inlineRefs: false, code: { optimize: false } }
const ajv = addFormats.default(new Ajv.default({ strict: false, allErrors: false, ...FAST }))
ajv.addSchema({ $id: 'openapi', components: document.components })
/** Each schema is compiled once. */
const rooted = new WeakMap<object, object>()
const fits = (schema: object, value: unknown) => {
  const known = rooted.get(schema) ?? JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"openapi#/'))
  rooted.set(schema, known)
  return ajv.validate(known, value)
}

let platform: Platform
const FEEDBACK_SECRET = `whsec_${Buffer.from('a standard webhooks test key').toString('base64')}`

const WITNESS = 'a-witness-secret-of-24-and-more'
const witnessToken = () =>
  tokenOf(JSON.stringify({ name: 'witness', nonce: 'n'.repeat(24), at: now }), secret(WITNESS))

/** A minute passes with each request, so that no limit is reached. */
let now = NOW
let payments: ReturnType<typeof createServer>

beforeAll(async () => {
  payments = createServer((_, response) =>
    response.end('{"id":"cs_1","url":"https://pay.example.com/c/cs_1"}'),
  )
  await new Promise<void>((resolve) => payments.listen(0, '127.0.0.1', resolve))
  platform = openPlatform({
    platform: definition,
    env: {
      ...SECRETS,
      WITNESS_SECRET: WITNESS,
      RATE_LIMIT_PER_MINUTE: '10000',
      MAILER_FEEDBACK_PROVIDER: 'standard',
      MAILER_FEEDBACK_SECRET: FEEDBACK_SECRET,
      PAYMENTS_SECRET_KEY: 'sk_test_4eC39HqLyjWDarjtT1zdp7dc',
      PAYMENTS_PRICE_PRO_MONTHLY: 'price_pro_monthly',
      PAYMENTS_API_URL: `http://127.0.0.1:${(payments.address() as AddressInfo).port}`,
      // Deep health asks these, which refuse at once.
      NEXT_PUBLIC_DATASTORE_URL: 'http://127.0.0.1:1',
      API_URL: 'http://127.0.0.1:1',
      AGENT_URL: 'http://127.0.0.1:1',
      NEXT_PUBLIC_DATASTORE_ANON_KEY: 'anon-key-of-the-datastore',
      DATASTORE_JWT_SECRET: 'a-jwt-secret-of-thirty-two-bytes!',
    },
    clock: { now: () => now, monotonic: () => now, sleep: async () => {} },
  })
})
afterAll(async () => {
  await platform?.close()
  payments?.closeAllConnections()
  payments?.close()
})

async function send(
  { path, method, operation }: (typeof operations)[number],
  {
    text,
    parameters = {},
    accept = 'application/json',
    service = operation.servers[0]?.description ?? 'web',
  }: { text?: string; parameters?: Record<string, string>; accept?: string; service?: Service } = {},
) {
  now += 60_000
  const query = new URLSearchParams()
  let target = path
  for (const { in: place, name, example } of operation.parameters ?? []) {
    const value = parameters[name] ?? String(example)
    if (place === 'path') target = target.replace(`{${name}}`, encodeURIComponent(value))
    else query.set(name, value)
  }
  const seconds = Math.floor(now / 1000)
  const bearer = (word: string) => ({ Authorization: `Bearer ${word}` })
  const security: Record<string, () => Record<string, string> | Promise<Record<string, string>>> = {
    identity: async () => bearer(await token({ exp: NOW / 1000 + 86_400 })),
    dispatchSecret: () => bearer(SECRETS.EMAIL_DISPATCH_SECRET),
    deepToken: () => bearer(SECRETS.HEALTH_DEEP_TOKEN),
    feedbackSignature: () => ({
      'webhook-id': `msg_${now}`,
      'webhook-timestamp': String(seconds),
      'webhook-signature': new Webhook(FEEDBACK_SECRET).sign(`msg_${now}`, new Date(now), text ?? ''),
    }),
    witnessProof: () => bearer(witnessToken()),
    webhookSignature: () => {
      const signature = createHmac('sha256', SECRETS.PAYMENTS_WEBHOOK_SECRET).update(
        `${seconds}.${text ?? ''}`,
      )
      return { 'Stripe-Signature': `t=${seconds},v1=${signature.digest('hex')}` }
    },
  }
  const needed = operation.security.flatMap((one) => Object.keys(one))
  const signed = await Promise.all(needed.map((name) => security[name]?.()))
  const [type = ''] = Object.keys(operation.requestBody?.content ?? {})
  const response = await platform[service as keyof typeof urls].fetch(
    new Request(`${urls[service as keyof typeof urls]}${target}${query.size > 0 ? `?${query}` : ''}`, {
      method,
      headers: {
        Accept: accept,
        ...(text === undefined ? {} : { 'Content-Type': type }),
        ...Object.assign({}, ...signed),
      },
      body: text ?? null,
    }),
  )
  return described(operation, response)
}

/** Every answer must be one that the document describes: its status, its media type, its form. */
async function described(operation: Operation, response: Response) {
  const found = operation.responses[String(response.status)]
  if (found === undefined) throw new Error(`${operation.operationId} does not document ${response.status}`)
  const type = response.headers.get('content-type')?.split(';')[0] ?? ''
  const body = await response.text()
  if (body === '') return { status: response.status, type, body: undefined }
  const media = found.content?.[type]
  if (media === undefined)
    throw new Error(`${operation.operationId} ${response.status} does not document ${type}`)
  const value: unknown = /json$/.test(type) ? JSON.parse(body) : body
  if (!fits(media.schema, value))
    throw new Error(`${operation.operationId} ${response.status}: ${ajv.errorsText()} in ${body}`)
  return { status: response.status, type, body: value as { code?: string; issues?: { message: string }[] } }
}

test('the document is valid OpenAPI 3.1', async () => {
  const validator = new Validator()
  const { valid, errors } = await validator.validate(structuredClone(document))
  expect(errors ?? []).toEqual([])
  expect(valid).toBe(true)
  expect(validator.version).toBe('3.1')
})

test('every route and method that is served is described, with its own server, and nothing else', () => {
  const ofWeb = Object.values(ROUTES).flatMap(({ methods, path }) =>
    methods.map((method) => `web ${method} ${path.replace(/:(\w+)/g, '{$1}')}`),
  )
  const served = [...ofWeb, 'api GET /api/health', 'agent GET /api/agent/health'].sort()
  const told = operations
    .flatMap(({ path, method, operation }) =>
      operation.servers.map(({ description }) => `${description} ${method} ${path}`),
    )
    .sort()
  expect(told).toEqual(served)
  const ids = operations.map(({ operation }) => operation.operationId)
  expect(new Set(ids).size).toBe(ids.length)
})

test('every error code is in the document, and every example fits its schema', () => {
  const codes = new Set<string>()
  for (const { operation } of operations) {
    const contents = [
      operation.requestBody?.content,
      ...Object.values(operation.responses).map(({ content }) => content),
    ]
    for (const media of contents.flatMap((content) => Object.values(content ?? {}))) {
      for (const [name, { value }] of Object.entries(media.examples ?? {})) {
        expect(fits(media.schema, value), `${operation.operationId} ${name}: ${ajv.errorsText()}`).toBe(true)
        if (Object.hasOwn(ERRORS, name)) codes.add(name)
      }
    }
  }
  // 405 is of no operation: it answers for the methods that are not described.
  expect([...codes].sort()).toEqual(
    Object.keys(ERRORS)
      .filter((code) => code !== 'method_not_allowed')
      .sort(),
  )
})

test('the web service serves it, with the address of each service, or where it listens', async () => {
  const served = async ({ web }: Platform) =>
    (await web.fetch(new Request('https://www.example.com/openapi.json'))).json() as Promise<typeof document>
  const found = await served(platform)
  expect(Object.keys(found)).toEqual(Object.keys(document))
  const env = { NEXT_PUBLIC_SITE_URL: urls.web, API_URL: 'http://10.0.0.9:8000' }
  const text = JSON.stringify(await served(openPlatform({ env })))
  const at = (url: string, description: Service) => JSON.stringify({ url, description })
  for (const server of [at(urls.web, 'web'), at(env.API_URL, 'api'), at('http://127.0.0.1:8100', 'agent')])
    expect(text).toContain(server)
})

const OTHER_VALUES = [null, true, 0, -1, 1.5, 10_000, 10_001, '', 'x'.repeat(300), [], { x: 1 }]

/** The value itself changed in one place, in every way: left out, of another type, at and beyond a bound, with more in it. */
function* mutations(value: unknown): Generator<unknown> {
  yield value
  yield* OTHER_VALUES
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return
  yield { ...value, unknown: 1 }
  for (const [key, part] of Object.entries(value)) {
    const { [key]: _, ...without } = value as Record<string, unknown>
    yield without
    for (const other of mutations(part)) yield { ...value, [key]: other }
  }
}

const bodied = operations.filter(({ operation }) => operation.requestBody?.content['application/json'])
test.each(bodied.map((one) => [`${one.method} ${one.path}`, one] as const))(
  '%s takes each body that the document allows and refuses each that it forbids',
  async (_, one) => {
    const media = one.operation.requestBody?.content['application/json'] as Media
    const tally = { allowed: 0, forbidden: 0 }
    for (const { value } of Object.values(media.examples ?? {})) {
      for (const body of mutations(value)) {
        const text = JSON.stringify(body)
        const { status, body: answer } = await send(one, { text })
        const allowed = fits(media.schema, body)
        // Prices are configuration, which a document of schemas cannot know.
        const unknownPrice = answer?.issues?.[0]?.message === 'not a configured price'
        const refused = status === 400 && answer?.code === 'bad_request' && !unknownPrice
        expect(refused, `${text} is ${allowed ? 'allowed' : 'forbidden'} and answered ${status}`).toBe(
          !allowed,
        )
        if (refused) expect(answer.issues?.length, text).toBeGreaterThan(0)
        tally[allowed ? 'allowed' : 'forbidden'] += 1
      }
    }
    expect(tally.allowed).toBeGreaterThan(0)
    expect(tally.forbidden).toBeGreaterThan(8)
    // Text that is no JSON, or too much of it, is documented as well.
    expect((await send(one, { text: '{' })).status).toBe(400)
    expect((await send(one, { text: JSON.stringify('x'.repeat(2_000_000)) })).status).toBe(413)
  },
)

const withParameters = operations.filter(({ operation }) => operation.parameters)
test.each(withParameters.map((one) => [`${one.method} ${one.path}`, one] as const))(
  '%s takes each parameter that the document allows and refuses each that it forbids',
  async (_, one) => {
    for (const { name, schema } of one.operation.parameters ?? []) {
      const bounds = [schema.minimum, schema.maximum].flatMap((bound) =>
        bound === undefined ? [] : [bound - 1, bound, bound + 1],
      )
      for (const value of [...bounds.map(String), 'x', '1.5', '-1', '1e1', "'", '<b>', '%00', 'é']) {
        const { status, body } = await send(one, { parameters: { [name]: value } })
        const allowed =
          schema.type === 'string'
            ? fits(schema, value)
            : /^-?\d+$/.test(value) && fits(schema, Number(value))
        const refused = status === 404 || (status === 400 && body?.code === 'bad_request')
        expect(refused, `${name}=${value} answered ${status}`).toBe(!allowed)
      }
    }
  },
)

test.each(operations.map((one) => [`${one.method} ${one.path}`, one] as const))(
  '%s answers programs, browsers and health clients as documented, on each of its servers',
  async (_, one) => {
    const example = Object.values(one.operation.requestBody?.content ?? {})[0]?.examples ?? {}
    const [first] = Object.values(example)
    const documented = Object.values(one.operation.responses).flatMap(({ content = {} }) =>
      Object.keys(content),
    )
    for (const accept of new Set(['application/json', 'text/html', ...documented])) {
      const { servers } = one.operation
      for (const { description: service } of accept === 'application/json' ? servers : servers.slice(0, 1))
        await send(one, { accept, service, ...(first ? { text: JSON.stringify(first.value) } : {}) })
    }
  },
)

test.each(
  operations
    .filter(({ operation }) => operation.security.length === 1)
    .map((one) => [`${one.method} ${one.path}`, one] as const),
)('%s refuses who comes without what the document demands', async (_, one) => {
  const example = Object.values(one.operation.requestBody?.content ?? {})[0]?.examples ?? {}
  const bare = { ...one, operation: { ...one.operation, security: [] } }
  const { body } = await send(bare, { text: JSON.stringify(Object.values(example)[0]?.value) })
  expect(['unauthenticated', 'signature_invalid']).toContain(body?.code)
})
