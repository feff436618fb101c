import type { GroupDefinition } from '../../core/env/definition.ts'
import type { ProbeDefinition } from '../../core/health/definition.ts'
import { heartbeatProbeName } from '../../core/heartbeats.ts'
import { type ServiceDefinition, WEB } from '../../core/service.ts'
import type { Fields } from './place.ts'

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
  readonly presets: readonly string[]
  readonly preset: PresetParts
  /** The preset's groups that were not left out. */
  readonly kept: readonly string[]
  readonly services: readonly string[]
  /** Services that are other programs. */
  readonly foreign: readonly string[]
  readonly groups: readonly string[]
  /** The probes of the preset that were not left out, those by which web asks other services, and the definition's own. */
  readonly probes: readonly Pick<ProbeName, 'service' | 'name'>[]
  readonly variables: readonly string[]
  readonly kindOf: (variable: string) => unknown
  readonly events: readonly string[]
}

const NONE: PresetParts = { groups: {}, services: [], probes: [], events: [], courses: [] }

/** Collects the names in a definition that is not checked yet. */
export function collectNames(definition: unknown, presets: Readonly<Record<string, PresetParts>>): Names {
  const preset =
    new Map(Object.entries(presets)).get(textOf(field(definition, 'preset') ?? 'learning')) ?? NONE
  const without = [field(definition, 'without')].flat()
  const kept = Object.keys(preset.groups).filter((name) => !without.includes(name))
  const groups = entries(field(definition, 'groups'))
  const kindsIn = (variables: unknown) =>
    entries(variables).map(([name, of]) => [name, field(of, 'kind')] as const)
  const own = groups.flatMap(([, group]) => kindsIn(field(group, 'variables')))
  // A sentence that lists a few of them begins with those that the definition declares.
  const kinds = new Map([...own, ...kept.flatMap((name) => kindsIn(preset.groups[name]?.variables)), ...own])
  const declared = field(definition, 'services')
  const services =
    declared === undefined
      ? preset.services.map(({ name, format }) => ({ name, format }))
      : entries(declared).map(([name, of]) => ({ name, format: field(of, 'format') }))
  const names = services.map(({ name }) => name)
  const gone = preset.services.flatMap(({ name }) => (names.includes(name) ? [] : [name]))
  return {
    presets: Object.keys(presets),
    preset,
    kept,
    services: names,
    foreign: services.flatMap(({ name, format }) => (format === undefined ? [] : [name])),
    groups: [...kept, ...groups.map(([name]) => name)],
    probes: [
      ...preset.probes.filter(
        ({ service, name, group }) =>
          names.includes(service) && (group === undefined || kept.includes(group)) && !gone.includes(name),
      ),
      ...names.flatMap((name) => (name === WEB ? [] : [{ service: WEB, name }])),
      ...entries(field(definition, 'probes')).map(([name, probe]) => ({
        service: textOf(field(probe, 'service')),
        name,
      })),
      ...entries(field(definition, 'heartbeats')).map(([name]) => ({
        service: WEB,
        name: heartbeatProbeName(name),
      })),
    ],
    variables: [...kinds.keys()],
    kindOf: (variable) => kinds.get(variable),
    events: [...preset.events, ...entries(field(definition, 'events')).map(([kind]) => kind)],
  }
}

/** The fields of an object, or why there are none. */
export function fieldsOf(value: unknown): Fields | 'unreadable' | 'no object' {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'no object'
  try {
    return { ...value }
  } catch {
    return 'unreadable'
  }
}

/** The entries of an object; an empty list for any other value, and for an object that cannot be read. */
export function entries(value: unknown): readonly (readonly [string, unknown])[] {
  const fields = fieldsOf(value)
  return typeof fields === 'string' ? [] : Object.entries(fields)
}

/** One entry of an object; undefined where there is none. */
export function field(value: unknown, name: string): unknown {
  return entries(value).find(([key]) => key === name)?.[1]
}

/** A text; empty for any other value. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
