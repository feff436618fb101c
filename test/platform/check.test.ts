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
const twoRules = (...rules: unknown[]) => rules

/** A sound section of the insights page, but for its one column. */
const section = (column: object) => ({
  id: 'firings',
  heading: 'Firings',
  caption: 'Firings',
  empty: 'None.',
  rowHead: 'Kiln',
  columns: [{ head: 'Firings', kind: 'kiln.booked', compute: 'count', ...column }],
})

type SpoiledRow = [at: string, value: unknown, path: string, cause: RegExp, fix: RegExp]

const TAKEN_SERVICES = ['health', 'dispatch', 'validate', 'close', 'courses', 'then'].map(
  (name): SpoiledRow => [
    `services/${name}`,
    { port: 4100 },
    `services.${name}`,
    /openPlatform calls something else/,
    /differently/,
  ],
)

/** Where it is spoiled, with what, and the fault: its path, and words of its cause and its fix. */
const FAULTS: readonly SpoiledRow[] = [
  ['colour', 'red', 'colour', /not a field of a definition/, /Its fields are preset, name/],
  ['probe', {}, 'probe', /not a field/, /^Did you mean probes\?$/],
  ['preset', 'bsae', 'preset', /"bsae" is not a preset/, /^Did you mean base\?$/],
  ['preset', 7, 'preset', /a number/, /base/],
  [
    `${KEY}/required`,
    false,
    'groups.kiln.variables.KILN_API_KEY.required',
    /true or false, not when/,
    /true/,
  ],
  [
    `${KEY}/required`,
    'prod',
    'groups.kiln.variables.KILN_API_KEY.required',
    /"prod", not when/,
    /'production'/,
  ],
  [
    `${KEY}/required`,
    { when: 'KILN_REGIN' },
    'groups.kiln.variables.KILN_API_KEY.required.when',
    /"KILN_REGIN" is not a variable or a group/,
    /^Did you mean KILN_REGION\?$/,
  ],
  [
    `${KEY}/required`,
    { when: 'KILN_API_KEY' },
    'groups.kiln.variables.KILN_API_KEY.required.when',
    /never missing/,
    /another/,
  ],
  [
    `${KEY}/required`,
    { wen: 'kiln' },
    'groups.kiln.variables.KILN_API_KEY.required.wen',
    /not a field/,
    /when/,
  ],
  [`${REGION}/required`, true, 'groups.kiln.variables.KILN_REGION.required', /has a default/, /default/],
  [
    `${REGION}/malformed`,
    'error',
    'groups.kiln.variables.KILN_REGION.malformed',
    /"error" is not a way/,
    /warn/,
  ],
  [
    `${KILN}/required`,
    { when: 'klin' },
    'groups.kiln.required.when',
    /"klin" is not/,
    /^Did you mean kiln\?$/,
  ],
  [`${KILN}/required`, { when: 'kiln' }, 'groups.kiln.required.when', /never missing/, /another/],
  [`${KILN}/required`, { when: 'KILN_API_KEY' }, 'groups.kiln.required.when', /never missing/, /another/],
  [`${KILN}/always`, 'yes', 'groups.kiln.always', /not true or false/, /quotes/],
  ['name', '', 'name', /empty/, /text/],
  ['name', 'a\nb', 'name', /control characters/, /one line/],
  ['name', 'x'.repeat(61), 'name', /longer than 60/, /Shorten/],
  ['confirmation', 'buton', 'confirmation', /not a way to confirm/, /^Did you mean button\?$/],
  ['unsubscription', 'buton', 'unsubscription', /not a way to unsubscribe/, /^Did you mean button\?$/],
  ['challenge', true, 'challenge', /not a function/, /function/],
  ['security', 'security@example.com', 'security', /text, not an object/, /\{/],
  ['security', {}, 'security.contact', /no contact/, /mailto/],
  ['security', { contact: [] }, 'security.contact', /no contact/, /mailto/],
  ['security', { contact: 'a@example.com' }, 'security.contact', /not an address/, /mailto/],
  ['security', { contact: ['https://a.example', 7] }, 'security.contact[1]', /a number/, /text/],
  ['security', { contact: 'tel:1', expires: 'soon' }, 'security.expires', /not a time/, /2027/],
  [
    'security',
    { contact: 'tel:1', expires: '2099-02-29T00:00:00Z' },
    'security.expires',
    /not a time/,
    /2027/,
  ],
  [
    'security',
    { contact: 'tel:1', policy: 'http://a.example' },
    'security.policy',
    /not an address/,
    /https/,
  ],
  ['security', { contact: 'tel:1', languages: ['e'] }, 'security.languages[0]', /not a language/, /en/],
  ['security', { contact: 'tel:1', contacts: [] }, 'security.contacts', /not a field/, /contact/],
  ['brand', 'red', 'brand', /text, not an object/, /\{/],
  ['brand/colour', '#fff', 'brand.colour', /not a field of a brand/, /^Did you mean color\?$/],
  ['brand/color', 'red', 'brand.color', /"red" is not a color/, /#9a3412/],
  ['brand/logo', './logo.pdf', 'brand.logo', /not an image/, /PNG/],
  ['brand/language', 'german!', 'brand.language', /not a language tag/, /'de'/],
  ['brand/language', 'en-u-ca-buddhist', 'brand.language', /not a language tag/, /'de'/],
  ['without', 'payments', 'without', /text, not a list/, /\[/],
  [
    'without',
    ['analitics'],
    'without[0]',
    /"analitics" is not a group of the preset/,
    /^Did you mean analytics\?$/,
  ],
  ['without', ['site', 'site'], 'without[1]', /twice/, /Remove/],
  [
    'without',
    ['store'],
    'without[0]',
    /group analytics needs STORE_URL/,
    /Keep store, or leave that out too/,
  ],
  ['services', [], 'services', /a list, not an object/, /\{/],
  ...TAKEN_SERVICES,
  ['services/shop', {}, 'services.shop', /no address, and this process does not serve it/, /Add address/],
  ['services', { bookings: {} }, 'services', /no service web/, /web: \{\}/],
  ['services/Shop', {}, 'services.Shop', /cannot be the name of a service/, /bookings/],
  ['services/web', true, 'services.web', /not an object/, /\{/],
  ['services/web/prot', 3, 'services.web.prot', /not a field of a service/, /port/],
  ['services/web/format', 'status', 'services.web.format', /served by this process/, /Remove the format/],
  ['services/web/port', 70_000, 'services.web.port', /no port/, /0 to 65535/],
  [
    'services',
    { web: { port: 4000 }, shop: { port: 4000 } },
    'services.shop.port',
    /web has the port 4000/,
    /another port/,
  ],
  [
    'services/bookings/address',
    'BOOKINGS_URI',
    'services.bookings.address',
    /not a variable/,
    /^Did you mean BOOKINGS_URL\?$/,
  ],
  [
    'services/bookings/address',
    ['BOOKINGS_URL', 'KILN_REGION'],
    'services.bookings.address[1]',
    /of the kind enum/,
    /'url'/,
  ],
  ['services/bookings/address', [], 'services.bookings.address', /empty/, /Name the variable/],
  [
    'services/bookings/address',
    'http://bookings:4000',
    'services.bookings.address',
    /differs between environments/,
    /variable of the kind url/,
  ],
  ['services/bookings/address', undefined, 'services.bookings', /nothing says where it is/, /address/],
  [
    'services/bookings/health',
    'healthz',
    'services.bookings.health',
    /not the path of a health/,
    /with \/, .*\/healthz/,
  ],
  [
    'services/bookings/format',
    'sprnig',
    'services.bookings.format',
    /not a format/,
    /^Did you mean spring\?$/,
  ],
  ['services/bookings/port', 4000, 'services.bookings.port', /cannot serve it/, /Remove the port/],
  ['groups', 'kiln', 'groups', /not an object/, /\{/],
  [
    'groups/Kiln 2',
    { unlocks: 'a', absent: 'b', variables: { A_B: { kind: 'text' } } },
    'groups["Kiln 2"]',
    /cannot be the name of a group/,
    /kiln/,
  ],
  [
    'groups/store',
    { unlocks: 'a', absent: 'b', variables: { A_B: { kind: 'text' } } },
    'groups.store',
    /preset has a group store/,
    /without: \['store'\]/,
  ],
  [`${KILN}/service`, ['web'], 'groups.kiln.service', /not a field of a group/, /^Did you mean services\?$/],
  [`${KILN}/unlocks`, undefined, 'groups.kiln.unlocks', /what it unlocks/, /unlocks:/],
  [`${KILN}/absent`, undefined, 'groups.kiln.absent', /what its absence means/, /absent:/],
  [`${KILN}/services`, ['wbe'], 'groups.kiln.services[0]', /"wbe" is not a service/, /^Did you mean web\?$/],
  [`${KILN}/services`, [], 'groups.kiln.services', /empty/, /at least one/],
  [`${KILN}/variables`, undefined, 'groups.kiln.variables', /missing/, /\{/],
  ['groups/bookings/variables', {}, 'groups.bookings.variables', /no variables/, /Add one/],
  [
    `${KILN}/variables/kiln-url`,
    { kind: 'url' },
    'groups.kiln.variables["kiln-url"]',
    /cannot be the name of a variable/,
    /KILN_API_KEY/,
  ],
  [
    `${KILN}/variables/toString`,
    { kind: 'text' },
    'groups.kiln.variables.toString',
    /cannot be the name of a variable/,
    /KILN_API_KEY/,
  ],
  [
    `${KILN}/variables/NODE_OPTIONS`,
    { kind: 'text' },
    'groups.kiln.variables.NODE_OPTIONS',
    /change the runtime/,
    /NODE_/,
  ],
  [
    'groups/bookings/variables/KILN_REGION',
    { kind: 'text' },
    'groups.bookings.variables.KILN_REGION',
    /belongs to the group kiln already/,
    /one group/,
  ],
  [
    `${KILN}/variables/STORE_URL`,
    { kind: 'text' },
    'groups.kiln.variables.STORE_URL',
    /belongs to the group store already/,
    /rename/,
  ],
  [KEY, 'secret', 'groups.kiln.variables.KILN_API_KEY', /text, not an object/, /\{/],
  [`${KEY}/kind`, undefined, 'groups.kiln.variables.KILN_API_KEY.kind', /missing/, /text, secret/],
  [
    `${KEY}/kind`,
    'secert',
    'groups.kiln.variables.KILN_API_KEY.kind',
    /"secert" is not a kind/,
    /^Did you mean secret\?$/,
  ],
  [
    `${KEY}/sumary`,
    'x',
    'groups.kiln.variables.KILN_API_KEY.sumary',
    /not a field/,
    /^Did you mean summary\?$/,
  ],
  [
    `${KEY}/default`,
    'hunter2',
    'groups.kiln.variables.KILN_API_KEY.default',
    /secret cannot have a default/,
    /where the program runs/,
  ],
  [
    `${KEY}/example`,
    'sk_live_0123456789abcdef',
    'groups.kiln.variables.KILN_API_KEY.example',
    /real secret/,
    /Revoke/,
  ],
  [
    `${KEY}/adjusts`,
    'yes',
    'groups.kiln.variables.KILN_API_KEY.adjusts',
    /not true or false/,
    /without quotes/,
  ],
  [
    `${KEY}/prefixes`,
    { live: 'sk_live_', test: [] },
    'groups.kiln.variables.KILN_API_KEY.prefixes.live',
    /not a list/,
    /\[/,
  ],
  [
    `${KEY}/schema`,
    { parse() {} },
    'groups.kiln.variables.KILN_API_KEY.schema',
    /not a Standard Schema/,
    /Zod/,
  ],
  [
    `${KILN}/variables/NEXT_PUBLIC_KEY`,
    { kind: 'secret' },
    'groups.kiln.variables.NEXT_PUBLIC_KEY',
    /every browser can read/,
    /without NEXT_PUBLIC_/,
  ],
  [`${REGION}/of`, undefined, 'groups.kiln.variables.KILN_REGION.of', /which values it takes/, /of: \[/],
  [`${REGION}/of`, [], 'groups.kiln.variables.KILN_REGION.of', /empty/, /at least one/],
  [`${REGION}/of`, ['eu', 'eu'], 'groups.kiln.variables.KILN_REGION.of[1]', /twice/, /Remove/],
  [`${REGION}/of`, ['eu', ' us'], 'groups.kiln.variables.KILN_REGION.of[1]', /space/, /Remove the space/],
  [`${KEY}/of`, ['a'], 'groups.kiln.variables.KILN_API_KEY.of', /Only an enum/, /kind: 'enum'/],
  [
    `${REGION}/default`,
    'de',
    'groups.kiln.variables.KILN_REGION.default',
    /not take its own default/,
    /one of eu, us/,
  ],
  [`${REGION}/default`, [], 'groups.kiln.variables.KILN_REGION.default', /a list, not a value/, /env file/],
  [
    `${REGION}/example`,
    'de',
    'groups.kiln.variables.KILN_REGION.example',
    /not take its own example/,
    /one of eu, us/,
  ],
  [`${REGION}/range`, [1, 2], 'groups.kiln.variables.KILN_REGION.range', /bounds a number/, /integer/],
  [
    `${KILN}/variables/KILN_HEAT`,
    { kind: 'integer', range: [1] },
    'groups.kiln.variables.KILN_HEAT.range',
    /two numbers/,
    /\[lowest, highest\]/,
  ],
  [
    `${KILN}/variables/KILN_HEAT`,
    { kind: 'integer', range: [9, 1] },
    'groups.kiln.variables.KILN_HEAT.range',
    /ends before it begins/,
    /\[1, 9\]/,
  ],
  [
    `${KILN}/variables/KILN_CONE`,
    { kind: 'text', pattern: '(' },
    'groups.kiln.variables.KILN_CONE.pattern',
    /not a regular expression/,
    /backslash/,
  ],
  [RULES, {}, 'groups.kiln.rules', /an object, not a list/, /a list of rules: \[/],
  [RULES, ['KILN_API_KEY'], 'groups.kiln.rules[0]', /text, not an object/, /\{/],
  [RULES, [{}], 'groups.kiln.rules[0]', /says nothing/, /allOrNone, requires/],
  [
    RULES,
    [{ allOrnone: ['KILN_API_KEY', 'KILN_API_SECRET'] }],
    'groups.kiln.rules[0].allOrnone',
    /not a field of a rule/,
    /^Did you mean allOrNone\?$/,
  ],
  [
    RULES,
    [{ allOrNone: ['KILN_API_KEY', 'KILN_API_SECRET'], exclusive: ['KILN_API_KEY', 'KILN_REGION'] }],
    'groups.kiln.rules[0]',
    /allOrNone and exclusive at once/,
    /two rules/,
  ],
  [
    RULES,
    [{ allOrNone: ['KILN_API_KEY', 'KILN_API_SECERT'] }],
    'groups.kiln.rules[0].allOrNone[1]',
    /"KILN_API_SECERT" is not a variable/,
    /^Did you mean KILN_API_SECRET\?$/,
  ],
  [
    RULES,
    [{ allOrNone: ['KILN_API_KEY', 'GLAZES'] }],
    'groups.kiln.rules[0].allOrNone[1]',
    /"GLAZES" is not a variable/,
    /^Use one of KILN_API_KEY, KILN_API_SECRET, /,
  ],
  [
    RULES,
    [{ allOrNone: ['KILN_API_KEY'] }],
    'groups.kiln.rules[0].allOrNone',
    /holds 1 name, and 2/,
    /at least 2/,
  ],
  [
    RULES,
    [{ allOrNone: ['KILN_API_KEY', 'KILN_API_KEY'] }],
    'groups.kiln.rules[0].allOrNone[1]',
    /twice/,
    /Remove/,
  ],
  [RULES, [{ exclusive: 'KILN_API_KEY' }], 'groups.kiln.rules[0].exclusive', /text, not a list/, /\[/],
  [RULES, [{ requires: ['KILN_API_KEY'] }], 'groups.kiln.rules[0].when', /when it applies/, /when: \[/],
  [RULES, [{ requires: ['KILN_API_KEY'], when: [] }], 'groups.kiln.rules[0].when', /empty/, /at least one/],
  [
    RULES,
    [{ requires: ['KILN_API_KEY'], when: ['KILN_API_KEY'] }],
    'groups.kiln.rules[0]',
    /both sides/,
    /Remove it/,
  ],
  [
    RULES,
    [{ requires: ['KILN_API_KEY'], when: ['KILN_REGION'], match: 'some' }],
    'groups.kiln.rules[0].match',
    /not a way to match/,
    /any, all/,
  ],
  [
    RULES,
    [{ exclusive: ['KILN_API_KEY', 'KILN_REGION'], when: ['STORE_URL'] }],
    'groups.kiln.rules[0].when',
    /has no when/,
    /Remove it/,
  ],
  [
    RULES,
    [{ forbidden: 'KILN_REGION' }],
    'groups.kiln.rules[0].value',
    /missing, not a value to forbid/,
    /text/,
  ],
  [
    RULES,
    [{ forbidden: 'KILN_REGON', value: 'us' }],
    'groups.kiln.rules[0].forbidden',
    /not a variable/,
    /^Did you mean KILN_REGION\?$/,
  ],
  [
    RULES,
    [{ id: 'Kiln Pair', exclusive: ['KILN_API_KEY', 'KILN_REGION'] }],
    'groups.kiln.rules[0].id',
    /cannot be an id/,
    /hyphens/,
  ],
  [
    RULES,
    [{ id: 'malformed-value', exclusive: ['KILN_API_KEY', 'KILN_REGION'] }],
    'groups.kiln.rules[0].id',
    /is taken/,
    /another one/,
  ],
  [
    RULES,
    [{ cause: 3, exclusive: ['KILN_API_KEY', 'KILN_REGION'] }],
    'groups.kiln.rules[0].cause',
    /a number, not text/,
    /text/,
  ],
  [
    RULES,
    twoRules(
      { allOrNone: ['KILN_API_KEY', 'KILN_API_SECRET'] },
      { exclusive: ['KILN_API_KEY', 'KILN_API_SECRET'] },
    ),
    'groups.kiln.rules[1]',
    /can never be configured/,
    /Remove one/,
  ],
  ['probes', [], 'probes', /a list, not an object/, /\{/],
  ['probes/kiln/sevice', 'web', 'probes.kiln.sevice', /not a field of a probe/, /^Did you mean service\?$/],
  [
    'probes/kiln/service',
    'booking',
    'probes.kiln.service',
    /"booking" is not a service/,
    /^Did you mean bookings\?$/,
  ],
  ['probes/kiln/service', 'bookings', 'probes.kiln.service', /another program/, /'web'/],
  ['probes/kiln/service', undefined, 'probes.kiln.service', /missing/, /web/],
  ['probes/kiln/group', 'kilm', 'probes.kiln.group', /"kilm" is not a group/, /^Did you mean kiln\?$/],
  ['probes/kiln/http', undefined, 'probes.kiln', /no target/, /http, tcp/],
  ['probes/kiln/expect', {}, 'probes.kiln.expect', /Nothing is expected/, /contains/],
  ['probes/kiln/expect', { jsn: {} }, 'probes.kiln.expect.jsn', /not a field/, /Did you mean json/],
  ['probes/kiln/expect', { json: { a: {} } }, 'probes.kiln.expect.json.a', /not one value/, /status: 'up'/],
  ['probes/kiln/tcp', 'a:1', 'probes.kiln', /two targets, http and tcp/, /two probes/],
  ['probes/kiln/http', 'api.kiln.example', 'probes.kiln.http', /no target for http/, /https:\/\//],
  [
    'probes/kiln/http',
    'https://user:hunter2@api.kiln.example',
    'probes.kiln.http',
    /user or a password/,
    /in a variable/,
  ],
  ['probes/kiln/http', 'KILN_URL', 'probes.kiln.http', /not a variable/, /KILN_API_KEY/],
  ['probes/kiln/http', 3, 'probes.kiln.http', /a number, not a target/, /variable/],
  ['probes/kiln', { service: 'web', check: 'ping' }, 'probes.kiln.check', /text, not a function/, /async/],
  ['probes/kiln', { service: 'web', tcp: 'kiln.example' }, 'probes.kiln.tcp', /no target for tcp/, /5672/],
  ['probes/kiln/deadline', 2, 'probes.kiln.deadline', /not a duration/, /'2s'/],
  ['probes/kiln/deadline', '5m', 'probes.kiln.deadline', /out of bounds/, /30s/],
  ['probes/kiln/optional', 1, 'probes.kiln.optional', /not true or false/, /true or false/],
  [
    'probes/kiln/dependsOn',
    ['bookings', 'stoer'],
    'probes.kiln.dependsOn[1]',
    /"stoer" is not a probe or a service/,
    /^Did you mean store\?$/,
  ],
  ['probes/kiln/dependsOn', 'store', 'probes.kiln.dependsOn', /text, not a list/, /\[ … \]/],
  ['probes/kiln/dependsOn', ['store', 'store'], 'probes.kiln.dependsOn[1]', /twice/, /Remove/],
  ['probes/kiln/dependsOn', ['kiln'], 'probes.kiln.dependsOn[0]', /"kiln" depends on itself/, /Remove it/],
  [
    'probes/kiln/dependsOn',
    ['web'],
    'probes.kiln.dependsOn[0]',
    /a circle: kiln → web → kiln/,
    /not its service/,
  ],
  [
    'services/bookings/dependsOn',
    ['store', 'bookins'],
    'services.bookings.dependsOn[1]',
    /"bookins" is not a probe or a service/,
    /^Did you mean bookings\?$/,
  ],
  [
    'services/bookings/dependsOn',
    ['web'],
    'services.bookings.dependsOn[0]',
    /bookings → web → bookings/,
    /its own probes/,
  ],
  [
    'probes',
    {
      kiln: { service: 'web', http: 'https://a.example', dependsOn: ['store', 'oven'] },
      oven: { service: 'web', http: 'https://a.example', dependsOn: ['fuel'] },
      fuel: { service: 'web', http: 'https://a.example', dependsOn: ['bookings', 'kiln'] },
    },
    'probes.fuel.dependsOn[1]',
    /a circle: fuel → kiln → oven → fuel/,
    /Remove one/,
  ],
  [
    'probes/store',
    { service: 'web', http: 'https://a.example' },
    'probes.store',
    /web has a probe store/,
    /another name/,
  ],
  ['mails', 3, 'mails', /a number, not text/, /text/],
  [
    'templates',
    { Welcome: {} },
    'templates.Welcome',
    /cannot be the name of a template/,
    /booking-confirmed/,
  ],
  ['templates', { booked: { slot: {} } }, 'templates.booked.slot', /not a field/, /^Did you mean slots\?$/],
  [
    'templates',
    { booked: { slots: { 'booking-url': 'url' } } },
    'templates.booked.slots["booking-url"]',
    /name of a slot/,
    /bookingUrl/,
  ],
  [
    'templates',
    { booked: { slots: { when: 'date' } } },
    'templates.booked.slots.when',
    /not a type of slot/,
    /text, url/,
  ],
  [
    'templates',
    { booked: { by: 'anybody', resolve() {} } },
    'templates.booked.by',
    /not somebody who can ask/,
    /person, service/,
  ],
  ['templates', { booked: { by: 'person' } }, 'templates.booked.resolve', /who gets it/, /resolve/],
  [
    'templates',
    { booked: { by: 'person', resolve: 'x' } },
    'templates.booked.resolve',
    /not a function/,
    /async/,
  ],
  [
    'templates',
    { booked: { inputs: ['bookingId'] } },
    'templates.booked',
    /nobody may make one/,
    /by: 'person'/,
  ],
  [
    'templates',
    { booked: { by: 'person', resolve() {}, inputs: ['id', 'id'] } },
    'templates.booked.inputs[1]',
    /twice/,
    /Remove/,
  ],
  [
    'courses',
    { 'First Firing': { lessons: './x' } },
    'courses["First Firing"]',
    /name of a course/,
    /first-firing/,
  ],
  ['courses', { intro: { lessons: './x' } }, 'courses.intro', /preset has a course intro/, /another id/],
  [
    'courses',
    { status: { lessons: './x' } },
    'courses.status',
    /incidents go by the name status/,
    /another id/,
  ],
  ['courses', { firing: {} }, 'courses.firing.lessons', /no lessons/, /lessons:/],
  [
    'courses',
    { firing: { lessons: './x', every: '2' } },
    'courses.firing.every',
    /"2", not a duration/,
    /'2d'/,
  ],
  [
    'courses',
    { firing: { lessons: './x', every: '5m' } },
    'courses.firing.every',
    /out of bounds/,
    /15 minutes to 90 days/,
  ],
  [
    'courses',
    { firing: { lessons: './x', every: '1d', at: '09:00' } },
    'courses.firing',
    /every and at/,
    /one of the two/,
  ],
  ['courses', { firing: { lessons: './x', at: '9am' } }, 'courses.firing.at', /not a local hour/, /09:00/],
  [
    'courses',
    { firing: { lessons: './x', at: '09:00', zone: 'Berlin' } },
    'courses.firing.zone',
    /not an IANA time zone/,
    /Europe\/Berlin/,
  ],
  [
    'courses',
    { firing: { lessons: './x', at: '09:00', zone: '+02:00' } },
    'courses.firing.zone',
    /not an IANA time zone/,
    /Europe\/Berlin/,
  ],
  [
    'courses',
    { firing: { lessons: './x', zone: 'Europe/Berlin' } },
    'courses.firing.zone',
    /without an hour/,
    /at:/,
  ],
  [
    'courses',
    { firing: { lessons: './x', at: '09:00', on: ['monday'] } },
    'courses.firing.on[0]',
    /not a weekday/,
    /mon, tue/,
  ],
  [
    'courses',
    { firing: { lessons: './x', at: '09:00', on: [] } },
    'courses.firing.on',
    /empty/,
    /at least one/,
  ],
  [
    'courses',
    { firing: { lessons: './x', spacing: 'day' } },
    'courses.firing.spacing',
    /not a duration/,
    /'12h'/,
  ],
  [
    'courses',
    { firing: { lessons: './x', follow: 'newest' } },
    'courses.firing.follow',
    /not a version/,
    /latest/,
  ],
  ['courses', { firing: { lessons: './x', pages: 'private' } }, 'courses.firing.pages', /false/, /public/],
  ['insights', { table: [] }, 'insights.table', /not a field of the insights/, /labels, sections/],
  [
    'insights',
    { labels: { 'kiln.boked': 'x' } },
    'insights.labels["kiln.boked"]',
    /not an event kind/,
    /kiln\.booked/,
  ],
  ['insights', { sections: [{}] }, 'insights.sections[0].columns', /no columns/, /compute/],
  [
    'insights',
    { sections: [section({ kind: 'kiln.boked' })] },
    'insights.sections[0].columns[0].kind',
    /not an event kind/,
    /Did you mean kiln\.booked/,
  ],
  [
    'insights',
    { sections: [section({ compute: 'mean' })] },
    'insights.sections[0].columns[0].property',
    /computed from a property/,
    /cones/,
  ],
  [
    'insights',
    { sections: [section({}), section({})] },
    'insights.sections[1].id',
    /has a part firings already/,
    /another id/,
  ],
  [
    'insights',
    { sections: [{ ...section({}), tile: { label: 'firings', column: 'Booked' } }] },
    'insights.sections[0].tile.column',
    /not the head of a column/,
    /Firings/,
  ],
  ['events', { booked: {} }, 'events.booked', /name of an event kind/, /kiln\.booked/],
  ['events', { 'page.viewed': {} }, 'events["page.viewed"]', /preset has the event kind/, /another name/],
  ['events', { 'kiln.booked': true }, 'events["kiln.booked"]', /not an object/, /\{/],
  [
    'events',
    { 'kiln.booked': { cones: 'integer' } },
    'events["kiln.booked"].cones',
    /not a type of property/,
    /number/,
  ],
  [
    'events',
    { 'kiln.booked': { email: 'string' } },
    'events["kiln.booked"].email',
    /personal data/,
    /rename/,
  ],
  ['heartbeats', { backup: {} }, 'heartbeats.backup.every', /how often/, /every/],
  ['heartbeats', { backup: { every: '1s' } }, 'heartbeats.backup.every', /out of bounds/, /a minute/],
  ['folder', 3, 'folder', /a number, not text/, /text/],
]

test('the definition of the ceramics school has no faults', () => {
  expect(faultsOf(ceramics())).toEqual([])
  expect(faultsOf({})).toEqual([])
})

test.each(FAULTS)('%s = %j is a fault at %s', (at, value, path, cause, fix) => {
  const faults = faultsOf(spoiled(at, value))
  const found = faults.find((fault) => fault.path === path)
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

test('a definition has more than sixty distinct faults', () => {
  expect(new Set(FAULTS.map(([, , , cause, fix]) => `${cause} ${fix}`)).size).toBeGreaterThan(100)
})

test.each([[undefined], [null], [3], ['kiln'], [[]], [() => undefined]])('%s is no definition', (value) => {
  expect(faultsOf(value)).toMatchObject([
    { path: '', cause: expect.stringMatching(/a definition is .*not an object/) },
  ])
})

test('every fault of a definition is given at once', () => {
  const definition = { ...ceramics(), name: 3, mails: 3, folder: 3 }
  expect(faultsOf(definition).map(({ path }) => path)).toEqual(['name', 'mails', 'folder'])
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
