import { expect, test } from 'vitest'
import { sameShape, shapeOf, stepsOf } from '../../scripts/runbooks/session.ts'

test('the steps of a runbook are the prompts of its console blocks, with output and exit code', () => {
  const text = '# A\n```sh\n$ not run\n```\n```console\n$ one\nfirst\n$ two # exit code 1\n```\n'
  expect(stepsOf(text)).toEqual([
    { line: 6, command: 'one', output: ['first'], exitCode: 0 },
    { line: 8, command: 'two # exit code 1', output: [], exitCode: 1 },
  ])
})

test.each([
  ['took 12 ms at 2026-11-21T07:26:00.123Z', 'took 3.5 ms at 2027-01-02T00:00:00Z'],
  ['schema 2, 48.1 kB', 'schema 2, 5 MB'],
  ['id  MTIzNDU2Nzg5MGFiY2Rl', 'id aaaaaaaa9bbbbbbbbbbb'],
  ['[20:04:04.674] on 2026-11-22 as process 7', '[21:05:00.001] on 2026-12-01 as process 1234'],
])('%j and %j have one shape', (a, b) => {
  expect(shapeOf(a)).toBe(shapeOf(b))
})

test('another word or count is another shape, and … matches any lines', () => {
  expect(sameShape(['web ok'], ['web failing'])).toBe(false)
  expect(sameShape(['from schema 0 to 3'], ['from schema 0 to 4'])).toBe(false)
  expect(sameShape(['0 of 13 groups configured'], ['0 of 19 groups configured'])).toBe(false)
  expect(sameShape(['✖ error mail-without-key  .env:187:1'], ['✖ error mail-without-key  .env:245:1'])).toBe(
    false,
  )
  expect(sameShape(['0 warnings in 5 mails'], ['0 warnings in 7 mails'])).toBe(false)
  expect(sameShape(['a', '…', 'c'], ['a', 'b', 'b', 'c'])).toBe(true)
  expect(sameShape(['a', '…', 'c'], ['a', 'c'])).toBe(true)
  expect(sameShape(['a'], ['a', 'b'])).toBe(false)
  expect(sameShape(['…'], [])).toBe(true)
})
