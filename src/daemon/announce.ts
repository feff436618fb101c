import { readSettings } from '../core/env/settings.ts'
import { validate } from '../core/env/validate.ts'
import type { Finding } from '../core/finding.ts'
import { WEB } from '../core/service.ts'
import type { DaemonOptions } from './options.ts'

/** The environment is half-configured: nothing listens. */
export class InvalidEnvironmentError extends Error {
  override readonly name = 'InvalidEnvironmentError'
  readonly findings: readonly Finding[]

  constructor(findings: readonly Finding[]) {
    super('the environment is half-configured')
    this.findings = findings
  }
}

/** Validates the environment before anything is opened, and logs what is degraded or absent (CONTRACT §1); throws when it is half-configured. */
export function announceEnvironment(options: Pick<DaemonOptions, 'platform' | 'env' | 'services' | 'log'>) {
  const { platform, env, services, log } = options
  const report = validate(platform.contract, env, services)
  if (!report.ok)
    throw new InvalidEnvironmentError(report.findings.filter(({ severity }) => severity === 'error'))
  for (const { severity, id, cause, fix } of report.findings)
    if (severity === 'warning') log.warn('environment_warning', cause, { id, fix })
  for (const { name: group, state, meaning: means } of report.groups)
    if (state === 'absent') log.info('group_absent', `not configured: ${group}`, { group, means })

  const settings = readSettings(platform, env)
  const readersOf = (name: string) => platform.contract.find(name)?.services ?? []
  // Once, by the first service that browsers call from pages of another.
  const called = readersOf('CORS_ALLOWED_ORIGINS').find((service) => service !== WEB)
  if (settings.site.corsOrigins === undefined && called !== undefined && services.includes(called))
    log.warn(
      'cors_at_localhost',
      'CORS_ALLOWED_ORIGINS is not set: browsers may call the API from pages on localhost only',
      { warning: 'RuntimeWarning' },
    )
  const isLimiting = readersOf('SHAREDSTORE_REST_URL').some((service) => services.includes(service))
  if (settings.sharedStore === undefined && isLimiting)
    log.warn('limiter_in_process', 'SHAREDSTORE_REST_URL is not set: rate limits count in this process only')
  return settings
}
