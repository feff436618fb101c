import { execFile } from 'node:child_process'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { packTarball } from '../test/pack/tarball.ts'

export const run = promisify(execFile)

/** The package as it would be published, in a folder that the caller removes. */
export async function packedPackage() {
  const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-bench-'))
  const { file, bytes } = await packTarball(folder)
  return { folder, file, ...bytes }
}

/** The version of a peer that stands in the folder of peers. */
export async function peerVersion(name: string): Promise<string> {
  const file = fileURLToPath(new URL(`peers/node_modules/${name}/package.json`, import.meta.url))
  const { default: manifest } = (await import(file, { with: { type: 'json' } })) as {
    default: { version: string }
  }
  return manifest.version
}
