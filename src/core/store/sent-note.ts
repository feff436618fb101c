import { NOTICES } from '../course/notices.ts'
import type { Settlement } from '../course/store.ts'

/** Rarely, so that the dispatchers of one store do not wait for each other's row. */
const NOTED_EVERY_MS = 10_000

/** The name in `meta` of the time at which the last lesson was sent, to within seconds. */
export const SENT_NOTE = 'lesson_sent_at'

/** Decides when to write that note. */
export function createSentNote() {
  let noted = Number.NEGATIVE_INFINITY
  return {
    /** The time to write with these outcomes; undefined: the note is new enough, or no lesson was sent. */
    of(settlements: readonly Settlement[]): number | undefined {
      const sent = settlements.findLast(
        ({ claim, attempt }) => claim.course !== NOTICES && attempt?.outcome === 'sent',
      )
      return sent && Math.abs(sent.now - noted) >= NOTED_EVERY_MS ? sent.now : undefined
    },
    written(at: number | undefined) {
      noted = at ?? noted
    },
  }
}
