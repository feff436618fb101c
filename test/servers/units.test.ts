import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { emptyFolder } from '../support/folder.ts'
import { hasProgram } from '../support/programs.ts'

const units = fileURLToPath(new URL('../../deploy/systemd', import.meta.url))
const here = hasProgram(['systemd-analyze', '--version'], 'systemd')

describe.skipIf(!here)('the systemd units', () => {
  test('have no fault that systemd-analyze verify knows', async () => {
    const folder = await emptyFolder()
    const names = await readdir(units)
    for (const name of names) {
      // The one thing that is not on this machine is the installed program.
      const text = await readFile(path.join(units, name), 'utf8')
      await writeFile(
        path.join(folder, name),
        text.replaceAll(/\/usr\/bin\/(?:node|platformctl)/g, '/bin/true'),
      )
    }
    const { exitCode, all } = await execa(
      'systemd-analyze',
      ['verify', '--man=no', ...names.map((name) => path.join(folder, name))],
      { reject: false, all: true },
    )
    expect(all).toBe('')
    expect(exitCode).toBe(0)
  })

  test.each(['platformctl.service', 'platformctl-backup.service'])(
    '%s is exposed to 2 at the most',
    async (name) => {
      const { stdout } = await execa(
        'systemd-analyze',
        ['security', '--offline=true', path.join(units, name)],
        {
          reject: false,
        },
      )
      const [, level] = /Overall exposure level for .*: ([\d.]+) /.exec(stdout) ?? []
      expect(Number(level)).toBeLessThanOrEqual(2)
    },
  )

  test('the backup unit’s command makes a backup under a new name', async () => {
    const state = await emptyFolder()
    const bin = path.join(await emptyFolder(), 'platformctl')
    const built = fileURLToPath(new URL('../../bin/platformctl.js', import.meta.url))
    await writeFile(bin, `#!/bin/sh\nexec '${process.execPath}' -- '${built}' "$@"\n`, { mode: 0o755 })
    await mkdir(path.join(state, 'platformctl-backups'))
    await execa(bin, ['db', 'migrate', '--data', path.join(state, 'platformctl')])
    const unit = await readFile(path.join(units, 'platformctl-backup.service'), 'utf8')
    // Specifiers and dollars as systemd resolves them (systemd.unit(5), systemd.service(5)).
    const lines = [...unit.matchAll(/^ExecStart=(.*)$/gm)].map(([, line = '']) =>
      line
        .replace(/%([S%])/g, (_, letter) => (letter === 'S' ? state : '%'))
        .replaceAll('$$', () => '$')
        .replaceAll('/usr/bin/platformctl', bin),
    )
    expect(lines).toHaveLength(3)
    for (const line of lines) await execa('sh', ['-ec', line])
    const made = await readdir(path.join(state, 'platformctl-backups'))
    expect(made).toEqual([expect.stringMatching(/^platform-\d{8}T\d{6}Z\.sqlite\.zst$/)])
  })
})
