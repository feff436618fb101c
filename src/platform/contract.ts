import { type Contract, createContract } from '../core/env/contract.ts'
import type { GroupDefinition } from '../core/env/definition.ts'
import { baseGroups } from '../core/env/groups.ts'
import { given } from '../core/given.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import { HEALTH_PATHS } from '../core/service.ts'
import { base } from '../presets/base/platform.ts'
import { learningGroups } from '../presets/learning/groups.ts'
import { learning } from '../presets/learning/platform.ts'
import { checkDefinition } from './check/check.ts'
import type { PresetParts } from './check/names.ts'
import type { PlatformDefinition, VariableInput } from './definition.ts'
import { DefinitionError } from './find.ts'

export const PRESETS: Readonly<Record<'base' | 'learning', ResolvedPlatform & PresetParts>> = {
  base: { ...base, groups: baseGroups },
  learning: { ...learning, groups: learningGroups },
}

/** The definition itself, once it has no faults; otherwise throws a DefinitionError with all of them. */
export function checkedDefinition(exported: unknown, file?: string): PlatformDefinition {
  const faults = checkDefinition(exported, PRESETS)
  if (faults.length > 0) throw new DefinitionError(file, faults)
  // Every field has been checked.
  return exported as PlatformDefinition
}

export const presetOf = (definition: PlatformDefinition) => PRESETS[definition.preset ?? 'learning']

/** The variables and rules of a sound definition: its preset's groups that were kept, and its own. */
export function contractOf(definition: PlatformDefinition): Contract {
  const preset = presetOf(definition)
  const { without = [] } = definition
  const services = servicesOf(definition, preset)
  // Only our own services read the variables that configure the engine, not other programs.
  const served = services.flatMap(({ name, port }) => (port === undefined ? [] : [name]))
  const kept = Object.entries(preset.groups).flatMap(([name, group]): [string, GroupDefinition][] =>
    without.includes(name) ? [] : [[name, readBy(group, served)]],
  )
  const own = Object.entries(definition.groups ?? {}).map(([name, group]): [string, GroupDefinition] => [
    name,
    { ...group, services: group.services ?? 'all', variables: completed(group.variables) },
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

/** A variable with a default turns its group on only if nothing else could: it works without being set. */
function completed(variables: Readonly<Record<string, VariableInput>>): GroupDefinition['variables'] {
  const adjusts = (of: VariableInput) => of.adjusts ?? of.default !== undefined
  const isOptional = Object.values(variables).every(adjusts)
  return Object.fromEntries(
    Object.entries(variables).map(([name, { kind = 'text', ...of }]) => [
      name,
      { ...of, kind, malformed: of.malformed ?? 'error', adjusts: isOptional ? !!of.adjusts : adjusts(of) },
    ]),
  )
}

/** The services of a definition in its own order; those of its preset when it names none. */
export function servicesOf({ services }: PlatformDefinition, preset: Pick<ResolvedPlatform, 'services'>) {
  if (services === undefined) return preset.services
  return Object.entries(services).map(
    ([name, { address, health, format, label, group, dependsOn, ...input }]) => {
      const known = preset.services.find((one) => one.name === name)
      return {
        ...known,
        name,
        health: health ?? known?.health ?? HEALTH_PATHS[format ?? 'platformctl'],
        ...given({
          address: address === undefined ? known?.address : [address].flat(),
          format,
          label,
          group,
          dependsOn,
          port: format === undefined ? (input.port ?? known?.port) : undefined,
        }),
      }
    },
  )
}
