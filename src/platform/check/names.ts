import type { GroupDefinition } from '../../core/env/definition.ts'
import type { ProbeDefinition } from '../../core/health/definition.ts'
import { heartbeatProbeName } from '../../core/heartbeats.ts'
import { type ServiceDefinition, WEB } from '../../core/service.ts'
import { fieldsAt, placeIn } from './fault.ts'

/** The names in a preset that a definition can refer to or collide with. */
export interface PresetParts {
  readonly groups: Readonly<Record<string, GroupDefinition>>
  readonly services: readonly ServiceDefinition[]
  readonly probes: readonly ProbeName[]
  readonly events: readonly string[]
  readonly courses: readonly string[]
}

type ProbeName = Pick<ProbeDefinition, 'service' | 'name' | 'group'>

/** Every name that a definition may use: what it declares and what its preset brings. */
export interface Names {
  readonly preset: PresetParts
  /** The preset's groups that were not left out. */
  readonly kept: readonly string[]
  readonly services: readonly string[]
  readonly groups: readonly string[]
  /** The probes of the preset that were not left out, those by which web asks other services, and the definition's own. */
  readonly probes: readonly Pick<ProbeName, 'service' | 'name'>[]
  readonly variables: readonly string[]
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
  const services =
    definition.services === undefined
      ? preset.services.map(({ name }) => name)
      : entries(definition.services).map(([name]) => name)
  const gone = preset.services.flatMap(({ name }) => (services.includes(name) ? [] : [name]))
  return {
    preset,
    kept,
    services,
    probes: [
      ...preset.probes.filter(
        ({ service, name, group }) =>
          services.includes(service) && (group === undefined || kept.includes(group)) && !gone.includes(name),
      ),
      ...services.flatMap((name) => (name === WEB ? [] : [{ service: WEB, name }])),
      ...entries(definition.probes).map(([name, probe]) => ({
        service: String(field(probe, 'service')),
        name,
      })),
      ...entries(definition.heartbeats).map(([name]) => ({ service: WEB, name: heartbeatProbeName(name) })),
    ],
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

/** One entry of an object; undefined where there is none. */
export function field(value: unknown, name: string): unknown {
  return new Map(entries(value)).get(name)
}
