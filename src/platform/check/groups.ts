import { LIVE_FINDINGS, WARNINGS } from '../../core/env/explanations.ts'
import { fieldsAt, formAt, knownFieldsAt, type Place, textAt } from './fault.ts'
import type { Names } from './names.ts'
import { checkRules } from './rules.ts'
import { checkReaders, checkVariable } from './variables.ts'

export const GROUP_FIELDS = ['services', 'unlocks', 'absent', 'visitors', 'variables', 'rules'] as const

const GROUP_NAME = { pattern: /^[a-z][a-z0-9-]{0,39}$/, what: 'a group', example: 'kiln or kiln-booking' }
const VARIABLE_NAME = {
  pattern: /^[A-Za-z_][A-Za-z0-9_]{0,99}$/,
  what: 'a variable',
  example: 'KILN_API_KEY',
}

export function checkGroups(place: Place, value: unknown, names: Names): void {
  if (value === undefined) return
  const groups = Object.entries(fieldsAt(place, value, 'groups') ?? {})
  const owners = new Map<string, string>()
  for (const group of names.kept)
    for (const variable of Object.keys(names.preset.groups[group]?.variables ?? {}))
      owners.set(variable, group)
  const ids = new Set([...Object.keys(WARNINGS), ...Object.keys(LIVE_FINDINGS)])
  for (const group of names.kept)
    for (const { id } of names.preset.groups[group]?.rules ?? []) if (id !== undefined) ids.add(id)
  for (const [name, group] of groups) {
    const here = place.at(name)
    formAt(here, name, GROUP_NAME)
    if (names.kept.includes(name))
      here.fault(
        `The preset has a group ${name} already.`,
        `Choose another name, or leave the preset’s out with without: ['${name}'].`,
      )
    const fields = knownFieldsAt(here, group, 'a group', GROUP_FIELDS)
    if (fields === undefined) continue
    checkReaders(here.at('services'), fields.services, names)
    for (const field of ['unlocks', 'absent'] as const) {
      if (fields[field] === undefined)
        here
          .at(field)
          .fault(
            `The group does not say ${field === 'unlocks' ? 'what it unlocks' : 'what its absence means'}.`,
            field === 'unlocks'
              ? "Add unlocks: 'the booking calendar'."
              : "Add absent: 'the calendar is hidden'.",
          )
      textAt(here.at(field), fields[field])
    }
    if (fields.visitors !== undefined) textAt(here.at('visitors'), fields.visitors)
    const variables = fieldsAt(here.at('variables'), fields.variables, 'variables')
    if (variables && Object.keys(variables).length === 0)
      here.at('variables').fault('The group has no variables.', 'Add one, or remove the group.')
    for (const [variable, of] of Object.entries(variables ?? {})) {
      const there = here.at('variables').at(variable)
      formAt(there, variable, VARIABLE_NAME)
      if (/^NODE_/.test(variable))
        there.fault(
          `${variable} would change the runtime that reads it.`,
          'Choose a name that does not begin with NODE_.',
        )
      const owner = owners.get(variable)
      if (owner !== undefined)
        there.fault(
          `${variable} belongs to the group ${owner} already.`,
          'A variable belongs to one group: rename it, or remove it from one of the two.',
        )
      owners.set(variable, owner ?? name)
      checkVariable(there, variable, of, names)
    }
    checkRules(here.at('rules'), fields.rules, names, ids)
  }
}
