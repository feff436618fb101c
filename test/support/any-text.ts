import fc from 'fast-check'

const character = fc
  .oneof(fc.integer({ min: 0, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((code) => String.fromCodePoint(code))

/** Well-formed text of any characters. The unit `binary` of fast-check is the same, but takes it a second to prepare. */
export const anyText = (bounds: { minLength?: number; maxLength?: number } = {}): fc.Arbitrary<string> =>
  fc.string({ ...bounds, unit: character })
