import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { routesOf } from '../../src/daemon/routes.ts'
import { checkDefinition } from '../../src/platform/check/check.ts'
import type { PresetGroup } from '../../src/platform/checked.ts'
import { contractOf, PRESETS } from '../../src/platform/contract.ts'
import type { CourseInput, PlatformDefinition } from '../../src/platform/definition.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { emptyFolder } from '../support/folder.ts'

const base = (definition: Omit<PlatformDefinition, 'preset'> = {}) =>
  resolvePlatform({ preset: 'base', ...definition }, { folder: '/' })
const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

/** A folder with two lessons, and the courses made of it. */
async function coursesOf(courses: Readonly<Record<string, Omit<CourseInput, 'lessons'>>>) {
  const folder = await emptyFolder()
  for (const name of ['1-clay.md', '2-fire.md']) await writeFile(path.join(folder, name), '')
  const all = Object.entries(courses).map(([id, course]) => [id, { ...course, lessons: '.' }] as const)
  return resolvePlatform({ preset: 'base', courses: Object.fromEntries(all) }, { folder }).courses
}

test('a course is due as its definition says, once a day and in UTC unless it says otherwise', async () => {
  const courses = await coursesOf({
    plain: {},
    paced: { every: '2d', spacing: '12h', title: 'A course', follow: 'latest' },
    early: { at: '02:30' },
    own: { at: '23:59', zone: 'subscriber', on: ['sun', 'mon', 'wed'] },
    berlin: { at: '00:00', zone: 'Europe/Berlin' },
  })
  expect(courses.map(({ id, cadence }) => [id, cadence])).toEqual([
    ['plain', { kind: 'every', ms: DAY }],
    ['paced', { kind: 'every', ms: 2 * DAY }],
    ['early', { kind: 'at', minute: 150, zone: 'UTC', weekdays: [] }],
    ['own', { kind: 'at', minute: 1439, zone: undefined, weekdays: [1, 3, 7] }],
    ['berlin', { kind: 'at', minute: 0, zone: 'Europe/Berlin', weekdays: [] }],
  ])
  const [plain, paced] = courses
  expect(plain).toMatchObject({ title: 'plain', spacingMs: 0, follow: 'start' })
  expect(paced).toMatchObject({ title: 'A course', spacingMs: DAY / 2, follow: 'latest' })
  expect(paced?.lessons).toEqual(['paced-1-clay', 'paced-2-fire'])
})

test('a heartbeat may be late by a tenth of its time unless its grace says something else', () => {
  const { heartbeats, probes } = base({
    heartbeats: {
      backup: { every: '10m' },
      report: { every: '1d', grace: '1h', label: 'The report' },
      sweep: { every: '1d', grace: '0s' },
    },
  })
  expect(heartbeats).toEqual([
    { name: 'backup', everyMs: 10 * MINUTE, graceMs: MINUTE },
    { name: 'report', everyMs: DAY, graceMs: 60 * MINUTE, label: 'The report' },
    { name: 'sweep', everyMs: DAY, graceMs: 0 },
  ])
  expect(probes.filter(({ name }) => /backup|report/.test(name))).toHaveLength(2)
})

test('a platform shows a brand once its definition says a name, a color or a logo', async () => {
  expect(base()).toMatchObject({ name: 'Platform', language: 'en', brand: undefined })
  expect(base({ brand: { language: 'de' } })).toMatchObject({ language: 'de', brand: undefined })
  expect(base({ name: 'Kiln School' })).toMatchObject({ name: 'Kiln School', brand: {} })
  expect(base({ brand: { color: '#9a3412' } }).brand).toEqual({ color: '#9a3412' })
  const folder = await emptyFolder()
  await writeFile(path.join(folder, 'logo.png'), '')
  expect(base({ folder, brand: { logo: 'logo.png' } }).brand).toEqual({ logo: 'data:image/png;base64,' })
})

