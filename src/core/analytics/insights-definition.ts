import type { Messages } from '../messages/en.ts'
import type { AnalyticsEvent, EventDefinition } from './events.ts'

/** One column of an insights table: what is computed from the events of `kind` in a row. */
export interface InsightsColumn {
  readonly head: string
  readonly kind: string
  /** `count` counts the events (with `property`, those where it is a number), `true` those where it is true; `max` and `mean` take a number. */
  readonly compute: 'count' | 'true' | 'max' | 'mean'
  readonly property?: string
}

/**
 * A table of the insights page. With `by`, it has one row for each value of the first of these properties that is set;
 * without, one row for each column.
 */
export interface InsightsSection {
  readonly id: string
  readonly heading: string
  readonly caption: string
  readonly empty: string
  readonly by?: readonly string[]
  readonly rowHead: string
  readonly columns: readonly InsightsColumn[]
  /** Orders rows by name, or puts those with the most in the first column first. Default: by name. */
  readonly order?: 'name' | 'most'
  /** Draws the first column as bars too. */
  readonly bars?: boolean
  /** A number at the top of the page: how many rows have something in the column with this head. */
  readonly tile?: { readonly label: string; readonly column: string }
}

/** The parts of the insights page that a platform adds to days and kinds. */
export interface InsightsDefinition {
  readonly sections: readonly InsightsSection[]
  /** Events shown to a browser that has recorded nothing, as if it were `now`. */
  readonly sample?: (now: number) => readonly AnalyticsEvent[]
}

/** JSON that the insights page carries for its script. */
export interface InsightsPageData {
  readonly events: readonly EventDefinition[]
  readonly sections: readonly InsightsSection[]
  /** Sample events. `at` counts from the moment at which the page is viewed, so it is negative. */
  readonly sample: readonly AnalyticsEvent[]
  readonly texts: Messages['insights']['script']
  /** The language of the texts, in which numbers and dates are written too. */
  readonly language: string
}
