import { colord } from 'colord'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { brandColors } from '../../src/core/colour.ts'

test('links and buttons in any brand color are readable on light and dark backgrounds', () => {
  const channel = fc.integer({ min: 0, max: 255 }).map((value) => value.toString(16).padStart(2, '0'))
  fc.assert(
    fc.property(fc.tuple(channel, channel, channel), (channels) => {
      const colors = brandColors(`#${channels.join('')}`)
      for (const [text, ground] of [
        [colors.accent, '#f2f1ee'],
        [colors.accent, '#ffffff'],
        [colors.onAccent, colors.accent],
        [colors.accentInDark, '#1d212a'],
        [colors.onAccentInDark, colors.accentInDark],
      ] as const)
        expect(colord(text).contrast(ground)).toBeGreaterThanOrEqual(4.5)
    }),
  )
})

test('leaves a readable color unchanged', () => {
  expect(brandColors('#9a3412').accent).toBe('#9a3412')
  expect(brandColors('#fff').onAccentInDark).toBe('#14171d')
})
