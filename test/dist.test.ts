import { readFile } from 'node:fs/promises'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'

const built = (file: string) => readFile(new URL(`../dist/${file}`, import.meta.url))

test('the browser part is one file of at most 6 KB compressed, without the SDK of error reporting', async () => {
  const bytes = await built('browser.js')
  expect(gzipSync(bytes, { level: 9 }).length).toBeLessThanOrEqual(6 * 1024)
  const code = bytes.toString()
  expect(code).not.toMatch(/^\s*import\s*[\w{*'"`]|[;}]import\s*[\w{*'"`]/m)
  expect(code.toLowerCase()).not.toContain('sentry')
  // What it loads when it is asked to: the sender with an endpoint, the SDK with a DSN.
  expect([...code.matchAll(/import\(`\.\/chunks\/(\w+)-/g)].map((match) => match[1]).sort()).toEqual([
    'errortrack',
    'sender',
  ])
})
