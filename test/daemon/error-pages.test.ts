import { expect, onTestFinished, test } from 'vitest'
import { ERRORS } from '../../src/core/errors.ts'
import type { Service } from '../../src/core/service.ts'
import { openStore } from '../../src/core/store/open.ts'
import { prefersHtml } from '../../src/daemon/http/respond.ts'
import { ROUTES } from '../../src/daemon/routes.ts'
import { healthPath, openLearning, SERVICES } from '../support/learning.ts'

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8'
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'QUERY']
const NOWHERE = [
  '/nowhere',
  '/api',
  '/api/',
  '/lessons',
  '/lessons/1/2',
  '//evil.example/',
  '/%ff',
  '/%',
  '/a%00b',
  '/.env',
]

test.each([
  [BROWSER, true],
  ['text/html', true],
  ['TEXT/HTML; charset=utf-8', true],
  ['application/xhtml+xml', true],
  ['text/html, application/json', true],
  ['application/json;q=0.5, text/html', true],
  ['', false],
  ['*/*', false],
  ['application/json', false],
  ['application/json, text/plain, */*', false],
  ['application/json, text/html', false],
  ['text/html;q=0.5, application/json', false],
  ['text/html;q=0.8, application/health+json;q=0.9', false],
  ['text/html;q=0', false],
  ['text/html;q=abc', true],
  ['text/htmlx', false],
  [`${'a/b,'.repeat(5000)}text/html`, false],
])('Accept: %.60s is a person’s: %s', (accept, html) => {
  expect(prefersHtml(accept)).toBe(html)
})

/** A clock by which every request is a minute later, so that no limit is reached. */
function patientClock() {
  let minutes = 0
  const monotonic = () => {
    minutes += 1
    return minutes * 60_000
  }
  return { now: () => Date.now(), monotonic, sleep: async () => {} }
}

function paths(service: Service): string[] {
  if (service !== 'web') return [healthPath(service)]
  return Object.values(ROUTES).map(({ path }) => path.replace(':day', '9'))
}

test.each(SERVICES)(
  'on %s a person never meets raw JSON or a blank page for an error, and a program never meets HTML',
  async (service) => {
    const platform = openLearning({ env: {}, clock: patientClock() })
    onTestFinished(() => platform.close())
    let errors = 0
    for (const path of [...paths(service), ...NOWHERE]) {
      for (const method of METHODS) {
        const ask = async (accept: string) => {
          const response = await platform[service as 'web'].fetch(
            new Request(`http://platform.example${path}`, { method, headers: { Accept: accept } }),
          )
          return { response, type: response.headers.get('content-type') ?? '', text: await response.text() }
        }
        const [person, program] = [await ask(BROWSER), await ask('application/json')]
        const what = `${method} ${path}`
        expect(person.response.status, what).toBe(program.response.status)
        if (person.response.status < 400 || (person.response.status === 503 && path.endsWith('health')))
          continue
        errors += 1
        expect(person.type, what).toBe('text/html; charset=utf-8')
        expect(program.type, what).toBe('application/json; charset=utf-8')
        if (method === 'HEAD') continue
        expect(person.text, what).toMatch(/<h1>[^<]{5,}<\/h1>\n<p>[^<]{5,}<\/p>/)
        expect(person.text, what).not.toMatch(/"code"|undefined|\[object/)
        const { code, status, requestId } = JSON.parse(program.text) as {
          code: keyof typeof ERRORS
          status: number
          requestId: string
        }
        expect(ERRORS[code].status, what).toBe(status)
        expect(status, what).toBe(program.response.status)
        expect(requestId, what).toBe(program.response.headers.get('x-request-id'))
        if (status === 405)
          expect(program.response.headers.get('allow'), what).toMatch(/^(?:GET, HEAD|POST|GET, HEAD, POST)$/)
      }
    }
    expect(errors).toBeGreaterThan(80)
  },
)

test('a fault of the platform is a page with the number that finds it in the log, and nothing of the fault', async () => {
  const store = await openStore(undefined)
  onTestFinished(() => store.close())
  const lines: string[] = []
  const note = (...line: unknown[]) => void lines.push(JSON.stringify(line))
  const platform = openLearning({
    env: {},
    // A host's own store with a fault of its own.
    store: {
      ...store,
      course: { ...store.course, confirm: () => Promise.reject(new RangeError('/etc/secret.conf')) },
    },
    log: { debug: note, info: note, warn: note, error: note },
  })
  onTestFinished(() => platform.close())
  const ask = (accept: string) =>
    platform.web.fetch(
      new Request(`http://web.example/api/email/confirm?token=${'a'.repeat(32)}`, {
        headers: { Accept: accept },
      }),
    )
  const page = await ask(BROWSER)
  const text = await page.text()
  expect(page.status).toBe(500)
  expect(text).toContain(page.headers.get('x-request-id'))
  expect(text).not.toMatch(/secret\.conf|RangeError|node:|\.ts/)
  expect(
    lines.filter(
      (line) => line.includes('request_failed') && line.includes(page.headers.get('x-request-id') ?? '-'),
    ),
  ).toHaveLength(1)
  expect(await (await ask('application/json')).json()).toMatchObject({ code: 'internal', status: 500 })
})

test('a page of a route says more than the code where it can', async () => {
  const platform = openLearning({ env: {} })
  onTestFinished(() => platform.close())
  const page = async (path: string) =>
    (
      await platform.web.fetch(new Request(`http://web.example${path}`, { headers: { Accept: BROWSER } }))
    ).text()
  expect(await page('/lessons/8')).toContain('<a href="/lessons">all lessons</a>')
  const unconfirmed = await page('/api/email/confirm?token=old')
  expect(unconfirmed).toContain('<h1>Not confirmed</h1>')
  // Each thing once: neither the heading nor the help repeats the message.
  expect(unconfirmed.match(/This link does not work/g)).toHaveLength(1)
  expect(unconfirmed.match(/subscribe again|another link/g)).toHaveLength(1)
  expect(await page('/api/checkout')).toContain('This address is for programs')
})

test('the links of an error page lead to the web service, whichever service serves it', async () => {
  const platform = openLearning({ env: { NEXT_PUBLIC_SITE_URL: 'https://www.example.com' } })
  onTestFinished(() => platform.close())
  const links = async (service: Service) => {
    const request = new Request('http://platform.example/nowhere', { headers: { Accept: BROWSER } })
    const html = await (await platform[service as 'web'].fetch(request)).text()
    return [...new Set([...html.matchAll(/<a href="([^"]*)"/g)].map(([, href]) => href))]
  }
  expect(await links('web')).toEqual(['/'])
  expect(await links('api')).toEqual(['https://www.example.com/'])
  expect(await links('agent')).toEqual(['https://www.example.com/'])
})
