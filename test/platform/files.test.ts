import { mkdir, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import type { PlatformDefinition } from '../../src/platform/definition.ts'
import { readDefinitionFiles } from '../../src/platform/files.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { emptyFolder } from '../support/folder.ts'

/** A folder with these files, and what a definition in it finds. */
async function folderOf(files: Readonly<Record<string, string | Buffer>>) {
  const folder = await emptyFolder()
  for (const [file, text] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(folder, file)), { recursive: true })
    await writeFile(path.join(folder, file), text)
  }
  const read = (definition: PlatformDefinition, language = 'en') =>
    readDefinitionFiles(definition, folder, language)
  return { folder, read }
}

const faultsIn = ({ faults }: ReturnType<typeof readDefinitionFiles>) =>
  faults.map(({ path: at, cause }) => `${at}: ${cause}`)

test('the fingerprint is of every file of the mails and lessons, in each language, and of no other', async () => {
  const files = [
    'mails/welcome.md',
    'mails/layout.mjml',
    'mails/de/welcome.md',
    'clay/1-kiln.md',
    'clay/de/1-kiln.md',
  ]
  const { folder } = await folderOf(
    Object.fromEntries([...files, 'mails/notes.txt'].map((file) => [file, file])),
  )
  const courses = { clay: { lessons: './clay', every: '1d' } }
  const source = () =>
    resolvePlatform({ preset: 'base', mails: './mails', courses }, { folder, file: 'platform.config.ts' })
      .definition
  const fingerprint = () => source()?.fingerprint()
  const seen = [fingerprint()]
  const seenOfLessons = [source()?.lessons()]
  for (const file of files) {
    await writeFile(path.join(folder, file), 'another text')
    seen.push(fingerprint())
    seenOfLessons.push(source()?.lessons())
  }
  for (const all of [seen, seenOfLessons]) expect(new Set(all).size).toBe(files.length + 1)
  await writeFile(path.join(folder, 'mails/notes.txt'), 'another text')
  expect(fingerprint()).toBe(seen.at(-1))
})

test('the fingerprint is of every rule of a definition, also of one that is written as a regular expression', () => {
  const fingerprints = [/^a$/, /^b$/, /^a$/i].map((pattern) => {
    const variables = { KILN_ID: { kind: 'text', pattern } }
    const groups = { kiln: { unlocks: 'x', absent: 'y', variables } }
    return resolvePlatform(
      { preset: 'base', groups },
      { folder: '/', file: 'platform.config.ts' },
    ).definition?.fingerprint()
  })
  expect(new Set(fingerprints).size).toBe(3)
})

test('the fingerprint is the same wherever the folder that a definition names lies', () => {
  const [here, there] = ['/srv/kiln', 'C:\\kiln'].map((folder) =>
    resolvePlatform(
      { preset: 'base', folder },
      { folder, file: 'platform.config.ts' },
    ).definition?.fingerprint(),
  )
  expect(here).toBe(there)
})

const KB = 1024

test('a logo is given as a data URL of its type, up to 256 KB', async () => {
  const types = {
    png: 'png',
    svg: 'svg+xml',
    jpg: 'jpeg',
    jpeg: 'jpeg',
    webp: 'webp',
    PNG: 'png',
    JPG: 'jpeg',
  }
  const { read } = await folderOf({
    ...Object.fromEntries(Object.keys(types).map((end) => [`logo.${end}`, 'a logo'])),
    'folder.png/a': '',
    'largest.png': Buffer.alloc(256 * KB),
    'larger.png': Buffer.alloc(256 * KB + 1),
  })
  const logo = (file: string) => read({ brand: { logo: file } })
  for (const [end, type] of Object.entries(types))
    expect(logo(`./logo.${end}`).logo).toBe(`data:image/${type};base64,${btoa('a logo')}`)
  expect(logo('largest.png').faults).toEqual([])
  expect(faultsIn(logo('larger.png'))).toEqual([
    'brand.logo: The logo is larger than 256 KB, and every page carries it.',
  ])
  expect(faultsIn(logo('none.png'))).toEqual(['brand.logo: There is no file "none.png".'])
  expect(faultsIn(logo('folder.png'))).toEqual(['brand.logo: There is no file "folder.png".'])
  expect(read({}).logo).toBeUndefined()
})

