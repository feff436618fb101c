import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { packTarball } from './tarball.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The package as users get it: packed, then installed from the tarball into an empty folder. */
export interface Installed {
  readonly folder: string
  /** Paths in the tarball. */
  readonly files: readonly string[]
  readonly bin: string
  readonly tarball: string
  /** Size of the tarball, and of its unpacked files. */
  readonly bytes: { readonly packed: number; readonly unpacked: number }
  remove(): Promise<void>
}

export async function installPacked(): Promise<Installed> {
  const scratch = await mkdtemp(path.join(tmpdir(), 'platformctl-pack-'))
  const { file, files, bytes } = await packTarball(scratch)
  const folder = path.join(scratch, 'empty folder')
  await mkdir(folder)
  await writeFile(
    path.join(folder, 'package.json'),
    '{ "name": "newcomer", "private": true, "type": "module" }\n',
  )
  const { version } = JSON.parse(
    await readFile(path.join(root, 'node_modules/@types/node/package.json'), 'utf8'),
  ) as { version: string }
  await execa('npm', ['install', '--no-audit', '--no-fund', file, `@types/node@${version}`], { cwd: folder })
  return {
    folder,
    files,
    tarball: file,
    bytes,
    bin: path.join(folder, 'node_modules/platformctl/bin/platformctl.js'),
    remove: () => rm(scratch, { recursive: true, force: true, maxRetries: 3 }),
  }
}
