import {
  breadcrumbsIntegration,
  browserTracingIntegration,
  captureException,
  captureMessage,
  dedupeIntegration,
  eventFiltersIntegration,
  functionToStringIntegration,
  globalHandlersIntegration,
  init,
  linkedErrorsIntegration,
  makeFetchTransport,
  setUser,
} from '@sentry/browser'
import { scrubbedTransport, sdkOptions, sdkReporter } from '../core/reporting/envelope.ts'
import type { Reporter } from '../core/reporting/facade.ts'
import { createScrub, scrubbing } from '../core/reporting/scrub.ts'

/** The SDK in the page; loaded only when there is a DSN. The only file of the browser part that names the package. */
export function openErrortrack(
  dsn: string,
  release: { readonly build?: string | undefined; readonly environment?: string | undefined },
  /** Of the page that asks: this file is a chunk, and would have a consent of its own. */
  isAllowed: () => boolean,
): Reporter {
  const scrub = createScrub()
  init({
    ...sdkOptions({ ...release, dsn }),
    replaysSessionSampleRate: 0,
    replaysOnErrorSampleRate: 0,
    // No trace headers: they would follow a visitor from service to service.
    tracePropagationTargets: [],
    defaultIntegrations: false,
    integrations: [
      eventFiltersIntegration(),
      functionToStringIntegration(),
      globalHandlersIntegration(),
      linkedErrorsIntegration(),
      dedupeIntegration(),
      breadcrumbsIntegration({ dom: false }),
      browserTracingIntegration(),
    ],
    transport: (options) => scrubbedTransport(makeFetchTransport(options), scrub, isAllowed),
  })
  return scrubbing(sdkReporter({ captureException, captureMessage, setUser }), scrub)
}
