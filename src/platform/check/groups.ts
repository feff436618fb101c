import type { RuleDefinition } from '../../core/env/definition.ts'
import { LIVE_FINDINGS, WARNINGS } from '../../core/env/explanations.ts'
import type { GroupInput } from '../definition.ts'
import { entries, field, type Names, textOf } from './names.ts'
import { type Place, quoted } from './place.ts'
import { type Check, called, flag, list, map, needed, object, oneOf, someOf, text, that } from './shape.ts'
import { variable as checkVariable, readers, required, requiresItself } from './variables.ts'

const VARIABLE_OF_THE_PLATFORM = [({ variables }: Names) => variables, 'a variable of this platform'] as const
const variables = (atLeast: number) => someOf(...VARIABLE_OF_THE_PLATFORM, atLeast)

const forbiddenValue = that(
  (value) => value instanceof RegExp || (typeof value === 'string' && value !== ''),
  'a value to forbid',
  'Write the forbidden value as text, or a part of it as /…/.',
)

/** The kinds of rule, each with the fields it has beside its own and the texts. */
const RULES = {
  allOrNone: [],
  requires: ['when', 'match'],
  atLeastOne: ['when'],
  exclusive: [],
  forbidden: ['value'],
} as const satisfies Readonly<Record<string, readonly ('when' | 'match' | 'value')[]>>
const RULE_NAMES = Object.keys(RULES) as readonly (keyof typeof RULES)[]

type FieldsOf<Rule> = Rule extends unknown ? keyof Rule : never

const rule = object<Omit<Record<FieldsOf<RuleDefinition>, unknown>, 'where'>>(
  'a rule',
  {
    allOrNone: variables(2),
    requires: variables(1),
    atLeastOne: variables(1),
    exclusive: variables(2),
    forbidden: oneOf(...VARIABLE_OF_THE_PLATFORM),
    when: variables(1),
    match: oneOf(['any', 'all'], 'a way to match'),
    value: forbiddenValue,
    id: text(80),
    cause: text(),
    fix: text(),
  },
  (place, fields, names) => {
    const [kind, second] = RULE_NAMES.filter((name) => fields[name] !== undefined)
    if (kind === undefined)
      return void place.fault(
        'The rule says nothing about its variables.',
        `Give it one of ${RULE_NAMES.join(', ')}.`,
      )
    if (second !== undefined)
      return void place.fault(`The rule is ${kind} and ${second} at once.`, 'Write two rules.')
    const allowed: readonly string[] = RULES[kind]
    for (const name of ['when', 'match', 'value'] as const)
      if (fields[name] !== undefined && !allowed.includes(name))
        place.fault(`A rule of the kind ${kind} has no ${name}.`, 'Remove it.', name)
    if (allowed.includes('when') && fields.when === undefined)
      place.fault(`A rule of the kind ${kind} has to say when it applies.`, "Add when: ['NAME'].", 'when')
    if (kind === 'forbidden' && fields.value === undefined)
      forbiddenValue(place.at('value'), undefined, names)
    const when = namesIn(fields.when)
    for (const name of namesIn(fields[kind]).filter((one) => when.includes(one)))
      place.fault(`${name} is on both sides of this rule.`, `Remove it from ${kind} or from when.`)
  },
)

const namesIn = (value: unknown) =>
  Array.isArray(value) ? value.filter((name) => typeof name === 'string') : []

/** Rules of a group that is required to have some variables: none may make it impossible to configure. */
function checkRules(place: Place, value: unknown, names: Names, together: readonly string[]): void {
  list('rules', rule)(place, value, names)
  const rules: readonly unknown[] = Array.isArray(value) ? [...value] : []
  const sets = [together, ...rules.map((one) => namesIn(field(one, 'allOrNone')))]
  for (const [index, one] of rules.entries()) {
    const apart = namesIn(field(one, 'exclusive'))
    if (sets.some((all) => apart.filter((name) => all.includes(name)).length > 1))
      place.fault(
        'These are required, or another rule of this group wants them together, so it can never be configured.',
        'Remove one of the two.',
        index,
      )
  }
}

