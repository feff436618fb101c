import { type Contract, createContract } from '../core/env/contract.ts'
import type { GroupDefinition } from '../core/env/definition.ts'
import { checkDefinition } from './check/check.ts'
import type { PlatformDefinition, VariableInput } from './definition.ts'
import { DefinitionError } from './definition-error.ts'
import { PRESET_PARTS, PRESETS, type PresetSource } from './presets.ts'
import { servicesOf } from './services.ts'

/** The definition itself, once it has no faults; otherwise throws a DefinitionError with all of them. */
export function checkedDefinition(exported: unknown, file?: string): PlatformDefinition {
  const faults = checkDefinition(exported, PRESET_PARTS)
  if (faults.length > 0) throw new DefinitionError(file, faults)
  // Every field has been checked.
  return exported as PlatformDefinition
}

/** The preset that a definition starts from. */
export function presetOf(definition: PlatformDefinition): PresetSource {
  return PRESETS[definition.preset ?? 'learning']
}

/** The variables and rules of a sound definition: its preset's groups that were kept, and its own. */
export function contractOf(definition: PlatformDefinition): Contract {
  const { platform, groups } = presetOf(definition)
  const { without = [] } = definition
  const services = servicesOf(definition, platform)
  // Only our own services read the variables that configure the engine, not other programs.
  const served = services.flatMap(({ name, port }) => (port === undefined ? [] : [name]))
  const kept = Object.entries(groups).flatMap(([name, group]): [string, GroupDefinition][] =>
    without.includes(name) ? [] : [[name, readBy(group, served)]],
  )
  const own = Object.entries(definition.groups ?? {}).map(([name, group]): [string, GroupDefinition] => [
    name,
    {
      ...group,
      services: group.services ?? 'all',
      variables: Object.fromEntries(
        Object.entries(group.variables).map(([variable, input]) => [variable, complete(input)]),
      ),
    },
  ])
  return createContract({
    services: services.map(({ name }) => name),
    groups: Object.fromEntries([...kept, ...own]),
  })
}

/** The preset's group with `all` replaced by the services that this process serves. */
function readBy(group: GroupDefinition, served: readonly string[]): GroupDefinition {
  const narrowed = (services: GroupDefinition['services']) => (services === 'all' ? served : services)
  return {
    ...group,
    services: narrowed(group.services),
    variables: Object.fromEntries(
      Object.entries(group.variables).map(([name, variable]) => [
        name,
        variable.services === undefined ? variable : { ...variable, services: narrowed(variable.services) },
      ]),
    ),
  }
}

/** A variable with a default works without being set, so setting it does not turn its group on. */
function complete({ kind = 'text', ...rest }: VariableInput): GroupDefinition['variables'][string] {
  return { ...rest, kind, adjusts: rest.adjusts ?? rest.default !== undefined }
}
