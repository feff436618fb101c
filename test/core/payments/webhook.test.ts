import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readSignature } from '../../../src/core/payments/webhook.ts'
import { pairOf } from '../../support/accounts.ts'

const KEY = 'whsec_of-thirty-two-bytes-at-least'
const NOW = Date.parse('2026-11-21T08:00:00Z')

const sign = (body: string, seconds: number, key = KEY) =>
  `t=${seconds},v1=${createHmac('sha256', key).update(`${seconds}.${body}`).digest('hex')}`
const check = (body: string, header: string) => {
  const signature = readSignature(header)
  return (signature?.fits(body, pairOf(KEY)) && signature.isRecent(NOW)) ?? false
}

test('a signature fits its own body at any time within five minutes, and no later', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: -1000, max: 1000 }), (body, offset) => {
      const seconds = NOW / 1000 + offset
      expect(check(body, sign(body, seconds))).toBe(Math.abs(offset) <= 300)
    }),
  )
})

test('a signature fits no other body, key or header', () => {
  fc.assert(
    fc.property(
      fc.string(),
      fc.string(),
      fc.nat(),
      fc.string({ minLength: 1, maxLength: 1 }),
      (body, other, at, char) => {
        const header = sign(body, NOW / 1000)
        if (other !== body) expect(check(other, header)).toBe(false)
        expect(check(body, sign(body, NOW / 1000, `${KEY}${char}`))).toBe(false)
        const place = at % header.length
        const changed = header.slice(0, place) + char + header.slice(place + 1)
        // Hex may be written in either case; any other change is another signature.
        if (changed.toLowerCase() !== header.toLowerCase()) expect(check(body, changed)).toBe(false)
      },
    ),
  )
})

test('a header of any form is looked at without a fault', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (body, header) => {
      expect(check(body, header)).toBe(false)
    }),
  )
})
