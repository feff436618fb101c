import { openErrortrack, type ReportingOptions, type ReportingOutcome } from './core/reporting/errortrack.ts'
import { type Reporter, setReporter } from './core/reporting/facade.ts'
import { createScrub, scrubbing } from './core/reporting/scrub.ts'

export type { Reporting, ReportingOptions, ReportingOutcome } from './core/reporting/errortrack.ts'
export {
  type ReportContext,
  type ReportedUser,
  type Reporter,
  type ReporterInput,
  type ReportLevel,
  reportError,
  reportMessage,
  setUserContext,
  withErrorReporting,
} from './core/reporting/facade.ts'

/** Starts error reporting, if there is a DSN: only then `@sentry/node`, which your program installs, is loaded. Never rejects. */
export async function startReporting(
  options: ReportingOptions,
): Promise<{ readonly outcome: ReportingOutcome; close(withinMs?: number): Promise<void> }> {
  const { outcome, close } = await openErrortrack(options)
  if (outcome === 'missing')
    process.emitWarning(
      'a DSN is set, but @sentry/node is not installed: no error is reported',
      'RuntimeWarning',
    )
  if (outcome === 'refused')
    process.emitWarning('the DSN is not one, so no error is reported', 'RuntimeWarning')
  return { outcome, close: (withinMs = 1000) => close(withinMs) }
}

/** Registers a reporter of your own; it is given scrubbed contexts and messages. Undefined: none again. */
export function registerReporter(reporter: Reporter | undefined): void {
  setReporter(reporter && scrubbing(reporter, createScrub()))
}
