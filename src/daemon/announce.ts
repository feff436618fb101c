import { readSettings } from '../core/env/read-settings.ts'
import type { Environment, Settings } from '../core/env/settings.ts'
import { validate } from '../core/env/validate.ts'
import type { Finding } from '../core/finding.ts'
import type { Log } from '../core/log.ts'
import type { Service } from '../core/service.ts'

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
export function announceEnvironment({
  env,
  services,
  log,
}: {
  readonly env: Environment
  readonly services: readonly Service[]
  readonly log: Log
}): Settings {
  const report = validate(env, services)
  if (!report.ok)
    throw new InvalidEnvironmentError(report.findings.filter(({ severity }) => severity === 'error'))
  for (const finding of report.findings) {
    if (finding.severity === 'warning')
      log.warn('environment_warning', finding.cause, { id: finding.id, fix: finding.fix })
  }
  for (const group of report.groups) {
    if (group.state === 'absent')
      log.info('group_absent', `not configured: ${group.name}`, { group: group.name, means: group.meaning })
  }

  const settings = readSettings(env)
  const { site, sharedStore } = settings
  if (services.includes('api') && site.corsOrigins === undefined) {
    log.warn(
      'cors_at_localhost',
      'CORS_ALLOWED_ORIGINS is not set: browsers may call the API from pages on localhost only',
      { warning: 'RuntimeWarning' },
    )
  }
  // The agent does not read it.
  if (sharedStore === undefined && services.some((service) => service !== 'agent'))
    log.warn('limiter_in_process', 'SHAREDSTORE_REST_URL is not set: rate limits count in this process only')
  return settings
}
