import { expect, test } from 'vitest'
import { checkDefinition } from '../../src/platform/check/check.ts'
import { ceramics, PRESETS, spoiled } from './ceramics.ts'

const faultsOf = (definition: unknown) => checkDefinition(definition, PRESETS)
const long = (length: number) => 'x'.repeat(length)

/** A row: where something is put, values that are taken there, and values that are one fault, at `path` or there. */
interface Bound {
  readonly at: string
  readonly taken?: readonly unknown[]
  readonly refused?: readonly unknown[]
  readonly path?: string
}

/** Rows of values that are put at a place with what they need beside them. */
const boundsOf =
  (at: string, place: string, put: (value: unknown, path: string) => unknown = (value) => value) =>
  (path: string, taken: readonly unknown[], refused: readonly unknown[]): Bound => ({
    at,
    taken: taken.map((value) => put(value, path)),
    refused: refused.map((value) => put(value, path)),
    path: `${place}${path}`,
  })
const VARIABLE = 'groups/kiln/variables/KILN_X'
const variable = boundsOf(VARIABLE, 'groups.kiln.variables.KILN_X')
/** Values of one field of a variable, beside its other fields. */
const field = (name: string, taken: readonly unknown[], refused: readonly unknown[], more: object = {}) => {
  const put = (value: unknown) => ({ kind: 'text', ...more, [name]: value })
  return variable(`.${name}`, taken.map(put), refused.map(put))
}
const rule = boundsOf('groups/kiln/rules/0', 'groups.kiln.rules[0]')
const probe = boundsOf('probes/kiln', 'probes.kiln.', (value, target) => ({
  service: 'web',
  [target]: value,
}))
const course = boundsOf('courses/clay', 'courses.clay', (more) => ({
  lessons: './clay',
  ...(more as object),
}))
const template = boundsOf('templates/booked', 'templates.booked')
const beat = boundsOf('heartbeats/backup', 'heartbeats.backup.', (more) => ({
  every: '1d',
  ...(more as object),
}))
const COLUMN = { head: 'Firings', kind: 'kiln.booked', compute: 'count' }
const SECTION = { id: 'a', heading: 'A', caption: 'A', empty: 'None.', rowHead: 'Kiln', columns: [COLUMN] }
const section = boundsOf('insights', 'insights.sections[0].', (more) => ({
  sections: [{ ...SECTION, ...(more as object) }],
}))
const column = (parts: object) => ({ columns: [{ ...COLUMN, ...parts }] })
const security = boundsOf('security', 'security.', (value, field) => ({ contact: 'tel:1', [field]: value }))
/** A name that may have so many characters and no more. */
const named = (at: string, length: number, value: unknown): readonly Bound[] => [
  { at: `${at}/${long(length)}`, taken: [value] },
  { at: `${at}/${long(length + 1)}`, refused: [value] },
]
/** The same in a part that the definition does not have yet. */
const namedIn = (at: string, length: number, value: unknown): Bound => ({
  at,
  taken: [{ [long(length)]: value }],
  refused: [{ [long(length + 1)]: value }],
  path: `${at}.${long(length + 1)}`,
})

const schemaOf = (issues: unknown) => ({
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value: unknown) => (issues ? { issues } : { value }),
  },
})
const VARIABLES = { A_B: { kind: 'text' } }
const PAIR = ['KILN_API_KEY', 'KILN_API_SECRET']
const REFUSES = schemaOf([{ message: 'no' }])
const INTEGER = { kind: 'integer' }
const pairNamed = (id: string) => ({ id, allOrNone: PAIR })
const forbids = (value: unknown) => ({ forbidden: 'KILN_REGION', value })

