export type EventKind = string

/** A kind that may be counted. One that lists properties keeps those, in their types, and drops all others. */
export interface EventDefinition {
  readonly name: string
  /** For the insights page; the name when left out. */
  readonly label?: string
  readonly properties?: Readonly<Record<string, 'string' | 'number' | 'boolean'>>
}

export type PropertyValue = string | number | boolean
export type Properties = Readonly<Record<string, PropertyValue>>

/** `at` is in UTC milliseconds, by the clock of the device. */
export interface AnalyticsEvent {
  readonly kind: EventKind
  readonly at: number
  /** Inherits nothing, so that no key can mean anything but itself. */
  readonly properties: Properties
}

export const MOST_EVENTS = 500
/** An event keeps its first properties up to this number. */
export const MOST_PROPERTIES = 20
/** Strings are cut to this many characters (code points). */
export const LONGEST_STRING = 64
/** A property with a longer name is left out. In UTF-16 units. */
export const LONGEST_KEY = 64

/** The key in local storage that turns off analytics and error reporting, with any value but `0` and `false`. */
export const OPT_OUT_KEY = 'platform.optOut'
