import type { EventDefinition, EventKind, Properties } from '../core/analytics/events.ts'
import { createSanitiser, type Sanitise } from '../core/analytics/sanitise.ts'
import { attempt } from '../core/is-record.ts'
import { type ReporterInput, setReporter } from '../core/reporting/facade.ts'
import { type Buffer, deviceStorage, isAllowed, openBuffer, setOptOut } from './device.ts'
import type { createSender } from './sender.ts'

export interface StartOptions<Kind extends EventKind = EventKind> {
  /** The event kinds of the platform; those of the default one when left out. */
  readonly events?: readonly (EventDefinition & { readonly name: Kind })[]
  /** NEXT_PUBLIC_ANALYTICS_ENDPOINT. Without it events stay on the device. */
  readonly endpoint?: string | undefined
  /** NEXT_PUBLIC_ERRORTRACK_DSN. Without it the SDK is never loaded. */
  readonly dsn?: string | undefined
  /** The build stamp: the release that every report carries. */
  readonly build?: string | undefined
  readonly environment?: string | undefined
}

/** At most this many reports are kept while the SDK loads. */
const MOST_EARLY = 10

let buffer: Buffer | undefined
let sender: ReturnType<typeof createSender> | undefined
let started = false
/** Loads the SDK once that is allowed. */
let loadReporter = nothing
let sanitise: Sanitise

export type Track<Kind extends EventKind = EventKind> = (kind: Kind, properties?: Properties) => void

/** Sets the kinds that are recorded when `start` is given none. */
export function setEvents(events: readonly EventDefinition[]): void {
  sanitise = createSanitiser(events)
}

/** Sends buffered events to the endpoint, and errors to the DSN, if any. Call it once a page. Gives `track` for the kinds in `events`. */
export function start<const Kind extends EventKind>(
  options: StartOptions<Kind>,
): { readonly track: Track<Kind> } {
  // Here and below: counting and reporting must never break a page.
  attempt(() => {
    // As in every environment, a value of white space is none.
    const endpoint = options.endpoint?.trim()
    const dsn = options.dsn?.trim()
    if (options.events) setEvents(options.events)
    const storage = deviceStorage()
    if (storage === undefined || started) return
    started = true
    buffer ??= openBuffer(storage)
    if (endpoint) {
      const opened = buffer
      import('./sender.ts').then((chunk) => {
        sender = chunk.createSender(opened, storage, endpoint, isAllowed)
      }, nothing)
    }
    if (!dsn) return
    loadReporter = () => {
      if (!isAllowed()) return
      loadReporter = nothing
      const early: ReporterInput[] = []
      setReporter({ report: (report) => early.length < MOST_EARLY && early.push(report) })
      import('./errortrack.ts').then(
        (chunk) => {
          const reporter = chunk.openErrortrack(dsn, options, isAllowed)
          setReporter({ report: (report) => isAllowed() && reporter.report(report) })
          for (const report of early) reporter.report(report)
        },
        () => setReporter(undefined),
      )
    }
    loadReporter()
  })
  return { track }
}

/** Records an event on this device (CONTRACT §6). Never throws; does nothing after an objection. */
export function track(kind: EventKind, properties: Properties = {}): void {
  attempt(() => {
    const storage = deviceStorage()
    if (storage === undefined || !isAllowed()) return
    buffer ??= openBuffer(storage)
    const event = sanitise({ kind, at: Date.now(), properties }, nothing)
    if (event) buffer.add(event)
    sender?.soon()
  })
}

/** Stops analytics and error reporting at once, in all tabs; `false` allows them again. */
export function optOut(out = true): void {
  attempt(() => {
    setOptOut(out)
    if (out) sender?.stop()
    else loadReporter()
  })
}

function nothing(): void {}
