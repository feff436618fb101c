import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { writeNewFiles } from '../../src/cli/commands/init.ts'
import { emptyFolder } from '../support/folder.ts'

test('files are written with their folders', async () => {
  const folder = await emptyFolder()
  writeNewFiles(folder, [
    { file: 'a/b/one.txt', text: 'one' },
    { file: 'a/two.txt', text: 'two' },
  ])
  expect(await readFile(path.join(folder, 'a/b/one.txt'), 'utf8')).toBe('one')
  expect(await readFile(path.join(folder, 'a/two.txt'), 'utf8')).toBe('two')
})

test('where one of them is there already, it stays, and neither a file nor a folder is left of the others', async () => {
  const folder = await emptyFolder()
  await mkdir(path.join(folder, 'kept'))
  await writeFile(path.join(folder, 'taken.txt'), 'mine')
  const write = () =>
    writeNewFiles(folder, [
      { file: 'new/deep/one.txt', text: 'one' },
      { file: 'kept/two.txt', text: 'two' },
      { file: 'taken.txt', text: 'theirs' },
    ])
  expect(write).toThrow(
    'cannot write taken.txt: something else has this name. Move it away, then try again. Nothing was written.',
  )
  expect((await readdir(folder, { recursive: true })).sort()).toEqual(['kept', 'taken.txt'])
  expect(await readFile(path.join(folder, 'taken.txt'), 'utf8')).toBe('mine')
})

test('a file in the place of a folder is named', async () => {
  const folder = await emptyFolder()
  await writeFile(path.join(folder, 'a'), '')
  expect(() => writeNewFiles(folder, [{ file: 'a/one.txt', text: '' }])).toThrow(/^cannot write a/)
  expect(await readdir(folder)).toEqual(['a'])
})

test.skipIf(process.getuid?.() === 0)('a folder of somebody else is told as that', async () => {
  const folder = await emptyFolder()
  await chmod(folder, 0o500)
  expect(() => writeNewFiles(folder, [{ file: 'one.txt', text: '' }])).toThrow('permission denied')
  await chmod(folder, 0o700)
})
