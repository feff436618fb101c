import type { Finding, Location } from '../finding.ts'
import { splitSecrets } from '../secret.ts'
import type { Service } from '../service.ts'
import type { Contract } from './contract.ts'
import type { Environment, GroupState } from './environment.ts'
import { evaluateGroups, rawValue } from './environment.ts'
import { fileNameOf, secretBehind } from './secret-files.ts'
import { keptClosed, looksSecret, valueFindings } from './warnings.ts'

/** Names that CI systems, shells and frameworks set: one edit away from a name of ours, and no misspelling of it. */
const NOT_OURS = new Set(['APP_URL', 'APT_URL', 'APIS_URL', 'STORE_URI', 'LOG_LEVELS'])

/**
 * The known name that `name` is most likely a misspelling of: one edit away (insertion, deletion, substitution,
 * transposition), or the same but for case and separators. Undefined when there is none.
 */
export function nearestName(contract: Contract, name: string): string | undefined {
  if (NOT_OURS.has(name) || name.length < 5) return undefined
  const { names, byFold } = knownNames(contract)
  return byFold.get(fold(name)) ?? names.find((known) => withinOneEdit(name, known))
}

interface KnownNames {
  /** The variables, then the files of secrets. */
  readonly names: readonly string[]
  readonly byFold: ReadonlyMap<string, string>
}

/** Made when first asked for: most environments hold no name that is not known. */
const made = new WeakMap<Contract, KnownNames>()

function knownNames(contract: Contract): KnownNames {
  const known = made.get(contract)
  if (known) return known
  const variables = contract.variables.map(({ name }) => name)
  const files = contract.variables.flatMap(({ name, secret }) => (secret ? [fileNameOf(name)] : []))
  const names = [...variables, ...files]
  const fresh = {
    names,
    // A variable goes before the file of another.
    byFold: new Map([...files, ...variables].map((name) => [fold(name), name])),
  }
  made.set(contract, fresh)
  return fresh
}

function fold(name: string): string {
  return name.toUpperCase().replace(/[^A-Z0-9]/g, '')
}

/** Damerau-Levenshtein distance ≤ 1, in one pass: strip what both share at the ends and look at the rest. */
function withinOneEdit(a: string, b: string): boolean {
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1
  let [endA, endB] = [a.length, b.length]
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
    endA -= 1
    endB -= 1
  }
  const [restA, restB] = [a.slice(start, endA), b.slice(start, endB)]
  if (restA.length <= 1 && restB.length <= 1) return true
  return restA.length === 2 && restB.length === 2 && restA[0] === restB[1] && restA[1] === restB[0]
}

