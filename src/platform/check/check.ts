import { isPersonalKey } from '../../core/analytics/personal.ts'
import { isLanguage } from '../../core/course/definition.ts'
import {
  type Fault,
  type Fields,
  fieldsAt,
  formAt,
  knownFieldsAt,
  listAt,
  nameAt,
  namesAt,
  type Place,
  placeIn,
  quoted,
  textAt,
  typeName,
} from './fault.ts'
import { checkGroups } from './groups.ts'
import { checkInsights } from './insights.ts'
import { checkCourses, checkHeartbeats, checkTemplates } from './mails.ts'
import { collectNames, entries, field, type Names, type PresetParts } from './names.ts'
import { checkProbes, checkServices } from './services.ts'

export const SECURITY_FIELDS = [
  'contact',
  'expires',
  'encryption',
  'policy',
  'acknowledgments',
  'languages',
] as const

/** Where a weakness is reported (RFC 9116). */
function checkSecurity(place: Place, value: unknown): void {
  if (value === undefined) return
  const fields = knownFieldsAt(place, value, 'a security contact', SECURITY_FIELDS)
  if (fields === undefined) return
  const contact = place.at('contact')
  if (fields.contact === undefined)
    contact.fault('There is no contact.', "Write it as contact: 'mailto:security@example.com'.")
  else if (typeof fields.contact === 'string')
    checkUri(contact, fields.contact, /^(?:mailto:|tel:|https:\/\/)\S+$/)
  else {
    const contacts = listAt(contact, fields.contact, 'addresses') ?? []
    if (Array.isArray(fields.contact) && contacts.length === 0)
      contact.fault('There is no contact.', "Write it as contact: 'mailto:security@example.com'.")
    for (const [index, one] of contacts.entries())
      checkUri(contact.at(index), one, /^(?:mailto:|tel:|https:\/\/)\S+$/)
  }
  const expires = textAt(place.at('expires'), fields.expires)
  if (
    expires !== undefined &&
    !(/^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/.test(expires) && Date.parse(expires) > 0)
  )
    place.fault(
      `${quoted(expires)} is not a time.`,
      "Write it as expires: '2027-12-31T00:00:00Z', or leave it out.",
      'expires',
    )
  for (const name of ['encryption', 'policy', 'acknowledgments'] as const)
    if (fields[name] !== undefined)
      checkUri(
        place.at(name),
        fields[name],
        name === 'encryption' ? /^(?:https:\/\/|dns:|openpgp4fpr:)\S+$/ : /^https:\/\/\S+$/,
      )
  const languages =
    fields.languages === undefined
      ? []
      : (listAt(place.at('languages'), fields.languages, 'language tags') ?? [])
  for (const [index, tag] of languages.entries())
    if (typeof tag !== 'string' || !isLanguage(tag))
      place
        .at('languages')
        .fault('This is not a language tag.', "Write it as languages: ['en', 'de'].", index)
}

function checkUri(place: Place, value: unknown, form: RegExp): void {
  const text = textAt(place, value)
  if (text !== undefined && !form.test(text))
    place.fault(
      `${quoted(text)} is not an address that this field takes.`,
      'Write it whole: https://…, or mailto:… for a contact.',
    )
}

const EVENT_NAME = {
  pattern: /^[a-z][a-z0-9_-]*(?:\.[a-z][a-z0-9_-]*)+$/,
  what: 'an event kind',
  example: 'kiln.booked',
}
const PROPERTY_NAME = { pattern: /^[A-Za-z][A-Za-z0-9_]{0,63}$/, what: 'a property', example: 'kiln' }

function checkEvents(place: Place, value: unknown, names: Names): void {
  if (value === undefined) return
  for (const [kind, properties] of Object.entries(fieldsAt(place, value, 'events') ?? {})) {
    const here = place.at(kind)
    formAt(here, kind, EVENT_NAME)
    if (names.preset.events.includes(kind))
      here.fault(
        `The preset has the event kind ${kind} already.`,
        'Choose another name, or remove it: that kind is counted anyway.',
      )
    for (const [property, type] of Object.entries(
      fieldsAt(here, properties, 'the properties of an event') ?? {},
    )) {
      formAt(here.at(property), property, PROPERTY_NAME)
      nameAt(here.at(property), type, ['string', 'number', 'boolean'], 'a type of property')
      if (isPersonalKey(property))
        here.fault(
          `${property} reads like personal data, which is never stored.`,
          'Count something that says nothing about a person, or rename it.',
          property,
        )
    }
  }
}

export const BRAND_FIELDS = ['color', 'logo', 'language'] as const

