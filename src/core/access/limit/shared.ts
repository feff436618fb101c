import { createHash } from 'node:crypto'
import { once } from '../../once.ts'
import type { Secret } from '../../secret.ts'
import { within } from '../../wait.ts'
import { interval, SCRIPT } from './gcra.ts'
import type { RateLimitDecision } from './limiter.ts'
import type { Policy } from './policy.ts'

const LARGEST_ANSWER_BYTES = 4096
const CONNECTIONS = 32
const SCRIPT_HASH = createHash('sha1').update(SCRIPT).digest('hex')

/** The shared store as the limiter needs it. Rejects for any fault and any late answer. */
export interface SharedCounter {
  take(policy: Policy, client: string): Promise<RateLimitDecision>
  ping(): Promise<void>
  close(): Promise<void>
}

/**
 * Counts in a store that speaks Redis commands over HTTP, as Upstash and its gateways do: POST a command as a JSON
 * array with a bearer token, get `{ "result" }` or `{ "error" }`.
 */
export function sharedCounter({
  url,
  token,
  timeoutMs,
}: {
  readonly url: string
  readonly token: Secret
  readonly timeoutMs: number
}): SharedCounter {
  const { origin, pathname } = new URL(url)
  const headers = { authorization: `Bearer ${token.reveal()}`, 'content-type': 'application/json' }
  // Loaded and opened at the first count: a platform that never counts pays for neither.
  const pool = once(async () => new (await import('undici')).Pool(origin, { connections: CONNECTIONS }))

  async function exchange(words: readonly string[], signal: AbortSignal): Promise<Answer> {
    const { statusCode, body } = await (await pool()).request({
      method: 'POST',
      path: pathname,
      headers,
      body: JSON.stringify(words),
      signal,
    })
    let text = ''
    for await (const chunk of body) {
      text += String(chunk)
      if (text.length > LARGEST_ANSWER_BYTES) throw new RangeError('the answer is too large')
    }
    const answer = JSON.parse(text) as Answer
    if (statusCode !== 200 && typeof answer.error !== 'string') throw new Error(`status ${statusCode}`)
    return answer
  }

  /** Raced against a timer, not only aborted, because name resolution ignores a signal. */
  async function command(words: readonly string[]): Promise<Answer> {
    const stop = new AbortController()
    return within(timeoutMs, exchange(words, stop.signal), () => {
      stop.abort()
      throw new Error('no answer in time')
    })
  }

  return {
    async take(policy, client) {
      const each = interval(policy)
      // A client's address does not belong in a shared store, and its hash counts as well.
      const key = `platformctl:limit:${policy.name}:${createHash('sha256').update(client).digest('base64url').slice(0, 22)}`
      const rest = ['1', key, String(each), String(each * policy.quota)]
      let answer = await command(['EVALSHA', SCRIPT_HASH, ...rest])
      if (answer.error?.includes('NOSCRIPT')) answer = await command(['EVAL', SCRIPT, ...rest])
      return { ...parse(answer), policy }
    },
    async ping() {
      const { result } = await command(['PING'])
      if (result !== 'PONG') throw new Error('the shared store did not answer PING')
    },
    async close() {
      await (await pool.opened())?.destroy()
    },
  }
}

interface Answer {
  readonly result?: unknown
  readonly error?: string
}

function parse({ result }: Answer): Omit<RateLimitDecision, 'policy'> {
  if (!Array.isArray(result) || result.length !== 4 || !result.every((one) => Number.isSafeInteger(one)))
    throw new TypeError('the shared store did not run the script')
  const [allowed, remaining, reset, retry] = result as [number, number, number, number]
  return { allowed: allowed === 1, remaining, reset, retry }
}
