import { ERRORS, type ErrorCode } from '../../src/core/errors.ts'
import { WEB } from '../../src/core/service.ts'
import type { Security } from '../../src/daemon/http/route.ts'
import { type Document, exampleError, type Json } from '../../src/daemon/routes/openapi.ts'
import { SHOWN } from './platform.ts'

type Node = { readonly [key: string]: Json }
const METHODS = ['get', 'post']
const SECURITY_WORDS: Readonly<Record<Security, string>> = {
  identity: 'a [JWT](../guides/directory.md)',
  dispatchSecret: 'EMAIL_DISPATCH_SECRET',
  deepToken: 'HEALTH_DEEP_TOKEN',
  witnessProof: 'proof of the witness’s secret',
  webhookSignature: 'the provider’s signature in `Stripe-Signature`',
  feedbackSignature: 'the mail provider’s signature under MAILER_FEEDBACK_SECRET',
}

/** docs/reference/http.md, made from the same document that the daemon serves. */
export function httpReference(document: Document): string {
  const schemas = node(node(document.components).schemas)
  const operations = Object.entries(node(document.paths)).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = node(item)[method]
      return operation === undefined
        ? []
        : [{ title: `${method.toUpperCase()} ${path}`, operation: node(operation) }]
    }),
  )
  const codes = operations.map(({ operation }) => errorsOf(operation))
  const everywhere = inAll(codes)
  const withBody = inAll(
    operations
      .filter(({ operation }) => operation.requestBody !== undefined)
      .map(({ operation }) => errorsOf(operation)),
  )
  const answers = new Map<string, string>()
  const tags = list(document.tags).map((tag) => String(node(tag).name))
  const tagged = (tag: string) => operations.filter(({ operation }) => list(operation.tags)[0] === tag)
  return `${[
    '# HTTP reference',
    '<!-- Made by `npm run make`. -->',
    `${SHOWN} \`/openapi.json\` of your web service says the same with yours. [A JSON Schema](schemas/http.schema.json) has the bodies. Errors have [one shape](errors.md) everywhere. Bodies are limited to the size in brackets. Every answer has \`X-Request-Id\`; a well-formed one of the request is kept. Routes are [limited](limits.md#rate). Tokens, secrets and proofs go into \`Authorization: Bearer\`. Unless it says otherwise, web serves a route.`,
    `Any operation can answer ${errorLinks([...everywhere])}; one with a body also ${errorLinks([...withBody].filter((code) => !everywhere.has(code)))}. Each operation lists its other errors.`,
    ...tags.map((tag) => {
      const links = tagged(tag).map(({ title }) => `[\`${title}\`](#${anchor(title)})`)
      return `**${tag}**: ${links.join(', ')}`
    }),
    ...tags.flatMap((tag) => [
      `## ${tag}`,
      ...tagged(tag).flatMap(({ title, operation }) =>
        section(
          title,
          operation,
          schemas,
          operation.requestBody === undefined ? everywhere : new Set([...everywhere, ...withBody]),
          answers,
        ),
      ),
    ]),
  ].join('\n\n')}\n`
}

/** docs/reference/errors.md: the one table. */
export function errorReference(): string {
  const rows = Object.entries(ERRORS).map(
    ([code, { status, meaning }]) => `| ${status} | \`${code}\` | ${meaning} |`,
  )
  return `${[
    '# Errors',
    '<!-- Made by `npm run make`. -->',
    'Every error of every route has this shape. `code` is stable: programs decide by it. `message` is a sentence for a person and may change. `requestId` is also in `X-Request-Id` and finds the request in the log. `issues` comes with a 400 and names each field.',
    json(exampleError('bad_request')),
    'A browser (`Accept: text/html` before JSON) gets the same as a page.',
    `| Status | Code | Meaning |\n|---|---|---|\n${rows.join('\n')}`,
  ].join('\n\n')}\n`
}

