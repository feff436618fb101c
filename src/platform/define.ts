import type { Checked } from './checked.ts'
import type { PlatformDefinition } from './definition.ts'

/**
 * Gives the definition back, typed: a name that is not declared in it (of a variable in a rule, of a service, of a
 * group, of a slot) is a compile error. Nothing is checked when it runs; whatever loads the definition checks it.
 */
export function definePlatform<const Definition extends PlatformDefinition>(
  definition: Definition & Checked<Definition>,
): Definition {
  return definition
}