test('lessons are in the order in which people count, whatever the width of their numbers', async () => {
  const ordered = [
    '01-again',
    '1-again',
    '2-clay',
    '2-Glaze',
    '2-kiln',
    '2.5-between',
    '10-fire',
    '10-fire2',
    '10-fire10',
    '20261122-late',
    '99999999999-later',
    '100000000000-last',
    'appendix',
    'Appendix-b',
    'appendix-c',
  ]
  const { read } = await folderOf(
    Object.fromEntries(ordered.toReversed().map((name) => [`all/${name}.md`, ''])),
  )
  expect(read({ courses: { all: { lessons: 'all' } } }).lessons.get('all')?.names).toEqual(ordered)
})

test('templates are Markdown and MJML files, and the layout is none', async () => {
  const files = ['a.md', 'b.mjml', 'layout.mjml', 'layout.md', 'c.txt', 'd.md.bak', 'e.mjml~', 'md']
  const { folder, read } = await folderOf(Object.fromEntries(files.map((name) => [`mails/${name}`, ''])))
  const { mails, templates, faults } = read({ mails: './mails' })
  expect({ mails, templates, faults }).toEqual({
    mails: path.join(folder, 'mails'),
    templates: ['a', 'b', 'layout'],
    faults: [],
  })
  expect(read({})).toMatchObject({ mails: undefined, templates: [] })
})

test('hidden files and folders are no lessons: an editor’s lock, the metadata of macOS, 3-notes.md/', async () => {
  const { folder, read } = await folderOf({
    'l/1.md': '',
    'l/._1.md': 'Mac OS X',
    'l/.md': '',
    'l/3-notes.md/a': '',
  })
  await symlink('ada@kiln.4711', path.join(folder, 'l/.#1.md'))
  // A link to nowhere is a lesson that is lost, which the compiler reports.
  await symlink('gone.md', path.join(folder, 'l/2.md'))
  const { lessons, faults } = read({ courses: { firing: { lessons: 'l' } } })
  expect({ lessons: lessons.get('firing')?.names, faults }).toEqual({ lessons: ['1', '2'], faults: [] })
})

test('a path that the system refuses is a fault like one that leads nowhere', async () => {
  const { folder, read } = await folderOf({})
  await symlink('loop', path.join(folder, 'loop'))
  for (const refused of ['loop', 'x'.repeat(300)])
    expect(
      read({ brand: { logo: refused }, mails: refused, courses: { firing: { lessons: refused } } }).faults,
    ).toMatchObject([{ path: 'brand.logo' }, { path: 'mails' }, { path: 'courses.firing.lessons' }])
})

test('a logo that exists and cannot be read is a fault', async () => {
  const { folder, read } = await folderOf({})
  await symlink('/proc/self/mem', path.join(folder, 'logo.png'))
  expect(faultsIn(read({ brand: { logo: 'logo.png' } }))).toEqual(['brand.logo: "logo.png" cannot be read.'])
})

test('a course has at least one lesson and at most 365', async () => {
  const days = (count: number, folder: string) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`${folder}/${n}.md`, '']))
  const { read } = await folderOf({
    ...days(366, 'long'),
    ...days(365, 'year'),
    'empty/a.txt': '',
    'other/de/1.md': '',
  })
  const of = (lessons: string) => faultsIn(read({ courses: { firing: { lessons } } }))
  expect(of('year')).toEqual([])
  expect(of('long')).toEqual(['courses.firing.lessons: The course has 366 lessons, and 365 are the most.'])
  expect(of('empty')).toEqual(['courses.firing.lessons: The folder "empty" holds no lessons.'])
  // Translations are of lessons, and take no one's place.
  expect(of('other')).toEqual(['courses.firing.lessons: The folder "other" holds no lessons.'])
  expect(of('none')).toEqual(['courses.firing.lessons: There is no folder "none".'])
  expect(of('empty/a.txt')).toEqual(['courses.firing.lessons: There is no folder "empty/a.txt".'])
})

