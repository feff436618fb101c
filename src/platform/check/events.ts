import { isPersonalKey } from '../../core/analytics/personal.ts'
import { fieldsAt, formAt, nameAt, type Place } from './fault.ts'
import type { Names } from './names.ts'

const EVENT_NAME = {
  pattern: /^[a-z][a-z0-9_-]*(?:\.[a-z][a-z0-9_-]*)+$/,
  what: 'an event kind',
  example: 'kiln.booked',
}
const PROPERTY_NAME = { pattern: /^[A-Za-z][A-Za-z0-9_]{0,63}$/, what: 'a property', example: 'kiln' }

export function checkEvents(place: Place, value: unknown, names: Names): void {
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
      nameAt(here.at(property), type, { known: ['string', 'number', 'boolean'], what: 'a type of property' })
      if (isPersonalKey(property))
        here
          .at(property)
          .fault(
            `${property} reads like personal data, which is never stored.`,
            'Count something that says nothing about a person, or rename it.',
          )
    }
  }
}