function section(
  title: string,
  operation: Node,
  schemas: Node,
  said: ReadonlySet<ErrorCode>,
  /** What an operation said first, by its text: the others name that operation. */
  answers: Map<string, string>,
): string[] {
  const body = operation.requestBody === undefined ? undefined : node(operation.requestBody)
  const own = errorsOf(operation).filter((code) => !said.has(code))
  const servedBy = serviceNames(operation)
  return [
    `### ${title}`,
    `${operation.summary}.${description(title, operation, answers)}${servedBy === WEB ? '' : ` Served by ${servedBy}.`}`,
    ...needs(list(operation.security).map(node)),
    ...parameterTable(title, list(operation.parameters).map(node), answers),
    ...(body ? bodySection(body, schemas) : []),
    ...Object.entries(node(operation.responses)).flatMap(([status, response]) =>
      Number(status) < 400 || isHealth503(status, node(response))
        ? answerSection(title, status, node(response), answers)
        : [],
    ),
    ...(own.length === 0 ? [] : [`**Errors** ${own.map((code) => `\`${code}\``).join(', ')}.`]),
  ]
}

function description(title: string, { description: text }: Node, answers: Map<string, string>): string {
  if (text === undefined) return ''
  const before = answers.get(String(text))
  answers.set(String(text), before ?? title)
  return before === undefined ? ` ${text}` : ` As [\`${before}\`](#${anchor(before)}).`
}

function parameterTable(
  title: string,
  parameters: readonly Node[],
  answers: Map<string, string>,
): readonly string[] {
  if (parameters.length === 0) return []
  const rows = parameters.map(
    ({ name, in: place, schema, description, required }) =>
      `| \`${name}\`${required === true ? '' : ' (optional)'} | ${place} | ${formOf(node(schema))} | ${description} |`,
  )
  const table = ['| Parameter | In | Form | Meaning |', '|---|---|---|---|', ...rows].join('\n')
  const before = answers.get(table)
  answers.set(table, before ?? title)
  return [before === undefined ? table : `**Parameters**: as [\`${before}\`](#${anchor(before)}).`]
}

function needs(security: readonly Node[]): string[] {
  const names = security.flatMap((one) => Object.keys(one))
  // Only the health token may be left out.
  const optional = security.some((one) => Object.keys(one).length === 0)
    ? ', if set, for `?deep=1` or `?details`'
    : ''
  return names.length === 0
    ? []
    : [`**Needs** ${names.map((name) => SECURITY_WORDS[name as Security]).join(', ')}${optional}.`]
}

function bodySection(body: Node, schemas: Node): string[] {
  const told = new Map<string, string>()
  return Object.entries(node(body.content)).flatMap(([type, media]) => {
    const { schema, examples } = node(media)
    const name = String(node(schema).$ref).split('/').at(-1) ?? ''
    const fields = fieldsOf(node(schemas[name]))
    const before = told.get(fields)
    told.set(fields, type)
    if (before !== undefined) return `**Body** \`${type}\`: the same fields.`
    return [
      `**Body** \`${type}\` (${/\d+ [KM]B/.exec(String(body.description))?.[0]}${body.required === true ? '' : ', optional'}): ${fields}`,
      ...examplesOf(examples, type),
    ]
  })
}

/** Health answers its body with 503 too. */
function isHealth503(status: string, response: Node): boolean {
  return status === '503' && !Object.keys(node(response.content)).includes('text/html')
}

/** An answer of an operation, or a link to the earlier operation that gives the same one. */
function answerSection(
  title: string,
  status: string,
  response: Node,
  /** What an operation said first, by its text: the others name that operation. */
  answers: Map<string, string>,
): string[] {
  const content = response.content === undefined ? {} : node(response.content)
  const types = Object.keys(content).map((type) => `\`${type}\``)
  const head = `**${status}**${types.length > 0 ? ` ${types.join(', ')}` : ''}: ${response.description}`
  const form = JSON.stringify([head, Object.values(content).map((media) => node(media).schema ?? null)])
  const before = answers.get(form)
  if (before !== undefined) return [`**${status}**: as [\`${before}\`](#${anchor(before)}).`]
  answers.set(form, title)
  // The first form shows enough of a failing service.
  const shown = Object.entries(content).slice(0, Number(status) < 400 ? undefined : 1)
  return [head, ...shown.flatMap(([type, media]) => examplesOf(node(media).examples, type))]
}

function examplesOf(examples: Json | undefined, type: string): string[] {
  return Object.values(examples === undefined ? {} : node(examples)).map((example) => {
    const { value } = node(example)
    if (type !== 'application/x-www-form-urlencoded') return json(value)
    const pairs = Object.entries(node(value)).map(([key, part]): [string, string] => [key, String(part)])
    return `\`\`\`\n${new URLSearchParams(pairs)}\n\`\`\``
  })
}

function errorsOf({ responses }: Node): ErrorCode[] {
  return Object.values(node(responses)).flatMap((response) => {
    const media = node(node(response).content)['application/json']
    return Object.keys(media === undefined ? {} : node(node(media).examples)).filter(
      (name): name is ErrorCode => Object.hasOwn(ERRORS, name),
    )
  })
}

const inAll = (codes: readonly ErrorCode[][]) =>
  new Set(codes[0]?.filter((code) => codes.every((others) => others.includes(code))))

const errorLinks = (codes: readonly ErrorCode[]) =>
  codes.map((code) => `${ERRORS[code].status} [\`${code}\`](errors.md)`).join(', ')

function fieldsOf(schema: Node): string {
  // A body whose fields others define.
  if (typeof schema.description === 'string') return schema.description
  const variants = schema.oneOf ?? schema.anyOf
  if (variants !== undefined)
    return `one of ${list(variants)
      .map((one) => fieldsOf(node(one)))
      .join(' · ')}`
  const required = list(schema.required).map(String)
  const fields = Object.entries(node(schema.properties)).map(
    ([name, form]) => `\`${name}\`${required.includes(name) ? '' : ' (optional)'} ${formOf(node(form))}`,
  )
  return fields.join(', ')
}

function formOf(schema: Node): string {
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``
  if (schema.enum !== undefined)
    return list(schema.enum)
      .map((one) => `\`${one}\``)
      .join(', ')
  if (schema.type === 'integer') return `whole number, ${schema.minimum} to ${schema.maximum}`
  if (schema.type === 'array')
    return `list${schema.maxItems === undefined ? '' : `, at most ${schema.maxItems}`}`
  if (schema.type === 'object' && Object.keys(node(schema.properties)).length === 0)
    return schema.additionalProperties === false ? 'empty object' : 'object'
  if (schema.type === 'object') return `{ ${fieldsOf(schema)} }`
  const limits = [
    schema.format === undefined ? [] : [`${schema.format}`],
    schema.pattern === undefined ? [] : [`matching \`${String(schema.pattern).replaceAll('|', '\\|')}\``],
    schema.maxLength === undefined ? [] : [`at most ${schema.maxLength} characters`],
  ].flat()
  return [schema.type ?? 'anything', ...limits].join(', ')
}

function serviceNames(operation: Node): string {
  return list(operation.servers)
    .map((server) => node(server).description)
    .join(', ')
}

/** As GitHub makes them: lower case, no punctuation, spaces to hyphens. */
function anchor(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')
}

function json(value: Json | undefined): string {
  const line = JSON.stringify(value)
  return `\`\`\`json\n${line.length <= 100 ? line : JSON.stringify(value, null, 2)}\n\`\`\``
}

function node(value: Json | undefined): Node {
  // A value that is not an object has no members. A test of its own checks the document's form.
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Node) : {}
}

function list(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : []
}
