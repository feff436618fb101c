import {
  KINDS,
  type Kind,
  parseValue,
  type Reading,
  type StandardSchema,
  VALUE_KINDS,
} from '../../core/env/kinds.ts'
import { looksSecret } from '../../core/env/warnings.ts'
import {
  booleanAt,
  type Fields,
  knownFieldsAt,
  listAt,
  nameAt,
  namesAt,
  type Place,
  quoted,
  textAt,
  typeName,
} from './fault.ts'
import type { Names } from './names.ts'

export const VARIABLE_FIELDS = [
  'kind',
  'summary',
  'example',
  'default',
  'required',
  'malformed',
  'services',
  'secret',
  'chosen',
  'rotates',
  'perReplica',
  'adjusts',
  'range',
  'pattern',
  'of',
  'prefixes',
  'schema',
] as const

const MEASURED = VALUE_KINDS.filter((kind) => 'measured' in KINDS[kind])

export function checkVariable(place: Place, name: string, value: unknown, names: Names): void {
  const fields = knownFieldsAt(place, value, 'a variable', VARIABLE_FIELDS)
  if (fields === undefined) return
  const kind = checkKind(place, fields)
  textAt(place.at('summary'), fields.summary)
  for (const flag of ['secret', 'chosen', 'rotates', 'perReplica', 'adjusts'] as const)
    booleanAt(place.at(flag), fields[flag])
  checkReaders(place.at('services'), fields.services, names)
  checkRequired(place.at('required'), fields.required, names, [name])
  if (fields.required === true && fields.default !== undefined)
    place.fault(
      'The variable has a default, so it is never missing.',
      'Remove required, or the default.',
      'required',
    )
  if (fields.malformed !== undefined)
    nameAt(place.at('malformed'), fields.malformed, ['warn'], 'a way to take a malformed value')
  const secret = kind === 'secret' || fields.secret === true
  if (secret && name.startsWith('NEXT_PUBLIC_'))
    place.fault(
      `${name} is secret, and every browser can read NEXT_PUBLIC_ variables.`,
      'Rename it without NEXT_PUBLIC_.',
    )
  checkPrefixes(place.at('prefixes'), fields.prefixes)
  const before = place.at('of')
  const of = checkValues(before, fields.of, kind)
  const range = checkRange(place.at('range'), fields.range, kind)
  const pattern = checkPattern(place.at('pattern'), fields.pattern)
  const schema = checkSchema(place.at('schema'), fields.schema)
  checkSamples(
    place,
    fields,
    secret,
    kind && {
      kind,
      ...(of && { of }),
      ...(range && { range }),
      ...(pattern && { pattern }),
      ...(schema && { schema }),
    },
  )
}

function checkKind(place: Place, fields: Fields): Kind | undefined {
  if (fields.kind === undefined && fields.schema !== undefined) return 'text'
  const kind = nameAt(place.at('kind'), fields.kind, VALUE_KINDS, 'a kind of value')
  return VALUE_KINDS.find((known) => known === kind)
}

/** When a variable or a group is required; `own` are the names with which it would require itself. */
export function checkRequired(place: Place, value: unknown, names: Names, own: readonly string[]): void {
  if (value === undefined || value === true) return
  if (value === 'production') {
    if (!names.variables.includes('DEPLOY_ENVIRONMENT'))
      place.fault(
        'Nothing says what is production: this platform has no DEPLOY_ENVIRONMENT.',
        'Keep the group site of the preset, or declare DEPLOY_ENVIRONMENT.',
      )
    return
  }
  if (typeof value !== 'object') {
    const given = typeof value === 'string' ? quoted(value) : typeName(value)
    place.fault(`This is ${given}, not when it is required.`, "Write true, 'production' or { when: 'NAME' }.")
    return
  }
  const fields = knownFieldsAt(place, value, 'a condition', ['when'])
  if (fields === undefined) return
  const known = [...names.variables, ...names.groups]
  const when = nameAt(place.at('when'), fields.when, known, 'a variable or a group of this platform')
  if (when !== undefined && own.includes(when))
    place.fault(
      'It is never missing then: this is what it requires.',
      'Name another variable or group.',
      'when',
    )
}

/** Services that read a group or a variable: a list of names, or `all`. */
export function checkReaders(place: Place, value: unknown, names: Names): void {
  if (value === 'all') return
  namesAt(place, value, { known: names.services, what: 'a service', atLeast: 1 })
}

