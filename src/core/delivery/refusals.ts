import type { Outcome } from '../mail/mailer.ts'
import { type Delivery, ruleOf } from './retries.ts'

/** An answer that may be about us rather than about the message. */
export type Refusal = Extract<Outcome, { kind: 'permanent' | 'transient' }>

export const isRefusal = (delivery: Delivery): delivery is Refusal =>
  (delivery.kind === 'permanent' || delivery.kind === 'transient') && ruleOf(delivery).run === 'judged'

/** This many equal refusals in a row, with no message accepted between them, are about us. */
const MOST_IN_A_ROW = 5

/** Scope of a refusal: one message, everything that we send, or perhaps either (400, 422, 5.7.x). */
type Scope = 'one' | 'all' | 'unclear'

/** Assumed if nothing more is learned: the transport's own answer is believed. */
export const unclearScope = (refusal: Refusal): Scope =>
  refusal.kind === 'permanent' ? 'one' : refusal.isUnclear ? 'unclear' : 'all'

/**
 * Tells a refusal of one message from one of everything that we send: once a message that was handed over later is
 * taken, the refusal was about its own message.
 */
export function createRefusals() {
  const waiting = new Set<{
    readonly after: number
    readonly unclear: Scope
    readonly decide: (scope: Scope) => void
  }>()
  let handedOver = 0
  let row = { reason: '', length: 0 }
  let stop: string | undefined
  /** Refusals in a row stopped it, and not faults of ours, which say nothing about a refusal. */
  let isAboutUs = false

  const count = (reason: string) => {
    row = { reason, length: row.reason === reason ? row.length + 1 : 1 }
    if (row.length >= MOST_IN_A_ROW) stop ??= `${MOST_IN_A_ROW} failures in a row: ${reason}`
    return row.length >= MOST_IN_A_ROW
  }
  return {
    /** Numbers a message as it is handed over. */
    handOver: () => {
      handedOver += 1
      return handedOver
    },
    accepted(number: number) {
      row = { reason: '', length: 0 }
      for (const one of waiting) if (one.after < number) one.decide('one')
    },
    /** Resolves when the scope of the refusal is known, or nothing more can become known. */
    refused(refusal: Refusal): Promise<Scope> {
      const { promise, resolve } = Promise.withResolvers<Scope>()
      const decide = (scope: Scope) => {
        waiting.delete(one)
        resolve(scope)
      }
      const one = { after: handedOver, unclear: unclearScope(refusal), decide }
      waiting.add(one)
      isAboutUs ||= count(refusal.reason)
      if (isAboutUs) for (const each of waiting) each.decide('all')
      return promise
    },
    /** A fault of ours, found before any provider was asked; or no answer. */
    failed: count,
    end() {
      for (const one of waiting) one.decide(one.unclear)
    },
    get stop() {
      return stop
    },
  }
}