const BOUNDS: readonly Bound[] = [
  { at: 'name', taken: [long(60)], refused: [long(61), ' ', 'a\u007fb', 'a\u001fb', null, true] },
  { at: 'folder', taken: [long(4096)], refused: [long(4097)] },
  { at: 'confirmation', taken: ['link', 'button'] },
  { at: 'unsubscription', taken: ['link', 'button'] },
  { at: 'challenge', taken: [() => true] },
  { at: 'brand/color', taken: ['#fff', '#FFaa09'], refused: ['#ffff', '#fffffff', 'fff', '#ggg', 'a#fff'] },
  {
    at: 'brand/logo',
    taken: ['a.png', 'a.svg', 'a.jpg', 'a.jpeg', 'a.webp', 'a.PNG'],
    refused: ['png', 'a.png.gz', 'a.gif'],
  },
  { at: 'without', taken: [['analytics'], ['analytics', 'store'], ['site']] },

  ...named('services', 31, { port: 4100 }),
  { at: 'services/web/port', taken: [0, 1, 65_535], refused: [-1, 65_536, 1.5, '80', Number.NaN] },
  { at: 'services', taken: [{ web: { port: 0 }, shop: { port: 0 } }] },
  { at: 'services/shop', taken: [{ address: 'BOOKINGS_URL' }, { address: ['BOOKINGS_URL'], port: 1 }] },
  { at: 'services/shop', refused: [{ format: 'status' }] },
  { at: 'services/bookings/health', taken: ['/', '/a/b'], refused: ['', '/a b', '/a?b', '/a#b', 3] },
  { at: 'services/bookings/label', taken: [long(60)], refused: [long(61)] },
  {
    at: 'services/bookings/format',
    taken: ['platformctl', 'health+json', 'spring', 'aspnet', 'status'],
    refused: ['json'],
  },
  { at: 'services/bookings/address', taken: [['BOOKINGS_URL']], refused: ['https://a.example', 'STORE_URL'] },

  ...named('groups', 40, { unlocks: 'a', absent: 'b', variables: VARIABLES }),
  { at: 'groups/1a', refused: [{ unlocks: 'a', absent: 'b', variables: VARIABLES }], path: 'groups["1a"]' },
  { at: 'groups/kiln/services', taken: ['all', ['bookings', 'web']], refused: ['web'] },
  { at: 'groups/kiln/visitors', taken: [long(300)], refused: [long(301), 3] },
  { at: 'groups/kiln/unlocks', refused: ['', 3] },
  { at: 'groups/kiln/absent', refused: ['', 3] },
  ...named('groups/kiln/variables', 100, { kind: 'text' }),
  { at: 'groups/kiln/variables/_A', taken: [{ kind: 'text' }] },
  { at: 'groups/kiln/variables/NODES', taken: [{ kind: 'text' }] },
  { at: 'groups/kiln/variables/MY_NODE_ENV', taken: [{ kind: 'text' }] },
  { at: 'groups/kiln/variables/NEXT_PUBLIC_A', taken: [{ kind: 'text' }] },
  { at: 'groups/kiln/variables/NEXT_PUBLIC_A', refused: [{ kind: 'text', secret: true }] },

  ...['secret', 'chosen', 'rotates', 'adjusts'].map((flag) => field(flag, [true], ['true'])),
  field('summary', [long(300)], [long(301)]),
  field('services', ['all'], [[]]),
  field('default', [], [null]),
  field('default', [], ['a'], { secret: true }),
  field('default', [5], ['x'], { kind: 'integer' }),
  field('default', [false], [], { kind: 'boolean' }),
  field('default', [1, 9], [0, 10], { kind: 'integer', range: [1, 9] }),
  field('range', [[1, 1]], [[1, 2, 3], [1, Infinity], [-Infinity, 1], ['1', 2], [1, '2'], '1-2'], INTEGER),
  field('range', [[-0.5, 0.5]], [], { kind: 'number' }),
  field('range', [[0, 5]], [], { kind: 'duration' }),
  field('range', [[0, 5]], [], { kind: 'bytes' }),
  field('range', [], [[1, 2]], { kind: 'port' }),
  field('example', [''], []),
  field('example', ['ab'], ['xc', 'abx'], { pattern: 'ab|c' }),
  field('example', [], ['xc'], { pattern: /ab|c/ }),
  field('example', ['ab'], [], { pattern: /AB/i }),
  field('example', [' ab '], [], { pattern: /ab/gy }),
  field('example', [], ['10'], { kind: 'integer', range: [1, 9] }),
  variable('.example', [{ schema: schemaOf(undefined), example: 'a' }], [{ schema: REFUSES, example: 'a' }]),
  field('pattern', [], [3, null]),
  variable(
    '.schema',
    [{ schema: Object.assign(() => undefined, schemaOf(undefined)) }],
    [null, { '~standard': null }, { '~standard': {} }, { '~standard': { validate: 'x' } }].map((schema) => ({
      schema,
    })),
  ),
  field('of', [], ['eu', undefined], { kind: 'enum' }),
  variable(
    '.of[1]',
    [],
    [3, undefined].map((two) => ({ kind: 'enum', of: ['eu', two] })),
  ),
  variable('.prefixes.live', [], [{ kind: 'secret', prefixes: { live: [], test: ['b'] } }]),
  variable('.prefixes.live[0]', [], [{ kind: 'secret', prefixes: { live: [''], test: ['b'] } }]),
  variable(
    '.prefixes.test',
    [{ kind: 'secret', prefixes: { live: ['a'], test: ['b'] } }],
    [{ kind: 'secret', prefixes: { live: ['a'] } }],
  ),

  rule(
    '.when',
    [
      { atLeastOne: ['KILN_REGION'], when: ['KILN_API_KEY'] },
      { requires: ['STORE_URL'], when: ['KILN_API_KEY'], match: 'any' },
      { requires: ['STORE_URL'], when: ['KILN_API_KEY'], match: 'all' },
    ],
    [{ atLeastOne: ['KILN_REGION'] }, { allOrNone: PAIR, when: ['STORE_URL'] }],
  ),
  rule('.match', [], [{ allOrNone: PAIR, match: 'all' }]),
  rule('.match', [], [{ atLeastOne: ['KILN_REGION'], when: ['KILN_API_KEY'], match: 'all' }]),
  rule('.atLeastOne', [], [{ atLeastOne: [], when: ['KILN_API_KEY'] }]),
  rule('', [], [{ atLeastOne: ['KILN_REGION'], when: ['KILN_REGION'] }]),
  rule('.value', ['us', /u/].map(forbids), ['', 3].map(forbids)),
  rule('.value', [], [{ exclusive: PAIR, value: 'us' }]),
  rule(
    '.id',
    ['a-1', long(80)].map(pairNamed),
    ['a--b', 'a-', '-a', '1a', 'live-name', 'analytics-without-store', long(81)].map(pairNamed),
  ),
  rule('.fix', [{ fix: long(300), allOrNone: PAIR }], [{ fix: 3, allOrNone: PAIR }]),
  {
    at: 'groups/kiln/rules',
    taken: [
      [{ allOrNone: PAIR }, { exclusive: ['KILN_API_KEY', 'KILN_REGION'] }],
      [pairNamed('one'), pairNamed('two')],
    ],
    refused: [[{ exclusive: PAIR }, { allOrNone: PAIR }]],
    path: 'groups.kiln.rules[0]',
  },
  {
    at: 'groups/kiln/rules',
    refused: [
      [pairNamed('one'), pairNamed('one')],
      [{ allOrNone: PAIR }, pairNamed('no id')],
    ],
    path: 'groups.kiln.rules[1].id',
  },

  ...named('probes', 40, { service: 'web', tcp: 'a:1' }),
  { at: 'probes/kiln/deadline', taken: ['50ms', '30s'], refused: ['49ms', '30001ms', '31s', '2'] },
  { at: 'probes/kiln/label', taken: [long(60)], refused: [long(61)] },
  { at: 'probes/kiln/meaning', taken: [long(300)], refused: [long(301)] },
  { at: 'probes/kiln/optional', taken: [true, false], refused: ['true'] },
  { at: 'probes/kiln/group', taken: ['store', 'kiln'], refused: [3] },
  { at: 'probes/kiln', taken: [{ service: 'web', check: async () => ({ state: 'ok' }) }] },
  probe(
    'http',
    ['http://a', 'https://a.example:1/x@y', 'KILN_API_KEY'],
    ['ftp://a', 'https:/a', 'http://a b'],
  ),
  probe('tcp', ['a:1', 'a-b.c:65535', '[::1]:1'], ['a', 'a:', 'a:123456', 'http://a:1', 'a:1/b']),
  probe('tls', ['a:1', '[::1]:1'], ['a', 'a:123456', 'https://a:1']),
  probe('dns', ['a.b', 'a.b.', `${long(249)}.abc`], ['a', 'a..b', 'a.b:1', `${long(250)}.abc`]),
  probe('smtp', ['smtp://a', 'smtps://a:465'], ['http://a', 'smtp://a/b', 'smtp://u:p@a']),
  probe('postgres', ['postgres://a', 'postgresql://a/b'], ['mysql://a', 'postgres://u:p@a']),
  probe('redis', ['redis://a', 'rediss://a:1'], ['http://a', 'redis://:p@a']),

  namedIn('templates', 61, {}),
  template('.slots', [{ slots: { a: 'text', b: 'url' } }], [{ slots: [] }]),
  template(`.slots.${long(42)}`, [{ slots: { [long(41)]: 'text' } }], [{ slots: { [long(42)]: 'text' } }]),
  template(
    '.inputs[0]',
    [{ by: 'service', resolve() {}, inputs: [long(41)] }],
    [long(42), 'Id', 3, ''].map((input) => ({ by: 'person', resolve() {}, inputs: [input] })),
  ),
  template('.inputs', [], [{ by: 'person', resolve() {}, inputs: 'id' }]),
  template('', [{ by: 'person', resolve() {} }], [{ resolve() {} }, { inputs: [] }]),

  ...named('courses', 61, { lessons: './x' }),
  course('.title', [{ title: long(120) }], [{ title: long(121) }]),
  course('.every', [{ every: '15m' }, { every: '90d' }], [{ every: '899s' }, { every: '91d' }, { every: 2 }]),
  course('.spacing', [{ spacing: '1s' }, { spacing: '90d' }], [{ spacing: '91d' }]),
  course(
    '.at',
    [{ at: '00:00' }, { at: '19:59' }, { at: '23:59' }],
    [{ at: '24:00' }, { at: '9:00' }, { at: '23:60' }, { at: '09:00 ' }, { at: 9 }],
  ),
  course(
    '.zone',
    [
      { at: '09:00', zone: 'subscriber' },
      { at: '09:00', zone: 'UTC' },
    ],
    [{ at: '09:00', zone: 3 }, { zone: 'subscriber' }],
  ),
  course(
    '.on',
    [{ at: '09:00', on: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] }],
    [{ on: ['mon'] }, { every: '1d', on: ['mon'] }],
  ),
  course('.follow', [{ follow: 'latest' }], [{ follow: 'start' }]),

  { at: 'events/a.b.c_d-1', taken: [{ [long(64)]: 'boolean' }], refused: [] },
  ...['a.', '.a', 'A.b', 'a.B', 'a..b', 'a.1'].map((kind) => ({
    at: `events/${kind}`,
    refused: [{}],
    path: `events["${kind}"]`,
  })),
  { at: 'events/a.b', refused: [{ [long(65)]: 'string' }], path: `events["a.b"].${long(65)}` },

  ...['heading', 'caption', 'empty', 'rowHead', 'id'].map((field) =>
    section(field, [{ [field]: 'a' }], [{ [field]: undefined }, { [field]: '' }, { [field]: 3 }]),
  ),
  section('heading', [{ heading: long(120) }], [{ heading: long(121) }]),
  section(
    'id',
    [{ id: long(41) }],
    [
      ...['total', 'kinds', 'range', 'kind', 'record', 'export', 'delete', 'kept', 'said', 'fresh', 'sample'],
      'A',
      long(42),
    ].map((id) => ({ id })),
  ),
  section('by[1]', [{ by: ['kiln', 'cones'] }], [{ by: ['kiln', ''] }, { by: ['kiln', 3] }]),
  section('bars', [{ bars: true }], [{ bars: 'yes' }]),
  section('order', [{ order: 'name' }, { order: 'most' }], [{ order: 'least' }]),
  section('columns', [], [{ columns: [] }, { columns: undefined }]),
  section('columns[0].compute', [], [column({ compute: 'median' }), column({ compute: undefined })]),
  section('columns[0].head', [], [column({ head: undefined }), column({ head: '' })]),
  section(
    'columns[0].property',
    ['true', 'max', 'mean'].map((compute) => column({ compute, property: 'cones' })),
    ['true', 'max', 'mean'].map((compute) => column({ compute })),
  ),
  section(
    'tile.label',
    [{ tile: { label: 'Firings', column: 'Firings' } }],
    [{ tile: { column: 'Firings' } }, { tile: { label: '', column: 'Firings' } }],
  ),
  section('tile.column', [], [{ tile: { label: 'Firings' } }]),
  section('tile', [], [{ tile: 'Firings' }]),
  {
    at: 'insights',
    taken: [{ labels: { 'kiln.booked': 'Booked', 'page.viewed': 'Views' } }],
    refused: ['', undefined, long(121)].map((label) => ({ labels: { 'kiln.booked': label } })),
    path: 'insights.labels["kiln.booked"]',
  },

  namedIn('heartbeats', 41, { every: '1d' }),
  beat('every', [{ every: '60s' }, { every: '366d' }], [{ every: '59s' }, { every: '367d' }, { every: 3 }]),
  beat('grace', [{ grace: '1s' }, { grace: '366d' }], [{ grace: '367d' }]),
  beat('label', [{ label: long(60) }], [{ label: long(61) }]),

  security(
    'contact',
    ['mailto:a@b.c', 'tel:1', 'https://a.example', ['tel:1']],
    ['http://a', 'tel:', 3, 'mailto:a b'],
  ),
  security(
    'expires',
    ['2027-12-31T00:00:00Z', '2027-12-31T00:00:00.5+01:00'],
    ['2027-12-31', '2027-13-31T00:00:00Z', '2027-12-31T00:00:00', 'x2027-12-31T00:00:00Z'],
  ),
  security('encryption', ['https://a', 'dns:a', 'openpgp4fpr:a'], ['http://a', 'mailto:a@b.c']),
  security('acknowledgments', ['https://a'], ['http://a', 'dns:a']),
  security('languages', [['en', 'de-AT']], ['en']),
]

