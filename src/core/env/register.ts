import { type Finding, sentencesOf } from '../finding.ts'
import { type ServiceDefinition, WEB } from '../service.ts'
import type { Contract } from './contract.ts'
import { type Environment, readSettings } from './settings.ts'
import { type Report, validate } from './validate.ts'

/** Validates at boot: throws one Error that names every half-configured group, and emits the rest as warnings. */
export function registerEnvironment(
  platform: { readonly contract: Contract; readonly services: readonly ServiceDefinition[] },
  env: Environment,
  /** The function that a program called. */
  entry: (...given: never[]) => Report = registerEnvironment,
): Report {
  const report = validate(platform.contract, env)
  const sentences = (severity: Finding['severity']) =>
    report.findings
      .filter((finding) => finding.severity === severity)
      .map((finding) => `${finding.id}: ${sentencesOf(finding)}`)
  if (!report.ok) {
    const errors = sentences('error')
    const count = errors.length === 1 ? 'an error' : `${errors.length} errors`
    const error = new Error(`The environment has ${count}.\n  ${fitting(errors).join('\n  ')}`)
    // Node prints the line on which an uncaught error arose. This makes it the caller's, and not a bundle of 60 kB.
    Error.captureStackTrace(error, entry)
    AbortSignal.abort(error).throwIfAborted()
  }
  for (const sentence of sentences('warning')) process.emitWarning(sentence, 'EnvironmentWarning')
  // Only services beside web are called from other origins.
  const shared = platform.contract.find('CORS_ALLOWED_ORIGINS')?.services ?? []
  const called = platform.services.some(
    ({ name, port }) => port !== undefined && name !== WEB && shared.includes(name),
  )
  if (called && readSettings(platform, env).site.corsOrigins === undefined) {
    process.emitWarning(
      'CORS_ALLOWED_ORIGINS is not set: browsers may call the API from pages on localhost only',
      'RuntimeWarning',
    )
  }
  return report
}

/** As many sentences as fit beside a stack within 2 kB, then the ids of all others. */
function fitting(errors: readonly string[]): readonly string[] {
  const shown = errors.filter((_, at) => errors.slice(0, at).join('').length < MOST_CHARACTERS)
  const others = errors.slice(shown.length)
  if (others.length === 0) return errors
  const ids = new Set(others.map((error) => error.slice(0, error.indexOf(':'))))
  return [...shown, `and ${others.length} more (${[...ids].join(', ')}): platformctl preflight`]
}

const MOST_CHARACTERS = 1200
