import { expect, onTestFinished, test } from 'vitest'
import { ERRORS, type ErrorCode, PlatformError } from '../../src/core/errors.ts'
import { errorResponse } from '../../src/daemon/http/problem.ts'
import { openPlatform } from '../../src/daemon/index.ts'
import { frameOf } from '../../src/daemon/pages/layout.ts'
import { learning } from '../../src/presets/learning/platform.ts'

const REQUEST = {
  requestId: 'request-1',
  wantsHtml: false,
  route: undefined,
  errorTexts: undefined,
  frame: frameOf(learning, 'https://www.example.com', ''),
}

test.each(Object.keys(ERRORS) as ErrorCode[])(
  'the error %s has its status, its shape and its headers',
  async (code) => {
    const response = errorResponse(new PlatformError(code, 'A sentence.'), REQUEST)
    const { status } = ERRORS[code]
    expect(response.status).toBe(status)
    expect(await response.json()).toEqual({ code, status, message: 'A sentence.', requestId: 'request-1' })
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('content-type')).toMatch(/^application\/json/)
    expect(response.headers.get('www-authenticate')).toBe(status === 401 ? 'Bearer' : null)
    expect(response.headers.get('retry-after')).toBe(code === 'store_unavailable' ? '1' : null)
  },
)

test.each(Object.keys(ERRORS) as ErrorCode[])(
  'a person gets %s with the headers that a program gets, and its retry delay',
  async (code) => {
    const error = new PlatformError(code, 'm', {
      retryAfterSeconds: 0,
      issues: [{ path: 'a', message: 'b' }],
    })
    const [json, page] = [false, true].map((wantsHtml) =>
      errorResponse(error, { ...REQUEST, wantsHtml }, { Allow: 'GET' }),
    )
    const said = (response: Response | undefined) =>
      ['retry-after', 'allow', 'www-authenticate', 'cache-control'].map((name) => response?.headers.get(name))
    expect(said(json)).toEqual(['0', 'GET', ERRORS[code].status === 401 ? 'Bearer' : null, 'no-store'])
    expect(said(page)).toEqual(said(json))
    expect(await json?.json()).toMatchObject({ issues: [{ path: 'a', message: 'b' }] })
    expect(page?.headers.get('content-type')).toMatch(/^text\/html/)
  },
)

test('any other thrown value is answered as an internal fault, without its text', async () => {
  for (const thrown of [
    new Error('canary'),
    'canary',
    undefined,
    { code: 'bad_request', message: 'canary' },
  ]) {
    const response = errorResponse(thrown, REQUEST)
    expect(response.status).toBe(500)
    expect(await response.text()).not.toContain('canary')
  }
})

test.each([
  ['POST', '/api/email/dispatch'],
  ['POST', '/api/email'],
  ['GET', '/api/health?deep=1'],
  ['GET', '/status.json?details'],
  ['GET', '/metrics'],
])('without what %s %s asks for the answer is a 401 that says how to authenticate', async (method, path) => {
  const platform = openPlatform({
    env: {
      HEALTH_DEEP_TOKEN: 'a-health-token-of-thirty-two-bytes',
      EMAIL_DISPATCH_SECRET: 'a-dispatch-secret-of-thirty-two-b',
    },
  })
  onTestFinished(() => platform.close())
  const response = await platform.web.fetch(
    new Request(`http://web.example${path}`, {
      method,
      headers: {
        'Content-Type': 'application/json',
        ...(path === '/metrics' && { Authorization: 'Bearer wrong' }),
      },
      ...(method === 'POST' && { body: '{"template":"welcome","inputs":{}}' }),
    }),
  )
  expect(response.status).toBe(401)
  expect(response.headers.get('www-authenticate')).toBe('Bearer')
  expect(await response.json()).toMatchObject({ code: 'unauthenticated', status: 401 })
})
