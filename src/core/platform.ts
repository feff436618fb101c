import type { AnalyticsEvent, EventDefinition } from './analytics/events.ts'
import type { CourseDefinition } from './course/definition.ts'
import type { Contract } from './env/contract.ts'
import type { ProbeDefinition } from './health/definition.ts'
import type { MailSet } from './mail/definition.ts'
import type { ServiceDefinition } from './service.ts'

/** Colors are CSS colors; `logo` is the file's content as a data URL. */
export interface Brand {
  readonly color: string
  readonly logo?: string
}

/** One column of an insights table: what is computed from the events of `kind` in a row. */
export interface InsightsColumn {
  readonly head: string
  readonly kind: string
  /** `count` counts them, `true` those whose property is true; `max` and `mean` take a number property. */
  readonly compute: 'count' | 'true' | 'max' | 'mean'
  readonly property?: string
}

/** A table of the insights page. With `by`, one row for each value of the first of these properties that is set; without, one row. */
export interface InsightsSection {
  readonly id: string
  readonly heading: string
  readonly caption: string
  readonly empty: string
  readonly by?: readonly string[]
  readonly rowHead: string
  readonly columns: readonly InsightsColumn[]
}

export interface Insights {
  readonly sections: readonly InsightsSection[]
  /** Shown to a browser that has recorded nothing. */
  readonly sample?: (now: number) => readonly AnalyticsEvent[]
}

/** Sentences on pages that only this platform can say. */
export interface PlatformTexts {
  /** Above the subscribe form: what the course is. HTML. */
  readonly invitation?: string
}

/** Which platform this is: checked, complete, and passed down as a value. Nothing in core knows one by name. */
export interface Platform {
  readonly name: string
  readonly brand: Brand | undefined
  /** A language tag, as `en` or `de`. */
  readonly language: string
  readonly contract: Contract
  /** In the order in which they are always shown; `web` serves the routes. */
  readonly services: readonly ServiceDefinition[]
  /** In the order of the health body: the engine's own and the platform's. */
  readonly probes: readonly ProbeDefinition[]
  readonly mails: MailSet
  readonly courses: readonly CourseDefinition[]
  readonly events: readonly EventDefinition[]
  readonly insights: Insights
  readonly texts: PlatformTexts
}
