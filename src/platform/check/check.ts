import { isPersonalKey } from '../../core/analytics/personal.ts'
import { isLanguage } from '../../core/course/definition.ts'
import { instantOf } from '../../core/durations.ts'
import type { PlatformDefinition, SecurityInput } from '../definition.ts'
import { groups } from './groups.ts'
import { insights } from './insights.ts'
import { courses, heartbeats, templates } from './mails.ts'
import { collectNames, entries, field, type Names, type PresetParts, textOf } from './names.ts'
import { type Fault, type Place, placeIn, quoted } from './place.ts'
import { probes, services } from './services.ts'
import { type Check, called, code, like, list, map, needed, object, oneOf, someOf, text } from './shape.ts'

const uri = (form: RegExp) =>
  like(form, 'an address that this field takes', 'Write it whole: https://…, or mailto:… for a contact.')
const contact = uri(/^(?:mailto:|tel:|https:\/\/)\S+$/)
const NO_CONTACT = ['There is no contact.', "Write it as contact: 'mailto:security@example.com'."] as const

/** Where a weakness is reported (RFC 9116). */
export const security = object<SecurityInput>('a security contact', {
  contact: needed(
    (place, value, names) => {
      if (typeof value === 'string') return contact(place, value, names)
      return Array.isArray(value) && value.length === 0
        ? place.fault(...NO_CONTACT)
        : list('addresses', contact)(place, value, names)
    },
    ...NO_CONTACT,
  ),
  expires: like(
    (time) => /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/.test(time) && instantOf(time) > 0,
    'a time',
    "Write it as expires: '2027-12-31T00:00:00Z', or leave it out.",
  ),
  encryption: uri(/^(?:https:\/\/|dns:|openpgp4fpr:)\S+$/),
  policy: uri(/^https:\/\/\S+$/),
  acknowledgments: uri(/^https:\/\/\S+$/),
  languages: list(
    'language tags',
    like(isLanguage, 'a language tag', "Write it as languages: ['en', 'de']."),
  ),
})

export const brand = object<NonNullable<PlatformDefinition['brand']>>('a brand', {
  color: like(/^#(?:[\da-f]{3}|[\da-f]{6})$/i, 'a color', "Write it as color: '#9a3412'."),
  logo: like(
    /\.(?:png|svg|jpe?g|webp)$/i,
    'an image that every browser shows',
    'Use a PNG, SVG, JPEG or WebP file.',
  ),
  language: like(isLanguage, 'a language tag', "Write it as language: 'de'."),
})

const EVENT_NAME = called(/^[a-z][a-z0-9_-]*(?:\.[a-z][a-z0-9_-]*)+$/, 'an event kind', 'kiln.booked')
const PROPERTY_NAME = called(/^[A-Za-z][A-Za-z0-9_]{0,63}$/, 'a property', 'kiln')
const propertyType = oneOf(['string', 'number', 'boolean'], 'a type of property')

const properties = map('the properties of an event', PROPERTY_NAME, (place, type, names) => {
  propertyType(place, type, names)
  if (isPersonalKey(place.key))
    place.fault(
      `${place.key} reads like personal data, which is never stored.`,
      'Count something that says nothing about a person, or rename it.',
    )
})

const events = map('events', EVENT_NAME, (place, of, names) => {
  if (names.preset.events.some(({ name }) => name === place.key))
    place.fault(
      `The preset has the event kind ${place.key} already.`,
      'Choose another name, or remove it: that kind is counted anyway.',
    )
  properties(place, of, names)
})

/** Names of groups to leave out: one can be only if nothing that remains needs one of its variables. */
const without: Check = (place, value, names) => {
  const { preset, kept } = names
  someOf(Object.keys(preset.groups), 'a group of the preset')(place, value, names)
  for (const [index, name] of (Array.isArray(value) ? value : []).entries()) {
    const dropped = textOf(name)
    const gone = Object.keys(preset.groups[dropped]?.variables ?? {}).filter(
      (name) => !names.variables.includes(name),
    )
    for (const group of kept) {
      const needs = (preset.groups[group]?.rules ?? []).flatMap((rule) => Object.values(rule).flat())
      const needed = needs.find((one) => gone.includes(one))
      if (needed !== undefined)
        place.fault(
          `A rule of the group ${group} needs ${needed}, which belongs to ${dropped}.`,
          `Keep ${dropped}, or leave that out too.`,
          index,
        )
    }
    // A service may lose its address this way: it is then not probed, as intended.
  }
}

/** `dependsOn` of services and probes: names that exist, and no circle, in which nothing would be the root cause. */
function checkDependencies(place: Place, definition: unknown, names: Names): void {
  const known = [...new Set([...names.services, ...names.probes.map(({ name }) => name)])]
  const needs = new Map<string, string[]>()
  const need = (name: string, other: string) => needs.set(name, [...(needs.get(name) ?? []), other])
  for (const { service, name } of names.probes) if (service !== name) need(service, name)
  for (const kind of ['services', 'probes'])
    for (const [name, of] of entries(field(definition, kind))) {
      const here = place.at(kind).at(name).at('dependsOn')
      const asked = field(of, 'dependsOn')
      if (asked === undefined) continue
      const dependencies = someOf(known, 'a probe or a service')(here, asked, names)
      for (const [index, other] of (Array.isArray(dependencies) ? dependencies : []).entries()) {
        if (typeof other !== 'string') continue
        const way = wayBetween(other, name, needs)
        if (way === undefined) need(name, other)
        else if (other === name)
          here.fault(`${quoted(name)} depends on itself.`, 'Remove it from the list.', index)
        else
          here.fault(
            `The dependencies go round in a circle: ${[name, ...way].join(' → ')}.`,
            'Remove one of them. A service depends on its own probes: name the probe that is needed, not its service.',
            index,
          )
      }
    }
}

/** The names from one to another, both included, each of which needs the next; undefined if there is no such way. */
function wayBetween(from: string, to: string, needs: ReadonlyMap<string, readonly string[]>) {
  const ways = new Map([[from, [from]]])
  for (const [name, way] of ways) {
    if (name === to) return way
    for (const next of needs.get(name) ?? []) if (!ways.has(next)) ways.set(next, [...way, next])
  }
  return undefined
}

export const definition = object<PlatformDefinition>(
  'a definition',
  {
    preset: oneOf(({ presets }) => presets, 'a preset'),
    name: text(60),
    brand,
    without,
    services,
    groups,
    probes,
    mails: text(),
    templates,
    courses,
    events,
    insights,
    heartbeats,
    confirmation: oneOf(['link', 'button'], 'a way to confirm'),
    unsubscription: oneOf(['link', 'button'], 'a way to unsubscribe'),
    challenge: code('Write a function that answers whether the request may subscribe.'),
    security,
    folder: text(4096),
  },
  checkDependencies,
)

/** Everything that is wrong with a definition, in its own order; none when it can be used. Reads no file. */
export function checkDefinition(exported: unknown, presets: Readonly<Record<string, PresetParts>>) {
  const faults: Fault[] = []
  definition(placeIn(faults), exported, collectNames(exported, presets))
  return faults
}
