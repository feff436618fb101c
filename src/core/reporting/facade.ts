import { swallowFaults } from '../is-record.ts'

/** Facts about what happened, chosen by the caller; scrubbed before they reach a reporter. */
export type ReportContext = Readonly<Record<string, unknown>>
export type ReportLevel = 'info' | 'warning' | 'error'

export type ReportedUser = { readonly id: string } | undefined

/** Input of a reporter: an error, a message, or the user for all that follows. */
export type ReporterInput =
  | { readonly kind: 'error'; readonly error: unknown; readonly context: ReportContext | undefined }
  | {
      readonly kind: 'message'
      readonly message: string
      readonly level: ReportLevel
      readonly context: ReportContext | undefined
    }
  | { readonly kind: 'user'; readonly user: ReportedUser }

/** Receives reports. What it throws or rejects with is swallowed: reporting never breaks the program. */
export interface Reporter {
  report(input: ReporterInput): void
}

let reporter: Reporter | undefined

/** @internal The reporter must scrub; `scrubbing` makes it do so. Undefined: every operation is a no-op again. */
export function setReporter(next: Reporter | undefined): void {
  reporter = next
}

/** @internal Why the tracker did not take the last report; undefined where it did. */
export const lastReport: { lost?: string | undefined } = {}

/** A broken reporter loses a report and nothing else. */
const send = (input: ReporterInput) => swallowFaults(() => reporter?.report(input))

/** Reports an error (CONTRACT §6). A no-op without a reporter; never throws. */
export function reportError(error: unknown, context?: ReportContext): void {
  send({ kind: 'error', error, context })
}

/** Reports a message. A no-op without a reporter; never throws. */
export function reportMessage(message: string, level: ReportLevel = 'info', context?: ReportContext): void {
  send({ kind: 'message', message, level, context })
}

/** Sets the user of the reports that follow, by an opaque id alone; undefined: no user. A no-op without a reporter. */
export function setUserContext(user: ReportedUser): void {
  send({ kind: 'user', user })
}

/** Wraps a function so that what it throws, or its promise rejects with, is also reported, and otherwise unchanged. */
export function withErrorReporting<This, Args extends unknown[], Result>(
  work: (this: This, ...args: Args) => Result,
  context?: ReportContext,
): (this: This, ...args: Args) => Result {
  return function (...args) {
    let result: Result
    try {
      result = work.apply(this, args)
    } catch (error) {
      reportError(error, context)
      throw error
    }
    // Report beside the caller's own promise, which still rejects.
    if (result instanceof Promise)
      Promise.prototype.then.call(result, undefined, (error) => reportError(error, context))
    return result
  }
}
