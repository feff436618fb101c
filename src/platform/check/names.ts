import type { GroupDefinition } from '../../core/env/definition.ts'
import type { ServiceDefinition } from '../../core/service.ts'
import { fieldsAt, placeIn } from './fault.ts'

/** The names in a preset that a definition can refer to or collide with. */
export interface PresetParts {
  readonly groups: Readonly<Record<string, GroupDefinition>>
  readonly services: readonly ServiceDefinition[]
  /** Names of probes by service, as `web.mail`. */
  readonly probes: readonly string[]
  readonly events: readonly string[]
  readonly courses: readonly string[]
}

/** Every name that a definition may use: what it declares and what its preset brings. */
export interface Names {
  readonly preset: PresetParts
  /** The preset's groups that were not left out. */
  readonly kept: readonly string[]
  readonly services: readonly string[]
  readonly groups: readonly string[]
  readonly variables: readonly string[]
  /** The kind of a variable, where it is known. */
  readonly kindOf: (variable: string) => string | undefined
}

const NONE: PresetParts = { groups: {}, services: [], probes: [], events: [], courses: [] }

/** Collects the names in a definition that is not checked yet. */
export function collectNames(
  definition: Readonly<Record<string, unknown>>,
  presets: Readonly<Record<string, PresetParts>>,
): Names {
  const named = definition.preset ?? 'learning'
  const preset =
    (typeof named === 'string' && Object.hasOwn(presets, named) ? presets[named] : undefined) ?? NONE
  const without = Array.isArray(definition.without) ? (definition.without as readonly unknown[]) : []
  const kept = Object.keys(preset.groups).filter((name) => !without.includes(name))
  const kinds = new Map<string, string | undefined>()
  for (const name of kept)
    for (const [variable, { kind }] of Object.entries(preset.groups[name]?.variables ?? {}))
      kinds.set(variable, kind)
  const own = entries(definition.groups)
  const declared: string[] = []
  for (const [, group] of own)
    for (const [variable, of] of entries(field(group, 'variables'))) {
      declared.push(variable)
      const kind = field(of, 'kind')
      kinds.set(variable, typeof kind === 'string' ? kind : undefined)
    }
  return {
    preset,
    kept,
    services:
      definition.services === undefined
        ? preset.services.map(({ name }) => name)
        : entries(definition.services).map(([name]) => name),
    groups: [...kept, ...own.map(([name]) => name)],
    // A sentence that lists a few of them begins with those that the definition declares.
    variables: [...new Set([...declared, ...kinds.keys()])],
    kindOf: (variable) => kinds.get(variable),
  }
}

/** The entries of an object; an empty list for any other value, and for an object that cannot be read. */
export function entries(value: unknown): readonly (readonly [string, unknown])[] {
  return Object.entries(fieldsAt(placeIn([]), value, 'an object') ?? {})
}

function field(value: unknown, name: string): unknown {
  return new Map(entries(value)).get(name)
}
