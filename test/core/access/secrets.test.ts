import { expect, test } from 'vitest'
import { isAcceptedSecret } from '../../../src/core/accepted-secret.ts'
import { hasBasicPassword, hasBearer } from '../../../src/core/access/identity.ts'
import { rotatingSecret } from '../../../src/core/secret.ts'

const PAIR = rotatingSecret('new-secret,old-secret')
const ask = (authorization: string | undefined) =>
  new Request('http://web.example/', {
    headers: authorization === undefined ? {} : { Authorization: authorization },
  })
const basic = (pair: string) => `Basic ${Buffer.from(pair).toString('base64')}`

test.each([
  ['Bearer new-secret', true],
  ['Bearer old-secret', true],
  ['BEARER new-secret', true],
  ['Bearer  new-secret', false],
  ['Bearer new-secret x', false],
  ['Bearer new-secret-', false],
  ['Bearer new-secret,old-secret', false],
  ['Bearer ', false],
  ['new-secret', false],
  ['Basic new-secret', false],
  ['x Bearer new-secret', false],
  [undefined, false],
])('the header %j as a bearer is %s', (header, accepted) => {
  expect(hasBearer(ask(header), PAIR)).toBe(accepted)
})

test('a bearer may have 4,096 characters and no more', () => {
  for (const [length, accepted] of [
    [4096, true],
    [4097, false],
  ] as const) {
    const long = 'x'.repeat(length)
    expect(hasBearer(ask(`Bearer ${long}`), rotatingSecret(long))).toBe(accepted)
  }
})

test.each([
  [basic('anybody:new-secret'), true],
  [basic(':old-secret'), true],
  [basic('a:b:new-secret'), false],
  [basic('new-secret'), false],
  [basic('anybody:new-secret').replace('Basic', 'basic'), true],
  [`${basic('anybody:new-secret')}!`, false],
  [`x ${basic('anybody:new-secret')}`, false],
  ['Bearer new-secret', false],
  ['Basic', false],
  [undefined, false],
])('the header %j as a password is %s', (header, accepted) => {
  expect(hasBasicPassword(ask(header), PAIR)).toBe(accepted)
})

test('a password may hold colons: only the first ends the user’s name', () => {
  expect(hasBasicPassword(ask(basic('user:a:b')), rotatingSecret('a:b'))).toBe(true)
})

test('without a secret nothing is accepted, not even nothing', () => {
  for (const given of [undefined, '', 'undefined', 'x']) {
    expect(isAcceptedSecret(given, undefined)).toBe(false)
    expect(isAcceptedSecret(given, PAIR)).toBe(false)
  }
  for (const header of [undefined, 'Bearer x', basic(':'), basic('a:b')]) {
    expect(hasBearer(ask(header), undefined)).toBe(false)
    expect(hasBasicPassword(ask(header), undefined)).toBe(false)
  }
})

test('a secret has one value or several, the first of which is the one to send', () => {
  expect(PAIR?.current.reveal()).toBe('new-secret')
  expect(PAIR?.accepted.map((one) => one.reveal())).toEqual(['new-secret', 'old-secret'])
  expect(rotatingSecret(' one , ')?.accepted.map((one) => one.reveal())).toEqual(['one'])
  expect(rotatingSecret('one,two,three')?.accepted.map((one) => one.reveal())).toEqual([
    'one',
    'two',
    'three',
  ])
  expect(rotatingSecret(' , ')).toBeUndefined()
})