test('leaves undefined fields out, and makes a list of one contact', () => {
  const keys = Object.keys(base())
  for (const key of ['confirmation', 'unsubscription', 'challenge', 'security'])
    expect(keys).not.toContain(key)
  const challenge = async () => true
  expect(base({ confirmation: 'button', challenge })).toMatchObject({ confirmation: 'button', challenge })
  expect(base({ security: { contact: 'tel:1', policy: 'https://a.example' } }).security).toEqual({
    contact: ['tel:1'],
    policy: 'https://a.example',
  })
  expect(base({ security: { contact: ['tel:1', 'tel:2'] } }).security?.contact).toEqual(['tel:1', 'tel:2'])
})

test('probes of what is left out are gone, and services with an address are asked', () => {
  const group = {
    unlocks: 'a',
    absent: 'b',
    variables: { SHOP_URL: { kind: 'url' }, A_B: { kind: 'text' } },
  } as const
  const namesOf = (definition: Omit<PlatformDefinition, 'preset'>) =>
    base(definition).probes.map(({ name }) => name)
  const usual = namesOf({})
  expect(usual).toContain('payments')
  expect(namesOf({ without: ['payments'] })).toEqual(usual.filter((name) => name !== 'payments'))
  expect(
    namesOf({
      groups: { shop: group },
      services: {
        web: {},
        shop: { address: 'SHOP_URL', format: 'status' },
        inner: { port: 4100 },
      },
      probes: { kiln: { service: 'web', tcp: 'a:1' } },
    }),
  ).toEqual([...usual, 'shop', 'kiln'])
  const learning = (services: PlatformDefinition['services'], without: readonly string[] = []) =>
    resolvePlatform({ preset: 'learning', without, ...(services && { services }) }, { folder: '/' }).probes
  const grouped = learning(undefined, ['hardware', 'models'])
  expect(grouped.filter(({ name }) => /^(?:hardware|model)_/.test(name))).toEqual([])
  expect(learning(undefined).length - grouped.length).toBeGreaterThan(4)
  const without = learning({ web: {}, api: {} })
  expect(learning(undefined).some(({ name, service }) => [name, service].includes('agent'))).toBe(true)
  expect(without.some(({ name, service }) => [name, service].includes('agent'))).toBe(false)
  expect(without.filter(({ name, service }) => service === 'web' && name === 'api')).toHaveLength(1)
})

test('a service that has the name of another probe of web is asked too, under a name of its own', () => {
  const named = { address: 'NEXT_PUBLIC_SITE_URL', format: 'status' } as const
  const { probes } = base({
    services: { web: {}, payments: named, bookings: named, shop: named },
    probes: { bookings: { service: 'web', tcp: 'a:1' } },
  })
  const asking = probes.filter(({ meaning }) => meaning === 'not checked, as its address is not set')
  expect(asking.map(({ name }) => name)).toEqual(['payments_service', 'bookings_service', 'shop'])
  expect(new Set(probes.map(({ name }) => name)).size).toBe(probes.length)
})

test('services keep what their preset says of them, and have a path for each format', () => {
  const [web] = base().services
  const services = (definition: PlatformDefinition['services']) =>
    base(definition && { services: definition }).services
  expect(services({ web: {} })).toEqual([web])
  expect(services({ web: { port: 0, label: 'Site', group: 'Front', health: '/up' } })).toEqual([
    { ...web, port: 0, label: 'Site', group: 'Front', health: '/up' },
  ])
  expect(services({ web: {}, shop: { address: 'NEXT_PUBLIC_SITE_URL' } })[1]?.health).toBe('/api/health')
  const pathOf = (format: 'platformctl' | 'health+json' | 'spring' | 'aspnet' | 'status') =>
    services({ web: {}, shop: { format, address: 'NEXT_PUBLIC_SITE_URL' } })[1]
  expect(pathOf('spring')).toEqual({
    name: 'shop',
    health: '/actuator/health',
    format: 'spring',
    address: ['NEXT_PUBLIC_SITE_URL'],
  })
  expect(pathOf('platformctl')?.health).toBe('/api/health')
  for (const format of ['health+json', 'aspnet', 'status'] as const)
    expect(pathOf(format)?.health).toBe('/health')
})

