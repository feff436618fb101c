import { perObject } from '../core/calls.ts'
import type { Contract, Group } from '../core/env/contract.ts'
import { type Environment, evaluateGroups } from '../core/env/settings.ts'
import { type Report, registerEnvironment, validate } from '../core/env/validate.ts'
import { secret } from '../core/secret.ts'
import type { PlatformEnvironment } from './checked.ts'
import { checkedDefinition, contractOf, presetOf, servicesOf } from './contract.ts'
import type { DefinedPlatform, PlatformDefinition } from './definition.ts'
import { guaranteed } from './env-types.ts'

const contractOnce = perObject((platform: object) => contractOf(checkedDefinition(platform)))

/**
 * The environment of a platform as one typed object: each group is undefined unless it is configured or always on, and
 * its values are parsed. Secrets print as `[secret]`; `reveal()` gives the value. Throws a DefinitionError for a definition with
 * faults, and nothing for any environment.
 */
export function readPlatformEnv<const Definition extends PlatformDefinition | DefinedPlatform>(
  platform: Definition,
  env: Environment,
): PlatformEnvironment<Definition> {
  // The types are computed from the definition as the values are here: a test holds the two together.
  return environmentOf(contractOnce(platform), env) as PlatformEnvironment<Definition>
}

export function environmentOf(contract: Contract, env: Environment) {
  const { states, used } = evaluateGroups(contract, env)
  return Object.fromEntries(
    contract.groups.map((group) => {
      const { name, always, variables } = group
      const isOn = always || states.get(name) === 'configured'
      const values = variables.map(({ name, secret: isHidden }) => {
        const found = used(name)
        return [name, found && (isHidden ? secret(found.text) : found.value)] as const
      })
      return [name, isOn ? guarded(group, Object.fromEntries(values)) : undefined]
    }),
  )
}

/** An always-on group exists even in a refused environment: reading a value that its type promises throws then. */
function guarded(group: Group, values: Record<string, unknown>): Readonly<Record<string, unknown>> {
  for (const name of group.always ? guaranteed(group) : [])
    if (values[name] === undefined)
      Object.defineProperty(values, name, {
        enumerable: false,
        get(): never {
          throw new Error(
            `${name} is required, and it is not set or malformed. Validate the environment before reading it: registerPlatform(platform).`,
          )
        },
      })
  return values
}

/** Validates an environment by a definition; with `services`, only what those read. Throws for a definition with faults only. */
export function validatePlatformEnv(
  platform: PlatformDefinition | DefinedPlatform,
  env: Environment,
  services?: readonly string[],
): Report {
  return validate(contractOf(checkedDefinition(platform)), env, services)
}

/** `register` of `platformctl/env`, for a platform of your own. */
export function registerPlatform(
  platform: PlatformDefinition | DefinedPlatform,
  env: Environment = process.env,
): Report {
  const definition = checkedDefinition(platform)
  const services = servicesOf(definition, presetOf(definition))
  return registerEnvironment({ contract: contractOf(definition), services }, env, registerPlatform)
}
