import { cp, mkdir, readFile, symlink } from 'node:fs/promises'
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

describe.skipIf(!here)('the commands of a container, run without one', () => {
  let dockerfile = ''
  let app = ''
  let data = ''

  beforeAll(async () => {
    dockerfile = await readFile(path.join(root, 'deploy/Dockerfile'), 'utf8')
  })

  /** A stage of the Dockerfile, from its FROM to the next. */
  const stageOf = (from: string) =>
    new RegExp(`^FROM ${from}$[\\s\\S]*?(?=^FROM |(?![\\s\\S]))`, 'm').exec(dockerfile)?.[0] ?? ''
  const commandsOf = (stage: string) =>
    [...stage.matchAll(/^RUN ([\s\S]*?[^\\])$/gm)].map(([, command]) => command ?? 'false')

  /**
   * The stages "build" and "package" of the Dockerfile by their own commands, on what its ignore file lets pass; only
   * what the first one would install is what is installed here.
   */
  async function build(): Promise<void> {
    const folder = await emptyFolder()
    const source = path.join(folder, 'src')
    app = path.join(folder, 'app')
    data = path.join(folder, 'data')
    for (const one of [source, app, data]) await mkdir(one)

    const ignore = await readFile(path.join(root, 'deploy/Dockerfile.dockerignore'), 'utf8')
    for (const [, name = ''] of ignore.matchAll(/^!(.+)$/gm))
      await cp(path.join(root, name), path.join(source, name), { recursive: true })
    await symlink(path.join(root, 'node_modules'), path.join(source, 'node_modules'), 'dir')
    const [install, ...making] = commandsOf(stageOf('\\$\\{NODE_IMAGE\\} AS build'))
    expect(install).toMatch(/^npm ci /)
    for (const command of making) await execa('bash', ['-ec', command], { cwd: source })

    const stage = stageOf('\\$\\{NODE_IMAGE\\} AS package')
    for (const [, names = ''] of stage.matchAll(/^COPY (?:--from=build )?(.*) \S+$/gm))
      for (const name of names.split(' ').map((one) => one.replace('/src/', '')))
        await cp(path.join(source, name), path.join(app, name), { recursive: true })
    for (const command of commandsOf(stage)) await execa('bash', ['-ec', command], { cwd: app })
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
      const stage = stageOf(`runtime AS ${role}`)
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
