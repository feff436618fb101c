import { expectTypeOf, test } from 'vitest'
import {
  type Directory,
  type Handler,
  type Identity,
  nodeListener,
  openPlatform,
  type Platform,
  type PlatformOptions,
  type Store,
  type Transport,
} from '../../src/daemon/index.ts'
import { type Report, readEnv, register, validateAll, validateWeb } from '../../src/env.ts'

// Held by the compiler (npm run check); running them only shows that they are there.

test('openPlatform needs an environment, and everything else may be given', () => {
  expectTypeOf(openPlatform({ env: {} })).toEqualTypeOf<Platform>()
  expectTypeOf(
    openPlatform({ env: {}, platform: { preset: 'base', services: { web: {}, shop: { port: 1 } } } }),
  ).toExtend<Platform<'web' | 'shop'>>()
  expectTypeOf<{ env: NodeJS.ProcessEnv }>().toExtend<PlatformOptions>()
  expectTypeOf<Record<never, never>>().not.toExtend<PlatformOptions>()
  expectTypeOf<{ env: Record<string, number> }>().not.toExtend<PlatformOptions>()
  expectTypeOf<PlatformOptions['store']>().toEqualTypeOf<Store | undefined>()
  expectTypeOf<PlatformOptions['mailer']>().toEqualTypeOf<Transport | undefined>()
  expectTypeOf<PlatformOptions['directory']>().toEqualTypeOf<Directory | undefined>()
})

test('the three services are handlers of Request and Response', () => {
  expectTypeOf<Platform['web']>().toEqualTypeOf<Handler>()
  expectTypeOf<Platform['api']['fetch']>().returns.resolves.toEqualTypeOf<Response>()
  expectTypeOf<Platform['agent']['fetch']>().parameter(0).toEqualTypeOf<Request>()
  expectTypeOf(nodeListener).parameter(0).toEqualTypeOf<Handler>()
})

test('sendEmail gives an id or a reason, and sent says which', () => {
  type Sent = Awaited<ReturnType<Platform['sendEmail']>>
  expectTypeOf<Extract<Sent, { sent: true }>>().toHaveProperty('id').toBeString()
  expectTypeOf<Extract<Sent, { sent: false }>>().toHaveProperty('reason').toBeString()
  expectTypeOf<Extract<Sent, { sent: false }>>().not.toHaveProperty('id')
  expectTypeOf<Parameters<Platform['sendEmail']>[0]['template']>().toBeString()
})

test('an identity is a person with subject and address, or the service', () => {
  expectTypeOf<{ kind: 'person'; subject: string; email: string }>().toExtend<Identity>()
  expectTypeOf<{ kind: 'service' }>().toExtend<Identity>()
  expectTypeOf<{ kind: 'person'; subject: string }>().not.toExtend<Identity>()
  expectTypeOf<{ kind: 'admin' }>().not.toExtend<Identity>()
})

test('the validators give a report, and readEnv values with findings', () => {
  expectTypeOf(validateWeb).returns.toEqualTypeOf<Report>()
  expectTypeOf(validateAll({}).ok).toBeBoolean()
  expectTypeOf(register).parameter(0).toExtend<NodeJS.ProcessEnv | undefined>()
  expectTypeOf(readEnv).returns.toHaveProperty('values').toEqualTypeOf<Map<string, string>>()
  expectTypeOf(readEnv).returns.toHaveProperty('rejected').toBeBoolean()
})
