import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Benchmark, Contender } from './harness.ts'
import { packedPackage, peerVersion, run } from './packed.ts'

/** The usual alternative: an environment reader, a server, a queue and mails. The mails are written in React. */
const TOGETHER = ['varlock', 'fastify', 'bullmq', '@react-email/components', 'react', 'react-dom']
const pinned = async (name: string) => `${name}@${await peerVersion(name)}`

export const benchmark: Benchmark = {
  name: 'install-time',
  title: 'npm install into an empty folder, warm cache',
  unit: 'ms',
  better: 'lower',
  promises: [],
  bound: 4000,
  rounds: 5,
  notes: '`npm install --prefer-offline` of the packed tarball and its dependencies, install scripts off.',
  open: async () => {
    const { folder, file } = await packedPackage()
    const empty = path.join(folder, 'empty')
    await mkdir(empty)
    await writeFile(path.join(empty, 'package.json'), '{ "name": "an-empty-package", "version": "1.0.0" }\n')
    await run('npm', ['pack', '--pack-destination', folder], { cwd: empty })
    const install = (name: string, role: Contender['role'], ...what: string[]): Contender => ({
      name,
      role,
      measure: async () => {
        const into = await mkdtemp(path.join(folder, 'into-'))
        await writeFile(path.join(into, 'package.json'), '{ "name": "newcomer", "private": true }\n')
        const began = performance.now()
        await run(
          'npm',
          ['install', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund', ...what],
          { cwd: into },
        )
        const took = performance.now() - began
        await rm(into, { recursive: true, force: true })
        return took
      },
    })
    return {
      contenders: [
        install('platformctl', 'ours', file),
        install('an empty package', 'floor', path.join(folder, 'an-empty-package-1.0.0.tgz')),
        install(TOGETHER.slice(0, 4).join(', '), 'peer', ...(await Promise.all(TOGETHER.map(pinned)))),
      ],
      close: () => rm(folder, { recursive: true, force: true }),
    }
  },
}
