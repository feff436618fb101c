import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { describe, expect, test, vi } from 'vitest'
import { bin } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { hasProgram } from '../support/programs.ts'
import { S3_KEY, s3Storage } from '../support/s3.ts'
import { serve } from '../support/servers.ts'

vi.setConfig({ testTimeout: 60_000 })
const root = fileURLToPath(new URL('../..', import.meta.url))
const here = [
  hasProgram(['age', '--version'], 'age'),
  hasProgram(['rsync', '--version'], 'rsync'),
  hasProgram(['curl', '--version'], 'curl'),
].every(Boolean)
const offsite = path.join(root, 'deploy/offsite')

/** The command blocks of a section of the page, for the folders of a test. */
async function blocksOf(heading: string, places: Readonly<Record<string, string>>) {
  const page = await readFile(path.join(root, 'runbooks/backups-elsewhere.md'), 'utf8')
  const [section = ''] = page.split(`${heading}\n`)[1]?.split(/\n##/) ?? []
  return [...section.matchAll(/^```sh\n([\s\S]+?)^```/gm)].map(([, text = '']) =>
    Object.entries(places).reduce((block, [shown, real]) => block.replaceAll(shown, real), text),
  )
}

/** A box with two subscribers, one of whom is erased by `leave`. */
async function box() {
  const folder = await emptyFolder()
  const [data, programs, elsewhere] = ['data', 'bin', 'elsewhere'].map((name) => path.join(folder, name))
  for (const one of [data, programs, elsewhere]) await mkdir(String(one))
  const shim = (name: string, text: string) =>
    writeFile(path.join(String(programs), name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  await shim('platformctl', `exec '${process.execPath}' -- '${bin}' "$@"`)
  // Another machine is this one here.
  await shim('ssh', 'while [ "$1" != box ]; do shift; done; shift; exec sh -c "$*"')
  const run = (script: string, { cwd = folder, env = {} } = {}) =>
    execa('bash', ['-euc', script], {
      cwd,
      env: { ...env, PATH: `${programs}:${process.env.PATH}` },
      all: true,
      reject: false,
    })
  const seed = path.join(root, 'scripts/runbooks/seed.ts')
  await run(`'${process.execPath}' '${seed}' '${data}/platform.sqlite' ada=due grace=due`)
  return {
    folder,
    data: String(data),
    elsewhere: String(elsewhere),
    run,
    leave: () => run(`platformctl course erase ada@example.com --yes --data '${data}'`),
  }
}

describe.skipIf(!here)('backups elsewhere, by the commands of the page', () => {
  test('S3-compatible storage gets only what is encrypted, and the newest journal makes an older backup whole', async () => {
    const { data, elsewhere, run, leave } = await box()
    const storage = await s3Storage()
    const [makeKey = ''] = await blocksOf('### To S3-compatible storage', {})
    await run(makeKey, { cwd: elsewhere })
    const [, recipient = ''] =
      /public key: (age1\w+)/.exec(await readFile(`${elsewhere}/key.txt`, 'utf8')) ?? []
    const env = { ...S3_KEY, S3_URL: `${storage.url}/bucket`, AGE_RECIPIENT: recipient }
    const copy = (more = {}) =>
      run(`${offsite}/platformctl-offsite --data '${data}'`, { env: { ...env, ...more } })

    expect(await copy({ S3_SECRET: 'another' })).toMatchObject({
      exitCode: 22,
      all: expect.stringContaining('403'),
    })
    expect((await copy()).exitCode).toBe(0)
    const [[backup = '', sealed] = []] = [...storage.objects].filter(([name]) => name.includes('/platform-'))
    expect(backup).toMatch(/^\/bucket\/platform-\d{8}T\d{6}Z\.sqlite\.zst\.age$/)
    expect((await leave()).exitCode).toBe(0)
    await run('sleep 1')
    expect((await copy()).exitCode).toBe(0)
    for (const object of storage.objects.values())
      expect(object.subarray(0, 21).toString()).toBe('age-encryption.org/v1')

    const journal = [...storage.objects].findLast(([name]) => name.includes('/journal-'))
    await writeFile(path.join(elsewhere, path.basename(backup)), sealed ?? '')
    await writeFile(path.join(elsewhere, path.basename(journal?.[0] ?? '')), journal?.[1] ?? '')
    const [drill = ''] = await blocksOf('## How to know that it worked', {
      '/srv/drill': `${elsewhere}/drill`,
    })
    const { exitCode, all } = await run(drill, { cwd: elsewhere })
    expect({ exitCode, all }).toEqual({
      exitCode: 0,
      all: expect.stringMatching(/replayed, because .*: 1 erased[\s\S]*1 subscription is consistent/),
    })
  })

  test.each([
    ['SIGHUP', 129],
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('a copy that ends by %s leaves nothing readable behind', async (signal, code) => {
    const { folder, data, run } = await box()
    const asked = Promise.withResolvers<void>()
    const url = await serve(() => asked.resolve())
    const [, recipient = ''] = /(age1\w+)/.exec(String((await run('age-keygen')).all)) ?? []
    const scratch = path.join(folder, 'scratch')
    await mkdir(scratch)
    const copy = execa(`${offsite}/platformctl-offsite`, ['--data', data], {
      env: {
        ...{ ...S3_KEY, S3_URL: `${url}/bucket`, AGE_RECIPIENT: recipient, TMPDIR: scratch },
        PATH: `${folder}/bin:${process.env.PATH}`,
      },
      detached: true,
      reject: false,
    })
    await asked.promise
    process.kill(-(copy.pid ?? 0), signal)
    expect((await copy).exitCode).toBe(code)
    expect(await readdir(scratch)).toEqual([])
  })

  test('visitors’ events that cannot be read fail the copy, but keep neither the store’s backup nor the journal from it', async () => {
    const { data, run } = await box()
    const storage = await s3Storage()
    const [, recipient = ''] = /(age1\w+)/.exec(String((await run('age-keygen')).all)) ?? []
    await writeFile(`${data}/platform-analytics.sqlite`, 'damaged')
    const env = { ...S3_KEY, S3_URL: `${storage.url}/bucket`, AGE_RECIPIENT: recipient }
    const { exitCode } = await run(`${offsite}/platformctl-offsite --data '${data}'`, { env })
    expect(exitCode).not.toBe(0)
    expect([...storage.objects.keys()].toSorted()).toEqual([
      expect.stringMatching(/^\/bucket\/journal-/),
      expect.stringMatching(/^\/bucket\/platform-\d{8}T\d{6}Z\.sqlite\.zst\.age$/),
    ])
  })

  test('another machine fetches new backups and the journal, and restores them', async () => {
    const { folder, data, elsewhere, run, leave } = await box()
    const backups = path.join(folder, 'backups')
    await run(`mkdir '${backups}'; platformctl db backup '${backups}/platform-1.sqlite.zst' --data '${data}'`)
    await leave()
    const [fetchAll = ''] = await blocksOf('### To another machine', {
      '/var/lib/platformctl-backups': backups,
      '/var/lib/platformctl': data,
    })
    for (let hour = 0; hour < 2; hour += 1)
      expect(await run(fetchAll, { cwd: elsewhere })).toMatchObject({ exitCode: 0, all: '' })
    await rm(data, { recursive: true })
    const restored = await run(
      'platformctl db restore backups/platform-1.sqlite.zst --data drill --journal platform-journal.jsonl',
      { cwd: elsewhere },
    )
    expect(restored).toMatchObject({ exitCode: 0, all: expect.stringContaining('1 erased') })
  })
})

test.skipIf(!hasProgram(['systemd-analyze', '--version'], 'systemd'))(
  'the units that copy backups have no fault that systemd-analyze verify knows',
  async () => {
    const folder = await emptyFolder()
    await cp(offsite, folder, { recursive: true })
    const units = (await readdir(folder))
      .filter((name) => name.includes('.'))
      .map((name) => path.join(folder, name))
    for (const unit of units)
      await writeFile(
        unit,
        (await readFile(unit, 'utf8')).replace('/usr/bin/platformctl-offsite', '/bin/true'),
      )
    const { exitCode, all } = await execa('systemd-analyze', ['verify', '--man=no', ...units], {
      reject: false,
      all: true,
    })
    expect({ exitCode, all }).toEqual({ exitCode: 0, all: '' })
  },
)
