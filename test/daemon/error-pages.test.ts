import { expect, onTestFinished, test } from 'vitest'
import { ERRORS } from '../../src/core/errors.ts'
import { systemClock } from '../../src/core/host.ts'
import { type ReporterInput, setReporter } from '../../src/core/reporting/facade.ts'
import type { Service } from '../../src/core/service.ts'
import { prefersHtml } from '../../src/daemon/http/respond.ts'
import { ROUTES } from '../../src/daemon/routes.ts'
import { healthPath } from '../support/learning.ts'
import { opened } from '../support/opened.ts'
import { openTestStore } from '../support/stores.ts'

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
  ['TEXT/HTML; charset=utf-8', true],
  ['application/xhtml+xml', true],
  ['text/html, application/json', true],
  ['application/json;q=0.5, text/html', true],
  ['', false],
  ['*/*', false],
  ['application/json', false],
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

/** What each path of web takes. */
const allow = new Map(
  Object.values(ROUTES).map(({ path, methods }) => [
    path.replace(':day', '9'),
    methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : method)).join(', '),
  ]),
)
const paths = (service: Service) => (service === 'web' ? [...allow.keys()] : [healthPath(service)])

test.each(['web', 'api', 'agent'] as const)(
  'on %s a person never meets raw JSON or a blank page for an error, and a program never meets HTML',
  async (service) => {
    // Every request is a minute later, so that no limit is reached.
    let elapsed = 0
    const monotonic = () => {
      elapsed += 60_000
      return elapsed
    }
    const it = opened({ clock: { ...systemClock, monotonic } })
    let errors = 0
    for (const path of [...paths(service), ...NOWHERE])
      for (const method of METHODS) {
        const ask = async (accept: string) => {
          const response = await it.ask(path, { service, method, headers: { Accept: accept } })
          return { response, type: response.headers.get('content-type') ?? '', text: await response.text() }
        }
        const [person, program] = [await ask(BROWSER), await ask('application/json')]
        const what = `${method} ${path}`
        const { status, headers } = program.response
        expect(person.response.status, what).toBe(status)
        if (status < 400 || (status === 503 && path.endsWith('health'))) continue
        errors += 1
        expect(person.type, what).toBe('text/html; charset=utf-8')
        expect(program.type, what).toBe('application/json; charset=utf-8')
        if (method === 'HEAD') continue
        expect(person.text, what).toMatch(/<h1>[^<]{5,}<\/h1>\n<p>[^<]{5,}<\/p>/)
        expect(person.text, what).not.toMatch(/"code"|undefined|\[object/)
        const told = JSON.parse(program.text) as { code: keyof typeof ERRORS }
        expect(told, what).toMatchObject({ status, requestId: headers.get('x-request-id') })
        expect(ERRORS[told.code].status, what).toBe(status)
        if (status === 405) expect(headers.get('allow'), what).toBe(allow.get(path) ?? 'GET, HEAD')
      }
    expect(errors).toBeGreaterThan(80)
  },
)

test('a fault of the platform is a page with the number that finds it in the log, and nothing of the fault', async () => {
  const store = await openTestStore(undefined)
  // A host's own store with a fault of its own.
  const confirm = () => Promise.reject(new RangeError('/etc/secret.conf'))
  const { ask, told, lines } = opened({ store: { ...store, course: { ...store.course, confirm } } })
  const reported: ReporterInput[] = []
  setReporter({ report: (input) => void reported.push(input) })
  onTestFinished(() => setReporter(undefined))
  const target = `/api/email/confirm?token=${'a'.repeat(32)}`
  const page = await ask(target, { headers: { Accept: BROWSER } })
  const text = await page.text()
  const id = page.headers.get('x-request-id')
  expect(page.status).toBe(500)
  expect(text).toContain(id)
  expect(text).not.toMatch(/secret\.conf|RangeError|node:|\.ts/)
  expect(told('request_failed')).toEqual([
    expect.objectContaining({ level: 'error', requestId: id, fault: 'RangeError' }),
  ])
  expect(JSON.stringify(lines)).not.toContain('secret.conf')
  const context = { service: 'web', route: 'confirm', requestId: id }
  expect(reported).toEqual([{ kind: 'error', error: expect.any(RangeError), context }])
  const program = await ask(target, { headers: { Accept: 'application/json' } })
  expect(await program.json()).toMatchObject({ code: 'internal', status: 500 })
})

test('a page of a route says more than the code where it can', async () => {
  const { page } = opened()
  expect(await page('/lessons/8')).toContain('<a href="/lessons">all lessons</a>')
  const unconfirmed = await page('/api/email/confirm?token=old')
  expect(unconfirmed).toContain('<h1>Not confirmed</h1>')
  // Each thing once: neither the heading nor the help repeats the message.
  expect(unconfirmed.match(/This link does not work/g)).toHaveLength(1)
  expect(unconfirmed.match(/subscribe again|another link/g)).toHaveLength(1)
  expect(await page('/api/checkout')).toContain('This address is for programs')
})

test.each([
  ['en', 'The course of this link is closed for now; use the link again later.'],
  ['de', 'Zurzeit ist der Kurs geschlossen. Versuchen Sie es später.'],
])('a link of a course that is closed says so, and promises no minutes: %s', async (language, said) => {
  const store = await openTestStore(undefined)
  const confirm = async () => 'no_course' as const
  const { page } = opened({ store: { ...store, course: { ...store.course, confirm } } })
  const headers = { 'Accept-Language': language }
  const html = await page(`/api/email/confirm?token=${'a'.repeat(32)}`, { headers })
  expect(html).toContain(`<p>${said}</p>`)
  expect(html).not.toMatch(/Speicher|[Mm]inute/)
})

test('the links of an error page lead to the web service, whichever service serves it', async () => {
  const { page } = opened({ env: { NEXT_PUBLIC_SITE_URL: 'https://www.example.com' } })
  const links = async (service: 'web' | 'api' | 'agent') => {
    const html = await page('/nowhere', { service })
    return [...new Set([...html.matchAll(/<a href="([^"]*)"/g)].map(([, href]) => href))]
  }
  expect(await links('web')).toEqual(['/'])
  for (const service of ['api', 'agent'] as const)
    expect(await links(service)).toEqual(['https://www.example.com/'])
})
