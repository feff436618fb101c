/** Exports of `platformctl/browser`: the browser part, with the event kinds of the default platform. */
import { setEvents, type Track, track as trackAny } from './browser/browser.ts'
import { type LearningEvent, learningEvents } from './presets/learning/events.ts'

setEvents(learningEvents)

/** Records an event of the default platform on this device. Another platform takes `track` from what `start` gives. */
export const track: Track<LearningEvent> = trackAny

export { optOut, type StartOptions, start, type Track } from './browser/browser.ts'
export type { EventDefinition, EventKind, Properties, PropertyValue } from './core/analytics/events.ts'
export {
  type ReportContext,
  type ReportedUser,
  type ReportLevel,
  reportError,
  reportMessage,
  setUserContext,
  withErrorReporting,
} from './core/reporting/facade.ts'