test('two mails of one name are a fault that names both files', async () => {
  const { read } = await folderOf({
    'c/1-one.md': '',
    'd/one.mjml': '',
    'd/de/one.md': '',
    'e/link.md': '',
    'mails/c-1-one.md': '',
    'mails/de/c-1-one.md': '',
  })
  const [c, d, e] = [{ lessons: './c' }, { lessons: 'd' }, { lessons: 'e' }]
  const of = (definition: PlatformDefinition) => faultsIn(read({ preset: 'base', ...definition }))
  expect(of({ courses: { c, 'c-1': d } })).toEqual([
    'courses["c-1"].lessons: c/1-one.md and d/one.mjml are both the mail c-1-one.',
  ])
  expect(of({ mails: './mails', courses: { c } })).toEqual([
    'courses.c.lessons: mails/c-1-one.md and c/1-one.md are both the mail c-1-one.',
  ])
  expect(of({ templates: { 'c-1-one': {}, welcome: {} }, courses: { c } })).toEqual([
    'templates["c-1-one"]: It has no file, because mails is not set.',
    'courses.c.lessons: the template c-1-one and c/1-one.md are both the mail c-1-one.',
  ])
  expect(of({ courses: { magic: e } })).toEqual([
    'courses.magic.lessons: the preset’s magic-link and e/link.md are both the mail magic-link.',
  ])
  expect(of({ courses: { c, d, e } })).toEqual([])
  expect(read({ courses: { c, 'c-1': d } }).faults[0]?.fix).toBe('Rename one of the two.')
})

test('a file that replaces a mail of the preset, and its translations, are that mail', async () => {
  const { read } = await folderOf({
    'mails/magic-link.md': '',
    'mails/course-day-1.md': '',
    'mails/de/magic-link.md': '',
  })
  expect(read({ mails: 'mails', templates: { 'magic-link': {} } }).faults).toEqual([])
})

test('finds mails in the platform’s language in the folder itself, or in one beside their translations', async () => {
  const { folder, read } = await folderOf({
    'beside/en/1.md': '',
    'beside/de/1.md': '',
    'beside/de/2.md': '',
    'within/1.md': '',
    'within/de/1.md': '',
    'within/pt-BR/1.md': '',
    'within/img/1.md': '',
    'within/notes/1.md': '',
    'within/fr/readme.txt': '',
    'within/es': 'a file',
    'both/1.md': '',
    'both/en/1.md': '',
  })
  const of = (lessons: string, language?: string) => {
    const found = read({ courses: { firing: { lessons } } }, language)
    const at = found.lessons.get('firing')?.folder ?? ''
    return {
      at: path.relative(folder, at),
      translations: found.translations
        .get(at)
        ?.map(({ language: one, folder: place, names }) => [one, path.relative(folder, place), ...names])
        .sort(),
    }
  }
  expect(of('beside')).toEqual({ at: 'beside/en', translations: [['de', 'beside/de', '1', '2']] })
  expect(of('beside', 'de')).toEqual({ at: 'beside/de', translations: [['en', 'beside/en', '1']] })
  expect(of('within')).toEqual({
    at: 'within',
    translations: [
      ['de', 'within/de', '1'],
      ['pt-BR', 'within/pt-BR', '1'],
    ],
  })
  expect(of('both').at).toBe('both')
})

test.skipIf(process.platform !== 'linux')('two translations of one lesson are a fault', async () => {
  const { read } = await folderOf({
    'c/1.md': '',
    'c/de/1.md': '',
    'c/DE/1.md': '',
    'd/1.md': '',
    'd/De/1.md': '',
  })
  const of = (lessons: string[]) =>
    read({ courses: Object.fromEntries(lessons.map((one) => [one, { lessons: one }])) }).faults
  expect(of(['c', 'd'])).toEqual([
    {
      path: '',
      cause: expect.stringMatching(/^c\/(?:de and c\/DE|DE and c\/de) are both translations into de\.$/),
      fix: 'Keep one of the two.',
    },
  ])
  expect(of(['d'])).toEqual([])
})

test('translations of mails and of lessons are found, each under its own folder', async () => {
  const { folder, read } = await folderOf({
    'mails/welcome.md': '',
    'mails/de/welcome.md': '',
    'firing/1.md': '',
    'firing/ar/1.md': '',
  })
  const { translations } = read({ mails: 'mails', courses: { firing: { lessons: 'firing' } } })
  expect([...translations].map(([at, found]) => [path.relative(folder, at), found[0]?.language])).toEqual([
    ['mails', 'de'],
    ['firing', 'ar'],
  ])
})