test('events and sections of a definition come after those of its preset, each kind with its label', () => {
  const section = {
    id: 'firings',
    heading: 'Firings',
    caption: 'Firings',
    empty: 'None.',
    rowHead: 'Kiln',
    columns: [{ head: 'Firings', kind: 'kiln.booked', compute: 'count' }],
  } as const
  const { events, insights } = base({
    events: { 'kiln.booked': { cones: 'number' } },
    insights: { labels: { 'kiln.booked': 'Booked', 'page.viewed': 'Looks' }, sections: [section] },
  })
  expect(events).toEqual([
    ...base().events.map((one) => (one.name === 'page.viewed' ? { ...one, label: 'Looks' } : one)),
    { name: 'kiln.booked', properties: { cones: 'number' }, label: 'Booked' },
  ])
  expect(insights.sections).toEqual([section])
  const more = { events: { 'kiln.booked': {} }, insights: { sections: [section] } }
  const { sections } = resolvePlatform(more, { folder: '/' }).insights
  expect(sections).toEqual([...learning.insights.sections, section])
  // What a browser is shown that has recorded nothing.
  const samples = insights.sample?.(0).filter(({ kind }) => kind === 'kiln.booked') ?? []
  expect(typeof samples[0]?.properties.cones).toBe('number')
})

test('groups of the preset are read by the services that this process serves, and own ones by all', () => {
  const variables = {
    KILN_A: { default: 'x' },
    KILN_B: {},
    KILN_C: { default: 'x', adjusts: false },
  } as const
  const contract = contractOf({
    preset: 'base',
    services: {
      web: {},
      worker: { port: 4100 },
      shop: { format: 'status', address: 'NEXT_PUBLIC_SITE_URL' },
    },
    without: ['payments'],
    groups: { kiln: { unlocks: 'a', absent: 'b', variables } },
  })
  for (const name of ['STORE_URL', 'BUILD_STAMP'])
    expect(contract.find(name)?.services, name).toEqual(['web', 'worker'])
  expect(contract.find('KILN_A')?.services).toEqual(['web', 'worker', 'shop'])
  expect(contract.group('payments')).toBeUndefined()
  expect(contract.group('kiln')?.variables.map(({ kind, adjusts }) => [kind, adjusts])).toEqual([
    ['text', true],
    ['text', false],
    ['text', false],
  ])
})

test('a group that is left out takes its routes along', () => {
  const routes = (...without: PresetGroup<'base'>[]) => routesOf(base({ without })).map(({ name }) => name)
  const all = routes()
  const lost = (group: PresetGroup<'base'>) => all.filter((route) => !routes(group).includes(route))
  expect(lost('payments')).toEqual(['checkout', 'paymentsWebhook'])
  expect(lost('feedback')).toEqual(['feedback'])
  expect(lost('analytics')).toEqual(['analytics'])
  expect(lost('alerts')).toEqual(['silence'])
  expect(lost('health')).toEqual(['configuration'])
  expect(lost('heartbeats')).toEqual(['witness'])
  expect(lost('mail')).toEqual(['subscribe', 'confirm', 'unsubscribe', 'email', 'dispatch'])
  expect(lost('sharedstore')).toEqual([])
})

test('any service but web has its health, metrics and configuration, and none of the other routes', () => {
  const served = (name: string) => routesOf(base(), { name, health: '/up' }).map(({ path }) => path)
  expect(served('worker')).toEqual(['/metrics', '/api/configuration', '/up'])
  expect(served('web')).toEqual(routesOf(base()).map(({ path }) => (path === '/api/health' ? '/up' : path)))
})

test('a group that two rules of another one need is one fault', () => {
  expect(() => base({ without: ['datastore'] })).toThrow(
    /^the platform definition: without\[0\]: A rule of the group identity needs DATASTORE_JWT_SECRET/,
  )
})

