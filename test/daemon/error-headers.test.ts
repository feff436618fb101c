import { expect, test } from 'vitest'
import { ERRORS, type ErrorCode, PlatformError } from '../../src/core/errors.ts'
import { errorResponse } from '../../src/daemon/http/problem.ts'
import { frameOf } from '../../src/daemon/pages/layout.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { opened } from '../support/opened.ts'

const REQUEST = {
  requestId: 'request-1',
  wantsHtml: false,
  route: undefined,
  errorTexts: undefined,
  frame: frameOf(learning, 'https://www.example.com', ''),
}

test.each(Object.keys(ERRORS) as ErrorCode[])(
  'the error %s has its status, its shape and its headers, also as a page for a person',
  async (code) => {
    const { status } = ERRORS[code]
    const bare = errorResponse(new PlatformError(code, 'A sentence.'), REQUEST)
    expect(bare.status).toBe(status)
    expect(await bare.json()).toEqual({ code, status, message: 'A sentence.', requestId: 'request-1' })
    expect(bare.headers.get('retry-after')).toBe(code === 'store_unavailable' ? '1' : null)
    const issues = [{ path: 'a', message: 'b' }]
    const error = new PlatformError(code, 'm', { retryAfterSeconds: 0, issues })
    for (const wantsHtml of [false, true]) {
      const response = errorResponse(error, { ...REQUEST, wantsHtml }, { Allow: 'GET' })
      expect(Object.fromEntries(response.headers)).toMatchObject({
        'retry-after': '0',
        allow: 'GET',
        'cache-control': 'no-store',
        'content-type': `${wantsHtml ? 'text/html' : 'application/json'}; charset=utf-8`,
      })
      expect(response.headers.get('www-authenticate')).toBe(status === 401 ? 'Bearer' : null)
      if (!wantsHtml) expect(await response.json()).toMatchObject({ issues })
    }
  },
)

test.each([new Error('canary'), 'canary', undefined, { code: 'bad_request', message: 'canary' }])(
  'any other thrown value is answered as an internal fault, without its text (%#)',
  async (thrown) => {
    const response = errorResponse(thrown, REQUEST)
    expect(response.status).toBe(500)
    expect(await response.text()).not.toContain('canary')
  },
)

test('without what a route asks for the answer is a 401 that says how to authenticate', async () => {
  const { ask, post } = opened({
    env: {
      HEALTH_DEEP_TOKEN: 'a-health-token-of-thirty-two-bytes',
      EMAIL_DISPATCH_SECRET: 'a-dispatch-secret-of-thirty-two-b',
    },
  })
  for (const response of [
    // A caller who proves nothing learns nothing of the forms either.
    await post('/api/email/dispatch', '{'),
    await post('/api/email', '{'),
    await ask('/api/health?deep=1'),
    await ask('/status.json?details'),
    await ask('/metrics', { headers: { Authorization: 'Bearer wrong' } }),
  ]) {
    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toBe('Bearer')
    expect(await response.json()).toMatchObject({ code: 'unauthenticated', status: 401 })
  }
})
