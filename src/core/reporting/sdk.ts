import type { Reporter } from './facade.ts'

/** How often a trace is kept (CONTRACT §6). */
export function traceSampleRate(edge: boolean): number {
  return edge ? 0.02 : 0.1
}

/** Data that the SDK may collect by itself: nothing that identifies a user or a request's content. */
export const dataCollection = () => ({
  userInfo: false,
  cookies: false,
  httpHeaders: false,
  httpBodies: [] as [],
  urlQueryParams: false,
  graphQL: { document: false, variables: false },
  genAI: { inputs: false, outputs: false },
  mcp: { inputs: false, outputs: false },
  databaseQueryData: false,
  queues: false,
  stackFrameVariables: false,
  frameContextLines: 0,
})

/** The part of an SDK that the reporter calls; both SDKs have it. */
export interface ReportingSdk {
  captureException(error: unknown, hint?: { captureContext: { extra: Record<string, unknown> } }): unknown
  captureMessage(
    message: string,
    context?: { level: 'info' | 'warning' | 'error'; extra: Record<string, unknown> },
  ): unknown
  setUser(user: { id: string } | null): unknown
}

export function sdkReporter(sdk: ReportingSdk): Reporter {
  return {
    report(report) {
      if (report.kind === 'user') return void sdk.setUser(report.user ?? null)
      const extra = { ...report.context }
      if (report.kind === 'error') sdk.captureException(report.error, { captureContext: { extra } })
      else sdk.captureMessage(report.message, { level: report.level, extra })
    },
  }
}
