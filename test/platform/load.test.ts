import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { DEFINITION_FILES, findDefinition } from '../../src/platform/find.ts'
import { loadDefinition } from '../../src/platform/load-platform.ts'

const state = () => ({
  ...console,
  emitWarning: process.emitWarning,
  exits: process.listenerCount('exit'),
})
/** Before any definition was loaded. */
const before = state()

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'definition-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const write = (name: string, text: string) => writeFile(path.join(folder, name), text)
const load = async (options: { file?: string; deadlineMs?: number; configModule?: string } = {}) => {
  const file = options.file ?? findDefinition(folder)
  return file === undefined ? undefined : loadDefinition({ folder, ...options, file })
}

test('a folder without a definition has none', async () => {
  expect(await load()).toBeUndefined()
})

test.each(DEFINITION_FILES)('%s is found and loaded', async (name) => {
  await write(
    name,
    name.endsWith('.json') ? '\uFEFF{ "name": "Kiln School" }' : `export default { name: 'Kiln School' }`,
  )
  expect(await load()).toEqual({ file: name, folder, exported: { name: 'Kiln School' } })
})

test('types are stripped, imports of other files are followed, and awaiting is allowed', async () => {
  await write('texts.ts', `export const name: string = 'Kiln School'`)
  await write(
    'platform.config.mts',
    `import { name } from './texts.ts'
interface Named { readonly name: string }
const later: Named = await Promise.resolve({ name } satisfies Named)
export default later as Named`,
  )
  expect((await load())?.exported).toEqual({ name: 'Kiln School' })
})

test.each(['commonjs', 'module'])('imports work below a package.json of type %s', async (type) => {
  await write('package.json', JSON.stringify({ type }))
  await write('names.ts', `export const name: string = 'Kiln School'`)
  await write('old.cjs', `module.exports = '2d'`)
  await write(
    'platform.config.ts',
    `import every from './old.cjs'
import { name } from './names.ts'
export default { name: name as string, every }`,
  )
  expect((await load())?.exported).toEqual({ name: 'Kiln School', every: '2d' })
})

test('a CommonJS definition is loaded too, also with a line that begins like an ES module', async () => {
  await write('platform.config.js', `module.exports = { name: 'Kiln School' }`)
  expect((await load())?.exported).toEqual({ name: 'Kiln School' })
  await write('package.json', '{ "type": "commonjs" }')
  await write('names.js', `module.exports = { name: 'Kiln School' }`)
  await write('beginning.js', `/*\nimport of names:\n*/\nmodule.exports = require('./names.js')`)
  expect((await load({ file: 'beginning.js' }))?.exported).toEqual({ name: 'Kiln School' })
})

test('--config names another file, relative to the folder', async () => {
  await mkdir(path.join(folder, 'ops'))
  await write('ops/kiln.ts', `export default { name: 'Kiln School' }`)
  expect(await load({ file: 'ops/kiln.ts' })).toMatchObject({
    file: 'ops/kiln.ts',
    folder: path.join(folder, 'ops'),
  })
})

test('platformctl/config resolves to the running package where it is not installed', async () => {
  await write(
    'own-config.mjs',
    `export const definePlatform = (definition) => ({ ...definition, defined: true })`,
  )
  await write(
    'platform.config.ts',
    `import { definePlatform } from 'platformctl/config'\nexport default definePlatform({ name: 'Kiln' })`,
  )
  await expect(load()).rejects.toThrow(
    'It imports platformctl, which cannot be found. Install it: npm install platformctl',
  )
  const loaded = await load({ configModule: path.join(folder, 'own-config.mjs') })
  expect(loaded?.exported).toEqual({ name: 'Kiln', defined: true })
})

const CANARY = 'canary-2f9c'