const VARIABLE_NAME = called(/^[A-Za-z_][A-Za-z0-9_]{0,99}$/, 'a variable', 'KILN_API_KEY')

const variable: Check = (place, of, names) => {
  if (/^NODE_/.test(place.key))
    place.fault(
      `${place.key} would change the runtime that reads it.`,
      'Choose a name that does not begin with NODE_.',
    )
  checkVariable(place, of, names)
}

export const group = object<GroupInput>(
  'a group',
  {
    services: readers,
    unlocks: needed(
      text(),
      'The group does not say what it unlocks.',
      "Add unlocks: 'the booking calendar'.",
    ),
    absent: needed(
      text(),
      'The group does not say what its absence means.',
      "Add absent: 'the calendar is hidden'.",
    ),
    visitors: text(),
    required,
    always: flag,
    variables: needed(map('variables', VARIABLE_NAME, variable)),
    // Checked with the variables that are required.
    rules: () => undefined,
  },
  (place, fields, names) => {
    const own = entries(fields.variables)
    if (own.length === 0 && typeof fields.variables === 'object')
      place.fault('The group has no variables.', 'Add one, or remove the group.', 'variables')
    if ([place.key, ...own.map(([name]) => name)].includes(textOf(field(fields.required, 'when'))))
      requiresItself(place)
    if (fields.always === true && fields.required !== undefined)
      place.fault(
        'The group is always on, so it is never missing.',
        'Remove required, or always.',
        'required',
      )
    if (fields.required !== undefined && own.every(([, of]) => field(of, 'adjusts') === true))
      place.fault(
        'Each of its variables only adjusts, so none of them sets the group.',
        'Require a variable instead.',
        'required',
      )
    const needs = own.flatMap(([name, of]) => (field(of, 'required') === true ? [name] : []))
    if (fields.rules !== undefined) checkRules(place.at('rules'), fields.rules, names, needs)
  },
)

const GROUP_NAME = called(/^[a-z][a-z0-9-]{0,39}$/, 'a group', 'kiln or kiln-booking')

export const groups: Check = (place, value, names) => {
  const { kept, preset } = names
  const theirs = kept.flatMap((name) => (preset.groups[name] ? [[name, preset.groups[name]] as const] : []))
  const owners = new Map(
    theirs.flatMap(([name, of]) => Object.keys(of.variables).map((one) => [one, name] as const)),
  )
  const ids = new Set([
    ...Object.keys(WARNINGS),
    ...Object.keys(LIVE_FINDINGS),
    ...theirs.flatMap(([, of]) => (of.rules ?? []).flatMap(({ id }) => id ?? [])),
  ])
  map('groups', GROUP_NAME, (here, of) => {
    if (kept.includes(here.key))
      here.fault(
        `The preset has a group ${here.key} already.`,
        `Choose another name, or leave the preset’s out with without: ['${here.key}'].`,
      )
    group(here, of, names)
    for (const [name] of entries(field(of, 'variables'))) {
      const owner = owners.get(name)
      if (owner !== undefined)
        here
          .at('variables')
          .fault(
            `${name} belongs to the group ${owner} already.`,
            'A variable belongs to one group: rename it, or remove it from one of the two.',
            name,
          )
      owners.set(name, owner ?? here.key)
    }
    const rules = field(of, 'rules')
    for (const [index, one] of (Array.isArray(rules) ? rules : []).entries())
      checkId(here.at('rules').at(index).at('id'), field(one, 'id'), ids)
  })(place, value, names)
}

function checkId({ fault }: Place, id: unknown, ids: Set<unknown>): void {
  if (typeof id !== 'string' || id === '') return
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(id))
    fault(`${quoted(id)} cannot be an id.`, 'Use lower-case words joined by hyphens, as kiln-without-secret.')
  else if (ids.has(id)) fault(`The id ${id} is taken.`, 'Choose another one, or leave it out.')
  ids.add(id)
}
