import type * as z from 'zod'
import { UNKNOWN_CLIENT } from '../../core/access/client.ts'
import { type ErrorCode, type Issue, PlatformError } from '../../core/errors.ts'
import { within } from '../../core/host.ts'
import { parsedJson } from '../../core/is-record.ts'

/** A schema under the name that it has in the document, with examples. */
export interface Form<Value> {
  readonly name: string
  readonly schema: z.ZodType<Value>
  readonly examples: Readonly<Record<string, unknown>>
}

export interface BodySpec<Value> extends Form<Value> {
  /** At most; counted while they stream. */
  readonly bytes: number
  /** Read whatever its media type is; an empty one is an empty object. */
  readonly lenient?: true
  /** The same, and it may be left out. */
  readonly optional?: true
  readonly type?: string
  readonly also?: string
}

/** A request whose body is to be read, and the memory that it is counted in. */
interface Bodied {
  readonly request: Request
  readonly bodyShare: Pick<BodyShare, 'take'>
  readonly body?: Pick<BodySpec<unknown>, 'also'> | undefined
}

/** Longer than the daemon lets a whole request take: hosts may let one hold its memory for minutes. */
const BODY_MS = 15_000
const DEEPEST = 32
/** Members of objects and elements of lists in one body; an analytics batch of 500 full events has a third of it. */
const MOST_VALUES = 50_000

/** The body's bytes, counted while they stream: a Content-Length is not believed. */
export async function readBytes({ request, bodyShare }: Bodied, limitBytes: number): Promise<Uint8Array> {
  if (request.headers.has('content-encoding'))
    throw new PlatformError('unsupported_media_type', 'Bodies are taken without a Content-Encoding only.')
  const tooLarge = () =>
    new PlatformError('payload_too_large', `This route takes bodies of at most ${limitBytes} bytes.`)
  if (Number(request.headers.get('content-length') ?? 0) > limitBytes) throw tooLarge()
  const chunks: Uint8Array[] = []
  let size = 0
  const read = async () => {
    for await (const chunk of request.body ?? []) {
      size += chunk.byteLength
      if (size > limitBytes) throw tooLarge()
      bodyShare.take(chunk.byteLength)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks)
  }
  try {
    return await within(BODY_MS, read(), () => {
      // What still comes is neither kept nor counted.
      chunks.length = 0
      size = limitBytes
      throw new PlatformError('request_timeout', 'The body did not arrive in time.')
    })
  } catch (error) {
    if (error instanceof PlatformError) throw error
    throw new PlatformError('bad_request', 'The body could not be read.', { cause: error })
  }
}

/** The body's text; a byte order mark stays, because a signature is over the bytes as they were sent. */
export async function readText(asked: Bodied, limitBytes: number): Promise<string> {
  const bytes = await readBytes(asked, limitBytes)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (error) {
    throw new PlatformError('bad_request', 'The body could not be read as UTF-8 text.', { cause: error })
  }
}

/** A JSON body of the given schema; anything else is a 400 with an issue for each field, or 413 or 415. */
export async function readJson<Schema extends z.ZodType>(asked: Bodied, schema: Schema, limitBytes: number) {
  const type = asked.request.headers.get('content-type') ?? ''
  const forms = asked.body?.also ? ', and forms of its own pages' : ''
  if (!/^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(type))
    throw new PlatformError('unsupported_media_type', `This route takes application/json${forms}.`)
  return parseJson(await readText(asked, limitBytes), schema)
}

const FORM = /^application\/x-www-form-urlencoded\s*(?:;|$)/i

/**
 * A form that a page of this service sent, as far as the browser tells. Another site's form would act for its visitor.
 * Browsers without Sec-Fetch-Site name the Origin. A proxy may rewrite Host, so the site's own address counts too.
 */
