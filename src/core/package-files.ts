import { existsSync, readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Embedded, embedded } from './embedded.ts'
import { withFile } from './regular-file.ts'

/** The package's own folder, from wherever its code runs: `src` unbuilt, or a chunk in `dist`. */
export function packageRoot(): string {
  if (embedded) return embedded.root
  let folder = path.dirname(fileURLToPath(import.meta.url))
  while (!existsSync(path.join(folder, 'package.json'))) folder = path.dirname(folder)
  return folder
}

/** Reads a file of the package, or any other. */
export async function readBytes(file: string): Promise<Uint8Array> {
  if (!isEmbedded(embedded, file)) return withFile(file, (descriptor) => readFileSync(descriptor))
  return embedded.read(file) ?? Promise.reject(Object.assign(new Error('no such file'), { code: 'ENOENT' }))
}

export async function readPackageFile(name: string): Promise<string> {
  return new TextDecoder().decode(await readBytes(path.join(packageRoot(), name)))
}

/** The names of the files in a folder of the package, or in any other. */
export async function fileNames(folder: string): Promise<readonly string[]> {
  if (isEmbedded(embedded, folder)) return embedded.names(folder)
  const entries = await readdir(folder, { withFileTypes: true })
  return entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name)
}

const isEmbedded = (files: typeof embedded, place: string): files is Embedded =>
  files !== undefined && place.startsWith(`${files.root}/`)
