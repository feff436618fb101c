import { execFileSync } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openChild } from '../../scripts/mutants/child.ts'
import { openImporters } from '../../scripts/mutants/hunt.ts'
import { mutantsOf } from '../../scripts/mutants/plant.ts'
import { highestPlausible, isTooLow } from '../../scripts/mutants/score.ts'
import { changedSources, isText, roomOf } from '../../scripts/mutants/sources.ts'

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

test('types, imports, the names of properties and descriptions are left alone', () => {
  expect(planted("x = { description: 'a' }")).toEqual([])
  expect(planted(`x = 'nobody reads this sentence' + \`not even with a value, like \${b}, in it\``)).toEqual(
    [],
  )
  expect(planted("x = 'SELECT a FROM b'")).toEqual(["x = ''"])
  expect(planted(`import { a } from 'b'\ntype C = 'd' | 7\nexport const e: Record<'f', 1> = g`)).toEqual([])
})

test('the tests that reach a source are found over all its imports, the nearest first', () => {
  const distances = openImporters()('src/core/calls.ts')
  expect(distances.get('test/core/course/records.test.ts')).toBeGreaterThan(1)
  expect([...distances.keys()]).not.toContain('test/scripts/mutants.test.ts')
  expect([...distances.values()]).toEqual([...distances.values()].sort((a, b) => a - b))
})

test('every room of the sources has tests and a goal', () => {
  const rooms = globSync('src/{core/*,daemon,cli,platform}/*.ts').map((file) => roomOf(file))
  for (const room of rooms) expect(room?.tests).not.toEqual([])
  expect(roomOf('src/core/store/sqlite/open.ts')).toMatchObject({ name: 'store', goal: 85 })
  expect(roomOf('src/daemon/start.ts')).toMatchObject({ name: 'daemon', goal: 75 })
  expect(roomOf('src/env.ts')).toBeUndefined()
})

test('files of nothing but texts have no mutants, and files that only sound like it do', () => {
  expect(['src/core/messages/de.ts', 'src/cli/preview/texts.ts'].map(isText)).toEqual([true, true])
  expect(['src/core/messages/words.ts', 'src/core/course/pinned-texts.ts'].map(isText)).toEqual([
    false,
    false,
  ])
})

test('a sample is under a goal only if chance does not explain it', () => {
  expect(highestPlausible({ noticed: 20, planted: 30 })).toBeGreaterThan(75)
  expect(highestPlausible({ noticed: 17, planted: 30 })).toBeLessThan(75)
  expect(highestPlausible({ noticed: 200, planted: 300 })).toBeLessThan(75)
  expect(highestPlausible({ noticed: 0, planted: 0 })).toBe(100)
  const low = (noticed: number, survived: number, undecided = 0) =>
    isTooLow({ noticed, survived, undecided, goal: 75 })
  expect([low(4, 6), low(4, 5)]).toEqual([true, false])
  // The tests of the undecided might have noticed all of them.
  expect([low(20, 30), low(20, 30, 30), low(20, 30, 200)]).toEqual([true, true, false])
})

test('changed files include those that git does not track yet', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'changed-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const git = (...args: string[]) => execFileSync('git', args, { cwd: folder })
  mkdirSync(path.join(folder, 'src'))
  writeFileSync(path.join(folder, 'src/known.ts'), '')
  git('init', '-q')
  git('add', '.')
  git('-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '-q', '-m', 'a')
  writeFileSync(path.join(folder, 'src/new.ts'), '')
  expect(changedSources('HEAD', folder)).toEqual({ since: 'HEAD', files: ['src/new.ts'] })
  writeFileSync(path.join(folder, 'src/known.ts'), 'export {}')
  expect(changedSources('HEAD', folder)).toMatchObject({ files: ['src/known.ts', 'src/new.ts'] })
})

test('the changed files since a commit are listed, and a history that is too short is reported', () => {
  expect(changedSources('HEAD')).toMatchObject({ since: 'HEAD' })
  expect(changedSources('0'.repeat(40))).toMatchObject({ why: expect.stringContaining('no commit 0000') })
})

test('a test that caught one mutant does not count as catching the next, and each sees its own changed file', async () => {
  const folder = 'test/support/mutants'
  const child = openChild([folder])
  onTestFinished(child.close)
  const [one, two] = [`${folder}/one.test.ts`, `${folder}/two.test.ts`]
  const run = async (tests: string[], planted?: string) => {
    const ran = await child.run(
      tests,
      60_000,
      planted ? { file: `${folder}/one.ts`, source: planted } : undefined,
    )
    return ran === 'late' ? ran : ran.failed
  }
  expect(await run([one, two], 'export const one = () => 0')).toBe(one)
  expect(await run([two], 'export const one = () => 0')).toBeUndefined()
  expect(await run([two, one])).toBeUndefined()
}, 120_000)
