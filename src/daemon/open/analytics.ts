import { createIngest, type Destination, dayOf, REFUSALS, type Refusal } from '../../core/analytics/store.ts'
import { once } from '../../core/calls.ts'
import type { Settings } from '../../core/env/settings.ts'
import { PlatformError } from '../../core/errors.ts'
import type { Host } from '../../core/host.ts'
import { openAnalyticsStore } from '../../core/store/open.ts'
import type { OpenOptions } from '../embedding.ts'

/** Opens the ingest of events; `analytics` is where it stores them, and undefined when it stores nothing. */
export function openAnalytics(
  { clock, log }: Host,
  { platform, onLost }: OpenOptions,
  { analytics: { table }, store: { address }, budgets, groups }: Settings,
  onRefused: (refusal: Refusal) => void,
) {
  const analytics =
    table === undefined || address === undefined
      ? undefined
      : once(() => openAnalyticsStore(address, { table, log, onLost }))
  const destination: Destination =
    analytics === undefined
      ? {
          store: undefined,
          reason:
            groups.get('analytics') === 'half-configured'
              ? 'a table is named, but the store is not persistent'
              : 'no table is named, so events are counted by nobody',
        }
      : {
          store: () =>
            analytics().catch((cause: unknown) => {
              const message = 'The store of analytics cannot be opened now.'
              throw new PlatformError('store_unavailable', message, { cause })
            }),
        }
  let told = ''
  const ingest = createIngest({
    events: platform.events,
    destination,
    budget: { totalBytes: budgets.analyticsTotalBytes, dailyBytes: budgets.analyticsDailyBytes },
    clock,
    onRefused(refusal) {
      onRefused(refusal)
      // Once a day for each cause: the flood that fills a budget must not fill the log.
      const today = `${refusal} ${dayOf(clock.now())}`
      if (told !== today) log.warn('analytics_refused', REFUSALS[refusal], { reason: refusal })
      told = today
    },
  })
  return { ingest, analytics }
}
