import type { Outcome, RawResponse } from './connection.ts'

export interface AloneOptions {
  /** Sends the request on a connection of its own. */
  readonly send: () => Promise<Outcome>
  /** Asks the same service for its health, with a patience of its own. */
  readonly askHealth: () => Promise<Outcome>
  readonly faultOf: (answer: RawResponse) => string | undefined
}

/** Rounds of a retry and a health check. If the daemon gets no time in any of them, the machine is at fault. */
const MOST_TRIES = 3

/**
 * Sends a request that got no answer again, alone, and gives the fault found, or undefined. On a busy machine a request
 * can wait longer than the run's timeout, so it is a fault only if the request stays unanswered while the service
 * answers for its health, or if the service no longer answers for its health at all.
 */
export async function faultAlone({ send, askHealth, faultOf }: AloneOptions): Promise<string | undefined> {
  let kind: Outcome['kind'] = 'silent'
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const outcome = await send()
    if (outcome.kind === 'answer') return faultOf(outcome.answer)
    kind = outcome.kind
    const health = await askHealth()
    if (health.kind === 'answer') return `no answer: ${kind} again, while the service answers for its health`
  }
  return `no answer: ${kind}, and none for the service's health`
}
