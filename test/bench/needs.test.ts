import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { missing, peerVersions, usesPeers } from '../../bench/needs.ts'
import { emptyFolder } from '../support/folder.ts'

const bench = (name: string) => new URL(`../../bench/${name}.bench.ts`, import.meta.url)

test('detects from imports and started programs that a benchmark needs other packages', () => {
  expect(
    ['drip', 'ingest-loop', 'daemon-start', 'validate'].filter((name) => !usesPeers(bench(name))),
  ).toEqual([])
  expect(
    ['cold-version', 'claim', 'shallow-health', 'mail-http'].filter((name) => usesPeers(bench(name))),
  ).toEqual([])
})

test('names the install command when packages to compare with are missing, and only then', async () => {
  const folder = await emptyFolder()
  const peers = pathToFileURL(`${folder}/`)
  await writeFile(path.join(folder, 'package.json'), '{"dependencies":{"fastify":"^5.0.0"}}')
  expect(missing(['cold-version', 'ingest', 'drip'], peers)).toBe(
    'the packages that ingest, drip compare with are not installed. Run: npm run bench:peers',
  )
  expect(missing(['cold-version'], peers)).toBeUndefined()
  await mkdir(path.join(folder, 'node_modules/fastify'), { recursive: true })
  await writeFile(path.join(folder, 'node_modules/fastify/package.json'), '{"version":"5.12.8"}')
  expect(missing(['ingest'], peers)).toBeUndefined()
  expect(peerVersions(peers)).toEqual({ fastify: '5.12.8' })
})
