import { expectTypeOf, test } from 'vitest'
import type { Secret } from '../../src/core/secret.ts'
import { openPlatform, type Platform } from '../../src/daemon/index.ts'
import { definePlatform, type PlatformEnvironment } from '../../src/platform/checked.ts'

// Held by the compiler (npm run check); running them only shows that they are there.

const GROUP = { unlocks: 'bookings', absent: 'no bookings' }

const kiln = definePlatform({
  preset: 'base',
  name: 'Kiln School',
  without: ['payments'],
  services: { web: {}, bookings: { address: 'BOOKINGS_URL', health: '/healthz', format: 'status' } },
  groups: {
    kiln: {
      ...GROUP,
      services: ['web'],
      variables: {
        KILN_API_KEY: { kind: 'secret' },
        KILN_API_SECRET: { kind: 'secret' },
        KILN_ACCOUNT: { kind: 'text' },
        KILN_REGION: { kind: 'enum', of: ['eu', 'us'], default: 'eu' },
        KILN_HEAT: { kind: 'integer', adjusts: true },
      },
      rules: [
        { allOrNone: ['KILN_API_KEY', 'KILN_API_SECRET'] },
        {
          id: 'kiln-account',
          cause: 'A key has an account.',
          requires: ['KILN_ACCOUNT'],
          when: ['KILN_API_KEY'],
        },
        { requires: ['KILN_REGION'], when: ['KILN_API_KEY', 'KILN_ACCOUNT'], match: 'all', fix: 'Set it.' },
        { forbidden: 'KILN_ACCOUNT', value: /\*/ },
        { requires: ['KILN_API_KEY', 'STORE_URL'], when: ['KILN_ACCOUNT'] },
      ],
    },
    bookings: { ...GROUP, variables: { BOOKINGS_URL: { kind: 'url' }, BOOKINGS_DAYS: { kind: 'list' } } },
  },
  probes: {
    kiln: { service: 'web', group: 'kiln', http: 'https://api.kiln.example/ping' },
    queue: {
      service: 'web',
      check: async ({ signal, value }) => ({ state: signal.aborted || value('X') ? 'ok' : 'failing' }),
    },
  },
  mails: './mails',
  templates: {
    booked: {
      slots: { bookingUrl: 'url' },
      by: 'person',
      inputs: ['bookingId'],
      resolve: async ({ bookingId = '' }, { asker }) =>
        asker.kind === 'person'
          ? {
              to: asker.email,
              slots: { bookingUrl: `/bookings/${bookingId}` },
              about: `booking.${bookingId}`,
            }
          : undefined,
    },
  },
  courses: { 'first-firing': { lessons: './courses/first-firing', every: '2d' } },
  events: { 'kiln.booked': { kiln: 'string', cones: 'number' } },
})

test('an undeclared name is a compile error', () => {
  const variables = { A_KEY: { kind: 'secret' }, B_KEY: { kind: 'secret' } } as const
  definePlatform({
    preset: 'base',
    services: { web: {} },
    // @ts-expect-error there is no service wbe
    groups: { a: { ...GROUP, services: ['wbe'], variables } },
  })
  // @ts-expect-error there is no variable A_KEI
  definePlatform({ groups: { a: { ...GROUP, variables, rules: [{ allOrNone: ['A_KEY', 'A_KEI'] }] } } })
  definePlatform({
    // @ts-expect-error there is no variable A_KEI
    groups: { a: { ...GROUP, variables, rules: [{ requires: ['A_KEY'], when: ['A_KEI'] }] } },
  })
  // @ts-expect-error there is no variable A_KEI
  definePlatform({ groups: { a: { ...GROUP, variables, rules: [{ forbidden: 'A_KEI', value: '*' }] } } })
  definePlatform({
    preset: 'base',
    // @ts-expect-error there is no variable SHOP_URL
    services: { web: {}, shop: { address: 'SHOP_URL', health: '/', format: 'status' } },
  })
  // @ts-expect-error base has no service api
  definePlatform({ preset: 'base', probes: { a: { service: 'api', http: 'https://a.example' } } })
  definePlatform({
    preset: 'base',
    // @ts-expect-error there is no group kilm
    probes: { a: { service: 'web', group: 'kilm', http: 'https://a.example' } },
  })
  // @ts-expect-error there is no group payment
  definePlatform({ without: ['payment'] })
  definePlatform({
    templates: {
      a: {
        slots: { u: 'url' },
        by: 'person',
        // @ts-expect-error the template has no slot v
        resolve: () => ({ to: 'a@b.example', slots: { v: '/' }, about: 'a' }),
      },
    },
  })
  definePlatform({
    groups: { a: { ...GROUP, variables, rules: [{ requires: ['STORE_URL'], when: ['A_KEY'] }] } },
  })
})

