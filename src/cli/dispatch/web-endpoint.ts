import { request as overHttp } from 'node:http'
import { request as overHttps } from 'node:https'
import type { Environment } from '../../core/env/settings.ts'
import { isBearerToken, splitSecrets } from '../../core/secret.ts'
import { trimEnd } from '../../core/trim-end.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../exit.ts'

/** A summary names up to 10,000 lessons. */
const LARGEST_ANSWER_BYTES = 16 * 1024 * 1024

/**
 * One POST, and its whole answer, after up to `patienceMs`; then rejects with a TimeoutError. Not on
 * `fetch`, which gives up by itself when no answer has begun after five minutes.
 */
export function post(input: {
  readonly url: URL
  readonly bearer: string
  readonly signal: AbortSignal
  readonly patienceMs: number
  /** Sent as JSON; no body when left out. */
  readonly body?: unknown
}): Promise<{ readonly status: number; readonly text: string }> {
  const { url, bearer, patienceMs } = input
  const body = input.body === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(input.body))
  const patience = AbortSignal.timeout(patienceMs)
  const signal = AbortSignal.any([input.signal, patience])
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => reject(patience.aborted ? patience.reason : error)
    const asked = (url.protocol === 'https:' ? overHttps : overHttp)(url, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${bearer}`,
        'content-length': body.length,
        ...(body.length > 0 && { 'content-type': 'application/json' }),
      },
      signal,
    })
    asked.on('error', fail)
    asked.on('response', (answer) => {
      const chunks: Buffer[] = []
      let length = 0
      answer.on('data', (chunk: Buffer) => {
        length += chunk.length
        if (length > LARGEST_ANSWER_BYTES) asked.destroy(new Error('the answer is too large'))
        chunks.push(chunk)
      })
      answer.on('error', fail)
      answer.on('end', () =>
        resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }),
      )
    })
    asked.end(body)
  })
}

/** An endpoint of the running web service, and the secret that opens it. */
export function webEndpoint(
  env: Environment,
  given: string | undefined,
  path: string,
): { readonly url: URL; readonly secret: string } {
  // While it is rotated the variable holds two: the first is the one to send.
  const [secret] = splitSecrets(env.EMAIL_DISPATCH_SECRET ?? '')
  const site = given ?? env.NEXT_PUBLIC_SITE_URL?.trim()
  if (!site)
    throw new CommandError(
      EXIT.usage,
      'the address of the web service is needed: --url, or NEXT_PUBLIC_SITE_URL (or --local for this machine’s store).',
    )
  if (!/^https?:\/\//.test(site) || !URL.canParse(site))
    throw new CommandError(
      EXIT.usage,
      'the address of the web service is not an http:// or https:// address.',
    )
  if (!secret)
    throw new CommandError(
      EXIT.usage,
      'EMAIL_DISPATCH_SECRET is not set: set the same one as the web service, here or with --env-file.',
    )
  if (!isBearerToken(secret))
    throw new CommandError(
      EXIT.usage,
      'EMAIL_DISPATCH_SECRET has a character that is not allowed in an HTTP header: choose another secret, for the web service too.',
    )
  return { url: new URL(`${trimEnd(site, '/')}${path}`), secret }
}

const PATIENCE_MS = 5000
const PAUSES_MS = [1000, 3000]

/** Posts to such an endpoint, three times if the service is away, and gives its answer; otherwise says why there is none. */
export async function postToWeb(
  context: Pick<Context, 'clock' | 'signal'>,
  { url, secret, body }: { readonly url: URL; readonly secret: string; readonly body: unknown },
): Promise<Readonly<Record<string, unknown>>> {
  for (let attempt = 0; ; attempt += 1) {
    const answer = await post({
      url,
      bearer: secret,
      body,
      signal: context.signal,
      patienceMs: PATIENCE_MS,
    }).catch(() => undefined)
    if (answer?.status === 200) return objectOf(answer.text)
    if (answer?.status === 401)
      throw new CommandError(
        EXIT.remote,
        'the service refused EMAIL_DISPATCH_SECRET: it must be the one that the service was started with.',
      )
    const pause = PAUSES_MS[attempt]
    if (answer === undefined || answer.status >= 500) {
      if (pause !== undefined && !context.signal.aborted) {
        await context.clock.sleep(pause, context.signal).catch(() => {})
        continue
      }
      throw new CommandError(
        EXIT.remote,
        answer === undefined
          ? `${url.origin} could not be reached: is the web service running, and is the address right?`
          : `the service answered ${answer.status}.`,
      )
    }
    const { message } = objectOf(answer.text)
    throw new CommandError(
      EXIT.remote,
      `the service answered ${answer.status}${typeof message === 'string' ? `: ${message}` : '.'}`,
    )
  }
}

function objectOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    // A JSON object has string keys, and its values are checked where they are used.
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