export function isOwnForm({ headers, url }: Request, siteUrl: string): boolean {
  if (!FORM.test(headers.get('content-type') ?? '')) return false
  const from = headers.get('sec-fetch-site')
  if (from !== null) return from === 'same-origin' || from === 'none'
  const origin = headers.get('origin')
  if (origin === null) return true
  const host = URL.parse(origin)?.host
  return host === (headers.get('host') ?? new URL(url).host) || host === new URL(siteUrl).host
}

export function parseJson<Schema extends z.ZodType>(text: string, schema: Schema) {
  const value = parsedJson(text.replace(/^\uFEFF/, ''))
  if (value === undefined)
    throw new PlatformError('bad_request', 'The body is not JSON.', {
      issues: [{ path: '', message: 'not JSON' }],
    })
  // The parser survives any depth and number of values, but code that walks the result recurses and copies.
  const { depth, values } = measure(value)
  if (depth > DEEPEST)
    throw new PlatformError('bad_request', `The body is nested more than ${DEEPEST} levels deep.`)
  if (values > MOST_VALUES)
    throw new PlatformError('bad_request', `The body holds more than ${MOST_VALUES} values.`)
  return parseWith(schema, value)
}

/** Splits an issue about unknown keys into one per key, so that every issue names its field. */
function issuesOf(issue: z.core.$ZodIssue): Issue[] {
  if (issue.code !== 'unrecognized_keys') return [{ path: issue.path.join('.'), message: issue.message }]
  return issue.keys.map((key) => ({ path: [...issue.path, key].join('.'), message: 'Unrecognized key' }))
}

export function parseWith<Schema extends z.ZodType>(schema: Schema, value: unknown): z.infer<Schema> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const issues = parsed.error.issues.flatMap(issuesOf).slice(0, 50)
  throw new PlatformError('bad_request', 'The request does not have the documented form.', { issues })
}

/** Depth and number of values of what was parsed: a third of the time that its text takes. Ends soon after a limit. */
function measure(parsed: unknown): { readonly depth: number; readonly values: number } {
  let [deepest, values] = [0, 0]
  const walk = (value: unknown, depth: number) => {
    if (typeof value !== 'object' || value === null) return
    deepest = Math.max(deepest, depth)
    const members: readonly unknown[] = Array.isArray(value) ? value : Object.values(value)
    values += members.length
    if (depth > DEEPEST || values > MOST_VALUES) return
    for (const member of members) walk(member, depth + 1)
  }
  walk(parsed, 1)
  return { depth: deepest, values }
}

export type BodyShare = ReturnType<ReturnType<typeof bodyMemory>>

/** A client's share of the memory: one that floods leaves the rest to others. */
const CLIENT_PART = 8

/**
 * Bounds the bytes of request bodies that are held at once, in all and by one client (docs/reference/limits.md). Counted as they
 * arrive and given back with the answer, because until then the text and what was parsed of it are in memory.
 */
export function bodyMemory(mostBytes: number) {
  const held = new Map<string, number>()
  const tooMany = (code: ErrorCode, fix: string) =>
    new PlatformError(code, `Too many large requests at once; ${fix}.`, { retryAfterSeconds: 1 })
  let all = 0
  return (client: string) => {
    let mine = 0
    const share = client === UNKNOWN_CLIENT ? mostBytes : mostBytes / CLIENT_PART
    return {
      /** Takes bytes that have arrived; throws when this client or all together hold too many. */
      take(bytes: number) {
        const ofClient = held.get(client) ?? 0
        if (ofClient + bytes > share) throw tooMany('rate_limited', 'send them one after the other')
        if (all + bytes > mostBytes) throw tooMany('unavailable', 'try again in a second')
        mine += bytes
        all += bytes
        held.set(client, ofClient + bytes)
      },
      /** Gives everything back, once the request is answered. */
      release() {
        all -= mine
        const left = (held.get(client) ?? 0) - mine
        if (left > 0) held.set(client, left)
        else held.delete(client)
        mine = 0
      },
    }
  }
}
