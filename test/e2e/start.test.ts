import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import cmdShim from 'cmd-shim'
import { execa, execaSync } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { bin, startDaemon } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'

const PATH = `${path.dirname(process.execPath)}:${process.env.PATH}`
const POSIX = process.platform !== 'win32'
const has = (command: string, args: string[]) => POSIX && !execaSync(command, args, { reject: false }).failed

/** A folder with the package installed in it, as npm links it on Unix. */
async function installed() {
  const cwd = await emptyFolder()
  await mkdir(path.join(cwd, 'node_modules', '.bin'), { recursive: true })
  await symlink(path.dirname(path.dirname(bin)), path.join(cwd, 'node_modules', 'platformctl'))
  await symlink('../platformctl/bin/platformctl.js', path.join(cwd, 'node_modules', '.bin', 'platformctl'))
  return cwd
}

const LINK = './node_modules/.bin/platformctl'
/** BusyBox in the place of the system's env and sh, in a mount namespace of its own. */
const IN_BUSYBOX =
  'for a in /usr/bin/env /bin/sh; do mount --bind "$(command -v busybox)" "$a"; done; exec "$@"'

const STARTS = [
  ['directly', [LINK], POSIX],
  ['through npx', ['npx', '--no-install', '--', 'platformctl'], POSIX],
  ['by a shell', ['sh', '-c', `${LINK} "$@"`, 'sh'], POSIX],
  ["by BusyBox's shell", ['busybox', 'sh', '-c', `${LINK} "$@"`, 'sh'], has('busybox', ['true'])],
  ["by BusyBox's shell as a script", ['busybox', 'sh', LINK], has('busybox', ['true'])],
  ["through BusyBox's env", ['busybox', 'env', LINK], has('busybox', ['true'])],
  [
    'where env and sh are BusyBox, as on Alpine',
    ['unshare', '-rm', 'bash', '-c', IN_BUSYBOX, 'bash', LINK],
    has('unshare', ['-rm', 'busybox', 'true']),
  ],
] as const

test.skipIf(!POSIX)(
  'in a folder that was removed, and on a full disk, a sentence says what to do',
  async () => {
    const gone = await emptyFolder()
    const at = (script: string) =>
      execa('sh', ['-c', script, 'sh', process.execPath, bin], { cwd: gone, env: { PATH }, reject: false })
    if (existsSync('/dev/full'))
      expect(await at('exec "$1" -- "$2" env list --no-config > /dev/full')).toMatchObject({
        exitCode: 2,
        stderr: 'platformctl: cannot write the output (ENOSPC): free some space, or write it elsewhere.',
      })
    expect(await at('rmdir "$PWD"; exec "$1" -- "$2" preflight')).toMatchObject({
      exitCode: 2,
      stderr: 'platformctl: the working directory is gone: change to another one.',
    })
  },
)

for (const [name, [program, ...before], possible] of STARTS)
  test.skipIf(!possible)(
    `started ${name}, a missing env file is exit 2 in our words, and no code that an env file names is run`,
    async () => {
      const cwd = await installed()
      await writeFile(path.join(cwd, 'evil.mjs'), `import fs from 'node:fs'; fs.writeFileSync('ran', '')`)
      await writeFile(path.join(cwd, 'evil.env'), 'NODE_OPTIONS=--import=./evil.mjs\n')
      const preflight = (...args: string[]) =>
        execa(program, [...before, 'preflight', ...args], { cwd, env: { PATH }, reject: false })
      expect(await preflight('--env-file=missing.env')).toMatchObject({
        exitCode: 2,
        stdout: '',
        stderr: expect.stringMatching(/platformctl: cannot read missing\.env: there is no such file/),
      })
      const { exitCode, stdout } = await preflight('--env-file', 'evil.env', '--env-file=evil.env')
      expect(exitCode).toBe(0)
      expect(stdout).toContain('NODE_OPTIONS')
      expect(existsSync(path.join(cwd, 'ran'))).toBe(false)
    },
    60_000,
  )

test.skipIf(!POSIX)(
  '-e is the name of --env-file that Node does not read, so npx needs no hyphens before it',
  async () => {
    const cwd = await installed()
    const options = { cwd, env: { PATH }, reject: false } as const
    const npx = ['--no-install', 'platformctl', 'preflight', '-e', 'missing.env']
    expect(await execa('npx', npx, options)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('cannot read missing.env'),
    })
  },
)

