import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isLanguage } from '../../../src/core/course/definition.ts'

describe('a language tag', () => {
  test.each([
    [true, ['en', 'pt-BR', 'zh-Hant-TW', 'de-1996', 'es-419', 'DE']],
    [false, ['en-12', 'old-v2', 'de-de-de', 'zh-cmn', 'no-bok', 'de-', 'en_US', 'german', 'i-klingon', '']],
  ])('is one, whatever its form: %s', (is, tags) => {
    expect(tags.filter((tag) => isLanguage(tag) !== is)).toEqual([])
  })

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
      { numRuns: 300 },
    )
    expect(accepted.length).toBeGreaterThan(15)
  })
})