/** The report of one validation: boot and preflight give the same one for the same environment. */
export interface Report {
  readonly version: 1
  /** No finding is an error. */
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

/**
 * Validates an environment for the given services (CONTRACT §2): every finding in one run, errors first.
 * Never throws and never looks at anything but `env`.
 */
export function validate(
  contract: Contract,
  env: Environment,
  services: readonly Service[] = contract.services,
  origin: Origin = () => undefined,
): Report {
  const findings: Finding[] = []
  const placeOf = (present: readonly string[]) => present.map(origin).find((place) => place !== undefined)
  const relevant = contract.variables.filter((variable) =>
    variable.services.some((service) => services.includes(service)),
  )
  const names = new Set(relevant.map((variable) => variable.name))
  const add = (finding: Omit<Finding, 'services'>, about: readonly string[]) => {
    const concerned = services.filter((service) =>
      about.some((name) => contract.find(name)?.services.includes(service)),
    )
    findings.push({
      ...finding,
      services: concerned.length > 0 ? concerned : services,
      ...placeOf(finding.present),
    })
  }

  const { broken, states, usable, malformed } = evaluateGroups(contract, env)
  for (const { rule, present, missing } of broken) {
    // Skip services that read none of the variables that are set; what is required may have none that is set.
    const about = rule.kind === 'required' ? missing : present
    if (!about.some((name) => names.has(name))) continue
    const { id, group, cause, fix } = rule
    add({ id, severity: 'error', group, cause, fix, present, missing }, about)
  }
  const environment = usable.get('DEPLOY_ENVIRONMENT')?.text
  const refused = new Set(
    broken.flatMap(({ rule }) => (rule.kind === 'forbidden-value' ? [rule.variable] : [])),
  )
  for (const variable of relevant) {
    const value = rawValue(env, variable.name)
    if (value === undefined) continue
    for (const finding of valueFindings({
      variable,
      value,
      environment,
      // Saying that a forbidden value is also malformed would say it twice.
      expected: refused.has(variable.name) ? undefined : malformed.get(variable.name),
    })) {
      add({ group: variable.group, present: [variable.name], missing: [], ...finding }, [variable.name])
    }
  }
  const verifier = ['DATASTORE_JWT_SECRET', 'DATASTORE_JWKS_URL'].filter((name) => usable.has(name))
  const unchecked = ['DATASTORE_JWT_AUDIENCE', 'DATASTORE_JWT_ISSUER'].filter((name) => !usable.has(name))
  if (
    contract.group('identity') !== undefined &&
    verifier.length > 0 &&
    unchecked.length > 0 &&
    services.includes('web')
  )
    add(
      {
        id: 'token-claims-unchecked',
        severity: 'warning',
        group: 'identity',
        present: verifier,
        missing: unchecked,
        cause: `Tokens are accepted whatever ${unchecked.length === 2 ? 'audience and issuer' : unchecked[0] === 'DATASTORE_JWT_AUDIENCE' ? 'audience' : 'issuer'} they name.`,
        fix: `Set ${unchecked.join(' and ')} as your data store writes them.`,
      },
      verifier,
    )
  for (const secret of services.includes('web') ? publicSecrets(contract, env) : []) {
    // Browsers get it from web, whichever service reads the secret itself.
    findings.push({
      severity: 'warning',
      group: 'site',
      missing: [],
      services: ['web'],
      ...secret,
      ...placeOf(secret.present),
    })
  }
  for (const name of Object.keys(env)) {
    if (rawValue(env, name) === undefined || contract.find(name) || secretBehind(contract, name)) continue
    const near = nearestName(contract, name)
    const meant = near === undefined ? undefined : (contract.find(near) ?? secretBehind(contract, near))
    if (near === undefined || meant === undefined || !names.has(meant.name)) continue
    const both = rawValue(env, meant.name) !== undefined
    add(
      {
        id: 'unknown-name',
        severity: 'warning',
        group: meant.group,
        present: [name],
        missing: both ? [] : [near],
        cause: `${name} is not a variable of the platform, and nothing reads it.`,
        fix: both
          ? `Did you mean ${meant.name}, which is set as well? Then remove this one.`
          : `Did you mean ${near}?`,
      },
      [meant.name],
    )
  }

  const groups = contract.groups
    .filter((group) => relevant.some((variable) => variable.group === group.name))
    .map(({ name, unlocks, absent }) => {
      const state = states.get(name) ?? 'absent'
      const present = relevant
        .filter((variable) => variable.group === name && rawValue(env, variable.name) !== undefined)
        .map((variable) => variable.name)
      const [closed] = present.flatMap((one) => (usable.has(one) ? [] : (keptClosed(one) ?? [])))
      return { name, state, present, meaning: state === 'configured' ? unlocks : (closed ?? absent) }
    })
  for (const group of groups.filter(({ state }) => state === 'absent')) {
    const missing = relevant
      .filter(({ name, group: of }) => of === group.name && rawValue(env, name) === undefined)
      .map((variable) => variable.name)
    add(
      {
        id: 'group-absent',
        severity: 'notice',
        group: group.name,
        present: [],
        missing,
        cause: `The group ${group.name} is not configured: ${group.meaning}.`,
        fix: `Nothing to do, unless you want ${contract.group(group.name)?.unlocks}.`,
      },
      missing,
    )
  }

  findings.sort((a, b) => RANK[a.severity] - RANK[b.severity])
  return { version: 1, ok: findings[0]?.severity !== 'error', services, groups, findings }
}

/** Secrets under a public name that is not one of ours, or under both a public and a secret name. */
function publicSecrets(
  contract: Contract,
  env: Environment,
): Pick<Finding, 'id' | 'present' | 'cause' | 'fix'>[] {
  const secrets = new Map(
    contract.variables.flatMap(({ name, secret, rotates }) => {
      const value = (secret ? rawValue(env, name) : undefined) ?? ''
      return (rotates ? splitSecrets(value) : [value]).flatMap((one) => (one === '' ? [] : [[one, name]]))
    }),
  )
  return Object.keys(env).flatMap((name) => {
    const value = name.startsWith('NEXT_PUBLIC_') ? rawValue(env, name) : undefined
    if (value === undefined) return []
    const twin = secrets.get(value)
    const known = contract.find(name) !== undefined
    const namesake = contract.find(name.slice('NEXT_PUBLIC_'.length))?.secret === true
    if (twin === undefined && (known || !(namesake || looksSecret(value)))) return []
    return [
      {
        id: 'public-secret',
        present: twin === undefined ? [name] : [name, twin],
        cause:
          twin === undefined
            ? `${name} holds a secret, and every browser can read it.`
            : `${name} holds the same value as ${twin}, and every browser can read it.`,
        fix: 'Revoke that key at the provider, and keep its successor out of every NEXT_PUBLIC_ variable.',
      },
    ]
  })
}

const RANK = { error: 0, warning: 1, notice: 2 } as const