const cases = BOUNDS.map((bound) => [(bound.path ?? bound.at).replace(/x{40,}/, '…'), bound] as const)

test.each(cases)('%s accepts values within its bounds and refuses those just outside', (_, bound) => {
  const { at, taken = [], refused = [], path = at.replaceAll('/', '.') } = bound
  for (const value of taken) expect(faultsOf(spoiled(at, value)), JSON.stringify(value)).toEqual([])
  for (const value of refused)
    expect(
      faultsOf(spoiled(at, value)).map((fault) => fault.path),
      JSON.stringify(value),
    ).toEqual([path])
})

test.each([
  ['', 'empty'],
  [' ', 'blank'],
  [null, 'null'],
  [[], 'a list'],
  [{}, 'an object'],
  [3, 'a number'],
  [true, 'true or false'],
  [() => 0, 'a function'],
  [Symbol('x'), 'symbol'],
])('in place of text, a value is called what it is: %#', (value, name) => {
  expect(faultsOf({ name: value })).toMatchObject([{ path: 'name', cause: `This is ${name}, not text.` }])
})

test('text that is not boolean is called text, and a list that is missing something says so', () => {
  expect(faultsOf(spoiled('probes/kiln/optional', 'yes'))[0]?.cause).toBe('This is text, not true or false.')
  expect(faultsOf(spoiled('groups/kiln/variables', undefined))[0]?.cause).toBe(
    'variables is missing, not an object.',
  )
})

