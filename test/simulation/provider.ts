import type { Message, Outcome, Transport } from '../../src/core/mail/mailer.ts'
import type { Seeded } from './seeded.ts'
import type { VirtualTime } from './virtual-time.ts'
import { enrolmentIn, type Witness } from './witness.ts'

export type Fault =
  | 'crash'
  | 'lost-response'
  | 'transient'
  | 'too-many'
  | 'permanent'
  | 'bounce'
  | 'slow'
  | 'duplicate-request'
  | 'store-error'
  | 'silent'
  | 'clock-step'
  | 'unsubscribe'
  | 'freeze'
  | 'lock'
  | 'long-answer'
  | 'clock-skew'
  | 'broken-texts'
  | 'refuses-us'
  | 'rotate-secret'
  | 'erase'
  | 'hours'
  | 'messages'
  | 'poison'
  | 'feedback'
  | 'breaker'
  | 'older-build'
  | 'restore'
  | 'pace'
  | 'standstill'
  | 'wakes'
  | 'alerts'

/** The clocks of machines differ by twice this at the most. */
export const MOST_SKEW_MS = 2 * 60_000
/** Why the provider refuses what we send, whoever it is to. */
export const REFUSES_US = 'our sender is refused'

/** A machine's process as the simulation sees it: when it is killed, nothing that it waits for ever comes. */
export interface Process {
  readonly name: string
  alive: boolean
  /** The dispatch call it is in. */
  call: number
  /** Release of the courses it was started with. */
  readonly release: number
}

export const NEVER = new Promise<never>(() => {})

const KEY_MEMORY_MS = 24 * 60 * 60 * 1000
const SECOND = 1000

export interface Provider {
  /** The transport that a process holds. */
  readonly transportOf: (process: Process) => Transport
  /** From now on every message is taken, at once. */
  readonly calm: () => void
}

/** A limit for a moment, or for longer: by the message, so that the rest of a seed stays as it is. */
const restOf = ({ messageId }: Message) => (messageId.charCodeAt(0) % 2 === 0 ? SECOND : 60 * SECOND)

/** A mail provider with the faults that real ones have. `api` honours idempotency keys for a day, `smtp` knows none. */
export function simulatedProvider(input: {
  readonly kind: 'api' | 'smtp'
  readonly time: VirtualTime
  readonly random: Seeded
  readonly faults: ReadonlySet<Fault>
  /** So many times rarer than here is each fault. */
  readonly rarity: number
  readonly witness: Witness
  readonly kill: (process: Process) => void
  /** The subscriber of a lesson that is out just now goes away. */
  readonly leave: (enrolment: string) => void
  readonly refusesUs: () => boolean
}): Provider {
  const { kind, refusesUs, time, random, faults, rarity, witness, kill, leave } = input
  const known = new Map<string, { readonly at: number; readonly bytes: string; readonly subject: string }>()
  let calm = false
  const meets = (fault: Fault, oneIn: number) => !calm && faults.has(fault) && random.oneIn(oneIn * rarity)

  function accept(message: Message): void {
    if (kind === 'api') {
      // In a course that follows its newest edition, another lesson may have replaced one that is in flight.
      const bytes = `${message.date.getTime()} ${message.messageId} ${message.html.length} ${message.headers['List-Unsubscribe']}`
      const before = known.get(message.key)
      if (before && time.elapsed() - before.at < KEY_MEMORY_MS) {
        if (before.bytes !== bytes && before.subject === message.subject)
          witness.violation('one key came with two payloads', message.key)
        return
      }
      known.set(message.key, { at: time.elapsed(), bytes, subject: message.subject })
    }
    witness.delivered(message)
  }

  async function send(process: Process, message: Message, deadline?: AbortSignal): Promise<Outcome> {
    if (!process.alive) return NEVER
    witness.handedOver(process, message)
    if (meets('crash', 400)) {
      kill(process)
      return NEVER
    }
    await time.clock.sleep(
      meets('slow', 60) ? random.between(5 * SECOND, 70 * SECOND) : random.between(1, 80),
    )
    // A refusal that nobody is left to hear teaches nothing; a message on its way is taken all the same.
    const heard = process.alive && deadline?.aborted !== true
    if (heard && refusesUs()) {
      witness.refusedSender(process, message)
      return { kind: 'transient', scope: 'sender', reason: REFUSES_US }
    }
    if (heard && meets('too-many', 300)) {
      if (restOf(message) === SECOND) witness.limited(process, message)
      return { kind: 'transient', scope: 'connection', reason: 'too many', retryAfterMs: restOf(message) }
    }
    if (heard && meets('transient', 25)) {
      witness.refused(message, 'transient')
      return { kind: 'transient', scope: 'message', reason: 'try again later' }
    }
    if (heard && meets('permanent', 800)) {
      witness.refused(message, 'permanent')
      return { kind: 'permanent', hardBounce: false, reason: 'refused' }
    }
    if (heard && meets('bounce', 2000)) {
      witness.refused(message, 'bounce')
      return { kind: 'permanent', hardBounce: true, reason: 'no such address' }
    }
    const left = meets('unsubscribe', 200)
    if (left) leave(enrolmentIn(message) ?? '')
    accept(message)
    if (kind === 'api' && meets('duplicate-request', 100)) accept(message)
    if (meets('crash', 400)) {
      kill(process)
      return NEVER
    }
    await time.clock.sleep(
      meets('slow', 100) ? random.between(5 * SECOND, 70 * SECOND) : random.between(1, 40),
    )
    // More often for somebody who left, and may be back before the answer is.
    if (kind === 'smtp' && meets('long-answer', left ? 4 : 150))
      await time.clock.sleep(random.between(60 * SECOND, 600 * SECOND))
    if (!process.alive) return NEVER
    if (meets('lost-response', 60)) {
      witness.unsettled(message)
      return { kind: 'unknown', reason: 'the line broke' }
    }
    return { kind: 'sent', id: message.key }
  }

  return {
    transportOf: (process) => ({
      kind,
      ...(kind === 'smtp' && { patienceMs: 14 * 60 * SECOND }),
      send: (message, deadline) => send(process, message, deadline),
      verify: async () => {},
      close: async () => {},
    }),
    calm() {
      calm = true
    },
  }
}