test('mail cannot be left out of a platform with a course, a heartbeat, or a mail that requests may ask for', () => {
  const causesOf = (definition: Omit<PlatformDefinition, 'preset' | 'without'>) =>
    checkDefinition({ preset: 'base', without: ['payments', 'mail'], ...definition }, PRESETS).map(
      ({ path: at, cause }) => `${at}: ${cause}`,
    )
  const courses = { firing: { lessons: './firing', every: '1d' } }
  const booked = { by: 'service', resolve: () => undefined } as const
  const heartbeats = { backup: { every: '1d' } }
  expect(causesOf({ courses, heartbeats, templates: { booked, quiet: {} } })).toEqual([
    'templates.booked: This needs the group mail, which is left out.',
    'courses.firing: This needs the group mail, which is left out.',
    'heartbeats.backup: This needs the group mail, which is left out.',
  ])
  // An embedding program may send the others over a transport of its own, and may have a group mail of its own.
  expect(causesOf({ mails: './mails', templates: { quiet: {} } })).toEqual([])
  const mail = { unlocks: 'a', absent: 'b', variables: { POST_KEY: { kind: 'secret' } } } as const
  expect(causesOf({ courses, groups: { mail } })).toEqual([])
  expect(checkDefinition({ without: ['mail'] }, PRESETS)).toEqual([])
})

/** A folder with files of these mails. */
async function mailsOf(...names: readonly string[]) {
  const folder = await emptyFolder()
  for (const name of names) await writeFile(path.join(folder, `${name}.md`), '')
  return folder
}

test('a mail of a definition is known by its name, with the request that may ask for it', async () => {
  const resolve = () => undefined
  const { mails } = base({
    mails: await mailsOf('booked', 'quiet'),
    templates: { booked: { by: 'person', inputs: ['id'], resolve, slots: { at: 'text' } }, quiet: {} },
  })
  expect(mails.definitions.filter(({ name }) => name === 'booked' || name === 'quiet')).toEqual([
    {
      name: 'booked',
      slots: { at: 'text' },
      ask: { by: 'person', inputs: ['id'], resolve: expect.any(Function) },
    },
    { name: 'quiet' },
  ])
  // One that replaces a mail of the preset stays what that is for.
  const linked = base({ templates: { 'magic-link': { slots: { signInUrl: 'url' } } } }).mails.definitions
  expect(linked.find(({ name }) => name === 'magic-link')).toMatchObject({ allowance: 'sign-in', ask: {} })
})

test('a mail that a request asks for needs a recipient, texts in its slots, and what it is about', async () => {
  const whole = { to: 'a@example.com', slots: { at: 'nine' }, about: 'booking.1' }
  const folder = await mailsOf('booked')
  async function given(found: unknown) {
    const templates = { booked: { by: 'service', resolve: () => found as never } } as const
    const { mails } = base({ mails: folder, templates })
    return mails.definitions.find(({ name }) => name === 'booked')?.ask?.resolve({}, {} as never)
  }
  expect([await given(whole), await given(undefined)]).toEqual([whole, undefined])
  const wrong = [{ slots: { at: 9 } }, { slots: undefined }, { about: 1 }, { to: ['a@example.com'] }]
  for (const part of wrong)
    expect(await given({ ...whole, ...part })).toMatchObject({ answer: { kind: 'not_sent' } })
})

test('faults of the files are one error that names the file and all of them', () => {
  const definition = { preset: 'base', mails: 'none', courses: { firing: { lessons: 'nothing' } } }
  expect(() => resolvePlatform(definition, { folder: '/', file: 'kiln.ts' })).toThrow(
    [
      'kiln.ts has 2 faults.',
      '  mails: There is no folder "none". Check the path: it starts at the folder of the definition.',
      '  courses.firing.lessons: There is no folder "nothing". Check the path: it starts at the folder of the definition.',
    ].join('\n'),
  )
  expect(() => resolvePlatform({ preset: 'base', mails: 'none' }, { folder: '/' })).toThrow(
    /^the platform definition: mails: There is no folder/,
  )
})

test('paths start at the folder that the definition names, when it names one', async () => {
  const folder = await emptyFolder()
  await writeFile(path.join(folder, '1.md'), '')
  const definition = { preset: 'base', folder, courses: { firing: { lessons: '.' } } }
  const found = resolvePlatform(definition, { folder: '/nowhere', file: 'kiln.ts' })
  expect([found.courses[0]?.lessons, found.definition?.assets]).toEqual([['firing-1'], [folder]])
})
