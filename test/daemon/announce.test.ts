import { expect, test } from 'vitest'
import type { Log } from '../../src/core/host.ts'
import type { Service } from '../../src/core/service.ts'
import { announceEnvironment, InvalidEnvironmentError } from '../../src/daemon/announce.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { SERVICES } from '../support/learning.ts'

/** The events of a start, each with its level and its kind of warning. */
function announced(env: Record<string, string>, services: readonly Service[] = SERVICES): string[] {
  const events: string[] = []
  const at =
    (level: string): Log['info'] =>
    (event, _message, fields) =>
      void events.push([level, event, fields?.warning].filter(Boolean).join(' '))
  const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  announceEnvironment({ platform: learning, env, services, log })
  return events.filter((event) => event.startsWith('warn'))
}

const CORS = 'warn cors_at_localhost RuntimeWarning'
const LIMITER = 'warn limiter_in_process'
const SHARED = {
  SHAREDSTORE_REST_URL: 'https://limits.example.com',
  SHAREDSTORE_REST_TOKEN: 'token-of-the-store',
}

test('a start warns while CORS is limited to localhost and while rate limits are not shared', () => {
  expect(announced({})).toEqual([CORS, LIMITER])
  expect(announced({ CORS_ALLOWED_ORIGINS: 'https://www.example.com' })).toEqual([LIMITER])
  expect(announced(SHARED)).toEqual([CORS])
  // A malformed value behaves as absent.
  const malformed = { CORS_ALLOWED_ORIGINS: 'www.example.com', SHAREDSTORE_REST_URL: 'no address' }
  expect(announced(malformed).slice(-2)).toEqual([CORS, LIMITER])
})

test('only the services that are concerned are warned', () => {
  expect(announced({}, ['api'])).toEqual([CORS, LIMITER])
  expect(announced({}, ['web'])).toEqual([LIMITER])
  expect(announced({}, ['agent'])).toEqual([])
})

test('a half-configured environment does not start', () => {
  expect(() => announced({ MAILER_FROM: 'a@example.com' })).toThrow('the environment is half-configured')
})

test('warnings are told with what to do, and absent groups with what that means', () => {
  const lines: unknown[] = []
  const note: Log['info'] = (event, message, fields) => void lines.push({ event, message, ...fields })
  const log: Log = { debug: note, info: note, warn: note, error: note }
  const settings = announceEnvironment({
    platform: learning,
    env: { API_URL: 'no address', BUILD_STAMP: 'b7' },
    services: SERVICES,
    log,
  })
  expect(settings.site.buildStamp).toBe('b7')
  const warning = { event: 'environment_warning', id: expect.any(String), fix: expect.stringMatching(/\.$/) }
  expect(lines).toContainEqual({ ...warning, message: expect.stringContaining('API_URL') })
  expect(lines).toContainEqual({
    event: 'group_absent',
    message: 'not configured: payments',
    group: 'payments',
    means: learning.contract.group('payments')?.absent,
  })
})

test('a refused environment names its errors, and not its warnings', () => {
  let fault: unknown
  try {
    announced({ MAILER_FROM: 'a@example.com', API_URL: 'no address' })
  } catch (error) {
    fault = error
  }
  expect(fault).toBeInstanceOf(InvalidEnvironmentError)
  const { findings } = fault as InvalidEnvironmentError
  expect(findings.map(({ group, severity }) => `${group} ${severity}`)).toEqual(['mail error'])
})
