import { createIngest, type Destination, type Ingest } from '../../core/analytics/ingest.ts'
import { type AnalyticsStore, dayOf, REFUSALS } from '../../core/analytics/store.ts'
import type { Clock } from '../../core/clock.ts'
import type { Settings } from '../../core/env/settings.ts'
import { PlatformError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { type Once, once } from '../../core/once.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import type { OnLost } from '../../core/store/on-lost.ts'
import { openAnalyticsStore } from '../../core/store/open.ts'
import type { Metrics } from '../metrics/metrics.ts'

export interface Analytics {
  readonly ingest: Ingest
  /** Where ingest stores; undefined when it stores nothing. */
  readonly analytics: Once<AnalyticsStore> | undefined
}

/** Opens the ingest of events and its store. */
export function openAnalytics({
  platform,
  settings,
  metrics,
  clock,
  log,
  onLost,
}: {
  readonly platform: ResolvedPlatform
  readonly settings: Settings
  readonly metrics: () => Metrics
  readonly clock: Clock
  readonly log: Log
  readonly onLost: OnLost | undefined
}): Analytics {
  const { table } = settings.analytics
  const { address } = settings.store
  const analytics =
    table === undefined || address === undefined
      ? undefined
      : once(() => openAnalyticsStore(address, { table, log, onLost }))
  const { analyticsTotalBytes: totalBytes, analyticsDailyBytes: dailyBytes } = settings.budgets
  let toldRefusal = ''
  const ingest = createIngest({
    events: platform.events,
    destination: destinationOf(settings, analytics),
    budget: { totalBytes, dailyBytes },
    clock,
    onRefused(refusal) {
      metrics().analyticsRefused(refusal)
      // Once a day for each cause: the flood that fills a budget must not fill the log.
      const told = `${refusal} ${dayOf(clock.now())}`
      if (told !== toldRefusal) log.warn('analytics_refused', REFUSALS[refusal], { reason: refusal })
      toldRefusal = told
    },
  })
  return { ingest, analytics }
}

/** Where events go, or why they go nowhere; a store that cannot be opened now is a 503, and tried again. */
function destinationOf(
  settings: Settings,
  analytics: (() => Promise<AnalyticsStore>) | undefined,
): Destination {
  if (analytics !== undefined) {
    return {
      store: () =>
        analytics().catch((error: unknown) => {
          throw new PlatformError('store_unavailable', 'The store of analytics cannot be opened now.', {
            cause: error,
          })
        }),
    }
  }
  const reason =
    settings.groups.get('analytics') === 'half-configured'
      ? 'a table is named, but the store is not persistent'
      : 'no table is named, so events are counted by nobody'
  return { store: undefined, reason }
}
