/** What may be counted, and nothing else (CONTRACT §6). One row adds a kind. */
export const EVENT_KINDS = [
  'lesson.viewed',
  'circuit.run',
  'tutor.asked',
  'exam.completed',
  'lesson.completed',
  'exam.started',
  'circuit.saved',
  'circuit.shared',
  'tutor.rated',
  'device.selected',
  'search.performed',
  'page.viewed',
  'pricing.viewed',
  'checkout.started',
  'course.subscribed',
] as const

export type EventKind = (typeof EVENT_KINDS)[number]

export type PropertyValue = string | number | boolean
export type Properties = Readonly<Record<string, PropertyValue>>

/** `at` is in UTC milliseconds, by the clock of the device. */
export interface AnalyticsEvent {
  readonly kind: EventKind
  readonly at: number
  /** Inherits nothing, so that no key can mean anything but itself. */
  readonly properties: Properties
}

/** A batch holds at most so many events. */
export const MOST_EVENTS = 500
/** An event keeps its first properties up to this number. */
export const MOST_PROPERTIES = 20
/** Strings are cut to so many characters (code points). */
export const LONGEST_STRING = 64
/** A longer name of a property is no name. In UTF-16 units. */
export const LONGEST_KEY = 64

/** In local storage, with any value but `0` and `false`: analytics and error reporting are off. */
export const OPT_OUT_KEY = 'platform.optOut'
