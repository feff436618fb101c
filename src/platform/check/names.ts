import type { EventDefinition } from '../../core/analytics/events.ts'
import type { CourseDefinition } from '../../core/course/definition.ts'
import type { GroupDefinition } from '../../core/env/definition.ts'
import type { ProbeDefinition } from '../../core/health/probe.ts'
import { heartbeatProbeName } from '../../core/heartbeats.ts'
import { attempt, isRecord } from '../../core/is-record.ts'
import { type ServiceDefinition, WEB } from '../../core/service.ts'
import type { Fields } from './place.ts'

/** The names in a preset that a definition can refer to or collide with. */
export interface PresetParts {
  readonly groups: Readonly<Record<string, GroupDefinition>>
  readonly services: readonly ServiceDefinition[]
  readonly probes: readonly ProbeName[]
  readonly events: readonly Pick<EventDefinition, 'name'>[]
  readonly courses: readonly Pick<CourseDefinition, 'id'>[]
}

type ProbeName = Pick<ProbeDefinition, 'service' | 'name' | 'group'>

/** Every name that a definition may use: what it declares and what its preset brings. */
export type Names = ReturnType<typeof collectNames>

const NONE: PresetParts = { groups: {}, services: [], probes: [], events: [], courses: [] }

export function collectNames(definition: unknown, presets: Readonly<Record<string, PresetParts>>) {
  const preset =
    new Map(Object.entries(presets)).get(textOf(field(definition, 'preset') ?? 'learning')) ?? NONE
  const without = [field(definition, 'without')].flat()
  const kept = Object.keys(preset.groups).filter((name) => !without.includes(name))
  const declaredIn = (kind: string) => entries(field(definition, kind))
  const groups = declaredIn('groups')
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
  return {
    presets: Object.keys(presets),
    preset,
    kept,
    services: names,
    foreign: services.flatMap(({ name, format }) => (format === undefined ? [] : [name])),
    groups: [...kept, ...groups.map(([name]) => name)],
    /** The probes of the preset that were not left out, those by which web asks other services, and the definition's own. */
    probes: [
      ...probesKept(preset, names, without),
      ...names.flatMap((name) => (name === WEB ? [] : [{ service: WEB, name }])),
      ...declaredIn('probes').map(([name, probe]) => ({ service: textOf(field(probe, 'service')), name })),
      ...declaredIn('heartbeats').map(([name]) => ({ service: WEB, name: heartbeatProbeName(name) })),
    ],
    variables: [...kinds.keys()],
    kindOf: (variable: string) => kinds.get(variable),
    events: [...preset.events.map(({ name }) => name), ...declaredIn('events').map(([kind]) => kind)],
  }
}

/** The probes of a preset for a platform of these services, without those of the groups left out. */
export function probesKept<Probe extends ProbeName>(
  preset: Pick<PresetParts, 'services'> & { readonly probes: readonly Probe[] },
  services: readonly string[],
  without: readonly unknown[],
): readonly Probe[] {
  const gone = preset.services.map(({ name }) => name).filter((name) => !services.includes(name))
  return preset.probes.filter(
    ({ name, service, group }) =>
      services.includes(service) && !(group !== undefined && without.includes(group)) && !gone.includes(name),
  )
}

/** The fields of an object, or why there are none. */
export function fieldsOf(value: unknown): Fields | 'unreadable' | 'no object' {
  return isRecord(value) ? (attempt(() => ({ ...value })) ?? 'unreadable') : 'no object'
}

/** The entries of an object; an empty list for any other value, and for an object that cannot be read. */
export function entries(value: unknown): readonly (readonly [string, unknown])[] {
  const fields = fieldsOf(value)
  return typeof fields === 'string' ? [] : Object.entries(fields)
}

/** One entry of an object; undefined where there is none. */
export const field = (value: unknown, name: string) => entries(value).find(([key]) => key === name)?.[1]

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
