import fc from 'fast-check'
import { expect, test } from 'vitest'
import { frameOf } from '../../src/daemon/pages/layout.ts'
import { insightsPage } from '../../src/daemon/routes/insights.ts'
import { checkDefinition } from '../../src/platform/check/check.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { ceramics, PRESETS, spoiled } from './ceramics.ts'

const faultsOf = (definition: unknown) => checkDefinition(definition, PRESETS)

const KILN = 'groups/kiln'
const KEY = 'groups/kiln/variables/KILN_API_KEY'
const REGION = 'groups/kiln/variables/KILN_REGION'
const RULES = 'groups/kiln/rules'
const RULE = 'groups/kiln/rules/0'
const PAIR = ['KILN_API_KEY', 'KILN_API_SECRET']
const CHOICE = ['KILN_API_KEY', 'KILN_REGION']
const BOOKINGS = 'services/bookings'
const EVENT = 'events/kiln.booked'
const GROUP = { unlocks: 'a', absent: 'b', variables: { A_B: { kind: 'text' } } }

/** A sound section of the insights page, but for its one column. */
const section = (column: object) => ({
  id: 'firings',
  heading: 'Firings',
  caption: 'Firings',
  empty: 'None.',
  rowHead: 'Kiln',
  columns: [{ head: 'Firings', kind: 'kiln.booked', compute: 'count', ...column }],
})

/** Where it is spoiled, with what, and words of the fault's cause and fix; and where it is, unless at that place. */
type SpoiledRow = [at: string, value: unknown, cause: RegExp, fix: RegExp, place?: string]

/** The path of a fault, which begins at the spoiled place if it begins with a dot or a bracket. */
function pathOf(at: string, place = ''): string {
  const step = (name: string) =>
    /^\d/.test(name) ? `[${name}]` : /\W/.test(name) ? `[${JSON.stringify(name)}]` : `.${name}`
  return /^\w/.test(place) ? place : `${at.split('/').map(step).join('').slice(1)}${place}`
}

const TAKEN_SERVICES = ['health', 'dispatch', 'validate', 'close', 'courses', 'then'].map(
  (name): SpoiledRow => [
    `services/${name}`,
    { port: 4100 },
    /openPlatform calls something else/,
    /differently/,
  ],
)

