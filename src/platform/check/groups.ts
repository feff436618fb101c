import { LIVE_FINDINGS, WARNINGS } from '../../core/env/explanations.ts'
import {
  booleanAt,
  fieldsAt,
  formAt,
  knownFieldsAt,
  listAt,
  nameAt,
  namesAt,
  type Place,
  quoted,
  textAt,
  typeName,
} from './fault.ts'
import { field, type Names } from './names.ts'
import { checkReaders, checkRequired, checkVariable } from './variables.ts'

const KINDS = ['allOrNone', 'requires', 'atLeastOne', 'exclusive', 'forbidden'] as const
type Kind = (typeof KINDS)[number]

/** Fields beside the texts that every rule may have. */
const FIELDS: Readonly<Record<Kind, readonly string[]>> = {
  allOrNone: [],
  requires: ['when', 'match'],
  atLeastOne: ['when'],
  exclusive: [],
  forbidden: ['value'],
}

function checkRules(
  place: Place,
  value: unknown,
  required: readonly string[],
  names: Names,
  ids: Set<string>,
): void {
  const rules = listAt(place, value, 'rules') ?? []
  const together: (readonly string[])[] = [required]
  for (const [index, rule] of rules.entries()) {
    const all = checkRule(place.at(index), rule, names, ids)
    if (all?.kind === 'allOrNone') together.push(all.names)
  }
  for (const [index, rule] of rules.entries()) {
    const apart = exclusiveNames(rule)
    if (together.some((all) => apart.filter((name) => all.includes(name)).length > 1))
      place.fault(
        'These are required, or another rule of this group wants them together, so it can never be configured.',
        'Remove one of the two.',
        index,
      )
  }
}

function exclusiveNames(rule: unknown): readonly string[] {
  const found: unknown =
    typeof rule === 'object' && rule !== null && 'exclusive' in rule ? rule.exclusive : []
  return Array.isArray(found) ? found.filter((name) => typeof name === 'string') : []
}

function checkRule(
  place: Place,
  value: unknown,
  names: Names,
  ids: Set<string>,
): { readonly kind: Kind; readonly names: readonly string[] } | undefined {
  const known = [...KINDS, 'when', 'match', 'value', 'id', 'cause', 'fix']
  const fields = knownFieldsAt(place, value, 'a rule', known)
  if (fields === undefined) return undefined
  checkTexts(place, fields, ids)
  const [kind, second] = KINDS.filter((name) => fields[name] !== undefined)
  if (kind === undefined)
    return place.fault('The rule says nothing about its variables.', `Give it one of ${KINDS.join(', ')}.`)
  if (second !== undefined)
    return place.fault(`The rule is ${kind} and ${second} at once.`, 'Write two rules.')
  for (const field of ['when', 'match', 'value'])
    if (fields[field] !== undefined && !FIELDS[kind].includes(field))
      place.at(field).fault(`A rule of the kind ${kind} has no ${field}.`, 'Remove it.')
  const of = { known: names.variables, what: 'a variable of this platform' }
  if (kind === 'forbidden') {
    nameAt(place.at(kind), fields.forbidden, of.known, of.what)
    checkForbidden(place.at('value'), fields.value)
    return undefined
  }
  const pair = kind === 'allOrNone' || kind === 'exclusive'
  const named = namesAt(place.at(kind), fields[kind], { ...of, atLeast: pair ? 2 : 1 })
  if (FIELDS[kind].includes('when')) {
    if (fields.when === undefined)
      place.at('when').fault(`A rule of the kind ${kind} has to say when it applies.`, "Add when: ['NAME'].")
    const when = namesAt(place.at('when'), fields.when, { ...of, atLeast: 1 })
    for (const name of named.filter((one) => when.includes(one)))
      place.fault(`${name} is on both sides of this rule.`, `Remove it from ${kind} or from when.`)
  }
  if (kind === 'requires' && fields.match !== undefined)
    nameAt(place.at('match'), fields.match, ['any', 'all'], 'a way to match')
  return { kind, names: named }
}

function checkForbidden(place: Place, value: unknown): void {
  if (value instanceof RegExp || (typeof value === 'string' && value !== '')) return
  place.fault(
    `This is ${typeName(value)}, not a value to forbid.`,
    'Write the forbidden value as text, or a part of it as /…/.',
  )
}

function checkTexts(place: Place, fields: Readonly<Record<string, unknown>>, ids: Set<string>): void {
  textAt(place.at('cause'), fields.cause)
  textAt(place.at('fix'), fields.fix)
  const id = textAt(place.at('id'), fields.id, 80)
  if (id === undefined) return
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(id))
    place.fault(
      `${quoted(id)} cannot be an id.`,
      'Use lower-case words joined by hyphens, as kiln-without-secret.',
      'id',
    )
  else if (ids.has(id)) place.at('id').fault(`The id ${id} is taken.`, 'Choose another one, or leave it out.')
  ids.add(id)
}

export const GROUP_FIELDS = [
  'services',
  'unlocks',
  'absent',
  'visitors',
  'required',
  'always',
  'variables',
  'rules',
] as const

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
        here.fault(
          `The group does not say ${field === 'unlocks' ? 'what it unlocks' : 'what its absence means'}.`,
          field === 'unlocks'
            ? "Add unlocks: 'the booking calendar'."
            : "Add absent: 'the calendar is hidden'.",
          field,
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
    checkRequired(here.at('required'), fields.required, names, [name, ...Object.keys(variables ?? {})])
    booleanAt(here.at('always'), fields.always)
    if (fields.always === true && fields.required !== undefined)
      here.fault('The group is always on, so it is never missing.', 'Remove required, or always.', 'required')
    if (
      fields.required !== undefined &&
      Object.values(variables ?? {}).every((of) => field(of, 'adjusts') === true)
    )
      here.fault(
        'Each of its variables only adjusts, so none of them sets the group.',
        'Require a variable instead.',
        'required',
      )
    const required = Object.entries(variables ?? {}).flatMap(([variable, of]) =>
      field(of, 'required') === true ? [variable] : [],
    )
    checkRules(here.at('rules'), fields.rules, required, names, ids)
  }
}
