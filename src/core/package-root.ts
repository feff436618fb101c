import { existsSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/** The package's own folder, from wherever its code runs: `src` unbuilt, or a chunk in `dist`. */
export function packageRoot(from: string = import.meta.url): string {
  let folder = path.dirname(fileURLToPath(from))
  while (!existsSync(path.join(folder, 'package.json'))) folder = path.dirname(folder)
  return folder
}
