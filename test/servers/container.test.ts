import { cp, mkdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../support/folder.ts'
import { hasProgram } from '../support/programs.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** A mount namespace of its own, and another user, as a container has them. */
const here = hasProgram(['unshare', '--mount', 'setpriv', '--version'], 'util-linux, and be root')

describe.skipIf(!here)('what a container would run, without one', () => {
  let dockerfile = ''
  let app = ''
  let data = ''

  beforeAll(async () => {
    dockerfile = await readFile(path.join(root, 'deploy/Dockerfile'), 'utf8')
  })

  /** The stage "package" of the Dockerfile, by its own commands. */
  async function build(): Promise<void> {
    const folder = await emptyFolder()
    app = path.join(folder, 'app')
    data = path.join(folder, 'data')
    await mkdir(app)
    await mkdir(data)
    for (const name of ['package.json', 'package-lock.json', '.npmrc', 'bin', 'templates', 'dist'])
      await cp(path.join(root, name), path.join(app, name), { recursive: true })
    const [, commands] = /AS package[\s\S]*?^RUN ([\s\S]*?[^\\])$/m.exec(dockerfile) ?? []
    await execa('bash', ['-ec', commands ?? 'false'], { cwd: app })
    await execa('chown', ['1000:1000', data])
    await execa('chmod', ['755', folder])
  }

  test('each role starts as another user on a read-only file system, and its health check says so', async () => {
    await build()
    const sbom = JSON.parse(await readFile(path.join(app, 'sbom.cdx.json'), 'utf8')) as {
      bomFormat: string
      components: { name: string }[]
    }
    expect(sbom.bomFormat).toBe('CycloneDX')
    const names = sbom.components.map(({ name }) => name)
    expect(names).toContain('better-sqlite3')
    expect(names).not.toContain('vitest')

    for (const role of ['web', 'api', 'agent']) {
      const stage =
        new RegExp(`^FROM runtime AS ${role}$[\\s\\S]*?(?=^FROM |(?![\\s\\S]))`, 'm').exec(dockerfile)?.[0] ??
        ''
      const list = (instruction: RegExp) => JSON.parse(instruction.exec(stage)?.[1] ?? '[]') as string[]
      const command = list(/^CMD (\[.*\])$/m)
      const check = list(/^\s+CMD (\[.*\])$/m)
      const entry = JSON.parse(/^ENTRYPOINT (\[.*\])$/m.exec(dockerfile)?.[1] ?? '[]') as string[]
      const inside = (words: readonly string[]) =>
        contained(
          words.map((word) =>
            word === 'node' ? process.execPath : word.replace(/^\/app/, app).replace(/^\/data/, data),
          ),
        )
      const daemon = inside([...entry, ...command])
      onTestFinished(async () => {
        daemon.kill('SIGTERM')
        await daemon
      })
      let healthy = false
      for (let tries = 0; tries < 50 && !healthy; tries += 1) {
        healthy = (await inside(check)).exitCode === 0
        if (!healthy) await pause(200)
      }
      expect({ role, healthy }).toEqual({ role, healthy: true })
    }
  }, 180_000)

  /** Runs a command as user 1000 where nothing but the data folder can be written to. */
  function contained(words: readonly string[]) {
    return execa(
      'unshare',
      [
        '--mount',
        'sh',
        '-ec',
        'mount --bind "$0" "$0"; mount -o remount,bind,ro /; cd "$0"; exec setpriv --reuid=1000 --regid=1000 --clear-groups --no-new-privs --inh-caps=-all "$@"',
        data,
        ...words,
      ],
      {
        env: { PATH: process.env.PATH ?? '', BUILD_STAMP: 'test', NODE_ENV: 'production' },
        extendEnv: false,
        reject: false,
      },
    )
  }
})
