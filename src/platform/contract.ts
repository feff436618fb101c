import { type Contract, createContract } from '../core/env/contract.ts'
import type { GroupDefinition } from '../core/env/definition.ts'
import { baseGroups } from '../core/env/groups.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import { base } from '../presets/base/platform.ts'
import { learningGroups } from '../presets/learning/groups.ts'
import { learning } from '../presets/learning/platform.ts'
import { checkDefinition } from './check/check.ts'
import type { PresetParts } from './check/names.ts'
import type { PlatformDefinition, VariableInput } from './definition.ts'
import { DefinitionError } from './find.ts'
import { servicesOf } from './services.ts'

export interface PresetSource {
  readonly platform: ResolvedPlatform
  readonly groups: Readonly<Record<string, GroupDefinition>>
}

const PRESETS: Readonly<Record<'base' | 'learning', PresetSource>> = {
  base: { platform: base, groups: baseGroups },
  learning: { platform: learning, groups: learningGroups },
}

/** Parts of each preset that the checks need. */
export const PRESET_PARTS: Readonly<Record<string, PresetParts>> = Object.fromEntries(
  Object.entries(PRESETS).map(([name, { platform, groups }]) => [
    name,
    {
      groups,
      services: platform.services,
      probes: platform.probes,
      events: platform.events.map((event) => event.name),
      courses: platform.courses.map(({ id }) => id),
    },
  ]),
)

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
      variables: completed(group.variables),
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

/** A variable with a default turns its group on only if nothing else could: it works without being set. */
function completed(variables: Readonly<Record<string, VariableInput>>): GroupDefinition['variables'] {
  const adjusts = (of: VariableInput) => of.adjusts ?? of.default !== undefined
  const isOptional = Object.values(variables).every(adjusts)
  return Object.fromEntries(
    Object.entries(variables).map(([name, { kind = 'text', ...of }]) => [
      name,
      {
        ...of,
        kind,
        malformed: of.malformed ?? 'error',
        adjusts: isOptional ? of.adjusts === true : adjusts(of),
      },
    ]),
  )
}