test.each<[name: string, text: string, cause: RegExp, fix: RegExp]>([
  ['a.ts', `\n\nthrow new TypeError('${CANARY}')`, /^Line 3: It throws TypeError while it loads\.$/, /node/],
  ['b.ts', `throw '${CANARY}'`, /throws something that is no error/, /node/],
  [
    'c.ts',
    `export default (() => { while (true); })()`,
    /did not finish loading within 0\.3 seconds/,
    /loop/,
  ],
  ['d.mts', `await new Promise(() => {})\nexport default {}`, /did not finish loading/, /await/],
  ['e.mts', `await 1\nthrow new Error('${CANARY}')\nexport default {}`, /^Line 2: It throws Error/, /node/],
  ['f.ts', `export const platform = {}`, /exports no definition/, /export default/],
  ['g.js', ``, /exports no definition/, /export default/],
  ['h.ts', `export default Promise.resolve({})`, /exports a promise/, /await/],
  ['i.ts', `export default () => ({})`, /exports a function/, /export default/],
  ['j.ts', `export default { name: '${CANARY}',, }`, /syntax error/, /Correct it/],
  ['k.mjs', `export default {\n  name: '${CANARY}\n}`, /syntax error/, /Correct it/],
  [
    'l.ts',
    `enum Color { red }\nexport default { name: Color.red }`,
    /has to be compiled/,
    /erasableSyntaxOnly/,
  ],
  [
    'm.ts',
    `import './missing.ts'\nexport default {}`,
    /imports .*missing\.ts, which cannot be found/,
    /Check the path/,
  ],
  [
    'n.ts',
    `import 'kiln-of-nobody'\nexport default {}`,
    /imports kiln-of-nobody/,
    /npm install kiln-of-nobody/,
  ],
  ['s.ts', `import './broken.ts'\nexport default {}`, /^It throws TypeError while it loads\.$/, /node/],
  [
    't.ts',
    `throw Object.assign(new Error(), { name: '${CANARY} 4711' })`,
    /^Line 1: It throws something/,
    /node/,
  ],
  ['o.json', `{\n  "name": "${CANARY}",\n}`, /^Line 3, column 1: JSON allows no comma/, /Remove the comma/],
  ['p.json', `{\n  // ${CANARY}\n}`, /^Line 2, column 3: JSON allows no comments/, /platform\.config\.ts/],
  ['q.json', `{ "name": ${CANARY} }`, /this is not JSON/, /Correct it/],
  ['r.json', ``, /^Line 1, column 1: this is not JSON/, /Correct it/],
])('%s: %j is one sentence that names the file and quotes nothing', async (name, text, cause, fix) => {
  await write('broken.ts', `throw new TypeError('${CANARY}')`)
  await write(name, text)
  const fault: unknown = await load({ file: name, deadlineMs: 300 }).catch((error: unknown) => error)
  expect(fault).toMatchObject({
    name: 'DefinitionError',
    file: name,
    faults: [{ path: '', cause: expect.stringMatching(cause), fix: expect.stringMatching(fix) }],
  })
  expect(String(fault)).not.toContain(CANARY)
  expect(String(fault)).not.toContain('\n')
})

test.each([
  ['missing.ts', /There is no such file/],
  ['', /name of the definition is empty/],
  ['.', /This is a folder/],
  ['/dev/zero', /This is a pipe or a device/],
  ['x'.repeat(300), /There is no such file/],
])('--config %j is refused', async (file, sentence) => {
  await expect(load({ file })).rejects.toThrow(sentence)
})

test('a link that leads nowhere is no absence of a definition', async () => {
  await symlink('gone.ts', path.join(folder, 'platform.config.ts'))
  await expect(load()).rejects.toThrow(/^platform\.config\.ts: This is a link to a file that is not there\./)
})

test('two definitions side by side are refused, and --config chooses one', async () => {
  await write('platform.config.ts', `export default { name: 'a' }`)
  await write('platform.config.json', `{ "name": "b" }`)
  await expect(load()).rejects.toThrow(
    /platform\.config\.ts: There is a platform\.config\.json beside it.*--config/,
  )
  expect((await load({ file: 'platform.config.json' }))?.exported).toEqual({ name: 'b' })
})

test('output that a definition prints does not reach standard output', async () => {
  await write(
    'platform.config.ts',
    `const { log, info, debug, error } = console\nexport default { same: [log, info, debug].every((one) => one === error) }`,
  )
  expect((await load())?.exported).toEqual({ same: true })
})

test.each([
  ['loads', `console.log('a note')\nexport default {}`],
  ['throws', `throw new Error('a fault')`],
  ['awaits', `await 1\nexport default {}`],
  ['never ends', `while (true);`],
])('loading a definition that %s leaves the process unchanged', async (_, text) => {
  await write('platform.config.mts', text)
  await load({ deadlineMs: 100 }).catch(() => undefined)
  expect(state()).toEqual(before)
  expect(Symbol.for('platformctl.definition') in globalThis).toBe(false)
})
