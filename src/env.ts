import { DIALECTS, type Dialect } from './core/env/dialects/dialect.ts'
import { readAs } from './core/env/dialects/read.ts'
import { parseEnvFile } from './core/env/reader.ts'
import type { Environment } from './core/env/settings.ts'
import { type Report, registerEnvironment, validate } from './core/env/validate.ts'
import type { Finding } from './core/finding.ts'
import { learningEnvironment } from './presets/learning/contract.ts'

export type { Dialect } from './core/env/dialects/dialect.ts'
export type { Environment, GroupState } from './core/env/settings.ts'
export type { Report } from './core/env/validate.ts'
export type { Finding, Location, Severity } from './core/finding.ts'
export type { Service } from './core/service.ts'

const { contract } = learningEnvironment

/** Validates what the web service reads (CONTRACT §2). */
export const validateWeb = (env: Environment): Report => validate(contract, env, ['web'])
/** Validates what the API reads. */
export const validateApi = (env: Environment): Report => validate(contract, env, ['api'])
/** Validates what the agent reads. */
export const validateAgent = (env: Environment): Report => validate(contract, env, ['agent'])
/** Validates for all services in one report. */
export const validateAll = (env: Environment): Report => validate(contract, env)

/**
 * For a web framework's instrumentation: validates the process's environment and throws one Error that names
 * every half-configured group, so that the server does not start. Warnings go to
 * `process.emitWarning`, and a RuntimeWarning while CORS is at its localhost default.
 */
export function register(env: Environment = process.env): Report {
  return registerEnvironment(learningEnvironment, env, register)
}

/**
 * Reads the text of an env file without executing or expanding anything; with a dialect, as that reader would.
 * `rejected` is true when that reader refuses the file.
 */
export function readEnv(
  text: string,
  options: { readonly dialect?: Dialect; readonly file?: string } = {},
): {
  readonly values: Map<string, string>
  readonly findings: readonly Finding[]
  readonly rejected: boolean
} {
  const { assignments, findings } = parseEnvFile(contract, text, options.file ?? '.env')
  if (options.dialect === undefined) {
    return { values: new Map(assignments.map(({ name, value }) => [name, value])), findings, rejected: false }
  }
  if (!DIALECTS.includes(options.dialect))
    throw new TypeError(`there is no such dialect; there are ${DIALECTS.join(', ')}`)
  const { values, rejected } = readAs(options.dialect, text)
  return { values: new Map(values), findings, rejected }
}
