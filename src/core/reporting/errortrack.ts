import { codeOf } from '../errors.ts'
import { scrubbedTransport, sdkOptions, sdkReporter } from './envelope.ts'
import { lastReport, setReporter } from './facade.ts'
import { createScrub, scrubbing } from './scrub.ts'

export interface ReportingOptions {
  /** Without a DSN, nothing is loaded and every operation is a no-op. */
  readonly dsn: string | undefined
  /** The build stamp: the release that every report carries. */
  readonly build?: string | undefined
  /** `production`, `staging` … */
  readonly environment?: string | undefined
  /** On the edge, 2% of traces are kept instead of 10%. */
  readonly edge?: boolean
  /** Values that must never be sent, in any field. */
  readonly secrets?: readonly string[]
  /** Called once when reports are not taken (`HTTP 403`). */
  readonly onLost?: (fault: string) => void
}

/** `missing`: the SDK is not installed; `refused`: it does not take the DSN. Then nothing is reported. */
export type ReportingOutcome = 'off' | 'on' | 'missing' | 'refused'

export interface Reporting {
  readonly outcome: ReportingOutcome
  /** Waits at most this long until the reports are sent, then accepts no more. */
  close(withinMs: number): Promise<void>
}

const NOTHING = { close: async () => {} }

/** Loads the SDK and registers it as the reporter, if there is a DSN. The only file that names the package. */
export async function openErrortrack(options: ReportingOptions): Promise<Reporting> {
  const dsn = options.dsn?.trim()
  if (!dsn) return { outcome: 'off', ...NOTHING }
  const sdk = await import('@sentry/node').catch((error: unknown) => {
    if (codeOf(error) === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  })
  if (sdk === undefined) return { outcome: 'missing', ...NOTHING }
  const scrub = createScrub(options)
  const client = sdk.initWithoutDefaultIntegrations({
    ...sdkOptions({ ...options, dsn }),
    // Module hooks slow every later import; what Node itself reports is enough.
    enableRuntimeChannelInjection: false,
    integrations: [
      sdk.eventFiltersIntegration(),
      sdk.linkedErrorsIntegration(),
      sdk.dedupeIntegration(),
      sdk.httpIntegration({ tracePropagation: false }),
    ],
    transport: (wireOptions) => {
      const wire = sdk.makeNodeTransport(wireOptions)
      return scrubbedTransport({ ...wire, send: noting(wire.send, options.onLost) }, scrub)
    },
  })
  if (client?.getDsn() === undefined) return { outcome: 'refused', ...NOTHING }
  setReporter(scrubbing(sdkReporter(sdk), scrub))
  lastReport.lost = undefined
  return {
    outcome: 'on',
    async close(withinMs) {
      setReporter(undefined)
      await sdk.close(withinMs)
    },
  }
}

/** Sends, and notes what became of it. An answer without a status: the SDK held the report back, as it was asked to. */
function noting<Sent, Answer extends { readonly statusCode?: number }>(
  send: (envelope: Sent) => PromiseLike<Answer>,
  onLost?: (fault: string) => void,
) {
  const note = (fault: string | undefined) => {
    if (fault !== undefined && lastReport.lost === undefined) onLost?.(fault)
    lastReport.lost = fault
  }
  return async (envelope: Sent) => {
    const answer = await Promise.resolve(send(envelope)).catch((error: unknown) => {
      note(codeOf(error) || 'unreachable')
      throw error
    })
    const { statusCode } = answer
    if (statusCode !== undefined) note(statusCode < 300 ? undefined : `HTTP ${statusCode}`)
    return answer
  }
}
