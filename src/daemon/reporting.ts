import { ERRORTRACK_SDK } from '../core/env/group-warnings.ts'
import { readSettings } from '../core/env/settings.ts'
import { openErrortrack } from '../core/reporting/errortrack.ts'
import type { DaemonOptions } from './options.ts'

/** Error reporting of a process of our own: what is in its way is a line in the log and no reason not to start. */
export async function openReporting({ platform, env, log }: Pick<DaemonOptions, 'platform' | 'env' | 'log'>) {
  const { errortrack, site, secretValues } = readSettings(platform, env)
  const reporting = await openErrortrack({
    dsn: errortrack?.dsn,
    build: site.buildStamp,
    environment: site.environment,
    secrets: secretValues,
    onLost: (fault) =>
      log.warn('reports_lost', `the error tracker does not take reports: ${fault}`, {
        fix: 'platformctl preflight --deep looks at NEXT_PUBLIC_ERRORTRACK_DSN',
      }),
  })
  if (reporting.outcome === 'missing')
    log.warn(
      'errortrack_missing',
      `NEXT_PUBLIC_ERRORTRACK_DSN is set, but ${ERRORTRACK_SDK} is not installed: no error is reported`,
      { fix: `npm install ${ERRORTRACK_SDK}` },
    )
  if (reporting.outcome === 'refused')
    log.warn(
      'errortrack_refused',
      'NEXT_PUBLIC_ERRORTRACK_DSN is no DSN (https://KEY@HOST/PROJECT): no error is reported',
    )
  return reporting
}
