import { wholly } from '../../core/env/contract.ts'
import { looksSecret } from '../../core/env/exposure.ts'
import { KINDS, parseValue, type Reading, VALUE_KINDS } from '../../core/env/kinds.ts'
import { attempt } from '../../core/is-record.ts'
import type { VariableInput } from '../definition.ts'
import { field } from './names.ts'
import { type Place, quoted, typeName } from './place.ts'
import { type Check, flag, list, needed, object, oneOf, someOf, text, that } from './shape.ts'

/** Services that read a group or a variable: a list of names, or `all`. */
export const readers: Check = (place, value, names) =>
  value === 'all' ? value : someOf(({ services }) => services, 'a service', 1)(place, value, names)

const condition = object<{ when: string }>('a condition', {
  when: needed(
    oneOf(({ variables, groups }) => [...variables, ...groups], 'a variable or a group of this platform'),
  ),
})

export const required: Check = (place, value, names) => {
  if (value === true) return value
  if (value === 'production')
    return names.variables.includes('DEPLOY_ENVIRONMENT')
      ? value
      : place.fault(
          'Nothing says what is production: this platform has no DEPLOY_ENVIRONMENT.',
          'Keep the group site of the preset, or declare DEPLOY_ENVIRONMENT.',
        )
  if (typeof value === 'object') return condition(place, value, names)
  return place.fault(
    `This is ${typeof value === 'string' ? quoted(value) : typeName(value)}, not when it is required.`,
    "Write true, 'production' or { when: 'NAME' }.",
  )
}

const trimmed: Check = (place, value, names) => {
  const said = text()(place, value, names)
  return said === undefined || said === String(said).trim()
    ? said
    : place.fault('The value begins or ends with a space, and values are trimmed.', 'Remove the space.')
}

const range: Check = (place, value) => {
  if (!(Array.isArray(value) && value.length === 2 && value.every(Number.isFinite)))
    return place.fault('A range is two numbers.', 'Write it as [lowest, highest].')
  const [low, high] = value
  return low <= high
    ? value
    : place.fault('The range ends before it begins.', `Write it as [${high}, ${low}].`)
}

const pattern: Check = (place, value) => {
  if (typeof value !== 'string' && !(value instanceof RegExp))
    return place.fault(
      `This is ${typeName(value)}, not a pattern.`,
      'Write a regular expression, as text or as /…/.',
    )
  return (
    attempt(() => wholly(value)) ??
    place.fault(
      'The pattern is not a regular expression.',
      'Correct it; a backslash in quotes is written twice.',
    )
  )
}

const schema = that(
  // Read where it is, because libraries keep it in a prototype.
  (value) => typeof Object(Object(value)['~standard']).validate === 'function',
  'a Standard Schema',
  'Give a schema of Zod, Valibot, ArkType or another library that follows standardschema.dev.',
)

const isPrefix = (value: unknown) => typeof value === 'string' && value !== ''
const prefix = that(isPrefix, 'a prefix', "Write it as text, such as 'sk_live_'.")
const beginnings = needed(list('prefixes', prefix, 1))

const MEASURED = VALUE_KINDS.filter((kind) => 'measured' in KINDS[kind])

const kindOf = oneOf(VALUE_KINDS, 'a kind of value')

export const variable = object<VariableInput>(
  'a variable',
  {
    kind: kindOf,
    summary: text(),
    example: (place, value, names) => (value === '' ? undefined : text()(place, value, names)),
    default: (place, value) =>
      ['string', 'number', 'boolean'].includes(typeof value)
        ? String(value)
        : place.fault(
            `This is ${typeName(value)}, not a value.`,
            'Write the default as it would be in an env file.',
          ),
    required,
    malformed: oneOf(['warn'], 'a way to take a malformed value'),
    services: readers,
    secret: flag,
    chosen: flag,
    rotates: flag,
    perReplica: flag,
    adjusts: flag,
    range,
    pattern,
    of: list('values', trimmed, 1, true),
    prefixes: object<NonNullable<VariableInput['prefixes']>>('prefixes', {
      live: beginnings,
      test: beginnings,
    }),
    schema,
  },
  (place, fields, names, sound) => {
    // A schema without a kind takes text.
    if (fields.kind === undefined && fields.schema === undefined) kindOf(place.at('kind'), undefined, names)
    // Each field was checked.
    const { kind = fields.kind === undefined && sound.schema ? 'text' : undefined, ...reading } =
      sound as Partial<Reading>
    if (fields.required === true && fields.default !== undefined)
      place.fault(
        'The variable has a default, so it is never missing.',
        'Remove required, or the default.',
        'required',
      )
    if (field(fields.required, 'when') === place.key) requiresItself(place)
    if (kind === undefined) return
    if (kind === 'enum' && fields.of === undefined)
      place.fault('An enum has to say which values it takes.', "List them: of: ['eu', 'us'].", 'of')
    if (kind !== 'enum' && fields.of !== undefined)
      place.fault(
        `Only an enum lists its values, and this is of the kind ${kind}.`,
        "Set kind: 'enum', or remove this field.",
        'of',
      )
    if (fields.range !== undefined && !MEASURED.includes(kind))
      place.fault(
        `A range bounds a number, and this is of the kind ${kind}.`,
        `Use it with ${MEASURED.join(', ')}, or remove it.`,
        'range',
      )
    if (('secret' in KINDS[kind] || fields.secret === true) && place.key.startsWith('NEXT_PUBLIC_'))
      place.fault(
        `${place.key} is secret, and every browser can read NEXT_PUBLIC_ variables.`,
        'Rename it without NEXT_PUBLIC_.',
      )
    if (fields.default !== undefined && (kind === 'secret' || fields.secret === true))
      place.fault(
        'A secret cannot have a default: it would be in the source.',
        'Remove the default, and set the variable where the program runs.',
        'default',
      )
    else checkSample(place, 'default', sound.default, { ...reading, kind })
    if (typeof sound.example === 'string' && looksSecret(sound.example))
      place.fault(
        'The example looks like a real secret, and documents show it.',
        'Revoke that key, and write an invented example.',
        'example',
      )
    else checkSample(place, 'example', sound.example, { ...reading, kind })
  },
)

/** The default and the example have to be values that the variable itself would take. */
function checkSample(place: Place, what: string, value: unknown, reading: Reading): void {
  const parsed = typeof value === 'string' ? parseValue(reading, value.trim()) : undefined
  if (parsed?.ok === false)
    place.fault(`The variable would not take its own ${what}.`, `Set it to ${parsed.expected}.`, what)
}

/** A variable or a group whose condition it meets itself. */
export function requiresItself(place: Place): void {
  place
    .at('required')
    .fault('It is never missing then: this is what it requires.', 'Name another variable or group.', 'when')
}
