/** This many equal refusals in a row, with no message accepted between them, are about us. */
const MOST_IN_A_ROW = 5

/** Scope of a refusal: one message, or everything that we send. */
export type About = 'message' | 'run'

/**
 * Tells a refusal of one message from a refusal of everything that we send, by what becomes of the messages around it:
 * once a message that was handed over later is taken, the refusal was about its own message.
 */
export interface Refusals {
  /** Numbers a message as it is handed over. */
  handOver(): number
  /** The provider took a message. */
  accepted(number: number): void
  /** Resolves when it is known what the refusal is about; to `unclear` if nothing more can become known. */
  refused(refusal: { readonly reason: string; readonly unclear: About }): Promise<About>
  /** A fault of ours, found before any provider was asked. */
  failed(reason: string): void
  /** No further answers will come. */
  end(): void
  /** Why the run must stop; undefined while it need not. */
  readonly stop: string | undefined
}

export function createRefusals(): Refusals {
  const waiting = new Set<{
    readonly after: number
    readonly unclear: About
    readonly decide: (about: About) => void
  }>()
  let handedOver = 0
  let row = { reason: '', length: 0 }
  let stop: string | undefined

  const count = (reason: string) => {
    row = { reason, length: row.reason === reason ? row.length + 1 : 1 }
    if (row.length < MOST_IN_A_ROW) return
    stop ??= `${MOST_IN_A_ROW} refusals in a row: ${reason}`
    for (const one of waiting) one.decide('run')
  }
  return {
    handOver: () => {
      handedOver += 1
      return handedOver
    },
    accepted(number) {
      row = { reason: '', length: 0 }
      for (const one of waiting) if (one.after < number) one.decide('message')
    },
    refused({ reason, unclear }) {
      return new Promise((resolve) => {
        const one = {
          after: handedOver,
          unclear,
          decide: (about: About) => {
            waiting.delete(one)
            resolve(about)
          },
        }
        waiting.add(one)
        count(reason)
        if (stop !== undefined) one.decide('run')
      })
    },
    failed: count,
    end() {
      for (const one of waiting) one.decide(one.unclear)
    },
    get stop() {
      return stop
    },
  }
}
