import { isTimeZone } from '../../core/course/definition.ts'
import { NOTICES } from '../../core/course/notices.ts'
import { DAY_MS } from '../../core/durations.ts'
import {
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
import type { Names } from './names.ts'
import { checkDuration } from './services.ts'

const TEMPLATE_NAME = { pattern: /^[a-z][a-z0-9-]{0,60}$/, what: 'a template', example: 'booking-confirmed' }
const SLOT_NAME = { pattern: /^[a-z][A-Za-z0-9]{0,40}$/, what: 'a slot', example: 'bookingUrl' }
const INPUT_NAME = { pattern: /^[a-z][A-Za-z0-9]{0,40}$/, what: 'an input', example: 'bookingId' }
export const TEMPLATE_FIELDS = ['slots', 'by', 'inputs', 'resolve'] as const

export function checkTemplates(place: Place, value: unknown): void {
  if (value === undefined) return
  for (const [name, template] of Object.entries(fieldsAt(place, value, 'templates') ?? {})) {
    const here = place.at(name)
    formAt(here, name, TEMPLATE_NAME)
    const fields = knownFieldsAt(here, template, 'a template', TEMPLATE_FIELDS)
    if (fields === undefined) continue
    const slots = fields.slots === undefined ? {} : fieldsAt(here.at('slots'), fields.slots, 'slots')
    for (const [slot, type] of Object.entries(slots ?? {})) {
      formAt(here.at('slots').at(slot), slot, SLOT_NAME)
      nameAt(here.at('slots').at(slot), type, ['text', 'url'], 'a type of slot')
    }
    const inputs = listAt(here.at('inputs'), fields.inputs, 'names') ?? []
    for (const [index, input] of inputs.entries()) {
      const there = here.at('inputs').at(index)
      if (typeof input !== 'string')
        there.fault(`This is ${typeName(input)}, not a name.`, "Name the input, as 'bookingId'.")
      else if (inputs.indexOf(input) < index)
        there.fault(`${input} is in this list twice.`, 'Remove one of the two.')
      else formAt(there, input, INPUT_NAME)
    }
    checkAsk(here, fields)
  }
}

function checkAsk(place: Place, fields: Readonly<Record<string, unknown>>): void {
  if (fields.by !== undefined)
    nameAt(place.at('by'), fields.by, ['person', 'service'], 'somebody who can ask')
  if (fields.by !== undefined && fields.resolve === undefined)
    place.fault(
      'Somebody may ask for this mail, and nothing says who gets it.',
      'Add resolve: a function that gives { to, slots, about } from your own records.',
      'resolve',
    )
  if (fields.resolve !== undefined && typeof fields.resolve !== 'function')
    place.fault(
      `This is ${typeName(fields.resolve)}, not a function.`,
      'Write resolve: async (inputs, context) => ({ to, slots, about }).',
      'resolve',
    )
  if (fields.by === undefined && (fields.inputs !== undefined || fields.resolve !== undefined))
    place.fault(
      'The template says what a request holds, and nobody may make one.',
      "Add by: 'person' or by: 'service', or remove inputs and resolve.",
    )
}

export const COURSE_FIELDS = [
  'lessons',
  'title',
  'every',
  'at',
  'zone',
  'on',
  'spacing',
  'follow',
  'pages',
] as const
const COURSE_NAME = { pattern: /^[a-z][a-z0-9-]{0,60}$/, what: 'a course', example: 'first-firing' }
const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const

export function checkCourses(place: Place, value: unknown, names: Names): void {
  if (value === undefined) return
  for (const [id, course] of Object.entries(fieldsAt(place, value, 'courses') ?? {})) {
    const here = place.at(id)
    formAt(here, id, COURSE_NAME)
    if (id === NOTICES)
      here.fault('Mails about incidents go by the name status.', 'Choose another id for the course.')
    if (names.preset.courses.includes(id))
      here.fault(`The preset has a course ${id} already.`, 'Choose another id.')
    const fields = knownFieldsAt(here, course, 'a course', COURSE_FIELDS)
    if (fields === undefined) continue
    if (fields.lessons === undefined)
      here.fault(
        'The course has no lessons.',
        "Name their folder: lessons: './courses/first-firing'.",
        'lessons',
      )
    textAt(here.at('lessons'), fields.lessons)
    textAt(here.at('title'), fields.title, 120)
    checkTimes(here, fields)
    checkDuration(here.at('spacing'), fields.spacing, {
      low: 0,
      high: 90 * DAY_MS,
      form: "'12h'",
      bounds: 'of at most 90 days',
    })
    if (fields.follow !== undefined)
      nameAt(here.at('follow'), fields.follow, ['latest'], 'a version to follow')
    if (fields.pages !== undefined && fields.pages !== false)
      nameAt(here.at('pages'), fields.pages, ['public', 'link'], 'a choice of readers, or false')
  }
}

function checkTimes(place: Place, fields: Readonly<Record<string, unknown>>): void {
  const { every, at, zone, on } = fields
  checkDuration(place.at('every'), every, {
    low: 900_000,
    high: 90 * DAY_MS,
    form: "'2d'",
    bounds: 'from 15 minutes to 90 days',
  })
  if (every !== undefined && at !== undefined)
    place.fault('The course has a cadence and an hour at once, every and at.', 'Keep one of the two.')
  if (at !== undefined && !(typeof at === 'string' && /^(?:[01]\d|2[0-3]):[0-5]\d$/.test(at)))
    place.fault(
      `This is ${typeof at === 'string' ? quoted(at) : typeName(at)}, not a local hour.`,
      "Write it as at: '09:00'.",
      'at',
    )
  if (zone !== undefined && zone !== 'subscriber' && !(typeof zone === 'string' && isTimeZone(zone)))
    place.fault(
      `${quoted(zone)} is not an IANA time zone.`,
      "Write it as zone: 'Europe/Berlin', or zone: 'subscriber'.",
      'zone',
    )
  if (zone !== undefined && at === undefined)
    place.fault('A time zone means nothing without an hour.', "Add at: '09:00', or remove the zone.", 'zone')
  namesAt(place.at('on'), on, { known: WEEKDAYS, what: 'a weekday', atLeast: 1 })
  if (on !== undefined && at === undefined)
    place.at('on').fault('Weekdays mean nothing without an hour.', "Add at: '09:00', or remove them.")
}

export const HEARTBEAT_FIELDS = ['every', 'grace', 'label'] as const
const HEARTBEAT_NAME = { pattern: /^[a-z][a-z0-9-]{0,40}$/, what: 'a heartbeat', example: 'backup' }

export function checkHeartbeats(place: Place, value: unknown): void {
  if (value === undefined) return
  for (const [name, heartbeat] of Object.entries(fieldsAt(place, value, 'heartbeats') ?? {})) {
    const here = place.at(name)
    formAt(here, name, HEARTBEAT_NAME)
    const fields = knownFieldsAt(here, heartbeat, 'a heartbeat', HEARTBEAT_FIELDS)
    if (fields === undefined) continue
    if (fields.every === undefined)
      here.at('every').fault('Nothing says how often this heartbeat is due.', "Add every: '1d'.")
    const bounds = { low: 60_000, high: 366 * DAY_MS, form: "'1d'", bounds: 'from a minute to a year' }
    checkDuration(here.at('every'), fields.every, bounds)
    checkDuration(here.at('grace'), fields.grace, { ...bounds, low: 0, bounds: 'of at most a year' })
    textAt(here.at('label'), fields.label, 60)
  }
}
