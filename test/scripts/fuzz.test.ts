import { expect, onTestFinished, test } from 'vitest'
import { backupFuzz } from '../../scripts/load/backups.ts'
import { badRequest } from '../../scripts/load/bad-request.ts'
import type { Outcome } from '../../scripts/load/connection.ts'
import { faultOf } from '../../scripts/load/fuzz.ts'
import { textFault } from '../../scripts/load/texts.ts'
import { faultAlone } from '../../scripts/load/unanswered.ts'

const error = (parts: object = {}) =>
  JSON.stringify({
    code: 'bad_request',
    status: 400,
    message: 'The body is not JSON.',
    requestId: 'request-1',
    ...parts,
  })

test.each([
  [400, error(), undefined],
  [400, error({ issues: [{ path: 'email', message: 'missing' }] }), undefined],
  [503, error({ code: 'store_not_persistent', status: 503 }), undefined],
  [200, '{}', undefined],
  [500, error({ code: 'internal', status: 500 }), /^status 500/],
  [502, '', /no error of the contract/],
  [400, '', /no error of the contract/],
  [400, error({ code: 'made_up' }), /no error of the contract/],
  [400, error({ extra: 1 }), /no error of the contract/],
  [404, error(), /with the code bad_request/],
  [400, error({ status: 404 }), /with the code bad_request/],
  [302, '', /a redirect/],
])('the fuzz judges %d %s as %s', (status, body, fault) => {
  const headers = new Map([
    ['content-type', 'application/json'],
    ['x-content-type-options', 'nosniff'],
  ])
  const told = faultOf({ status, headers, body }, { method: 'GET', maySeePage: false })
  if (fault === undefined) expect(told).toBeUndefined()
  else expect(told).toMatch(fault)
})

test('a page is no answer for a program, and an answer without nosniff is a fault', () => {
  const page = { status: 404, body: '<!doctype html><p>Nothing here' }
  const headers = new Map([
    ['content-type', 'text/html; charset=utf-8'],
    ['x-content-type-options', 'nosniff'],
  ])
  expect(faultOf({ ...page, headers }, { method: 'GET', maySeePage: true })).toBeUndefined()
  expect(faultOf({ ...page, headers }, { method: 'GET', maySeePage: false })).toMatch(/a page for a program/)
  expect(faultOf({ status: 200, headers: new Map(), body: '' }, { method: 'GET', maySeePage: true })).toMatch(
    /without nosniff/,
  )
})

test('a request of a number is the same in every run, and another with another seed', () => {
  const credentials = { dispatch: 'd', identity: 'i', webhook: 'w', jwt: 'j', now: 1_763_700_000_000 }
  for (let index = 0; index < 300; index += 1)
    expect(badRequest(7, index, credentials)).toEqual(badRequest(7, index, credentials))
  const texts = new Set([1, 2, 3].map((seed) => badRequest(seed, 0, credentials).bytes.toString('latin1')))
  expect(texts.size).toBe(3)
})

test('the spoiled backups of the first numbers are refused or restored whole', async () => {
  const backups = await backupFuzz()
  onTestFinished(backups.close)
  for (let index = 0; index < 40; index += 1) expect(await backups.faultOf(7, index)).toBeUndefined()
})

test('the env files and mails of the first numbers have no fault', () => {
  for (let index = 0; index < 2000; index += 1) expect(textFault(7, index)).toBeUndefined()
})

const answered: Outcome = { kind: 'answer', answer: { status: 200, headers: new Map(), body: '' } }
const silent: Outcome = { kind: 'silent' }
/** Gives these one after the other, and the last of them from then on. */
const each = (...outcomes: Outcome[]) => {
  let at = 0
  return async () => outcomes[Math.min(at++, outcomes.length - 1)] ?? silent
}

test.each([
  ['is answered when it is sent again alone', each(answered), each(answered), undefined],
  ['waits as long as its service does on a busy machine', each(silent, answered), each(silent), undefined],
  ['stays silent while its service answers', each(silent), each(answered), /^no answer: silent again/],
  [
    'is closed again while its service answers',
    each({ kind: 'closed' }),
    each(answered),
    /^no answer: closed/,
  ],
  ['silences its whole service', each(silent), each(silent), /none for the service's health$/],
])('a request without an answer that %s is judged by that', async (_, send, askHealth, fault) => {
  const told = await faultAlone({ send, askHealth, faultOf: () => undefined })
  if (fault === undefined) expect(told).toBeUndefined()
  else expect(told).toMatch(fault)
})