const FAULTS: readonly SpoiledRow[] = [
  ['colour', 'red', /not a field of a definition/, /Its fields are preset, name/],
  ['probe', {}, /not a field/, /^Did you mean probes\?$/],
  ['preset', 'bsae', /"bsae" is not a preset/, /^Did you mean base\?$/],
  ['preset', 7, /a number/, /base/],
  [`${KEY}/required`, false, /true or false, not when/, /true/],
  [`${KEY}/required`, 'prod', /"prod", not when/, /'production'/],
  [
    `${KEY}/required`,
    { when: 'KILN_REGIN' },
    /"KILN_REGIN" is not a variable or a group/,
    /^Did you mean KILN_REGION\?$/,
    '.when',
  ],
  [`${KEY}/required`, { when: 'KILN_API_KEY' }, /never missing/, /another/, '.when'],
  [`${KEY}/required`, { wen: 'kiln' }, /not a field/, /when/, '.wen'],
  [`${REGION}/required`, true, /has a default/, /default/],
  [`${REGION}/malformed`, 'error', /"error" is not a way/, /warn/],
  [`${KILN}/required`, { when: 'klin' }, /"klin" is not/, /^Did you mean kiln\?$/, '.when'],
  [`${KILN}/required`, { when: 'kiln' }, /never missing/, /another/, '.when'],
  [`${KILN}/required`, { when: 'KILN_API_KEY' }, /never missing/, /another/, '.when'],
  [`${KILN}/always`, 'yes', /not true or false/, /quotes/],
  ['name', '', /empty/, /text/],
  ['name', 'a\nb', /control characters/, /one line/],
  ['name', 'x'.repeat(61), /longer than 60/, /Shorten/],
  ['confirmation', 'buton', /not a way to confirm/, /^Did you mean button\?$/],
  ['unsubscription', 'buton', /not a way to unsubscribe/, /^Did you mean button\?$/],
  ['challenge', true, /not a function/, /function/],
  ['security', 'security@example.com', /text, not an object/, /\{/],
  ['security', {}, /no contact/, /mailto/, '.contact'],
  ['security', { contact: [] }, /no contact/, /mailto/, '.contact'],
  ['security', { contact: 'a@example.com' }, /not an address/, /mailto/, '.contact'],
  ['security', { contact: ['https://a.example', 7] }, /a number/, /text/, '.contact[1]'],
  ['security', { contact: 'tel:1', expires: 'soon' }, /not a time/, /2027/, '.expires'],
  ['security', { contact: 'tel:1', expires: '2099-02-29T00:00:00Z' }, /not a time/, /2027/, '.expires'],
  ['security', { contact: 'tel:1', policy: 'http://a.example' }, /not an address/, /https/, '.policy'],
  ['security', { contact: 'tel:1', languages: ['e'] }, /not a language/, /en/, '.languages[0]'],
  ['security', { contact: 'tel:1', contacts: [] }, /not a field/, /contact/, '.contacts'],
  ['brand', 'red', /text, not an object/, /\{/],
  ['brand/colour', '#fff', /not a field of a brand/, /^Did you mean color\?$/],
  ['brand/color', 'red', /"red" is not a color/, /#9a3412/],
  ['brand/logo', './logo.pdf', /not an image/, /PNG/],
  ['brand/language', 'german!', /not a language tag/, /'de'/],
  ['brand/language', 'en-u-ca-buddhist', /not a language tag/, /'de'/],
  ['without', 'payments', /text, not a list/, /\[/],
  ['without', ['analitics'], /"analitics" is not a group of the preset/, /^Did you mean analytics\?$/, '[0]'],
  ['without', ['site', 'site'], /twice/, /Remove/, '[1]'],
  ['without', ['store'], /group analytics needs STORE_URL/, /Keep store, or leave that out too/, '[0]'],
  ['services', [], /a list, not an object/, /\{/],
  ...TAKEN_SERVICES,
  ['services/shop', {}, /no address, and this process does not serve it/, /Add address/],
  ['services', { bookings: {} }, /no service web/, /web: \{\}/],
  ['services/Shop', {}, /cannot be the name of a service/, /bookings/],
  ['services/web', true, /not an object/, /\{/],
  ['services/web/prot', 3, /not a field of a service/, /port/],
  ['services/web/format', 'status', /served by this process/, /Remove the format/],
  ['services/web/port', 70_000, /no port/, /0 to 65535/],
  [
    'services',
    { web: { port: 4000 }, shop: { port: 4000 } },
    /web has the port 4000/,
    /another port/,
    '.shop.port',
  ],
  ['services/shop--1', { port: 4100 }, /cannot be the name of a service/, /bookings/],
  ['services/shop-', { port: 4100 }, /cannot be the name of a service/, /bookings/],
  [
    'services',
    { web: {}, 'shop-1': { port: 4001 }, shop1: { port: 4002 } },
    /cannot tell shop1 from shop-1/,
    /Rename one of the two/,
    '.shop1',
  ],
  [`${BOOKINGS}/address`, 'BOOKINGS_URI', /not a variable/, /^Did you mean BOOKINGS_URL\?$/],
  [`${BOOKINGS}/address`, ['BOOKINGS_URL', 'KILN_REGION'], /of the kind enum/, /'url'/, '[1]'],
  [`${BOOKINGS}/address`, [], /empty/, /Name the variable/],
  [`${BOOKINGS}/address`, 'http://bookings:4000', /differs between environments/, /variable of the kind url/],
  [`${BOOKINGS}/address`, undefined, /nothing says where it is/, /address/, 'services.bookings'],
  [`${BOOKINGS}/health`, 'healthz', /not the path of a health/, /with \/, .*\/healthz/],
  [`${BOOKINGS}/format`, 'sprnig', /not a format/, /^Did you mean spring\?$/],
  [`${BOOKINGS}/port`, 4000, /cannot serve it/, /Remove the port/],
  ['groups', 'kiln', /not an object/, /\{/],
  ['groups/Kiln 2', GROUP, /cannot be the name of a group/, /kiln/],
  ['groups/store', GROUP, /preset has a group store/, /without: \['store'\]/],
  [`${KILN}/service`, ['web'], /not a field of a group/, /^Did you mean services\?$/],
  [`${KILN}/unlocks`, undefined, /what it unlocks/, /unlocks:/],
  [`${KILN}/absent`, undefined, /what its absence means/, /absent:/],
  [`${KILN}/services`, ['wbe'], /"wbe" is not a service/, /^Did you mean web\?$/, '[0]'],
  [`${KILN}/services`, [], /empty/, /at least one/],
  [`${KILN}/variables`, undefined, /missing/, /\{/],
  ['groups/bookings/variables', {}, /no variables/, /Add one/],
  [`${KILN}/variables/kiln-url`, { kind: 'url' }, /cannot be the name of a variable/, /KILN_API_KEY/],
  [`${KILN}/variables/toString`, { kind: 'text' }, /cannot be the name of a variable/, /KILN_API_KEY/],
  [`${KILN}/variables/NODE_OPTIONS`, { kind: 'text' }, /change the runtime/, /NODE_/],
  [
    'groups/bookings/variables/KILN_REGION',
    { kind: 'text' },
    /belongs to the group kiln already/,
    /one group/,
  ],
  [`${KILN}/variables/STORE_URL`, { kind: 'text' }, /belongs to the group store already/, /rename/],
  [KEY, 'secret', /text, not an object/, /\{/],
  [`${KEY}/kind`, undefined, /missing/, /text, secret/],
  [`${KEY}/kind`, 'secert', /"secert" is not a kind/, /^Did you mean secret\?$/],
  [`${KEY}/sumary`, 'x', /not a field/, /^Did you mean summary\?$/],
  [`${KEY}/min`, 50, /not a field/, /^Its fields are kind, .*, range, /],
  [`${KEY}/default`, 'hunter2', /secret cannot have a default/, /where the program runs/],
  [`${KEY}/example`, 'sk_live_0123456789abcdef', /real secret/, /Revoke/],
  [`${KEY}/adjusts`, 'yes', /not true or false/, /without quotes/],
  [`${KEY}/prefixes`, { live: 'sk_live_', test: [] }, /not a list/, /\[/, '.live'],
  [`${KEY}/schema`, { parse() {} }, /not a Standard Schema/, /Zod/],
  [`${KILN}/variables/NEXT_PUBLIC_KEY`, { kind: 'secret' }, /every browser can read/, /without NEXT_PUBLIC_/],
  [`${REGION}/of`, undefined, /which values it takes/, /of: \[/],
  [`${REGION}/of`, [], /empty/, /at least one/],
  [`${REGION}/of`, ['eu', 'eu'], /twice/, /Remove/, '[1]'],
  [`${REGION}/of`, ['eu', ' us'], /space/, /Remove the space/, '[1]'],
  [`${KEY}/of`, ['a'], /Only an enum/, /kind: 'enum'/],
  [`${REGION}/default`, 'de', /not take its own default/, /one of eu, us/],
  [`${REGION}/default`, [], /a list, not a value/, /env file/],
  [`${REGION}/example`, 'de', /not take its own example/, /one of eu, us/],
  [`${REGION}/range`, [1, 2], /bounds a number/, /integer/],
  [
    `${KILN}/variables/KILN_HEAT`,
    { kind: 'integer', range: [1] },
    /two numbers/,
    /\[lowest, highest\]/,
    '.range',
  ],
  [
    `${KILN}/variables/KILN_HEAT`,
    { kind: 'integer', range: [9, 1] },
    /ends before it begins/,
    /\[1, 9\]/,
    '.range',
  ],
  [
    `${KILN}/variables/KILN_CONE`,
    { kind: 'text', pattern: '(' },
    /not a regular expression/,
    /backslash/,
    '.pattern',
  ],
  [RULES, {}, /an object, not a list/, /a list of rules: \[/],
  [RULES, ['KILN_API_KEY'], /text, not an object/, /\{/, '[0]'],
  [RULE, {}, /says nothing/, /allOrNone, requires/],
  [RULE, { allOrnone: PAIR }, /not a field of a rule/, /^Did you mean allOrNone\?$/, '.allOrnone'],
  [RULE, { allOrNone: PAIR, exclusive: CHOICE }, /allOrNone and exclusive at once/, /two rules/],
  [
    RULE,
    { allOrNone: ['KILN_API_KEY', 'KILN_API_SECERT'] },
    /"KILN_API_SECERT" is not a variable/,
    /^Did you mean KILN_API_SECRET\?$/,
    '.allOrNone[1]',
  ],
  [
    RULE,
    { requires: ['ANALYTICS_DATASTORE_TABEL'], when: ['KILN_API_KEY'] },
    /"ANALYTICS_DATASTORE_TABEL" is not a variable/,
    /^Did you mean ANALYTICS_DATASTORE_TABLE\?$/,
    '.requires[0]',
  ],
  [
    RULE,
    { allOrNone: ['KILN_API_KEY', 'GLAZES'] },
    /"GLAZES" is not a variable/,
    /^Use one of KILN_API_KEY, KILN_API_SECRET, /,
    '.allOrNone[1]',
  ],
  [RULE, { allOrNone: ['KILN_API_KEY'] }, /holds 1 name, and 2/, /at least 2/, '.allOrNone'],
  [RULE, { allOrNone: ['KILN_API_KEY', 'KILN_API_KEY'] }, /twice/, /Remove/, '.allOrNone[1]'],
  [RULE, { exclusive: 'KILN_API_KEY' }, /text, not a list/, /\[/, '.exclusive'],
  [RULE, { requires: ['KILN_API_KEY'] }, /when it applies/, /when: \[/, '.when'],
  [RULE, { requires: ['KILN_API_KEY'], when: [] }, /empty/, /at least one/, '.when'],
  [RULE, { requires: ['KILN_API_KEY'], when: ['KILN_API_KEY'] }, /both sides/, /Remove it/],
  [
    RULE,
    { requires: ['KILN_API_KEY'], when: ['KILN_REGION'], match: 'some' },
    /not a way to match/,
    /any, all/,
    '.match',
  ],
  [RULE, { exclusive: CHOICE, when: ['STORE_URL'] }, /has no when/, /Remove it/, '.when'],
  [RULE, { forbidden: 'KILN_REGION' }, /missing, not a value to forbid/, /text/, '.value'],
  [
    RULE,
    { forbidden: 'KILN_REGON', value: 'us' },
    /not a variable/,
    /^Did you mean KILN_REGION\?$/,
    '.forbidden',
  ],
  [RULE, { id: 'Kiln Pair', exclusive: CHOICE }, /cannot be an id/, /hyphens/, '.id'],
  [RULE, { id: 'malformed-value', exclusive: CHOICE }, /is taken/, /another one/, '.id'],
  [RULE, { cause: 3, exclusive: CHOICE }, /a number, not text/, /text/, '.cause'],
  [RULES, [{ allOrNone: PAIR }, { exclusive: PAIR }], /can never be configured/, /Remove one/, '[1]'],
  ['probes', [], /a list, not an object/, /\{/],
  ['probes/kiln/sevice', 'web', /not a field of a probe/, /^Did you mean service\?$/],
  ['probes/kiln/service', 'booking', /"booking" is not a service/, /^Did you mean bookings\?$/],
  ['probes/kiln/service', 'bookings', /another program/, /'web'/],
  ['probes/kiln/service', undefined, /missing/, /web/],
  ['probes/kiln/group', 'kilm', /"kilm" is not a group/, /^Did you mean kiln\?$/],
  ['probes/kiln/http', undefined, /no target/, /http, tcp/, 'probes.kiln'],
  ['probes/kiln/expect', {}, /Nothing is expected/, /contains/],
  ['probes/kiln/expect', { jsn: {} }, /not a field/, /Did you mean json/, '.jsn'],
  ['probes/kiln/expect', { json: { a: {} } }, /not one value/, /status: 'up'/, '.json.a'],
  ['probes/kiln/tcp', 'a:1', /two targets, http and tcp/, /two probes/, 'probes.kiln'],
  [
    'probes/kiln',
    { service: 'web', tcp: 'a:1', expect: { contains: 'pong' } },
    /Only an answer to http/,
    /Remove it/,
    '.expect',
  ],
  ['probes/kiln/http', 'api.kiln.example', /no target for http/, /https:\/\//],
  ['probes/kiln/http', 'https://user:hunter2@api.kiln.example', /user or a password/, /in a variable/],
  ['probes/kiln/http', 'KILN_URL', /not a variable/, /KILN_API_KEY/],
  ['probes/kiln/http', 3, /a number, not a target/, /variable/],
  ['probes/kiln', { service: 'web', check: 'ping' }, /text, not a function/, /async/, '.check'],
  ['probes/kiln', { service: 'web', tcp: 'kiln.example' }, /no target for tcp/, /5672/, '.tcp'],
  ['probes/kiln/deadline', 2, /not a duration/, /'2s'/],
  ['probes/kiln/deadline', '5m', /out of bounds/, /30s/],
  ['probes/kiln/optional', 1, /not true or false/, /true or false/],
  [
    'probes/kiln/dependsOn',
    ['bookings', 'stoer'],
    /"stoer" is not a probe or a service/,
    /^Did you mean store\?$/,
    '[1]',
  ],
  ['probes/kiln/dependsOn', 'store', /text, not a list/, /\[ … \]/],
  ['probes/kiln/dependsOn', ['store', 'store'], /twice/, /Remove/, '[1]'],
  ['probes/kiln/dependsOn', ['kiln'], /"kiln" depends on itself/, /Remove it/, '[0]'],
  ['probes/kiln/dependsOn', ['web'], /a circle: kiln → web → kiln/, /not its service/, '[0]'],
  [
    `${BOOKINGS}/dependsOn`,
    ['store', 'bookins'],
    /"bookins" is not a probe or a service/,
    /^Did you mean bookings\?$/,
    '[1]',
  ],
  [`${BOOKINGS}/dependsOn`, ['web'], /bookings → web → bookings/, /its own probes/, '[0]'],
  [
    'probes',
    {
      kiln: { service: 'web', http: 'https://a.example', dependsOn: ['oven', 'store'] },
      oven: { service: 'web', http: 'https://a.example', dependsOn: ['fuel'] },
      fuel: { service: 'web', http: 'https://a.example', dependsOn: ['bookings', 'kiln'] },
    },
    /a circle: fuel → kiln → oven → fuel/,
    /Remove one/,
    '.fuel.dependsOn[1]',
  ],
  ['probes/store', { service: 'web', http: 'https://a.example' }, /web has a probe store/, /another name/],
  ['mails', 3, /a number, not text/, /text/],
  ['templates', { Welcome: {} }, /cannot be the name of a template/, /booking-confirmed/, '.Welcome'],
  ['templates/booked', { slot: {} }, /not a field/, /^Did you mean slots\?$/, '.slot'],
  [
    'templates/booked',
    { slots: { 'booking-url': 'url' } },
    /name of a slot/,
    /bookingUrl/,
    '.slots["booking-url"]',
  ],
  ['templates/booked', { slots: { when: 'date' } }, /not a type of slot/, /text, url/, '.slots.when'],
  ['templates/booked', { by: 'anybody', resolve() {} }, /not somebody who can ask/, /person, service/, '.by'],
  ['templates/booked', { by: 'person' }, /who gets it/, /resolve/, '.resolve'],
  ['templates/booked', { by: 'person', resolve: 'x' }, /not a function/, /async/, '.resolve'],
  ['templates/booked', { inputs: ['bookingId'] }, /nobody may make one/, /by: 'person'/],
  ['templates/booked', { by: 'person', resolve() {}, inputs: ['id', 'id'] }, /twice/, /Remove/, '.inputs[1]'],
  ['courses', { 'First Firing': { lessons: './x' } }, /name of a course/, /first-firing/, '["First Firing"]'],
  ['courses', { intro: { lessons: './x' } }, /preset has a course intro/, /another id/, '.intro'],
  ['courses', { status: { lessons: './x' } }, /incidents go by the name status/, /another id/, '.status'],
  ['courses', { firing: {} }, /no lessons/, /lessons:/, '.firing.lessons'],
  ['courses/firing', { lessons: './x', every: '2' }, /"2", not a duration/, /'2d'/, '.every'],
  ['courses/firing', { lessons: './x', every: '5m' }, /out of bounds/, /15 minutes to 90 days/, '.every'],
  ['courses/firing', { lessons: './x', every: '1d', at: '09:00' }, /every and at/, /one of the two/],
  ['courses/firing', { lessons: './x', at: '9am' }, /not a local hour/, /09:00/, '.at'],
  [
    'courses/firing',
    { lessons: './x', at: '09:00', zone: 'Berlin' },
    /not an IANA time zone/,
    /Europe\/Berlin/,
    '.zone',
  ],
  [
    'courses/firing',
    { lessons: './x', at: '09:00', zone: '+02:00' },
    /not an IANA time zone/,
    /Europe\/Berlin/,
    '.zone',
  ],
  ['courses/firing', { lessons: './x', zone: 'Europe/Berlin' }, /without an hour/, /at:/, '.zone'],
  ['courses/firing', { lessons: './x', at: '09:00', on: ['monday'] }, /not a weekday/, /mon, tue/, '.on[0]'],
  ['courses/firing', { lessons: './x', at: '09:00', on: [] }, /empty/, /at least one/, '.on'],
  ['courses/firing', { lessons: './x', spacing: 'day' }, /not a duration/, /'12h'/, '.spacing'],
  ['courses/firing', { lessons: './x', follow: 'newest' }, /not a version/, /latest/, '.follow'],
  ['courses/firing', { lessons: './x', pages: 'private' }, /false/, /public/, '.pages'],
  ['insights', { table: [] }, /not a field of the insights/, /labels, sections/, '.table'],
  [
    'insights',
    { labels: { 'kiln.boked': 'x' } },
    /not an event kind/,
    /kiln\.booked/,
    '.labels["kiln.boked"]',
  ],
  ['insights', { sections: [{}] }, /no columns/, /compute/, '.sections[0].columns'],
  [
    'insights',
    { sections: [section({ kind: 'kiln.boked' })] },
    /not an event kind/,
    /Did you mean kiln\.booked/,
    '.sections[0].columns[0].kind',
  ],
  [
    'insights',
    { sections: [section({ compute: 'mean' })] },
    /computed from a property/,
    /cones/,
    '.sections[0].columns[0].property',
  ],
  [
    'insights',
    { sections: [section({}), section({})] },
    /has a part firings already/,
    /another id/,
    '.sections[1].id',
  ],
  [
    'insights',
    { sections: [{ ...section({}), tile: { label: 'firings', column: 'Booked' } }] },
    /not the head of a column/,
    /Firings/,
    '.sections[0].tile.column',
  ],
  ['events', { booked: {} }, /name of an event kind/, /kiln\.booked/, '.booked'],
  ['events', { 'page.viewed': {} }, /preset has the event kind/, /another name/, '["page.viewed"]'],
  [EVENT, true, /not an object/, /\{/],
  [EVENT, { cones: 'integer' }, /not a type of property/, /number/, '.cones'],
  [EVENT, { email: 'string' }, /personal data/, /rename/, '.email'],
  [EVENT, { phone: 'number' }, /personal data/, /rename/, '.phone'],
  ['heartbeats', { backup: {} }, /how often/, /every/, '.backup.every'],
  ['heartbeats', { backup: { every: '1s' } }, /out of bounds/, /a minute/, '.backup.every'],
  ['folder', 3, /a number, not text/, /text/],
]

test('the definition of the ceramics school has no faults', () => {
  expect(faultsOf(ceramics())).toEqual([])
  expect(faultsOf({})).toEqual([])
})

test.each(FAULTS)('%s = %j is a fault', (at, value, cause, fix, place) => {
  const faults = faultsOf(spoiled(at, value))
  const found = faults.find(({ path }) => path === pathOf(at, place))
  expect(found, JSON.stringify(faults)).toBeDefined()
  expect(found?.cause).toMatch(cause)
  expect(found?.fix).toMatch(fix)
  for (const { cause: said, fix: advice } of faults) {
    expect(said).toMatch(/^.+[.?]$/)
    expect(advice).toMatch(/[.?]$/)
    expect(said + advice).not.toContain('hunter2')
  }
})

test('no section of the insights can have the id of another part of the page', () => {
  const { html } = insightsPage(frameOf(learning, ''), '', '', { events: [], insights: { sections: [] } })
  const ids = [...html.matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id)
  expect(ids).toContain('recording')
  const heads = ids.flatMap((id) => (id.endsWith('-head') ? [id.replace(/-head$/, '')] : []))
  for (const id of [...ids, ...heads]) {
    const faults = faultsOf(spoiled('insights', { sections: [{ ...section({}), id }] }))
    expect(faults.map(({ path }) => path)).toContain('insights.sections[0].id')
  }
})

test.each([[undefined], [null], [3], ['kiln'], [[]], [() => undefined]])('%s is no definition', (value) => {
  expect(faultsOf(value)).toMatchObject([
    { path: '', cause: expect.stringMatching(/a definition is .*not an object/) },
  ])
})

test('every fault of a definition is given at once', () => {
  const definition = { ...ceramics(), nam: 3, mail: 3, name: 3, mails: 3, folder: 3 }
  expect(faultsOf(definition).map(({ path }) => path)).toEqual(['nam', 'mail', 'name', 'mails', 'folder'])
})

test('for any definition the check gives faults and never throws', () => {
  const anything = fc.anything({
    maxDepth: 4,
    withNullPrototype: true,
    key: fc.constantFrom('kiln', 'rules', 'variables', '__proto__', 'web'),
  })
  fc.assert(
    fc.property(
      fc.record(
        Object.fromEntries(
          [
            'preset',
            'brand',
            'without',
            'services',
            'groups',
            'probes',
            'templates',
            'courses',
            'events',
            'heartbeats',
          ].map((key) => [key, anything]),
        ),
        { requiredKeys: [] },
      ),
      (definition) => {
        for (const { cause, fix } of faultsOf(definition)) expect(cause && fix).toBeTruthy()
      },
    ),
    { numRuns: 500 },
  )
})

test('a field that throws when it is read is a fault at the object that holds it', () => {
  const throwing = () => {
    throw new Error('hunter2')
  }
  const holder = Object.defineProperty({}, 'kiln', { enumerable: true, get: throwing })
  for (const at of ['services', 'groups', 'probes', 'templates', 'courses', 'events', 'heartbeats'])
    expect(faultsOf({ [at]: holder })).toMatchObject([{ path: at, cause: 'Reading it throws an error.' }])
  expect(faultsOf(new Proxy({}, { ownKeys: throwing }))).toMatchObject([
    { path: '', cause: 'Reading it throws an error.' },
  ])
})

test('services and probes may depend on probes of the preset, on heartbeats, on services and on each other', () => {
  const probe = (...dependsOn: string[]) => ({ service: 'web', dns: 'a.example', dependsOn })
  const definition = {
    ...ceramics(),
    services: {
      web: { dependsOn: ['bookings'] },
      bookings: { address: 'BOOKINGS_URL', format: 'status', dependsOn: ['store', 'fuel'] },
    },
    probes: {
      kiln: probe('bookings', 'oven'),
      oven: probe('fuel', 'heartbeat-backup'),
      fuel: probe('store'),
      none: probe(),
    },
    heartbeats: { backup: { every: '1d' } },
  }
  expect(faultsOf(definition)).toEqual([])
  const { base } = PRESETS
  if (base === undefined) throw new Error('the presets have a base')
  // A probe of a group that was left out is none.
  const preset = { ...base, probes: [{ service: 'web', name: 'store', group: 'store' }] }
  expect(
    checkDefinition({ ...definition, without: ['store', 'analytics'] }, { base: preset }).map(
      ({ path }) => path,
    ),
  ).toEqual(['services.bookings.dependsOn[0]', 'probes.fuel.dependsOn[0]'])
})

test('a probe’s target may be a variable in lower case, as in the variables themselves', () => {
  const faultsWith = (target: object) =>
    faultsOf({
      groups: { kiln: { unlocks: 'a', absent: 'b', variables: { kiln_url: { kind: 'url' } } } },
      probes: { kiln: { service: 'web', ...target } },
    })
  for (const kind of ['http', 'tcp', 'tls', 'dns', 'smtp', 'postgres', 'redis'])
    expect(faultsWith({ [kind]: 'kiln_url' })).toEqual([])
  expect(faultsWith({ http: 'kiln_ulr' })).toMatchObject([{ fix: 'Did you mean kiln_url?' }])
})

test('an address in a variable whose kind is no name has the fault of that kind alone', () => {
  const faults = faultsOf({
    preset: 'base',
    groups: { shop: { unlocks: 'a', absent: 'b', variables: { SHOP_URL: { kind: 7 } } } },
    services: { web: {}, shop: { address: 'SHOP_URL', format: 'status' } },
  })
  expect(faults.map(({ path }) => path)).toEqual(['groups.shop.variables.SHOP_URL.kind'])
})
