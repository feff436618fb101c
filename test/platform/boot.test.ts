import { expect, onTestFinished, test } from 'vitest'
import { registerPlatform, validatePlatformEnv } from '../../src/platform/boot.ts'
import type { PlatformDefinition } from '../../src/platform/definition.ts'
import { ceramics } from './ceramics.ts'

const platform = ceramics() as PlatformDefinition
const HALF = { KILN_API_KEY: 'canary-71d0-of-the-kiln' }

test('does not start on an environment that breaks a rule of the definition, and reports it by its own names without a value', () => {
  expect(() => registerPlatform(platform, HALF)).toThrow(/kiln-all-or-none[\s\S]*KILN_API_SECRET/)
  expect(() => registerPlatform(platform, HALF)).not.toThrow(/canary/)
  expect(registerPlatform(platform, {}).ok).toBe(true)
})

test('validating for one service leaves out what only others read', () => {
  expect(validatePlatformEnv(platform, HALF).ok).toBe(false)
  expect(validatePlatformEnv(platform, HALF, ['web']).ok).toBe(false)
  expect(validatePlatformEnv(platform, HALF, ['bookings']).ok).toBe(true)
})

test('variables of the default platform mean nothing to another', () => {
  const env = { HARDWARE_A_TOKEN: 'x'.repeat(32), MODEL_A_MODEL: 'large' }
  expect(validatePlatformEnv(platform, env).findings.filter(({ severity }) => severity === 'error')).toEqual(
    [],
  )
})

test('web alone is called by no other origin, so its boot does not warn of CORS', async () => {
  const warnings: string[] = []
  const keep = (warning: Error) => warnings.push(warning.name)
  process.on('warning', keep)
  onTestFinished(() => void process.off('warning', keep))
  registerPlatform(platform, {})
  await new Promise((resolve) => setImmediate(resolve))
  expect(warnings).toEqual([])
})

test('a definition with faults is refused with all of them', () => {
  expect(() => validatePlatformEnv({ preset: 'bsae' as 'base' }, {})).toThrow(/bsae/)
})
