import { createHash, createHmac } from 'node:crypto'
import { once, succeeds } from '../../calls.ts'
import type { Settings } from '../../env/settings.ts'
import type { Host } from '../../host.ts'
import type { Secret } from '../../secret.ts'
import type { Policy, RateLimitDecision, RateLimiter } from './limiter.ts'
import { interval, localLimiter, SCRIPT } from './limiter.ts'

const LARGEST_ANSWER_BYTES = 4096
const CONNECTIONS = 32
const SCRIPT_HASH = createHash('sha1').update(SCRIPT).digest('hex')

type Answer = { readonly result?: unknown; readonly error?: string }

/** Counts by Redis commands over HTTP, as Upstash takes them. Rejects for any fault and any late answer. */
export function sharedCounter(url: string, token: Secret, timeoutMs: number) {
  const headers = { authorization: `Bearer ${token.reveal()}`, 'content-type': 'application/json' }
  // Loaded and opened at the first count: a platform that never counts pays for neither.
  const opened = once(async () => {
    const { dispatcherTo, exchange } = await import('../../network/exchange.ts')
    return { dispatcher: dispatcherTo(new URL(url).origin, { connections: CONNECTIONS }), exchange }
  })

  async function command(...words: readonly string[]): Promise<Answer> {
    const { dispatcher, exchange } = await opened()
    const request = { method: 'POST', headers, body: JSON.stringify(words), dispatcher } as const
    const { status, text } = await exchange(url, request, LARGEST_ANSWER_BYTES, timeoutMs)
    const answer = JSON.parse(text) as Answer
    if (status !== 200 && typeof answer.error !== 'string') throw new Error(`status ${status}`)
    return answer
  }

  return {
    async take(policy: Policy, client: string): Promise<RateLimitDecision> {
      const each = interval(policy)
      // A client's address does not belong in a shared store, and a hash that nobody can try counts as well.
      const hash = createHmac('sha256', token.reveal()).update(client).digest('base64url').slice(0, 22)
      const rest = ['1', `platformctl:limit:${policy.name}:${hash}`, `${each}`, `${each * policy.quota}`]
      let answer = await command('EVALSHA', SCRIPT_HASH, ...rest)
      if (answer.error?.includes('NOSCRIPT')) answer = await command('EVAL', SCRIPT, ...rest)
      const { result } = answer
      if (!Array.isArray(result) || result.length !== 4 || !result.every((one) => Number.isSafeInteger(one)))
        throw new TypeError('the shared store did not run the script')
      const [allowed, remaining, reset, retry] = result as [number, number, number, number]
      return { allowed: allowed === 1, remaining, reset, retry, policy }
    },
    close: async () => (await opened.opened())?.dispatcher.destroy(),
  }
}

/** A visitor does not notice a wait up to this. After it, this process counts. */
const TIMEOUT_MS = 250
const RETRY_MS = 2000
/** Shows that the store counts: one whose token only reads, or that is full, answers PING all the same. */
const TRIAL: Policy = { name: 'trial', quota: 1, windowSeconds: 1 }

/** The limiter that the settings name: shared with the other machines, or of this process. */
export function openLimiter(host: Pick<Host, 'clock' | 'log'>, sharedStore: Settings['sharedStore']) {
  return sharedStore === undefined
    ? localLimiter(host.clock)
    : withFallback(host, sharedCounter(sharedStore.url, sharedStore.token, TIMEOUT_MS))
}

/** Counts in the shared store. While it is slow or down, this process counts, at half the quota. */
export function withFallback(
  { clock, log }: Pick<Host, 'clock' | 'log'>,
  shared: ReturnType<typeof sharedCounter>,
): RateLimiter {
  const local = localLimiter(clock)
  /** Counts what the shared store allowed or has not answered yet, so that a burst cannot outrun a slow one. */
  const ahead = localLimiter(clock)
  const closing = new AbortController()
  let down = false

  /** Waits for the store in the background, so that no visitor waits for one that is down. */
  async function comeBack(): Promise<void> {
    do await clock.sleep(RETRY_MS, closing.signal)
    while (!(await succeeds(shared.take(TRIAL, ''))))
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
      return local.take({ ...policy, quota: Math.max(1, Math.floor(policy.quota / 2)) }, client)
    },
    counting: () => (down ? 'fallback' : 'shared'),
    async close() {
      closing.abort(new Error('the limiter is closed'))
      await shared.close()
    },
  }
}
