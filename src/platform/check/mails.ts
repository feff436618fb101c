import { isTimeZone, NOTICES } from '../../core/course/definition.ts'
import { DAY_MS } from '../../core/durations.ts'
import { type CourseInput, type HeartbeatInput, type TemplateInput, WEEKDAYS } from '../definition.ts'
import type { Names } from './names.ts'
import type { Place } from './place.ts'
import { called, code, duration, like, list, map, needed, object, oneOf, someOf, text } from './shape.ts'

/** Refuses what works only with the group mail, which brings its routes, where that was left out. */
function needsMail({ fault }: Place, { preset, groups }: Names) {
  if ('mail' in preset.groups && !groups.includes('mail'))
    fault('This needs the group mail, which is left out.', 'Keep mail: it is off until you configure it.')
}

const TEMPLATE_NAME = called(/^[a-z][a-z0-9-]{0,60}$/, 'a template', 'booking-confirmed')
const SLOT_NAME = called(/^[a-z][A-Za-z0-9]{0,40}$/, 'a slot', 'bookingUrl')
const INPUT_NAME = called(/^[a-z][A-Za-z0-9]{0,40}$/, 'an input', 'bookingId')

export const template = object<TemplateInput>(
  'a template',
  {
    slots: map('slots', SLOT_NAME, oneOf(['text', 'url'], 'a type of slot')),
    by: oneOf(['person', 'service'], 'somebody who can ask'),
    inputs: list('names', INPUT_NAME, 0, true),
    resolve: code('Write resolve: async (inputs, context) => ({ to, slots, about }).'),
  },
  (place, { by, inputs, resolve }, names) => {
    if (by !== undefined) needsMail(place, names)
    if (by !== undefined && resolve === undefined)
      place.fault(
        'Somebody may ask for this mail, and nothing says who gets it.',
        'Add resolve: a function that gives { to, slots, about } from your own records.',
        'resolve',
      )
    if (by === undefined && (inputs !== undefined || resolve !== undefined))
      place.fault(
        'The template says what a request holds, and nobody may make one.',
        "Add by: 'person' or by: 'service', or remove inputs and resolve.",
      )
  },
)
export const templates = map('templates', TEMPLATE_NAME, template)

const COURSE_NAME = called(/^[a-z][a-z0-9-]{0,60}$/, 'a course', 'first-firing')
const readers = oneOf(['public', 'link'], 'a choice of readers, or false')

export const course = object<CourseInput>(
  'a course',
  {
    lessons: needed(
      text(),
      'The course has no lessons.',
      "Name their folder: lessons: './courses/first-firing'.",
    ),
    title: text(120),
    every: duration(900_000, 90 * DAY_MS, "'2d'", 'from 15 minutes to 90 days'),
    at: like(/^(?:[01]\d|2[0-3]):[0-5]\d$/, 'a local hour', "Write it as at: '09:00'."),
    zone: like(
      (zone) => zone === 'subscriber' || isTimeZone(zone),
      'an IANA time zone',
      "Write it as zone: 'Europe/Berlin', or zone: 'subscriber'.",
    ),
    on: someOf(WEEKDAYS, 'a weekday', 1),
    spacing: duration(0, 90 * DAY_MS, "'12h'", 'of at most 90 days'),
    follow: oneOf(['latest'], 'a version to follow'),
    pages: (place, value, names) => value === false || readers(place, value, names),
  },
  ({ fault }, { every, at, zone, on }) => {
    if (every !== undefined && at !== undefined)
      fault('The course has a cadence and an hour at once, every and at.', 'Keep one of the two.')
    if (zone !== undefined && at === undefined)
      fault('A time zone means nothing without an hour.', "Add at: '09:00', or remove the zone.", 'zone')
    if (on !== undefined && at === undefined)
      fault('Weekdays mean nothing without an hour.', "Add at: '09:00', or remove them.", 'on')
  },
)

export const courses = map('courses', COURSE_NAME, (place, of, names) => {
  if (place.key === NOTICES)
    place.fault('Mails about incidents go by the name status.', 'Choose another id for the course.')
  if (names.preset.courses.some(({ id }) => id === place.key))
    place.fault(`The preset has a course ${place.key} already.`, 'Choose another id.')
  needsMail(place, names)
  course(place, of, names)
})

const HEARTBEAT_NAME = called(/^[a-z][a-z0-9-]{0,40}$/, 'a heartbeat', 'backup')

export const heartbeat = object<HeartbeatInput>(
  'a heartbeat',
  {
    every: needed(
      duration(60_000, 366 * DAY_MS, "'1d'", 'from a minute to a year'),
      'Nothing says how often this heartbeat is due.',
      "Add every: '1d'.",
    ),
    grace: duration(0, 366 * DAY_MS, "'1d'", 'of at most a year'),
    label: text(60),
  },
  // EMAIL_DISPATCH_SECRET, by which a job reports, is of this group.
  (place, _, names) => needsMail(place, names),
)
export const heartbeats = map('heartbeats', HEARTBEAT_NAME, heartbeat)