test('a wrong name is quoted up to 60 characters, and at most 12 others are offered', () => {
  const causeOf = (color: string) => faultsOf({ brand: { color } })[0]?.cause
  expect(causeOf(long(60))).toBe(`"${long(60)}" is not a color.`)
  expect(causeOf(long(61))).toBe(`"${long(60)}…" is not a color.`)
  const fixOf = (at: string, value: unknown) => faultsOf(spoiled(at, value)).at(-1)?.fix
  expect(fixOf('courses/first-firing', { lessons: './x', at: '09:00', on: ['zzzzzz'] })).toBe(
    'Use one of mon, tue, wed, thu, fri, sat, sun.',
  )
  expect(fixOf(VARIABLE, { kind: 'zzzzzzzz' })).toMatch(/^Use one of (?:[a-z-]+, ){11}[a-z-]+ …\.$/)
  const twelve = Object.fromEntries([...'abcdefghijkl'].map((kind) => [`kiln.${kind}`, {}]))
  const labels = { labels: { zzzzzzzz: 'x' } }
  const offered = (events: object) => faultsOf({ preset: 'learning', events, insights: labels })[0]?.fix
  expect(offered(twelve)).toMatch(/^Use one of (?:kiln\.\w, ){11}kiln\.l\.$/)
  expect(offered({ ...twelve, 'kiln.m': {} })).toMatch(/kiln\.l …\.$/)
  expect(offered({})).toBe('There is none to name yet: define it first.')
})

