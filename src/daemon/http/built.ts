import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

/** A file of `dist` as the build made it; rejects where nothing is built. */
export function readBuilt(name: string): Promise<string> {
  return readFile(new URL(name, distFolder()), 'utf8')
}

/** `dist`, from a chunk inside it or from the sources beside it. */
function distFolder(): URL {
  let folder = new URL('./', import.meta.url)
  while (!existsSync(new URL('package.json', folder))) folder = new URL('../', folder)
  return new URL('dist/', folder)
}
