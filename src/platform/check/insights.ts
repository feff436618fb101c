import {
  booleanAt,
  fieldsAt,
  formAt,
  knownFieldsAt,
  listAt,
  nameAt,
  type Place,
  textAt,
  typeName,
} from './fault.ts'

export const INSIGHTS_FIELDS = ['labels', 'sections'] as const
export const SECTION_FIELDS = [
  'id',
  'heading',
  'caption',
  'empty',
  'by',
  'rowHead',
  'columns',
  'order',
  'bars',
  'tile',
] as const
export const COLUMN_FIELDS = ['head', 'kind', 'compute', 'property'] as const
const SECTION_ID = { pattern: /^[a-z][a-z0-9-]{0,40}$/, what: 'a section', example: 'firings' }
/** Ids that the page has already; a section makes `ID`, `ID-head` and `ID-tile`. */
const TAKEN = [
  ...['total', 'active-days', 'current-streak', 'longest-streak', 'kinds', 'kinds-head'],
  ...['activity-head', 'activity-chart', 'activity-readout', 'activity-table'],
  ...['range', 'kind', 'fresh', 'sample', 'show-sample', 'hide-sample'],
  ...['own-head', 'kept', 'record', 'recording', 'export', 'delete', 'said', 'asking', 'asking-head'],
]

/** `kinds`: the event kinds that the platform counts. */
export function checkInsights(place: Place, value: unknown, kinds: readonly string[]): void {
  if (value === undefined) return
  const fields = knownFieldsAt(place, value, 'the insights', INSIGHTS_FIELDS)
  const labels = fields?.labels === undefined ? {} : fieldsAt(place.at('labels'), fields.labels, 'labels')
  for (const [kind, label] of Object.entries(labels ?? {})) {
    nameAt(place.at('labels').at(kind), kind, kinds, 'an event kind')
    needed(place.at('labels').at(kind), label)
  }
  const sections = place.at('sections')
  const seen: unknown[] = []
  for (const [index, section] of (listAt(sections, fields?.sections, 'sections') ?? []).entries())
    checkSection(sections.at(index), section, { kinds, seen })
}

function checkSection(
  place: Place,
  value: unknown,
  { kinds, seen }: { readonly kinds: readonly string[]; readonly seen: unknown[] },
): void {
  const fields = knownFieldsAt(place, value, 'a section', SECTION_FIELDS)
  if (fields === undefined) return
  const id = needed(place.at('id'), fields.id)
  if (id !== undefined) {
    formAt(place.at('id'), id, SECTION_ID)
    const made = [id, `${id}-head`, `${id}-tile`]
    if (made.some((one) => seen.includes(one) || TAKEN.includes(one)))
      place.at('id').fault(`The page has a part ${id} already.`, 'Choose another id.')
    seen.push(...made)
  }
  for (const name of ['heading', 'caption', 'empty', 'rowHead'] as const) needed(place.at(name), fields[name])
  for (const [index, property] of (listAt(place.at('by'), fields.by, 'properties') ?? []).entries())
    needed(place.at('by').at(index), property)
  booleanAt(place.at('bars'), fields.bars)
  if (fields.order !== undefined) nameAt(place.at('order'), fields.order, ['name', 'most'], 'an order')
  const columns = listAt(place.at('columns'), fields.columns ?? [], 'columns') ?? []
  if (columns.length === 0)
    place.fault(
      'The section has no columns.',
      "Add one: { head: 'Firings', kind: 'kiln.booked', compute: 'count' }.",
      'columns',
    )
  const heads = columns.map((column, index) => checkColumn(place.at('columns').at(index), column, kinds))
  if (fields.tile === undefined) return
  const tile = knownFieldsAt(place.at('tile'), fields.tile, 'a tile', ['label', 'column'])
  if (tile === undefined) return
  needed(place.at('tile').at('label'), tile.label)
  nameAt(
    place.at('tile').at('column'),
    tile.column,
    heads.filter((head) => head !== undefined),
    'the head of a column',
  )
}

function checkColumn(place: Place, value: unknown, kinds: readonly string[]): string | undefined {
  const fields = knownFieldsAt(place, value, 'a column', COLUMN_FIELDS)
  if (fields === undefined) return undefined
  nameAt(place.at('kind'), fields.kind, kinds, 'an event kind')
  nameAt(
    place.at('compute'),
    fields.compute,
    ['count', 'true', 'max', 'mean'],
    'something that can be computed',
  )
  textAt(place.at('property'), fields.property)
  if (fields.property === undefined && ['true', 'max', 'mean'].includes(String(fields.compute)))
    place.fault(
      `${String(fields.compute)} is computed from a property, and none is named.`,
      "Add property: 'cones'.",
      'property',
    )
  return needed(place.at('head'), fields.head)
}

/** Text that has to be there. */
function needed(place: Place, value: unknown): string | undefined {
  return value === undefined
    ? place.fault(`This is ${typeName(value)}.`, 'Write a text in quotes.')
    : textAt(place, value, 120)
}
