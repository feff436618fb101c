import type { Environment } from '../core/env/environment.ts'
import { registerEnvironment } from '../core/env/register.ts'
import { type Report, validate } from '../core/env/validate.ts'
import { checkedDefinition, contractOf, presetOf } from './contract.ts'
import type { DefinedPlatform, PlatformDefinition } from './definition.ts'
import { servicesOf } from './services.ts'

/**
 * Validates an environment by the variables and rules of a definition; with `services`, only what those read. Throws a
 * DefinitionError for a definition with faults, and nothing for any environment.
 */
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
  const services = servicesOf(definition, presetOf(definition).platform)
  return registerEnvironment({ contract: contractOf(definition), services }, env, registerPlatform)
}
