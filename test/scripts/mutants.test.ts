import { expect, test } from 'vitest'
import { mutantsOf } from '../../scripts/mutants/plant.ts'

/** The sources that a source becomes, each with one bug. */
const planted = (source: string) =>
  mutantsOf('file.ts', source).map(
    ({ start, end, text }) => source.slice(0, start) + text + source.slice(end),
  )

test.each([
  ['if (a) b()', ['if ((true)) b()', 'if ((false)) b()', 'if (a) ;']],
  ['x = a <= b', ['x = a < b']],
  ['x = a && b', ['x = a || b']],
  ['x = a ?? b', ['x = a']],
  ['x = 60', ['x = (61)', 'x = (59)']],
  ['x = true', ['x = false']],
  ["x = 'text'", ["x = ''"]],
  ['x = `text`', ["x = ''"]],
  ['x = /^a$/i', ['x = /a$/i', 'x = /^a/i', 'x = /^a$/']],
  ['x = await a', ['x = a']],
  ['x = { a, ...b }', ['x = {  ...b }', 'x = { a,  }']],
  [
    'try { x = a } catch { x = b } finally { x = c }',
    ['try { x = a } catch {} finally { x = c }', 'try { x = a } catch { x = b } finally {}'],
  ],
  ['function f() { x = a }', ['function f() {return; x = a }']],
])('each small bug of its kind is planted in %s', (source, mutants) => {
  expect(planted(source)).toEqual(expect.arrayContaining(mutants))
  expect(planted(source)).toHaveLength(mutants.length)
})

test('a statement of SQL loses its locks, its order and its limits one at a time', () => {
  const sql = (text: string) => `x = \`SELECT a FROM b WHERE ${text}\``
  expect(planted(sql('c <= 1 ORDER BY d ASC FOR UPDATE SKIP LOCKED'))).toEqual(
    expect.arrayContaining([
      sql('c < 1 ORDER BY d ASC FOR UPDATE SKIP LOCKED'),
      sql('c <= 1 ORDER BY d DESC FOR UPDATE SKIP LOCKED'),
      sql('c <= 1 ORDER BY d ASC SKIP LOCKED'),
      sql('c <= 1 ORDER BY d ASC FOR UPDATE'),
    ]),
  )
})

test('types, imports and the names of properties are left alone', () => {
  expect(planted(`import { a } from 'b'\ntype C = 'd' | 7\nexport const e: Record<'f', 1> = g`)).toEqual([])
})