test('a fault in a list that is too short says how many names it holds', () => {
  const causes = (list: unknown) =>
    faultsOf(spoiled('groups/kiln/rules', [{ allOrNone: list }])).map(({ cause, fix }) => `${cause} ${fix}`)
  expect(causes([])).toEqual(['The list is empty. Name at least 2.'])
  expect(causes(['KILN_REGION'])).toEqual(['The list holds 1 name, and 2 are needed. Name at least 2.'])
})

test('a probe cannot belong to a service of the preset that is another program', () => {
  const base = PRESETS.base as NonNullable<(typeof PRESETS)['base']>
  const shop = { name: 'shop', health: '/', format: 'status', address: ['STORE_URL'] } as const
  const presets = { base: { ...base, services: [...base.services, shop] } }
  const faults = (service: string) =>
    checkDefinition({ preset: 'base', probes: { kiln: { service, tcp: 'a:1' } } }, presets)
  expect(faults('shop').map(({ path }) => path)).toEqual(['probes.kiln.service'])
  expect(faults('web')).toEqual([])
})

test('leaving out a group frees its name and variables for the definition', () => {
  const own = { unlocks: 'a', absent: 'b', variables: { ANALYTICS_DATASTORE_TABLE: { kind: 'text' } } }
  const definition = ceramics()
  const groups = { ...definition.groups, analytics: own }
  expect(faultsOf({ ...definition, groups, without: ['analytics'] })).toEqual([])
  expect(faultsOf({ ...definition, groups }).map(({ path }) => path)).toEqual([
    'groups.analytics',
    'groups.analytics.variables.ANALYTICS_DATASTORE_TABLE',
  ])
})

test('nothing may name a group that was left out', () => {
  const probes = { kiln: { service: 'web', tcp: 'a:1', group: 'analytics' } }
  const pathsWith = (more: object) => faultsOf({ preset: 'base', probes, ...more }).map(({ path }) => path)
  expect([pathsWith({}), pathsWith({ without: ['analytics'] })]).toEqual([[], ['probes.kiln.group']])
})

test('a group without a preset variable is kept apart from one whose rule needs it', () => {
  const store = { unlocks: 'a', absent: 'b', variables: { STORE_URL: { kind: 'url' } } }
  expect(faultsOf({ preset: 'base', without: ['store'], groups: { own: store } })).toEqual([])
  expect(faultsOf({ preset: 'base', without: ['store'] })[0]?.cause).toBe(
    'A rule of the group analytics needs STORE_URL, which belongs to store.',
  )
})
