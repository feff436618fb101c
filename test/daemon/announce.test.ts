import { expect, test } from 'vitest'
import type { Service } from '../../src/core/service.ts'
import { announceEnvironment, InvalidEnvironmentError } from '../../src/daemon/announce.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { SERVICES } from '../support/learning.ts'
import { keptLog } from '../support/opened.ts'

/** The warnings of a start, each with its kind. */
function announced(env: Record<string, string>, services: readonly Service[] = SERVICES): string[] {
  const { log, lines } = keptLog()
  announceEnvironment({ platform: learning, env, services, log })
  return lines.flatMap(({ level, event, warning }) =>
    level === 'warn' ? [event, warning].filter(Boolean).join(' ') : [],
  )
}

const CORS = 'cors_at_localhost RuntimeWarning'
const LIMITER = 'limiter_in_process'
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
  // What only web reads keeps no API from starting.
  const half = { MAILER_FROM: 'a@example.com' }
  expect(announced(half, ['api'])).toEqual([CORS, LIMITER])
  expect(() => announced(half, ['web'])).toThrow(InvalidEnvironmentError)
})

test('warnings are told with what to do, and absent groups with what that means', () => {
  const { log, lines } = keptLog()
  const settings = announceEnvironment({
    platform: learning,
    env: { API_URL: 'no address', BUILD_STAMP: 'b7' },
    services: SERVICES,
    log,
  })
  expect(settings.site.buildStamp).toBe('b7')
  const warning = {
    level: 'warn',
    event: 'environment_warning',
    id: expect.any(String),
    fix: expect.stringMatching(/\.$/),
  }
  expect(lines).toContainEqual({ ...warning, message: expect.stringContaining('API_URL') })
  expect(lines).toContainEqual({
    level: 'info',
    event: 'group_absent',
    message: 'not configured: payments',
    group: 'payments',
    means: learning.contract.group('payments')?.absent,
  })
})

test('a start in production warns that links in mails lead to this machine', () => {
  const { log, lines } = keptLog()
  const env = {
    DEPLOY_ENVIRONMENT: 'production',
    MAILER_SMTP_URL: 'smtps://mail.example.com',
    MAILER_FROM: 'a@example.com',
  }
  announceEnvironment({ platform: learning, env, services: SERVICES, log })
  expect(lines).toContainEqual({
    level: 'warn',
    event: 'environment_warning',
    message: expect.stringContaining('links in mails lead to localhost'),
    id: 'localhost-links',
    fix: expect.stringContaining('NEXT_PUBLIC_SITE_URL'),
  })
})

test('a half-configured environment does not start, and names its errors, not its warnings', () => {
  const start = () => announced({ MAILER_FROM: 'a@example.com', API_URL: 'no address' })
  expect(start).toThrow(InvalidEnvironmentError)
  expect(start).toThrow('the environment is half-configured')
  expect(start).toThrow(
    expect.objectContaining({ findings: [expect.objectContaining({ group: 'mail', severity: 'error' })] }),
  )
})
