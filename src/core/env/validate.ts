import { perObject } from '../calls.ts'
import { type Finding, type Location, SEVERITY_RANK, sentencesOf } from '../finding.ts'
import { splitList } from '../secret.ts'
import { type Service, type ServiceDefinition, WEB } from '../service.ts'
import type { Contract } from './contract.ts'
import { looksSecret } from './exposure.ts'
import { groupWarnings, type Surroundings } from './group-warnings.ts'
import { fileNameOf, secretBehind } from './secret-files.ts'
import { type Environment, evaluateGroups, type GroupState, rawValue, readSettings } from './settings.ts'
import { KEPT_CLOSED, valueFindings } from './warnings.ts'

/** The report of one validation: boot and preflight give the same one for the same environment. */
export interface Report {
  readonly version: 1
  readonly ok: boolean
  readonly services: readonly Service[]
  readonly groups: readonly {
    readonly name: string
    readonly state: GroupState
    readonly present: readonly string[]
    /** The feature that the group unlocks, or the consequence of its absence. */
    readonly meaning: string
  }[]
  readonly findings: readonly Finding[]
}

/** Where in a file a variable was set, so that findings can point there; undefined for one from elsewhere. */
export type Origin = (name: string) => { readonly location: Location; readonly excerpt: string } | undefined

/** Errors first, then warnings, then notices. */
export function bySeverity(findings: readonly Finding[]): Finding[] {
  return findings.toSorted((a, b) => SEVERITY_RANK[a.severity] - SEVERITY_RANK[b.severity])
}

/** The requested services that read one of these variables; all of them if none does. */
export function concerned(contract: Contract, names: readonly string[], services: readonly Service[]) {
  const readers = services.filter((service) =>
    names.some((name) => (contract.find(name) ?? secretBehind(contract, name))?.services.includes(service)),
  )
  return readers.length > 0 ? readers : services
}

/** Every finding about an environment, in one run (CONTRACT §2). Never throws; boot gives no `surroundings`. */
export function validate(
  contract: Contract,
  env: Environment,
  services: readonly Service[] = contract.services,
  origin: Origin = () => undefined,
  surroundings?: Surroundings,
): Report {
  const findings: Finding[] = []
  const isSet = (name: string) => rawValue(env, name) !== undefined
  const relevant = contract.variables.filter((variable) =>
    variable.services.some((service) => services.includes(service)),
  )
  const names = new Set(relevant.map((variable) => variable.name))
  /** Adds a finding, of the services that read one of these variables; of all that are asked about if none does. */
  const add = (finding: Omit<Finding, 'services'> & Partial<Finding>, about = finding.present) => {
    findings.push({
      services: concerned(contract, about, services),
      ...finding,
      ...finding.present.map(origin).find((place) => place !== undefined),
    })
  }

  const { broken, states, usable, malformed } = evaluateGroups(contract, env)
  const isRefused = (name: string) => malformed.has(name) && contract.find(name)?.malformed === 'error'
  for (const { rule, present, missing } of broken) {
    // Skip services that read none of the variables that are set; what is required may have none that is set.
    const about = rule.kind === 'required' ? missing : present
    if (!about.some((name) => names.has(name))) continue
    // Saying that something required is not set, although it is malformed, would say it twice.
    if (rule.kind === 'required' && missing.some((name) => names.has(name) && isRefused(name))) continue
    const { id, group, cause, fix } = rule
    add({ id, severity: 'error', group, cause, fix, present, missing }, about)
  }
  const refused = broken.flatMap(({ rule }) => (rule.kind === 'forbidden-value' ? [rule.variable] : []))
  const isProduction = usable.get('DEPLOY_ENVIRONMENT')?.text === 'production'
  for (const variable of relevant) {
    const { name, group } = variable
    const value = rawValue(env, name)
    if (value === undefined) continue
    // Saying that a forbidden value is also malformed would say it twice.
    const expected = refused.includes(name) ? undefined : malformed.get(name)
    for (const finding of valueFindings(variable, value, isProduction, expected))
      add({ group, present: [name], missing: [], ...finding })
  }
  // Browsers get them from web, whichever service reads the secret itself.
  for (const secret of services.includes(WEB) ? publicSecrets(contract, env) : [])
    add({ severity: 'warning', group: 'site', services: [WEB], missing: [], ...secret })
  for (const name of Object.keys(env)) {
    if (!isSet(name) || contract.find(name) || secretBehind(contract, name)) continue
    const near = nearestName(contract, name) ?? ''
    const meant = contract.find(near) ?? secretBehind(contract, near)
    if (meant === undefined || !names.has(meant.name)) continue
    const both = isSet(meant.name)
    const cause = `${name} is not a variable of the platform, and nothing reads it.`
    const fix = `Did you mean ${both ? `${meant.name}, which is set as well? Then remove this one.` : `${near}?`}`
    const about = { group: meant.group, present: [name], missing: both ? [] : [near] }
    add({ id: 'unknown-name', severity: 'warning', ...about, cause, fix }, [meant.name])
  }

  const groups = contract.groups.flatMap(({ name, unlocks, absent, variables }) => {
    const read = variables.filter((variable) => names.has(variable.name)).map((variable) => variable.name)
    if (read.length === 0) return []
    const state = states.get(name) ?? 'absent'
    const present = read.filter(isSet)
    const [closed] = present.flatMap((one) => (usable.has(one) ? [] : (KEPT_CLOSED.get(one) ?? [])))
    const meaning = state === 'configured' ? unlocks : (closed ?? absent)
    if (state === 'absent') {
      const cause = `The group ${name} is not configured: ${meaning}.`
      const missing = read.filter((one) => !isSet(one))
      const fix = `Nothing to do, unless you want ${unlocks}.`
      add({ id: 'group-absent', severity: 'notice', group: name, present: [], missing, cause, fix }, read)
    }
    return [{ name, state, present, meaning }]
  })
  const stateOf = (group: string) => groups.find(({ name }) => name === group)?.state
  for (const { about, ...warning } of groupWarnings(
    usable,
    stateOf,
    states.get('mail') === 'configured',
    surroundings,
  )) {
    const present = about.filter((name) => usable.has(name))
    const missing = about.filter((name) => !usable.has(name))
    add({ severity: 'warning', ...warning, present, missing }, about)
  }
  const sorted = bySeverity(findings)
  return { version: 1, ok: sorted[0]?.severity !== 'error', services, groups, findings: sorted }
}

