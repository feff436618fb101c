import { existsSync, globSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'

/** Deletes the declaration files in `folder` that no entry reaches by imports, and gives how many are left. */
export function pruneDeclarations(folder: string, entries: readonly string[]): number {
  const reached = new Set<string>()
  const waiting = entries.map((entry) => path.resolve(entry))
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (reached.has(file)) continue
    if (!existsSync(file)) throw new Error(`${file} is imported by a declaration file and does not exist`)
    reached.add(file)
    for (const [, target = ''] of readFileSync(file, 'utf8').matchAll(
      /(?:from|import)\s*\(?\s*['"](\.[^'"]+)['"]/g,
    ))
      waiting.push(path.resolve(path.dirname(file), target.replace(/\.[jt]s$/, '.d.ts')))
  }
  for (const name of globSync('**/*.d.ts', { cwd: folder })) {
    const file = path.resolve(folder, name)
    if (!reached.has(file)) rmSync(file)
  }
  return reached.size
}
