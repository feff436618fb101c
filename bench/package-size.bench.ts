import { readdir, rm, stat } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Benchmark, Contender } from './harness.ts'
import { packedPackage } from './packed.ts'

/** Size in bytes of an installed package's own files, without nested packages. */
async function folderBytes(folder: string): Promise<number> {
  let bytes = 0
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) bytes += entry.name === 'node_modules' ? 0 : await folderBytes(path)
    else bytes += (await stat(path)).size
  }
  return bytes
}

export const benchmark: Benchmark = {
  name: 'package-size',
  title: 'Size of the package',
  unit: 'bytes',
  better: 'lower',
  promises: [],
  rounds: 1,
  notes: 'Dependencies are not counted. The peers cover preflight only.',
  open: async () => {
    const { folder, packed, unpacked } = await packedPackage()
    const peer = (name: string): Contender => ({
      name: `${name}, unpacked`,
      role: 'peer',
      measure: () => folderBytes(fileURLToPath(new URL(`peers/node_modules/${name}`, import.meta.url))),
    })
    return {
      contenders: [
        { name: 'platformctl, unpacked', role: 'ours', measure: () => Promise.resolve(unpacked) },
        { name: 'platformctl, the tarball', role: 'peer', measure: () => Promise.resolve(packed) },
        peer('varlock'),
        peer('@dotenvx/dotenvx'),
      ],
      close: () => rm(folder, { recursive: true, force: true }),
    }
  },
}
