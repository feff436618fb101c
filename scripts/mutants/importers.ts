import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parseSync } from 'oxc-parser'

/** Every test file whose imports lead to a source file, each with the number of imports between them. */
export function openImporters(): (file: string) => ReadonlyMap<string, number> {
  const importers = new Map<string, string[]>()
  for (const importer of globSync('{src,test}/**/*.ts').map(posix))
    for (const file of importsOf(importer)) importers.set(file, [...(importers.get(file) ?? []), importer])
  return (file) => {
    const distances = new Map([[posix(file), 0]])
    for (const [next, distance] of distances)
      for (const importer of importers.get(next) ?? [])
        if (!distances.has(importer)) distances.set(importer, distance + 1)
    return new Map([...distances].filter(([one]) => one.endsWith('.test.ts')))
  }
}

function importsOf(file: string): string[] {
  const source = readFileSync(file, 'utf8')
  const { module } = parseSync(file, source)
  return [
    ...module.staticImports
      .filter(({ entries }) => entries.length === 0 || entries.some(({ isType }) => !isType))
      .map(({ moduleRequest }) => moduleRequest.value),
    ...module.staticExports.flatMap(({ entries }) =>
      entries.flatMap(({ isType, moduleRequest }) => (isType ? [] : (moduleRequest?.value ?? []))),
    ),
    ...module.dynamicImports.map(({ moduleRequest: { start, end } }) => source.slice(start + 1, end - 1)),
  ]
    .filter((request) => request.startsWith('.'))
    .map((request) => path.posix.join(path.posix.dirname(file), request))
    .filter((one) => existsSync(one))
}

const posix = (file: string) => file.split(path.sep).join('/')
