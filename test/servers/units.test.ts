import { mkdir, readdir, readFile, utimes, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { bin, platformctl } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { potteryFolder } from '../support/pottery.ts'
import { hasProgram } from '../support/programs.ts'

const here = hasProgram(['systemd-analyze', '--version'], 'systemd')
const canChangeUser = hasProgram(['unshare', '--mount', 'setpriv', '--version'], 'util-linux, and be root')

/** The folder of the units of the default platform, or of a definition. */
const UNITS = {
  'the default platform': async () => fileURLToPath(new URL('../../deploy/systemd', import.meta.url)),
  'a definition': async () => (await unitsOf(await emptyFolder())).units,
}

async function unitsOf(folder: string) {
  await potteryFolder(folder)
  expect((await platformctl(['deploy', 'init', 'systemd'], { cwd: folder })).exitCode).toBe(0)
  return { folder, units: path.join(folder, 'deploy/systemd') }
}

describe.skipIf(!here).each(Object.entries(UNITS))('the systemd units of %s', (_, prepare) => {
  test('have no fault that systemd-analyze verify knows, and are exposed to 2 at the most', async () => {
    const units = await prepare()
    const folder = await emptyFolder()
    const names = await readdir(units)
    for (const name of names) {
      // The one thing that is not on this machine is the installed program.
      const text = await readFile(path.join(units, name), 'utf8')
      await writeFile(path.join(folder, name), text.replaceAll('/usr/bin/platformctl', '/bin/true'))
    }
    const { exitCode, all } = await execa(
      'systemd-analyze',
      ['verify', '--man=no', ...names.map((name) => path.join(folder, name))],
      { reject: false, all: true },
    )
    expect({ exitCode, all }).toEqual({ exitCode: 0, all: '' })
    for (const name of names.filter((one) => one.endsWith('.service'))) {
      const { stdout } = await execa(
        'systemd-analyze',
        ['security', '--offline=true', path.join(units, name)],
        { reject: false },
      )
      const [, level] = /Overall exposure level for .*: ([\d.]+) /.exec(stdout) ?? []
      expect(Number(level)).toBeLessThanOrEqual(2)
    }
  })
})

/** An installed program, and the command lines of a unit as systemd resolves them (systemd.unit(5), systemd.service(5)). */
async function installed(units: string, { state = '', credentials = '', home = '' }) {
  const program = path.join(await emptyFolder(), 'platformctl')
  await writeFile(program, `#!/bin/sh\nexec '${process.execPath}' -- '${bin}' "$@"\n`, { mode: 0o755 })
  await execa('chmod', ['755', path.dirname(program)])
  return {
    program,
    linesOf: async (name: string) => {
      const unit = await readFile(path.join(units, name), 'utf8')
      return [...unit.matchAll(/^ExecStart=(.*)$/gm)].map(([, line = '']) =>
        line
          .replace(/%([Sd%])/g, (_, letter) => ({ S: state, d: credentials })[letter as string] ?? '%')
          .replaceAll('$$', () => '$')
          .replaceAll('/usr/bin/platformctl', program)
          .replaceAll('/srv/platform/', `${home}/`),
      )
    },
  }
}

test('the backup unit’s command makes a backup under a new name', async () => {
  const { folder, units } = await unitsOf(await emptyFolder())
  const state = await emptyFolder()
  const { program, linesOf } = await installed(units, { state, home: folder })
  await mkdir(path.join(state, 'platformctl-backups'))
  await execa(program, ['db', 'migrate', '--data', path.join(state, 'platformctl')])
  const lines = await linesOf('platformctl-backup.service')
  expect(lines).toHaveLength(2)
  for (const line of lines) await execa('sh', ['-ec', line])
  const made = await readdir(path.join(state, 'platformctl-backups'))
  expect(made).toEqual([expect.stringMatching(/^platform-\d{8}T\d{6}Z\.sqlite\.zst$/)])
})

test('a row that is wrong makes the backup unit fail, but keeps no backup from being made', async () => {
  const { folder, units } = await unitsOf(await emptyFolder())
  const state = await emptyFolder()
  const { program, linesOf } = await installed(units, { state, home: folder })
  await mkdir(path.join(state, 'platformctl-backups'))
  await execa(program, ['db', 'migrate', '--data', path.join(state, 'platformctl')])
  const database = new Database(path.join(state, 'platformctl/platform.sqlite'))
  database.exec(`INSERT INTO subscription (id, identity, address, state, enrolment, created_at)
    VALUES ('a', 'ada@example.com', 'ada@example.com', 'confirmed', 1, 0)`)
  database.close()
  const codes: unknown[] = []
  // As systemd does: none is started after one that failed.
  for (const line of await linesOf('platformctl-backup.service'))
    if (!codes.includes(1)) codes.push((await execa('sh', ['-ec', line], { reject: false })).exitCode)
  expect(codes.at(-1)).toBe(1)
  expect(await readdir(path.join(state, 'platformctl-backups'))).toHaveLength(1)
})

test('damaged events of visitors make the backup unit fail, and what is older than a fortnight goes all the same', async () => {
  const { folder, units } = await unitsOf(await emptyFolder())
  const state = await emptyFolder()
  const { program, linesOf } = await installed(units, { state, home: folder })
  const backups = path.join(state, 'platformctl-backups')
  await mkdir(backups)
  const old = path.join(backups, 'platform-20261101T031700Z.sqlite.zst')
  await writeFile(old, '')
  await utimes(old, 0, 0)
  const [line = ''] = await linesOf('platformctl-backup.service')
  // Without a store no backup is made, and the old one stays.
  expect(await execa('sh', ['-ec', line], { reject: false })).toMatchObject({ exitCode: 2 })
  expect(await readdir(backups)).toEqual([path.basename(old)])
  await execa(program, ['db', 'migrate', '--data', path.join(state, 'platformctl')])
  await writeFile(path.join(state, 'platformctl/platform-analytics.sqlite'), 'no database, as after a crash')
  expect((await execa('sh', ['-ec', line], { reject: false })).exitCode).toBeGreaterThan(0)
  expect(await readdir(backups)).toEqual([expect.stringMatching(/^platform-\d{8}T\d{6}Z\.sqlite\.zst$/)])
})

describe.skipIf(!canChangeUser)('the daemon of the unit, as another user', () => {
  test('serves the definition, and root gets the line that runs a command as that user', async () => {
    const scratch = await emptyFolder()
    const [home, state, credentials] = ['home', 'state', 'credentials'].map((name) =>
      path.join(scratch, name),
    )
    for (const one of [home, state, credentials]) await mkdir(String(one))
    const { units } = await unitsOf(String(home))
    const { program, linesOf } = await installed(units, { state, credentials, home })
    await writeFile(path.join(String(credentials), 'env'), 'KILN_REGION=us\n')
    const [line = ''] = await linesOf('platformctl.service')
    // What the unit asks systemd for: folders of its own, no other writable one, and another user.
    const script = `
chmod 755 "${scratch}" "${home}"; chmod -R a+rX "${home}"; mkdir "${state}/platformctl"
chmod 700 "${state}/platformctl"; chown -R 4711:4711 "${state}" "${credentials}"
mount -t tmpfs tmpfs /run; mkdir /run/platformctl; chown 4711:4711 /run/platformctl
mount --bind "${state}" "${state}"; mount --bind /run /run; mount -o remount,bind,ro /
cd /
RUNTIME_DIRECTORY=/run/platformctl setpriv --reuid=4711 --regid=4711 --clear-groups --no-new-privs --inh-caps=-all ${line} --web-port 0 --shop-port 0 >"${state}/log" &
until grep -q '"listening"' "${state}/log"; do sleep 0.2; done
"${program}" course list; echo "exit $?"
command=$("${program}" course list 2>&1 | sed -n 's/.*as that user: \\(.*\\)\\. For anything else.*/\\1/p')
eval "$command"; echo "exit $?"
kill $!; wait $!; echo "stopped $?"`
    const { stdout, stderr } = await execa('unshare', ['--mount', 'sh', '-c', script], {
      env: { PATH: `${path.dirname(program)}:${process.env.PATH}`, HOME: '/root' },
      extendEnv: false,
      reject: false,
      timeout: 60_000,
    })
    expect(stderr).toContain('root does not run what that user can write. Run this as that user: nsenter')
    expect(stderr).toContain('acting on the daemon that runs here: --config ')
    expect(stdout).toMatch(/^exit 2\n[\s\S]*erster-brand[\s\S]*\nexit 0\nstopped 0$/)
  }, 90_000)
})
