import { readFile } from 'node:fs/promises'
import { gzipSync } from 'node:zlib'
import { execa } from 'execa'
import { parseSync } from 'oxc-parser'
import { expect, test } from 'vitest'
import packageJson from '../package.json' with { type: 'json' }

const built = (file: string) => readFile(new URL(`../dist/${file}`, import.meta.url))

test('the browser part is one file of at most 6 KB compressed, without the SDK of error reporting', async () => {
  const bytes = await built('browser.js')
  expect(gzipSync(bytes, { level: 9 }).length).toBeLessThanOrEqual(6 * 1024)
  const code = bytes.toString()
  expect(code).not.toMatch(/^\s*import\s*[\w{*'"`]|[;}]import\s*[\w{*'"`]/m)
  expect(code.toLowerCase()).not.toContain('sentry')
  // Modules loaded on demand: the sender with an endpoint, the SDK with a DSN.
  expect(
    [...code.matchAll(/import\(`\.\/chunks\/browser-(\w+)\.js`/g)].map((match) => match[1]).sort(),
  ).toEqual(['errortrack', 'sender'])
})

test('files for browsers have no look-behind: Safari before 16.4 would run nothing of the page that bundles one', async () => {
  const files = ['browser.js', 'insights.js', 'lesson.js', 'status.js']
  const chunks = ['chunks/browser-errortrack.js', 'chunks/browser-sender.js']
  for (const file of [...files, ...chunks])
    expect((await built(file)).toString(), file).not.toMatch(/\(\?<[!=]/)
})

const subpaths = Object.entries(packageJson.exports).flatMap(([subpath, target]) =>
  typeof target === 'string' ? [] : [{ name: `platformctl${subpath.slice(1)}`, file: target.default }],
)

test.each(subpaths)(
  '$name exports what the API reference lists, and nothing else',
  async ({ name, file }) => {
    const reference = await readFile(new URL('../docs/reference/api.md', import.meta.url), 'utf8')
    const section = reference.split('\n## ').find((part) => part.startsWith(`${name}\n`)) ?? ''
    const documented = [
      // Types leave no export in the built file.
      ...section.matchAll(/^### (\w+)\n(?:(?!^### )[\s\S])*?```ts\n(?:async )?(?:function|const|class) /gm),
      ...(section.match(/^Also exported here: .*/m)?.[0].matchAll(/`([a-z]\w*)`/g) ?? []),
    ].map((match) => match[1])
    const { module } = parseSync(file, (await built(file.replace('./dist/', ''))).toString())
    const exported = module.staticExports.flatMap(({ entries }) =>
      entries.map(({ exportName }) => exportName.name),
    )
    expect(exported).not.toEqual([])
    expect(exported.sort()).toEqual(documented.sort())
  },
)

test('an uncaught error of a program that embeds the platform prints less than 2 KB', async () => {
  const program = `import { openPlatform } from ${JSON.stringify(new URL('../dist/index.js', import.meta.url).href)}
openPlatform({ env: {}, platform: { preset: 'base', name: 'x', groups: { a: { unlocks: 'x', absent: 'y', variables: { a: {} } } } } })`
  const { stderr, exitCode } = await execa({ reject: false, input: program })`node --input-type=module -`
  expect(exitCode).toBe(1)
  expect(stderr).toContain('groups.a.variables.a.kind: ')
  expect(stderr.length).toBeLessThan(2048)
})
