import { recent } from '../calls.ts'
import type { MailDefinition } from './definition.ts'

/** Kinds of mail that leave apart from each other (CONTRACT §12). */
export const STREAMS = ['sign-in', 'confirmation', 'alert', 'notice', 'course', 'mail'] as const
export type StreamName = (typeof STREAMS)[number]

/** Why mail of one kind waits until an operator resumes it. */
export interface Pause {
  /** UTC milliseconds. */
  readonly at: number
  readonly reason: string
}

/** A stream that sends nothing until an operator resumes it. */
export interface Hold extends Pause {
  readonly stream: StreamName
}

/** The hold on a stream. Ask before each attempt: the answer is at most a few seconds old. */
export type Held = (stream: StreamName) => Promise<Hold | undefined>

/** A pause is in force everywhere within 10 seconds (CONTRACT §12). */
const ASKED_MS = 5000

export function createHeld(read: () => Promise<readonly Hold[]>, now: () => number): Held {
  const holds = recent(ASKED_MS, now, read)
  return async (stream) => (await holds()).find((one) => one.stream === stream)
}

/** The stream of a mail that somebody or a program asks for. */
export const streamOf = (definitions: readonly MailDefinition[], template: string): 'sign-in' | 'mail' =>
  definitions.find(({ name }) => name === template)?.allowance === 'sign-in' ? 'sign-in' : 'mail'

export const heldReason = ({ stream, reason }: Hold) => `mail of the stream ${stream} is paused: ${reason}`

export function coursePause(holds: readonly Hold[]): Pause | undefined {
  const hold = holds.find(({ stream }) => stream === 'course')
  return hold && { at: hold.at, reason: hold.reason }
}

/** What is on its way in one stream. Times are UTC milliseconds. */
export interface StreamQueue {
  readonly stream: StreamName
  readonly due: number
  /** An attempt failed, and the next one has its time. */
  readonly waiting: number
  /** Given up, or left to an operator's decision. */
  readonly failed: number
  readonly oldestAt: number | undefined
  readonly nextAt: number | undefined
}

/** When and why mail last left, and did not. Times are UTC milliseconds. */
export interface LastMail {
  /** To the minute; undefined: no mail in the last two days, and never a lesson. */
  readonly sentAt: number | undefined
  /** Refused for good, of what waits for a decision or ended its subscription. */
  readonly refused: Pause | undefined
  /** Of what is tried again. */
  readonly failed: Pause | undefined
}

export function heldTogether(holds: readonly Hold[]) {
  const groups = Map.groupBy(holds, ({ at, reason }) => `${at} ${reason}`)
  return [...groups.values()].flatMap((held) =>
    held.slice(0, 1).map(({ at, reason }) => ({ at, reason, streams: held.map(({ stream }) => stream) })),
  )
}

/** `courses are paused: REASON` or `mail is paused (sign-in, mail): REASON`; undefined while nothing is. */
export function holdsText(holds: readonly Hold[], withReasons: boolean): string | undefined {
  const texts = heldTogether(holds).map(({ streams, reason }) => {
    const paused =
      streams.join() === 'course' ? 'courses are paused' : `mail is paused (${streams.join(', ')})`
    return withReasons ? `${paused}: ${reason}` : paused
  })
  return texts.length === 0 ? undefined : texts.join('; ')
}
