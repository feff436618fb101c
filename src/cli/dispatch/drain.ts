import { type DispatchProgress, type DispatchResult, OUT_OF_TIME, STOPPED } from '../../core/course/course.ts'
import type { Subscription } from '../../core/course/store.ts'
import { durationText } from '../../core/durations.ts'
import type { Context } from '../context.ts'
import { thousands } from '../output/text.ts'
import { openProgress } from '../terminal.ts'

const BAR = 24
/** How often a drain reports its progress when it does not run in a terminal. */
const LINE_EVERY_MS = 10_000
const SHOW_EVERY_MS = 100
/** A summary lists at most this many of the lessons that were not sent, the latest ones. */
const MOST_RESULTS = 1000

/** One call, or with --drain calls of one run until it finds nothing more; the totals of all, with progress on standard error. */
export async function drain(
  context: Context,
  source: Source,
  options: DispatchOptions,
): Promise<DispatchResult> {
  const began = context.clock.monotonic()
  const progress = await openProgress(context, options.drain ? 'draining' : 'dispatching')
  const done = { sent: 0, failed: 0, unknown: 0 }
  let left = await source.remaining?.()
  let shownAt = began
  const line = () => progressLine({ ...done, left, seconds: (context.clock.monotonic() - began) / 1000 })
  const isTime = (every: number) => {
    const now = context.clock.monotonic()
    if (now - shownAt < every) return false
    shownAt = now
    return true
  }
  const onProgress = ({ outcome }: DispatchProgress) => {
    done[outcome] += 1
    // An estimate: other dispatchers may work on the same backlog, and more lessons become due meanwhile.
    if (left !== undefined) left = Math.max(0, left - 1)
    if (isTime(SHOW_EVERY_MS)) progress.show(line())
  }
  try {
    let total = await source.call(onProgress)
    for (let last = total; goesOn(last, options, context.signal); ) {
      ;[done.sent, done.failed, done.unknown, left] = [
        total.sent,
        total.failed,
        total.unknown,
        total.remaining,
      ]
      progress.show(line())
      if (context.stderr.isTTY !== true && isTime(LINE_EVERY_MS)) context.stderr.write(`${line()}\n`)
      last = await source.call(onProgress)
      total = sum(total, last)
    }
    const isCut = context.signal.aborted && total.reason === undefined && total.remaining > 0
    return isCut ? { ...total, reason: STOPPED } : total
  } finally {
    progress.end()
  }
}

function goesOn(last: DispatchResult, { drain: repeat }: DispatchOptions, signal: AbortSignal): boolean {
  // A call below its limit ends the drain: what is still due is the next lesson of somebody who got one in this run.
  const isFull = last.processed >= last.limit && last.reason === undefined
  return repeat === true && (isFull || last.reason === OUT_OF_TIME) && !signal.aborted
}

function sum(total: DispatchResult, last: DispatchResult): DispatchResult {
  return {
    ...last,
    processed: total.processed + last.processed,
    sent: total.sent + last.sent,
    failed: total.failed + last.failed,
    unknown: total.unknown + last.unknown,
    results: [...total.results, ...last.results].slice(-MOST_RESULTS),
  }
}

/** `███████░░░ 70 %  7,000 sent, 3 failed, 3,000 left, 950/s, about 4 s` */
export function progressLine(at: {
  readonly sent: number
  readonly failed: number
  readonly unknown: number
  readonly left: number | undefined
  readonly seconds: number
}): string {
  const done = at.sent + at.failed + at.unknown
  const rate = at.seconds > 0 ? done / at.seconds : 0
  const parts = [`${thousands(at.sent)} sent`]
  if (at.failed > 0) parts.push(`${thousands(at.failed)} failed`)
  if (at.unknown > 0) parts.push(`${thousands(at.unknown)} unknown`)
  if (at.left !== undefined) parts.push(`${thousands(at.left)} left`)
  if (rate > 0) parts.push(rate < 10 ? `${rate.toFixed(1)}/s` : `${thousands(Math.round(rate))}/s`)
  if (rate > 0 && at.left !== undefined && at.left > 0) parts.push(`about ${elapsedText(at.left / rate)}`)
  const share = at.left === undefined ? undefined : done / Math.max(1, done + at.left)
  const full = Math.floor((share ?? 0) * BAR)
  const bar =
    share === undefined
      ? ''
      : `${'█'.repeat(full)}${'░'.repeat(BAR - full)} ${String(Math.floor(share * 100)).padStart(3)} %  `
  return bar + parts.join(', ')
}

/** Rounded up, because somebody waits for it. */
export const elapsedText = (seconds: number) => durationText(Math.max(1, Math.ceil(seconds)) * 1000)

/** The inputs of `dispatch` that say what it sends, and from where. */
export interface DispatchOptions {
  readonly limit?: number | undefined
  readonly drain?: true | undefined
  readonly url?: string | undefined
  readonly local?: true | undefined
  readonly data?: string | undefined
}

/** Where lessons are dispatched: here, or at an endpoint. */
export interface Source {
  /** One dispatch call; a remote one tells its progress only when it has ended. */
  readonly call: (onProgress: (progress: DispatchProgress) => void) => Promise<DispatchResult>
  readonly remaining?: () => Promise<number>
  /** What a call would send. */
  readonly due?: () => Promise<readonly Subscription[]>
  readonly close: () => Promise<void>
}
