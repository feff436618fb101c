import { createHash } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import type { Settings } from '../../env/settings.ts'
import type { Log } from '../../log.ts'
import { once } from '../../once.ts'
import type { Secret } from '../../secret.ts'
import { within } from '../../wait.ts'
import type { RateLimitDecision, RateLimiter } from './limiter.ts'
import { interval, type LocalLimiter, localLimiter, SCRIPT } from './limiter.ts'
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
export function sharedCounter(input: {
  readonly url: string
  readonly token: Secret
  readonly timeoutMs: number
}): SharedCounter {
  const { url, token, timeoutMs } = input
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

/** A visitor does not notice a wait up to this. After it, this process counts. */
const TIMEOUT_MS = 250
const RETRY_MS = 2000

/** The limiter that the settings name: shared with the other machines, or of this process. */
export function openLimiter(input: {
  readonly sharedStore: Settings['sharedStore']
  readonly clock: Clock
  readonly log: Log
}): RateLimiter {
  const { sharedStore, clock, log } = input
  const local = localLimiter(clock)
  if (sharedStore === undefined) return local
  return withFallback({
    shared: sharedCounter({ ...sharedStore, timeoutMs: TIMEOUT_MS }),
    ahead: localLimiter(clock),
    local,
    clock,
    log,
  })
}

/**
 * Counts in the shared store while it answers. When it is slow or down, this process logs one warning and
 * counts at half the quota (it does not know what the others let through) until the store answers again.
 */
export function withFallback(input: {
  readonly shared: SharedCounter
  /** Counts what is on its way to the shared store, so that a burst cannot outrun a slow one. */
  readonly ahead: LocalLimiter
  readonly local: LocalLimiter
  readonly clock: Clock
  readonly log: Log
}): RateLimiter {
  const { shared, ahead, local, clock, log } = input
  const closing = new AbortController()
  let down = false

  /** Waits for the store in the background, so that no visitor waits for one that is down. */
  async function comeBack(): Promise<void> {
    for (;;) {
      await clock.sleep(RETRY_MS, closing.signal)
      const answers = await shared.ping().then(
        () => true,
        () => false,
      )
      if (answers) break
    }
    down = false
    log.info('limiter_shared', 'the shared store answers again: rate limits count there')
  }

  function fallBack(): void {
    if (down) return
    down = true
    log.warn(
      'limiter_fallback',
      'the shared store does not answer: rate limits count in this process, at half the quota, until it does',
    )
    // Rejects only when the limiter is closed.
    comeBack().catch(() => {})
  }

  return {
    async take(policy, client) {
      if (!down) {
        const own = ahead.take(policy, client)
        if (!own.allowed) return own
        try {
          const verdict = await shared.take(policy, client)
          if (!verdict.allowed) ahead.giveBack(policy, client)
          return verdict
        } catch {
          fallBack()
        }
      }
      return local.take(half(policy), client)
    },
    counting: () => (down ? 'fallback' : 'shared'),
    async close() {
      closing.abort(new Error('the limiter is closed'))
      await shared.close()
    },
  }
}

function half(policy: Policy): Policy {
  return { ...policy, quota: Math.max(1, Math.floor(policy.quota / 2)) }
}
