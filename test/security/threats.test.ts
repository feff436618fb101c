import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const rows = readFileSync('docs/why/security.md', 'utf8')
  .split('\n')
  .filter((line) => /^\| (?!Threat|Input)/.test(line))

test('the table of threats is not empty, and each row names its test', () => {
  expect(rows.length).toBeGreaterThan(25)
  for (const row of rows) expect(row).toMatch(/\| `test\/[\w/.-]+\.test\.ts` › [^|]+ \|$/)
})

test.each(rows.map((row) => [row.split('|')[1]?.trim(), row] as const))('a test holds: %s', (_, row) => {
  const [, file = '', name = ''] = /`(test\/[^`]+)` › (.+) \|$/.exec(row) ?? []
  expect(existsSync(file), file).toBe(true)
  expect(readFileSync(file, 'utf8')).toContain(name)
})
