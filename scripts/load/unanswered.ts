import type { Answer, Outcome } from './connection.ts'

export interface AloneOptions {
  /** Sends the request on a connection of its own. */
  readonly send: () => Promise<Outcome>
  /** Asks the same service for its health, with a patience of its own. */
  readonly askHealth: () => Promise<Outcome>
  readonly faultOf: (answer: Answer) => string | undefined
}

/** A machine that gives the daemon no time for all of these is no fault of the request. */
const MOST_TRIES = 3

/**
 * What is wrong with a request that got no answer, now that it is sent again with nothing beside it.
 * On a busy machine a request can wait longer than the run's patience: only a request that stays unanswered
 * while the service answers for its health is a fault. So is a service that no longer answers for its health.
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
