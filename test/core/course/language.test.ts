import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isLanguage, isTimeZone } from '../../../src/core/course/definition.ts'

describe('a language tag', () => {
  test.each(['en', 'de-AT', 'pt-BR', 'zh-Hant-TW', 'de-1996', 'es-419', 'DE'])('%s is one', (tag) => {
    expect(isLanguage(tag)).toBe(true)
  })

  test.each(['en-12', 'old-v2', 'de-de-de', 'zh-cmn', 'no-bok', 'de-', 'en_US', 'german', 'i-klingon', ''])(
    '%j is not one, whatever its form',
    (tag) => {
      expect(isLanguage(tag)).toBe(false)
    },
  )

  test('every accepted language works in all formatters', () => {
    const part = fc.stringMatching(/^[A-Za-z0-9]{1,9}$/)
    const tag = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('-'))
    const accepted: string[] = []
    fc.assert(
      fc.property(
        fc.oneof(tag, fc.stringMatching(/^[a-z]{2,3}(-[A-Za-z0-9]{2,4}){0,3}$/), fc.string()),
        (text) => {
          if (!isLanguage(text)) return
          accepted.push(text)
          expect(new Intl.DisplayNames('en', { type: 'language', fallback: 'code' }).of(text)).toBeTruthy()
          new Intl.DateTimeFormat(text).format(0)
          new Intl.NumberFormat(text).format(0)
          expect(new Intl.Locale(text).language).not.toBe('')
        },
      ),
      { numRuns: 1000 },
    )
    expect(accepted.length).toBeGreaterThan(50)
  })
})

test('every accepted time zone has a clock, and is not an offset', () => {
  const zone = fc.oneof(
    fc.constantFrom('Europe/Berlin', 'UTC', 'asia/kathmandu', '+05:00', '-0300', 'Etc/GMT+5', 'Mars/Olympus'),
    fc.string(),
  )
  fc.assert(
    fc.property(zone, (text) => {
      if (!isTimeZone(text)) return
      new Intl.DateTimeFormat('en', { timeZone: text }).format(0)
      expect(text).not.toMatch(/^[+-]/)
    }),
  )
  expect(isTimeZone('Europe/Berlin')).toBe(true)
})
