import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Packs the package as it would be published. */
export async function packTarball(destination: string): Promise<{
  readonly file: string
  /** Paths in the tarball. */
  readonly files: readonly string[]
  readonly bytes: { readonly packed: number; readonly unpacked: number }
}> {
  const packed = await execa('npm', ['pack', '--json', '--pack-destination', destination], {
    cwd: root,
    stderr: 'ignore',
  })
  // prepack prints before the JSON, which is a list or (newer npm) an object by name.
  const [tarball] = Object.values(
    JSON.parse(packed.stdout.slice(packed.stdout.search(/^[[{]/m))) as PackResult[],
  )
  if (tarball === undefined) throw new Error('npm pack made nothing')
  return {
    file: path.join(destination, tarball.filename),
    files: tarball.files.map((file) => file.path),
    bytes: { packed: tarball.size, unpacked: tarball.unpackedSize },
  }
}

interface PackResult {
  readonly filename: string
  readonly size: number
  readonly unpackedSize: number
  readonly files: readonly { readonly path: string }[]
}
