import { checkBrand } from './brand.ts'
import { checkDependencies } from './dependencies.ts'
import { checkEvents } from './events.ts'
import {
  type Fault,
  knownFieldsAt,
  listAt,
  nameAt,
  namesAt,
  type Place,
  placeIn,
  textAt,
  typeName,
} from './fault.ts'
import { checkGroups } from './groups.ts'
import { checkInsights } from './insights.ts'
import { checkCourses, checkHeartbeats, checkTemplates } from './mails.ts'
import { collectNames, entries, type Names, type PresetParts } from './names.ts'
import { checkSecurity } from './security.ts'
import { checkProbes, checkServices } from './services.ts'

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
  if (fields.preset !== undefined)
    nameAt(place.at('preset'), fields.preset, { known: Object.keys(presets), what: 'a preset' })
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
    nameAt(place.at('confirmation'), fields.confirmation, {
      known: ['link', 'button'],
      what: 'a way to confirm',
    })
  if (fields.unsubscription !== undefined)
    nameAt(place.at('unsubscription'), fields.unsubscription, {
      known: ['link', 'button'],
      what: 'a way to unsubscribe',
    })
  if (fields.challenge !== undefined && typeof fields.challenge !== 'function')
    place
      .at('challenge')
      .fault(
        `This is ${typeName(fields.challenge)}, not a function.`,
        'Write a function that answers whether the request may subscribe.',
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
        place
          .at(index)
          .fault(
            `A rule of the group ${group} needs ${name}, which belongs to ${dropped}.`,
            `Keep ${dropped}, or leave that out too.`,
          )
    }
    // A service may lose its address this way: it is then not probed, as intended.
  }
}