/** Secrets under a public name that is not one of ours, or under both a public and a secret name. */
function publicSecrets(contract: Contract, env: Environment) {
  const secrets = new Map(
    contract.variables.flatMap(({ name, secret, rotates }) => {
      const value = (secret ? rawValue(env, name) : undefined) ?? ''
      return (rotates ? splitList(value) : [value]).flatMap((one) => (one === '' ? [] : [[one, name]]))
    }),
  )
  return Object.keys(env).flatMap((name) => {
    const value = name.startsWith('NEXT_PUBLIC_') ? rawValue(env, name) : undefined
    if (value === undefined) return []
    const twin = secrets.get(value)
    const known = contract.find(name) !== undefined
    const namesake = contract.find(name.slice('NEXT_PUBLIC_'.length))?.secret === true
    if (twin === undefined && (known || !(namesake || looksSecret(value)))) return []
    const what = twin === undefined ? 'a secret' : `the same value as ${twin}`
    const cause = `${name} holds ${what}, and every browser can read it.`
    const fix = 'Revoke that key at the provider, and keep its successor out of every NEXT_PUBLIC_ variable.'
    return [{ id: 'public-secret', present: twin === undefined ? [name] : [name, twin], cause, fix }]
  })
}

/** Names that CI systems, shells and frameworks set: one edit away from a name of ours, and no misspelling of it. */
const NOT_OURS = new Set(['APP_URL', 'APT_URL', 'APIS_URL', 'STORE_URI', 'LOG_LEVELS'])

/** The known name that this most likely misspells: one edit or swap away, or the same but for case and separators. */
export function nearestName(contract: Contract, name: string): string | undefined {
  if (NOT_OURS.has(name) || name.length < 5) return undefined
  const known = knownNames(contract)
  const folded = fold(name)
  const same = known.find(([one]) => one === folded) ?? known.find(([, one]) => withinOneEdit(name, one))
  return same?.[1]
}

/** The variables, then the files of secrets. Made when first asked for: most environments hold no name that is not known. */
const knownNames = perObject(({ variables }: Contract) => {
  const files = variables.flatMap(({ name, secret }) => (secret ? [fileNameOf(name)] : []))
  return [...variables.map(({ name }) => name), ...files].map((name) => [fold(name), name] as const)
})

const fold = (name: string) => name.toUpperCase().replace(/[^A-Z0-9]/g, '')

/** Damerau-Levenshtein distance ≤ 1, in one pass: strip what both share at the ends and look at the rest. */
function withinOneEdit(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 1) return false
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1
  let end = 0
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end += 1
  const [restA, restB] = [a.slice(start, a.length - end), b.slice(start, b.length - end)]
  if (restA.length <= 1 && restB.length <= 1) return true
  return restA.length === 2 && restB.length === 2 && restA[0] === restB[1] && restA[1] === restB[0]
}

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
