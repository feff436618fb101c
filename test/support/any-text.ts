import fc from 'fast-check'

const between = (min: number, max: number) => fc.integer({ min, max })
// As often from where controls, spaces and marks of direction are as from all.
const character = fc
  .oneof(between(0, 0xff), between(0x2000, 0x206f), between(0, 0xd7ff), between(0xe000, 0x10ffff))
  .map((code) => String.fromCodePoint(code))

/** Well-formed text of any characters. The unit `binary` of fast-check is the same, but takes it a second to prepare. */
export const anyText = (bounds: { minLength?: number; maxLength?: number } = {}): fc.Arbitrary<string> =>
  fc.string({ ...bounds, unit: character })
