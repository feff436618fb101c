import type { InsightsColumn, InsightsSection } from '../../core/analytics/insights.ts'
import type { PlatformDefinition } from '../definition.ts'
import { field, textOf } from './names.ts'
import { type Check, called, flag, list, map, needed, object, oneOf, text } from './shape.ts'

const SECTION_ID = called(/^[a-z][a-z0-9-]{0,40}$/, 'a section', 'firings')
/** Ids that the page has already; a section makes `ID`, `ID-head` and `ID-tile`. */
const TAKEN = [
  ...['total', 'active-days', 'current-streak', 'longest-streak', 'kinds', 'kinds-head'],
  ...['activity-head', 'activity-chart', 'activity-readout', 'activity-table'],
  ...['range', 'kind', 'fresh', 'sample', 'show-sample', 'hide-sample'],
  ...['own-head', 'kept', 'record', 'recording', 'export', 'delete', 'said', 'asking', 'asking-head'],
]

const written = needed(text(120), 'This is missing.', 'Write a text in quotes.')
const eventKind = oneOf(({ events }) => events, 'an event kind')

export const column = object<InsightsColumn>(
  'a column',
  {
    head: written,
    kind: needed(eventKind),
    compute: needed(oneOf(['count', 'true', 'max', 'mean'], 'something that can be computed')),
    property: text(),
  },
  (place, { compute, property }) => {
    if (property === undefined && ['true', 'max', 'mean'].includes(textOf(compute)))
      place.fault(
        `${textOf(compute)} is computed from a property, and none is named.`,
        "Add property: 'cones'.",
        'property',
      )
  },
)

export const section = object<InsightsSection>(
  'a section',
  {
    id: needed((place, value, names) => {
      const id = written(place, value, names)
      return id === undefined ? undefined : SECTION_ID(place, id, names)
    }),
    heading: written,
    caption: written,
    empty: written,
    by: list('properties', written),
    rowHead: written,
    columns: needed((place, value, names) =>
      Array.isArray(value ?? []) && [value ?? []].flat().length === 0
        ? place.fault(
            'The section has no columns.',
            "Add one: { head: 'Firings', kind: 'kiln.booked', compute: 'count' }.",
          )
        : list('columns', column)(place, value, names),
    ),
    order: oneOf(['name', 'most'], 'an order'),
    bars: flag,
    tile: object<NonNullable<InsightsSection['tile']>>('a tile', { label: written, column: () => undefined }),
  },
  (place, { columns, tile }, names, sound) => {
    const heads = [columns].flat().flatMap((one) => field(one, 'head') ?? [])
    const here = place.at('tile').at('column')
    if (sound.tile !== undefined)
      oneOf(heads.map(String), 'the head of a column')(here, field(tile, 'column'), names)
  },
)

/** Sections of the page, no two of which make the same id. */
const sections: Check = (place, value, names) => {
  const seen = new Set(TAKEN)
  const each: Check = (here, one) => {
    section(here, one, names)
    const id = field(one, 'id')
    if (typeof id !== 'string') return
    const made = [id, `${id}-head`, `${id}-tile`]
    if (made.some((part) => seen.has(part)))
      here.fault(`The page has a part ${id} already.`, 'Choose another id.', 'id')
    for (const part of made) seen.add(part)
  }
  list('sections', each)(place, value, names)
}

export const insights = object<NonNullable<PlatformDefinition['insights']>>('the insights', {
  labels: map('labels', undefined, (place, label, names) => {
    eventKind(place, place.key, names)
    written(place, label, names)
  }),
  sections,
})