test('a wrong word is a compile error', () => {
  // @ts-expect-error no kind strng
  definePlatform({ groups: { a: { ...GROUP, variables: { A_B: { kind: 'strng' } } } } })
  // @ts-expect-error no field summry
  definePlatform({ groups: { a: { ...GROUP, variables: { A_B: { kind: 'text', summry: 'x' } } } } })
  // @ts-expect-error a group says what its absence means
  definePlatform({ groups: { a: { unlocks: 'a', variables: { A_B: { kind: 'text' } } } } })
  // @ts-expect-error no field colour
  definePlatform({ colour: 'red' })
  // @ts-expect-error no type date
  definePlatform({ events: { 'a.b': { at: 'date' } } })
})

type Environment = PlatformEnvironment<typeof kiln>

test('the environment is typed from the definition', () => {
  expectTypeOf<Environment['kiln']>().toEqualTypeOf<
    | {
        readonly KILN_API_KEY: Secret
        readonly KILN_API_SECRET: Secret
        readonly KILN_ACCOUNT: string
        readonly KILN_REGION: 'eu' | 'us'
        readonly KILN_HEAT: number | undefined
      }
    | undefined
  >()
  expectTypeOf<Environment['bookings']>().toEqualTypeOf<
    | { readonly BOOKINGS_URL: string | undefined; readonly BOOKINGS_DAYS: readonly string[] | undefined }
    | undefined
  >()
})

test('a group that is always on is there, and what it requires too', () => {
  const choir = definePlatform({
    preset: 'base',
    groups: {
      app: {
        ...GROUP,
        always: true,
        variables: {
          APP_KEY: { kind: 'secret', required: true },
          APP_PEM: { kind: 'pem' },
          APP_CERT: { kind: 'pem', required: 'production' },
          APP_PEERS: { kind: 'urls', default: 'https://a.example' },
        },
        rules: [{ allOrNone: ['APP_KEY', 'APP_PEM'] }],
      },
      members: {
        ...GROUP,
        variables: {
          MEMBERS_URL: { kind: 'postgres-url', required: true },
          MEMBERS_MAIL: { kind: 'emails' },
        },
      },
      feature: { ...GROUP, variables: { FEATURE: { kind: 'boolean', default: false } } },
    },
  })
  type Choir = PlatformEnvironment<typeof choir>
  expectTypeOf<Choir['app']>().toEqualTypeOf<{
    readonly APP_KEY: Secret
    readonly APP_PEM: Secret
    readonly APP_CERT: Secret | undefined
    readonly APP_PEERS: readonly string[]
  }>()
  expectTypeOf<Choir['members']>().toEqualTypeOf<
    { readonly MEMBERS_URL: Secret; readonly MEMBERS_MAIL: readonly string[] | undefined } | undefined
  >()
  expectTypeOf<Choir['feature']>().toEqualTypeOf<{ readonly FEATURE: boolean } | undefined>()
})

test('the groups of the preset are there too, but for those left out', () => {
  expectTypeOf<NonNullable<Environment['sharedstore']>>().toEqualTypeOf<{
    readonly SHAREDSTORE_REST_URL: string
    readonly SHAREDSTORE_REST_TOKEN: Secret
  }>()
  expectTypeOf<Environment>().not.toHaveProperty('payments')
  expectTypeOf<PlatformEnvironment<Record<never, never>>>().toHaveProperty('hardware')
})

test('a Standard Schema says what its value is', () => {
  const schema = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (value: unknown) => ({ value: new Date(String(value)) }),
    },
  } as {
    '~standard': {
      version: 1
      vendor: string
      validate: (value: unknown) => unknown
      types?: { input: string; output: Date }
    }
  }
  const platform = definePlatform({ groups: { a: { ...GROUP, variables: { A_DAY: { schema } } } } })
  expectTypeOf<NonNullable<PlatformEnvironment<typeof platform>['a']>['A_DAY']>().toEqualTypeOf<Date>()
})

test('mails are typed by the definition', () => {
  type Mail = Platform<'web', (typeof kiln)['templates']>['mail']
  const send = (async () => ({ sent: false, reason: '' })) as Mail['send']
  send('booked', { to: 'ada@example.com', slots: { bookingUrl: 'https://www.example.com/' } })
  // @ts-expect-error the slot is bookingUrl
  send('booked', { to: 'ada@example.com', slots: { bookingURL: 'https://www.example.com/' } })
  // @ts-expect-error it has a slot
  send('booked', { to: 'ada@example.com', slots: {} })
  const platform = () => openPlatform({ env: {}, platform: kiln })
  expectTypeOf<Parameters<ReturnType<typeof platform>['mail']['send']>[0]>().toExtend<string>()
})