function checkValues(place: Place, value: unknown, kind: Kind | undefined): readonly string[] | undefined {
  if (kind === 'enum' && value === undefined)
    return place.fault('An enum has to say which values it takes.', "List them: of: ['eu', 'us'].")
  if (kind !== undefined && kind !== 'enum' && value !== undefined)
    return place.fault(
      `Only an enum lists its values, and this is of the kind ${kind}.`,
      "Set kind: 'enum', or remove this field.",
    )
  const list = listAt(place, value, 'values')
  if (list?.length === 0) return place.fault('The list is empty.', 'Name at least one value.')
  let sound = true
  for (const [index, entry] of (list ?? []).entries()) {
    const said = textAt(place.at(index), entry)
    if (said === undefined && entry === undefined)
      place.at(index).fault('This is missing, not text.', 'Write a text in quotes.')
    if (said !== undefined && said !== said.trim())
      place.fault(
        'The value begins or ends with a space, and values are trimmed.',
        'Remove the space.',
        index,
      )
    else if (said !== undefined && list?.indexOf(entry) !== index)
      place.at(index).fault(`${said} is in this list twice.`, 'Remove one of the two.')
    else if (said !== undefined) continue
    sound = false
  }
  // Every entry was seen to be text.
  return sound ? (list as readonly string[] | undefined) : undefined
}

function checkRange(
  place: Place,
  value: unknown,
  kind: Kind | undefined,
): readonly [number, number] | undefined {
  if (value === undefined) return undefined
  if (kind !== undefined && !MEASURED.includes(kind))
    return place.fault(
      `A range bounds a number, and this is of the kind ${kind}.`,
      `Use it with ${MEASURED.join(', ')}, or remove it.`,
    )
  const [low, high, ...rest] = Array.isArray(value) ? (value as readonly unknown[]) : []
  if (
    typeof low !== 'number' ||
    typeof high !== 'number' ||
    rest.length > 0 ||
    !(Number.isFinite(low) && Number.isFinite(high))
  )
    return place.fault('A range is two numbers.', 'Write it as [lowest, highest].')
  if (low > high) return place.fault('The range ends before it begins.', `Write it as [${high}, ${low}].`)
  return [low, high]
}

function checkPattern(place: Place, value: unknown): RegExp | undefined {
  if (value === undefined) return undefined
  try {
    if (typeof value === 'string') return new RegExp(`^(?:${value})$`)
    if (value instanceof RegExp) return new RegExp(`^(?:${value.source})$`, value.flags.replace(/[gy]/g, ''))
  } catch {
    return place.fault(
      'The pattern is not a regular expression.',
      'Correct it; a backslash in quotes is written twice.',
    )
  }
  return place.fault(
    `This is ${typeName(value)}, not a pattern.`,
    'Write a regular expression, as text or as /…/.',
  )
}

function checkSchema(place: Place, value: unknown): StandardSchema | undefined {
  if (value === undefined) return undefined
  const standard: unknown =
    (typeof value === 'object' || typeof value === 'function') && value !== null && '~standard' in value
      ? value['~standard']
      : undefined
  if (
    typeof standard === 'object' &&
    standard !== null &&
    'validate' in standard &&
    typeof standard.validate === 'function'
  )
    // It has the one function that is called.
    return value as StandardSchema
  return place.fault(
    `This is ${typeName(value)}, not a Standard Schema.`,
    'Give a schema of Zod, Valibot, ArkType or another library that follows standardschema.dev.',
  )
}

function checkPrefixes(place: Place, value: unknown): void {
  if (value === undefined) return
  const fields = knownFieldsAt(place, value, 'prefixes', ['live', 'test'])
  for (const mode of fields ? (['live', 'test'] as const) : []) {
    const list = listAt(place.at(mode), fields?.[mode] ?? null, 'prefixes')
    if (list?.length === 0) place.at(mode).fault('The list is empty.', 'Name at least one prefix.')
    for (const [index, entry] of (list ?? []).entries())
      if (typeof entry !== 'string' || entry === '')
        place
          .at(mode)
          .fault(`This is ${typeName(entry)}, not a prefix.`, "Write it as text, such as 'sk_live_'.", index)
  }
}

/** The default and the example have to be values that the variable itself would take. */
function checkSamples(place: Place, fields: Fields, secret: boolean, reading: Reading | undefined): void {
  const unset = fields.default
  if (unset !== undefined && secret)
    place.fault(
      'A secret cannot have a default: it would be in the source.',
      'Remove the default, and set the variable where the program runs.',
      'default',
    )
  else if (unset !== undefined && !['string', 'number', 'boolean'].includes(typeof unset))
    place.fault(
      `This is ${typeName(unset)}, not a value.`,
      'Write the default as it would be in an env file.',
      'default',
    )
  else if (unset !== undefined && reading) checkSample(place.at('default'), 'default', String(unset), reading)
  const example = fields.example === '' ? undefined : textAt(place.at('example'), fields.example)
  if (example === undefined) return
  if (looksSecret(example))
    place.fault(
      'The example looks like a real secret, and documents show it.',
      'Revoke that key, and write an invented example.',
      'example',
    )
  else if (reading) checkSample(place.at('example'), 'example', example, reading)
}

function checkSample(place: Place, what: string, text: string, reading: Reading): void {
  const parsed = parseValue(reading, text.trim())
  if (!parsed.ok) place.fault(`The variable would not take its own ${what}.`, `Set it to ${parsed.expected}.`)
}