test("npm's shims for cmd, PowerShell and Git's shell start the file for Windows with node and two hyphens", async () => {
  const folder = await emptyFolder()
  const target = fileURLToPath(new URL('../../bin/platformctl-windows.js', import.meta.url))
  await cmdShim(target, path.join(folder, 'platformctl-windows'))
  const shim = (ending: string) => readFile(path.join(folder, `platformctl-windows${ending}`), 'utf8')
  expect(await shim('.cmd')).toMatch(
    /SET "_prog=node"[\s\S]*"%_prog%" -- "%dp0%\\[^"]*platformctl-windows\.js" %\*/,
  )
  expect(await shim('.ps1')).toMatch(/& "node\$exe" +-- "\$basedir\/[^"]*platformctl-windows\.js" \$args/)
  expect(await shim('')).toMatch(/exec node +-- "\$basedir\/[^"]*platformctl-windows\.js" "\$@"/)
  // The shim for Git's shell is a shell script: it runs here as it does there.
  const options = { env: { PATH }, reject: false } as const
  const args = ['preflight', '--env-file', 'missing.env']
  expect(await execa('sh', [path.join(folder, 'platformctl-windows'), ...args], options)).toMatchObject({
    exitCode: 2,
  })
})

const version = (env: Record<string, string>, more = {}) =>
  execa(process.execPath, ['--', bin, '--version'], { env: { PATH, ...env }, extendEnv: false, ...more })

test.skipIf(!POSIX)('code is cached in a folder of the user alone, and in no other', async () => {
  const home = await emptyFolder()
  await version({ HOME: home })
  const cache = path.join(home, '.cache', 'platformctl')
  const found = await readdir(cache, { recursive: true })
  expect(found.length).toBeGreaterThan(1)
  expect(await execa('stat', ['-c', '%a', cache])).toMatchObject({ stdout: '700' })
  const elsewhere = await emptyFolder()
  await version({ HOME: home, XDG_CACHE_HOME: elsewhere, TMPDIR: elsewhere })
  expect(await readdir(elsewhere)).toEqual(['platformctl'])
})

test.skipIf(!POSIX)('a daemon caches its code while it runs, so that a kill loses nothing', async () => {
  const home = await emptyFolder()
  const daemon = await startDaemon(['--data', home], { cwd: home, env: { XDG_CACHE_HOME: home } })
  onTestFinished(async () => void (await daemon.stop('SIGKILL')))
  const cached = async () => (await readdir(path.join(home, 'platformctl'), { recursive: true })).length
  await expect.poll(cached, { timeout: 10_000 }).toBeGreaterThan(10)
})

test.skipIf(!POSIX)('without a folder that others cannot touch no code is cached', async () => {
  const home = await emptyFolder()
  const temporary = await emptyFolder()
  const cache = path.join(home, '.cache', 'platformctl')
  await mkdir(cache, { recursive: true })
  const refused = async (what: string) => {
    await version({ HOME: home, TMPDIR: temporary })
    expect(await readdir(cache), what).toEqual([])
    expect(await readdir(temporary), what).toEqual([])
  }
  await chmod(cache, 0o777)
  await refused('others can write to the folder')
  await chmod(cache, 0o755)
  await refused('others can read the folder, which we did not make so')
  await chmod(cache, 0o700)
  await chmod(home, 0o777)
  await refused('others can replace the folder')
  await chmod(home, 0o755)
  await version({ TMPDIR: temporary })
  expect(await readdir(temporary)).toEqual([])
})

test.skipIf(process.getuid?.() !== 0)('does not use a cache folder that another user created', async () => {
  const home = await emptyFolder()
  const cache = path.join(home, '.cache', 'platformctl')
  await mkdir(cache, { recursive: true, mode: 0o700 })
  await execa('chown', ['65534:65534', cache])
  await version({ HOME: home })
  expect(await readdir(cache)).toEqual([])
})

test('a runtime without a compile cache, as Deno, starts the command line all the same', async () => {
  const without = 'data:text/javascript,import m from "node:module"; delete m.enableCompileCache'
  const home = await emptyFolder()
  const result = await execa(process.execPath, ['--import', without, bin, '--version'], {
    env: { XDG_CACHE_HOME: home },
    reject: false,
  })
  expect(result).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+$/), stderr: '' })
})

test.each([
  ['20.20.2', 2],
  ['22.17.1', 2],
  ['22.18.0', 0],
  ['24.0.0', 0],
])('on Node %s the command ends with %i, and says which Node it needs', async (node, exitCode) => {
  const as = `data:text/javascript,Object.defineProperty(process.versions, 'node', { value: '${node}' })`
  expect(await version({ NODE_OPTIONS: `--import=${encodeURI(as)}` }, { reject: false })).toMatchObject({
    exitCode,
    stderr: expect.stringMatching(
      exitCode === 0 ? /^$/ : `^platformctl needs Node 22\\.18 or newer and this is ${node}: .*\\.$`,
    ),
  })
})
