import { expect, test } from 'vitest'
import { findCircles } from '../../scripts/circles.ts'

const graph = (imports: Readonly<Record<string, readonly string[]>>) => new Map(Object.entries(imports))

test('files that import each other over a third are one circle', () => {
  const found = findCircles(
    graph({ 'src/a.ts': ['src/b.ts'], 'src/b.ts': ['src/c.ts'], 'src/c.ts': ['src/a.ts'] }),
  )
  expect(found).toEqual({ files: [['src/a.ts', 'src/b.ts', 'src/c.ts']], folders: [] })
})

test('finds two folders that import each other, even if none of their files do', () => {
  const found = findCircles(
    graph({
      'src/core/env/settings.ts': ['src/core/mail/address.ts'],
      'src/core/mail/address.ts': [],
      'src/core/mail/open.ts': ['src/core/env/settings.ts'],
    }),
  )
  expect(found).toEqual({ files: [], folders: [['src/core/env', 'src/core/mail']] })
})

test('folders that reach each other only over a third, or deep inside, are a circle too', () => {
  const found = findCircles(
    graph({
      'src/http/app.ts': ['src/pages/frame.ts'],
      'src/pages/frame.ts': [],
      'src/pages/status/json.ts': ['src/routes/answer.ts'],
      'src/routes/answer.ts': [],
      'src/routes/status.ts': ['src/http/app.ts'],
    }),
  )
  expect(found.folders).toEqual([['src/http', 'src/pages', 'src/routes']])
})

test('finds no circle where a file uses the folder beside it and that imports another file', () => {
  const found = findCircles(
    graph({
      'src/store/open.ts': ['src/store/sqlite/open.ts'],
      'src/store/sqlite/open.ts': ['src/store/rows.ts'],
      'src/store/rows.ts': [],
    }),
  )
  expect(found).toEqual({ files: [], folders: [] })
})

test('finds a circle between a folder and the files beside it', () => {
  const found = findCircles(
    graph({
      'src/store/open.ts': ['src/store/sqlite/open.ts'],
      'src/store/sqlite/open.ts': [],
      'src/store/sqlite/rows.ts': ['src/store/rows.ts'],
      'src/store/rows.ts': ['src/store/open.ts'],
    }),
  )
  expect(found.folders).toEqual([['src/store/open.ts', 'src/store/rows.ts', 'src/store/sqlite']])
})