function checkBrand(place: Place, value: unknown): void {
  if (value === undefined) return
  const fields = knownFieldsAt(place, value, 'a brand', BRAND_FIELDS)
  const color = textAt(place.at('color'), fields?.color)
  if (color !== undefined && !/^#(?:[\da-f]{3}|[\da-f]{6})$/i.test(color))
    place.at('color').fault(`${quoted(color)} is not a color.`, "Write it as color: '#9a3412'.")
  const logo = textAt(place.at('logo'), fields?.logo)
  if (logo !== undefined && !/\.(?:png|svg|jpe?g|webp)$/i.test(logo))
    place.fault(
      'The logo is not an image that every browser shows.',
      'Use a PNG, SVG, JPEG or WebP file.',
      'logo',
    )
  const language = textAt(place.at('language'), fields?.language)
  if (language !== undefined && !isLanguage(language))
    place.at('language').fault(`${quoted(language)} is not a language tag.`, "Write it as language: 'de'.")
}

export const DEFINITION_FIELDS = [
  'preset',
  'name',
  'brand',
  'without',
  'services',
  'groups',
  'probes',
  'mails',
  'templates',
  'courses',
  'events',
  'insights',
  'heartbeats',
  'confirmation',
  'unsubscription',
  'challenge',
  'security',
  'folder',
] as const

/** Everything that is wrong with a definition, in its own order; none when it can be used. Reads no file. */
export function checkDefinition(
  definition: unknown,
  presets: Readonly<Record<string, PresetParts>>,
): readonly Fault[] {
  const faults: Fault[] = []
  const place = placeIn(faults)
  const fields = knownFieldsAt(place, definition, 'a definition', DEFINITION_FIELDS)
  if (fields === undefined) return faults
  const names = collectNames(fields, presets)
  if (fields.preset !== undefined) nameAt(place.at('preset'), fields.preset, Object.keys(presets), 'a preset')
  textAt(place.at('name'), fields.name, 60)
  checkBrand(place.at('brand'), fields.brand)
  checkWithout(place.at('without'), fields, names)
  checkServices(place.at('services'), fields.services, names)
  checkGroups(place.at('groups'), fields.groups, names)
  const foreign =
    fields.services === undefined
      ? names.preset.services.filter(({ format }) => format !== undefined).map(({ name }) => name)
      : entries(fields.services).flatMap(([name, service]) =>
          entries(service).some(([field]) => field === 'format') ? [name] : [],
        )
  checkProbes(place.at('probes'), fields.probes, { ...names, foreign })
  checkDependencies(place, fields, names)
  textAt(place.at('mails'), fields.mails)
  checkTemplates(place.at('templates'), fields.templates)
  checkCourses(place.at('courses'), fields.courses, names)
  checkEvents(place.at('events'), fields.events, names)
  const kinds = [...names.preset.events, ...entries(fields.events).map(([kind]) => kind)]
  checkInsights(place.at('insights'), fields.insights, kinds)
  checkHeartbeats(place.at('heartbeats'), fields.heartbeats)
  if (fields.confirmation !== undefined)
    nameAt(place.at('confirmation'), fields.confirmation, ['link', 'button'], 'a way to confirm')
  if (fields.unsubscription !== undefined)
    nameAt(place.at('unsubscription'), fields.unsubscription, ['link', 'button'], 'a way to unsubscribe')
  if (fields.challenge !== undefined && typeof fields.challenge !== 'function')
    place.fault(
      `This is ${typeName(fields.challenge)}, not a function.`,
      'Write a function that answers whether the request may subscribe.',
      'challenge',
    )
  checkSecurity(place.at('security'), fields.security)
  textAt(place.at('folder'), fields.folder, 4096)
  return faults
}

/** Checks `without`: a group can be left out only if nothing that remains needs one of its variables. */
function checkWithout(place: Place, fields: Readonly<Record<string, unknown>>, names: Names): void {
  namesAt(place, fields.without, { known: Object.keys(names.preset.groups), what: 'a group of the preset' })
  const without = (fields.without === undefined ? [] : listAt(placeIn([]), fields.without, 'names')) ?? []
  for (const [index, dropped] of without.entries()) {
    if (typeof dropped !== 'string') continue
    const gone = Object.keys(names.preset.groups[dropped]?.variables ?? {}).filter(
      (name) => !names.variables.includes(name),
    )
    for (const group of names.kept) {
      const needed = (names.preset.groups[group]?.rules ?? []).flatMap((rule) => Object.values(rule).flat())
      const name = needed.find((one) => gone.includes(one))
      if (name !== undefined)
        place.fault(
          `A rule of the group ${group} needs ${name}, which belongs to ${dropped}.`,
          `Keep ${dropped}, or leave that out too.`,
          index,
        )
    }
    // A service may lose its address this way: it is then not probed, as intended.
  }
}

/** Checks `dependsOn` of services and probes: names that exist, and no circle, in which nothing would be the root cause. */
function checkDependencies(place: Place, fields: Fields, { services, probes }: Names): void {
  const known = [...new Set([...services, ...probes.map(({ name }) => name)])]
  const needs = new Map<string, string[]>()
  const need = (name: string, other: string) => needs.set(name, [...(needs.get(name) ?? []), other])
  for (const { service, name } of probes) if (service !== name) need(service, name)
  for (const kind of ['services', 'probes'])
    for (const [name, value] of entries(fields[kind])) {
      const list = field(value, 'dependsOn')
      const here = place.at(kind).at(name).at('dependsOn')
      for (const other of namesAt(here, list, { known, what: 'a probe or a service' })) {
        const way = wayBetween(other, name, needs)
        if (way === undefined) {
          need(name, other)
          continue
        }
        // `namesAt` found it in a list.
        const there = here.at((list as readonly unknown[]).indexOf(other))
        if (other === name) there.fault(`${quoted(name)} depends on itself.`, 'Remove it from the list.')
        else
          there.fault(
            `The dependencies go round in a circle: ${[name, ...way].join(' → ')}.`,
            'Remove one of them. A service depends on its own probes: name the probe that is needed, not its service.',
          )
      }
    }
}

/** The names from one to another, both included, each of which needs the next; undefined if there is no such way. */
function wayBetween(
  from: string,
  to: string,
  needs: ReadonlyMap<string, readonly string[]>,
): readonly string[] | undefined {
  const ways = new Map([[from, [from]]])
  for (const [name, way] of ways) {
    if (name === to) return way
    for (const next of needs.get(name) ?? []) if (!ways.has(next)) ways.set(next, [...way, next])
  }
  return undefined
}
