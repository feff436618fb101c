import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { documentedTree } from '../../scripts/command-tree.ts'
import { docFaults } from '../../scripts/doc-faults.ts'
import { allNodes } from '../../src/cli/command.ts'
import { emptyFolder } from '../support/folder.ts'

const commands = allNodes(await documentedTree())

/** The faults of a page, beside a page `other.md` with one heading. */
async function faultsIn(page: string): Promise<readonly string[]> {
  const root = await emptyFolder()
  await mkdir(path.join(root, 'docs'))
  await writeFile(path.join(root, 'docs/page.md'), page)
  await writeFile(path.join(root, 'docs/other.md'), '# The one heading\n')
  return docFaults({ root, files: ['docs/page.md', 'docs/other.md'], commands, scripts: { test: 'vitest' } })
}

test.each([
  ['[a](other.md)', []],
  ['[a](other.md#the-one-heading) and [b](https://www.example.com/x#y)', []],
  ['[a](missing.md)', ['docs/page.md:1 links to missing.md, which does not exist']],
  ['\n![a](images/missing.png)', ['docs/page.md:2 links to images/missing.png, which does not exist']],
  ['[a](other.md#no)', ['docs/page.md:1 links to other.md#no: there is no such heading']],
  ['[a](#here)\n\n## Here', []],
  ['`[a](missing.md)`', []],
  ['run `platformctl db status --format json`', []],
  [
    'run `platformctl db statsu`',
    ['docs/page.md:1 names a command that does not exist: platformctl db statsu'],
  ],
  [
    '```sh\nFOO=1 platformctl health --depe | jq .\n```',
    ['docs/page.md:2 names an option that does not exist (--depe): platformctl health --depe'],
  ],
  [
    '```console\n$ platformctl helth\nplatformctl: output is not looked at\n```',
    ['docs/page.md:2 names a command that does not exist: platformctl helth'],
  ],
  ['```json\nplatformctl nonsense\n```', []],
  [
    '`npm run test` and `npm run --silent gone`',
    ['docs/page.md:1 names a script that does not exist: npm run --silent gone'],
  ],
])('in %j the docs check finds %j', async (page, faults) => {
  expect(await faultsIn(page)).toEqual(faults)
})

test.each([
  [
    '# A\n\n**When:** now.\n\n## What you see\n\n## Do\n\n### More\n\n## How to know that it worked\n\n## How to go back\n',
    [],
  ],
  [
    '# A\n\n**When:** now.\n\n## Do\n\n## What you see\n\n## How to know that it worked\n\n## How to go back\n',
    [expect.stringMatching(/^runbooks\/a\.md has not the headings of a runbook, .*: What you see, Do, /)],
  ],
  [
    '# A\n\nNow.\n\n## What you see\n\n## Do\n\n## How to know that it worked\n\n## How to go back\n',
    ['runbooks/a.md:3 does not begin with when it is for: **When:** …'],
  ],
])('every runbook has the one form: in %j the docs check finds %j', async (page, faults) => {
  const root = await emptyFolder()
  await mkdir(path.join(root, 'runbooks'))
  await writeFile(path.join(root, 'runbooks/a.md'), page)
  await writeFile(path.join(root, 'runbooks/README.md'), '# The list\n')
  const files = ['runbooks/a.md', 'runbooks/README.md']
  expect(docFaults({ root, files, commands, scripts: {} })).toEqual(faults)
})

test('pages with more words than the limit are a fault, and the bars of tables are no words', async () => {
  const root = await emptyFolder()
  await mkdir(path.join(root, 'docs/reference'), { recursive: true })
  const write = (file: string, words: number) => writeFile(path.join(root, file), 'word '.repeat(words))
  const MEASURE = '(runs without white space that hold a letter or a digit)'
  await write('README.md', 558)
  await writeFile(path.join(root, 'docs/page.md'), '| word — `2` | --- |\n'.repeat(13_500))
  await write('docs/reference/contract.md', 25_000)
  const faults = () =>
    docFaults({
      root,
      files: ['README.md', 'docs/page.md', 'docs/reference/contract.md', 'docs/reference/limits.md'],
      commands,
      scripts: {},
    })
  expect(faults()).toEqual([
    `README.md: 558 words ${MEASURE}, and at most 557 are allowed: say the same in 1 fewer. Most of docs/reference is made of texts in src.`,
  ])
  await write('README.md', 557)
  await write('docs/page.md', 27_300)
  await write('docs/reference/limits.md', 1)
  expect(faults()).toEqual([
    `docs and runbooks: 27301 words ${MEASURE}, and at most 27300 are allowed: say the same in 1 fewer. Most of docs/reference is made of texts in src.`,
    `docs/reference: 25001 words ${MEASURE}, and at most 25000 are allowed: say the same in 1 fewer. Most of docs/reference is made of texts in src.`,
  ])
})

test('a path in the page of the architecture that does not exist is a fault', async () => {
  const root = await emptyFolder()
  const page = 'docs/why/architecture.md'
  const source = 'src/core/env/groups.ts'
  for (const file of [page, source]) await mkdir(path.dirname(path.join(root, file)), { recursive: true })
  await writeFile(path.join(root, source), '')
  await writeFile(
    path.join(root, page),
    'A row in `core/env/groups.ts` or `groups.ts`, the folder `src/core`, `GET /`, and `core/gone.ts`.',
  )
  const files = [page, source]
  expect(docFaults({ root, files, commands, scripts: {} })).toEqual([
    `${page}:1 names core/gone.ts, which does not exist`,
  ])
})

test('a page of the package that links to what is not in it is a fault', async () => {
  const root = await emptyFolder()
  await writeFile(path.join(root, 'README.md'), '[a](NOTES.md) and [b](OTHER.md)')
  await writeFile(path.join(root, 'OTHER.md'), '[a](NOTES.md)')
  await writeFile(path.join(root, 'NOTES.md'), '')
  const files = ['README.md', 'OTHER.md', 'NOTES.md']
  const packed = ['README.md', 'OTHER.md']
  expect(docFaults({ root, files, packed: packed.slice(0, 1), commands, scripts: {} })).toEqual([
    'README.md:1 links to NOTES.md, which is not in the package',
    'README.md:1 links to OTHER.md, which is not in the package',
  ])
  expect(docFaults({ root, files, packed: files, commands, scripts: {} })).toEqual([])
})
