import { expect, test } from 'vitest'
import { CommandError } from '../../../src/cli/context.ts'
import { postToWeb, webEndpoint } from '../../../src/cli/web-endpoint.ts'
import { testContext } from '../../support/context.ts'
import { serveBodies } from '../../support/servers.ts'

const SECRET = 'dispatch-secret-of-some-length'
const { context } = testContext()
const ENV = { EMAIL_DISPATCH_SECRET: SECRET, NEXT_PUBLIC_SITE_URL: ' https://www.example.com// ' }

test('the endpoint is behind the address that is given, else behind the site, with the first secret of a rotation', () => {
  const rotated = { ...ENV, EMAIL_DISPATCH_SECRET: `${SECRET}, older-secret` }
  for (const env of [ENV, rotated])
    expect(webEndpoint(context, env, undefined, '/api/x')).toEqual({
      url: new URL('https://www.example.com/api/x'),
      secret: SECRET,
    })
  const { url } = webEndpoint(context, ENV, 'http://127.0.0.1:3000/base/', '/api/x')
  expect(url.href).toBe('http://127.0.0.1:3000/base/api/x')
})

test('the address that is given wins, then the one of the environment, then the daemon that runs here', () => {
  const daemon = { dataFolder: '/', envFiles: [], urls: { web: 'http://127.0.0.1:3210' } }
  const site = 'https://www.example.com'
  const asked = (given: string | undefined, NEXT_PUBLIC_SITE_URL: string) =>
    webEndpoint({ ...context, daemon }, { ...ENV, NEXT_PUBLIC_SITE_URL }, given, '/').url.origin
  expect(asked('http://127.0.0.1:1', site)).toBe('http://127.0.0.1:1')
  expect(asked(undefined, site)).toBe(site)
  expect(asked(undefined, ' ')).toBe(daemon.urls.web)
})

test.each([
  ['http://www.example.com', true],
  ['https://www.example.com', false],
  ['http://127.0.0.1:3000', false],
  ['http://localhost:3000', false],
])('a secret that travels to %s is warned of: %s', (url, warned) => {
  const { context, stderr } = testContext()
  webEndpoint(context, ENV, url, '/api/x')
  expect(stderr().includes('EMAIL_DISPATCH_SECRET travels unencrypted')).toBe(warned)
})

test.each<[env: Record<string, string>, given: string | undefined, why: RegExp]>([
  [{ EMAIL_DISPATCH_SECRET: SECRET }, undefined, /address of the web service is needed/],
  [{ ...ENV, NEXT_PUBLIC_SITE_URL: ' ' }, undefined, /address of the web service is needed/],
  [ENV, 'ftp://www.example.com', /is not an http:\/\/ or https:\/\/ address/],
  [ENV, 'www.example.com', /is not an http:\/\/ or https:\/\/ address/],
  [ENV, 'xhttp://www.example.com', /is not an http:\/\/ or https:\/\/ address/],
  [ENV, 'https://www.example.com?x=1', /address without a query/],
  [ENV, 'https://', /is not an http:\/\/ or https:\/\/ address/],
  [{ NEXT_PUBLIC_SITE_URL: 'https://www.example.com' }, undefined, /EMAIL_DISPATCH_SECRET is not set/],
  [{ EMAIL_DISPATCH_SECRET: 'two words' }, 'https://www.example.com', /not allowed in an HTTP header/],
  [{ EMAIL_DISPATCH_SECRET: 'hundred-€' }, 'https://www.example.com', /not allowed in an HTTP header/],
])('with %j and the address %s it is wrong usage: %s', (env, given, why) => {
  const opening = () => webEndpoint(context, env, given, '/api/x')
  expect(opening).toThrow(why)
  expect(opening).toThrow(expect.objectContaining({ exitCode: 2 }))
})

/** Posts to a service that answers so, and gives what came of it, what was asked, and how long was waited. */
async function posted(answers: readonly (readonly [status: number, body: string])[], signal?: AbortSignal) {
  const waiting = [...answers]
  const asked: string[] = []
  const slept: number[] = []
  const url = new URL(
    await serveBodies((body, response, request) => {
      asked.push(
        `${request.method} ${request.headers.authorization} ${request.headers['content-type']} ${body}`,
      )
      const [status, text] = waiting.shift() ?? [200, '{}']
      response.writeHead(status, { location: 'http://127.0.0.1:1/' }).end(text)
    }),
  )
  const outcome = await postToWeb(
    {
      clock: { now: () => 0, monotonic: () => 0, sleep: async (ms) => void slept.push(ms) },
      signal: signal ?? new AbortController().signal,
    },
    { url, secret: SECRET, body: { exitCode: 0 } },
    'nextBy',
  ).catch((error: unknown) => (error instanceof CommandError ? [error.exitCode, error.message] : error))
  return { outcome, asked, slept }
}

test('one POST with the secret and the body is enough for a service that is well', async () => {
  expect(await posted([[200, '{"nextBy":"later"}']])).toEqual({
    outcome: 'later',
    asked: [`POST Bearer ${SECRET} application/json {"exitCode":0}`],
    slept: [],
  })
})

test.each(['<!doctype html>', '', 'null', '"a text"', '7', '{}', '{"nextBy":7}', '{"ok":true}'])(
  'an answer of %j comes from another program, so nothing was recorded',
  async (text) => {
    expect(await posted([[200, text]])).toMatchObject({
      outcome: [3, 'the service answered 200, but not as platformctl does: is the address right?'],
      slept: [],
    })
  },
)

test('a service that fails is asked three times, after one and three seconds', async () => {
  const bad = [500, 'x'] as const
  const third = await posted([bad, [429, 'x'], [200, '{"nextBy":"later"}']])
  expect(third).toMatchObject({ outcome: 'later', slept: [1000, 3000] })
  expect(third.asked).toHaveLength(3)
  const never = await posted([bad, bad, [599, 'x'], [200, '{}']])
  expect(never).toMatchObject({ outcome: [3, 'the service answered 599.'], slept: [1000, 3000] })
  expect(never.asked).toHaveLength(3)
})

test.each([
  [401, '{"message":"canary"}', /^the service refused EMAIL_DISPATCH_SECRET/],
  [499, '{"message":"No such job."}', /^the service answered 499: No such job\.$/],
  [404, '{"message":7}', /^the service answered 404\.$/],
  [302, '', /^the service answered 302\.$/],
  [201, '{}', /^the service answered 201\.$/],
])('a service that answers %i is asked once', async (status, text, why) => {
  const { outcome, asked, slept } = await posted([[status, text]])
  expect(outcome).toEqual([3, expect.stringMatching(why)])
  expect(asked).toHaveLength(1)
  expect(slept).toEqual([])
})

test('a service that is away, or a command that was stopped, is told without a redirect or another attempt', async () => {
  const slept: number[] = []
  const away = (signal: AbortSignal) =>
    postToWeb(
      { clock: { now: () => 0, monotonic: () => 0, sleep: async (ms) => void slept.push(ms) }, signal },
      { url: new URL('http://127.0.0.1:1/api/x'), secret: SECRET, body: {} },
      'nextBy',
    )
  await expect(away(new AbortController().signal)).rejects.toThrow(
    /^http:\/\/127\.0\.0\.1:1 could not be reached/,
  )
  expect(slept).toEqual([1000, 3000])
  await expect(away(AbortSignal.abort())).rejects.toThrow(/could not be reached/)
  expect(slept).toHaveLength(2)
})
