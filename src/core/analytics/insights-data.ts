import type { Messages } from '../messages/en.ts'
import type { AnalyticsEvent, EventDefinition } from './events.ts'
import type { InsightsDefinition, InsightsSection } from './insights-definition.ts'

/** JSON that the insights page carries for its script. */
export interface InsightsData {
  readonly events: readonly EventDefinition[]
  readonly sections: readonly InsightsSection[]
  /** Sample events. `at` counts from the moment at which the page is viewed, so it is negative. */
  readonly sample: readonly AnalyticsEvent[]
}

/** The same, with the texts of the script. */
export interface InsightsPageData extends InsightsData {
  readonly texts: Messages['insights']['script']
  /** The language of the texts, in which numbers and dates are written too. */
  readonly language: string
}

export function insightsData(input: {
  readonly events: readonly EventDefinition[]
  readonly insights: InsightsDefinition
}): InsightsData {
  const {
    events,
    insights: { sections, sample },
  } = input

  return { events, sections, sample: sample?.(0) ?? [] }
}
