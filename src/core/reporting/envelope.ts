import { isRecord } from '../is-record.ts'
import type { Reporter } from './facade.ts'
import type { Scrub } from './scrub.ts'

/** An envelope as the SDKs hand it to their transport: its headers, and its items with a header each. */
export type Envelope = readonly [Headers, readonly (readonly [Headers, unknown])[]]
type Headers = Readonly<Record<string, unknown>>
type Fields = Record<string, unknown>

/** Replays, profiles, sessions, attachments, feedback and logs are dropped, even if other code asks for them. */
const SENT_TYPES: ReadonlySet<unknown> = new Set(['event', 'transaction'])

/** The last filter before the network: everything that the SDK sends passes here. Undefined: nothing is left. */
export function scrubEnvelope([headers, items]: Envelope, scrub: Scrub): Envelope | undefined {
  const kept = items.flatMap(([header, payload]) =>
    SENT_TYPES.has(header.type) && isRecord(payload) ? [[header, scrubPayload(payload, scrub)] as const] : [],
  )
  if (kept.length === 0) return undefined
  // Routing (DSN, ids, public key) stays as it is; names of transactions are texts like any other.
  const { trace } = headers
  if (!isRecord(trace) || typeof trace.transaction !== 'string') return [headers, kept]
  return [{ ...headers, trace: { ...trace, transaction: scrub.text(trace.transaction) } }, kept]
}

/** An SDK's transport behind that filter. */
export const scrubbedTransport = <Sent>(
  wire: { send(envelope: Sent): PromiseLike<object>; flush(ms?: number): PromiseLike<boolean> },
  scrub: Scrub,
  isAllowed = () => true,
) => ({
  async send(envelope: Sent) {
    // The SDK's own type is a union by kind of item; the gate reads it as what it is on the wire.
    const clean = isAllowed() ? scrubEnvelope(envelope as unknown as Envelope, scrub) : undefined
    return clean === undefined ? {} : wire.send(clean as unknown as Sent)
  },
  flush: (ms?: number) => wire.flush(ms),
})

function scrubPayload(payload: Fields, scrub: Scrub): Fields {
  const { user, extra, contexts, tags, breadcrumbs, spans, data, ...others } = payload
  const rest = without(others, ['request', 'server_name', 'modules', 'attachments'])
  // As JSON, so that what is undefined is not there.
  return {
    ...(deepTexts(rest, scrub) as Fields),
    user: isRecord(user) && typeof user.id === 'string' ? { id: scrub.text(user.id) } : undefined,
    extra: scrub.value(extra),
    tags: scrub.value(tags),
    data: scrub.value(data),
    contexts: isRecord(contexts) ? scrubContexts(contexts, scrub) : undefined,
    breadcrumbs: list(breadcrumbs)?.map((crumb) => withData(crumb, scrub)),
    spans: list(spans)?.map((span) => withData(span, scrub)),
  }
}

/** Scrubs contexts. The trace keeps its ids, which are needed, and not its data, which is free-form. */
function scrubContexts({ trace, runtime, os, browser, ...others }: Fields, scrub: Scrub): Fields {
  return {
    trace: withData(trace, scrub),
    runtime: deepTexts(runtime, scrub),
    os: deepTexts(os, scrub),
    browser: deepTexts(browser, scrub),
    // Details of the device are dropped, because they tell devices apart.
    ...(scrub.value(without(others, ['device', 'app', 'culture', 'cloud_resource'])) as Fields),
  }
}

function withData(value: unknown, scrub: Scrub): unknown {
  if (!isRecord(value)) return undefined
  const { data, ...rest } = value
  return { ...(deepTexts(rest, scrub) as Fields), data: scrub.value(data) }
}

/** Scrubs every text in a value and keeps its structure. Local variables of stack frames are dropped. */
function deepTexts(value: unknown, scrub: Scrub, depth = 0): unknown {
  if (typeof value === 'string') return scrub.text(value)
  if (depth > 12) return undefined
  if (Array.isArray(value)) return value.map((item) => deepTexts(item, scrub, depth + 1))
  if (!isRecord(value)) return value
  const kept = Object.entries(without(value, ['vars', 'sdkProcessingMetadata']))
  return Object.fromEntries(kept.map(([key, item]) => [key, deepTexts(item, scrub, depth + 1)]))
}

const without = (fields: Fields, names: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))

const list = (value: unknown): unknown[] | undefined => (Array.isArray(value) ? value : undefined)

/** What either SDK is opened with, besides what differs between a server and a page. */
export const sdkOptions = ({ dsn, build, environment, edge = false }: SdkOptions) => ({
  dsn,
  ...(build && { release: build }),
  ...(environment && { environment }),
  // How often a trace is kept (CONTRACT §6).
  tracesSampleRate: edge ? 0.02 : 0.1,
  // A transaction with its spans, which every server understands.
  traceLifecycle: 'static' as const,
  sendClientReports: false,
  // Nothing that identifies a user or a request's content.
  dataCollection: {
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
  },
})

interface SdkOptions {
  readonly dsn: string
  readonly build?: string | undefined
  readonly environment?: string | undefined
  readonly edge?: boolean | undefined
}

/** The part of an SDK that the reporter calls; both SDKs have it. */
interface ReportingSdk {
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
