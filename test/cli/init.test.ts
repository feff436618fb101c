import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { DEFINITION_FILES } from '../../src/platform/find.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder } from '../support/folder.ts'

async function begin(options: readonly string[], prepare?: (folder: string) => Promise<unknown>) {
  const folder = await emptyFolder()
  await prepare?.(folder)
  const before = await readdir(folder, { recursive: true })
  const { context, stdout, stderr } = testContext({ cwd: folder })
  const exitCode = await runProgram(['init', ...options], context)
  const text = (name: string) => readFile(path.join(folder, name), 'utf8')
  return {
    exitCode,
    stdout: stdout(),
    stderr: stderr(),
    before,
    text,
    lesson: () => text('courses/firing/1-welcome.md'),
    after: await readdir(folder, { recursive: true }),
  }
}

test('init --course writes the definition and the first lesson', async () => {
  const { exitCode, after, stdout, lesson } = await begin(['--course', 'firing'])
  expect(exitCode).toBe(0)
  expect(after.sort()).toEqual([
    'courses',
    'courses/firing',
    'courses/firing/1-welcome.md',
    'platform.config.ts',
  ])
  expect(stdout).toContain('Wrote the first lesson, courses/firing/1-welcome.md.')
  // The PATH is empty, so the commands name npx.
  expect(stdout).toContain('while npx -- platformctl email preview shows them')
  expect(await lesson()).toContain('# Welcome\n')
})

test.each([
  ['courses is a file', 'courses', (folder: string) => writeFile(path.join(folder, 'courses'), 'mine')],
  [
    'the lessons’ folder is a link to nowhere',
    'courses/firing',
    async (folder: string) => {
      await mkdir(path.join(folder, 'courses'))
      await symlink('nowhere', path.join(folder, 'courses/firing'))
    },
  ],
  [
    'the definition is a link to nowhere',
    'platform.config.ts',
    (folder: string) => symlink('nowhere', path.join(folder, 'platform.config.ts')),
  ],
])('if %s, init says so and leaves no files behind', async (_, name, prepare) => {
  const { exitCode, stdout, stderr, before, after } = await begin(['--course', 'firing'], prepare)
  expect({ exitCode, stdout, after }).toEqual({ exitCode: 2, stdout: '', after: before })
  expect(stderr).toBe(
    `platformctl: cannot write ${name}: something else has this name. Move it away, then try again. Nothing was written.\n`,
  )
})

test.each(DEFINITION_FILES)('where there is a %s, init writes no second definition', async (name) => {
  const { exitCode, stderr, before, after, text } = await begin(['--course', 'firing'], (folder) =>
    writeFile(path.join(folder, name), '{}'),
  )
  expect({ exitCode, after }).toEqual({ exitCode: 2, after: before })
  expect(await text(name)).toBe('{}')
  expect(stderr).toContain(`${name} already exists and was not overwritten`)
})

test.each(['de', 'de-AT', 'DE'])('init --language %s writes the first lesson in German', async (language) => {
  const { exitCode, stdout, lesson } = await begin(['--course', 'firing', '--language', language])
  expect(exitCode).toBe(0)
  expect(await lesson()).toMatch(
    /^---\nsubject: Willkommen im Kurs\n---\n\n# Willkommen\n\nDas ist die erste Lektion\. .*\n$/,
  )
  expect(stdout).toContain('Wrote the first lesson, courses/firing/1-welcome.md.\n')
})

test('in a language that platformctl does not speak, the first lesson is in English and says so', async () => {
  const { exitCode, stdout, lesson } = await begin(['--course', 'firing', '--language', 'fr'])
  expect(exitCode).toBe(0)
  expect(stdout).toContain('courses/firing/1-welcome.md, in English: translate it into fr.')
  expect(await lesson()).toMatch(
    /^---\n# platformctl does not speak fr: translate this lesson\.\nsubject: Welcome to the course\n---\n/,
  )
})

test('init counts the lines whose names no definition can have, and shows none: they may belong to a value', async () => {
  const example = (text: string) => begin([], (folder) => writeFile(path.join(folder, '.env.example'), text))
  const odd = await example('KILN_URL=\nkiln.key=canary\nkiln-port=1\n')
  expect(odd.stdout).toContain('Left out: 2 lines whose names have other signs than letters, digits and _.')
  expect(odd.stdout).not.toMatch(/kiln\.key|canary/)
  expect((await example('kiln-port=1\n')).stdout).toContain('Left out: 1 line whose name has other signs')
  expect((await example('KILN_URL=\n')).stdout).not.toContain('Left out')
  expect((await example('KILN_URL=\nconstructor=1\n')).stdout).not.toContain('constructor')
})

test.each(['.env', '.env.production', 'prod.env'])(
  'of %s, which is in use, no value is taken over',
  async (file) => {
    const { stdout, text } = await begin(['--from', file], (folder) =>
      writeFile(path.join(folder, file), 'KILN_PLACE=behind-the-shed\n'),
    )
    expect(stdout).toContain(`Wrote platform.config.ts from ${file}, without its values.`)
    expect(await text('platform.config.ts')).not.toContain('shed')
  },
)

test('a definition is made from the .env.schema where there is an .env.example too, as it says more', async () => {
  const { stdout, text } = await begin([], async (folder) => {
    await writeFile(path.join(folder, '.env.schema'), '# @type=port @required\nKILN_PLACE=\n')
    await writeFile(path.join(folder, '.env.example'), 'OVEN_PLACE=\n')
  })
  expect(stdout).toMatch(/^Wrote platform\.config\.ts from \.env\.schema\.$/m)
  expect(await text('platform.config.ts')).toContain("KILN_PLACE: { kind: 'port', required: true }")
})
