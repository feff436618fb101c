import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { type Daemon, platformctl, startDaemon } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { hasProgram } from '../support/programs.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** This build's sources with one more migration, built: the build that comes after this one. */
async function nextBuild(
  change: (file: string, text: string) => string,
): Promise<(args: string[]) => Promise<string>> {
  const folder = await emptyFolder()
  for (const name of ['bin', 'src', 'scripts', 'templates', 'package.json', 'tsconfig.json'])
    await cp(path.join(root, name), path.join(folder, name), { recursive: true })
  await symlink(path.join(root, 'node_modules'), path.join(folder, 'node_modules'), 'dir')
  for (const file of ['src/core/store/migrations.ts', 'src/core/store/schema.ts']) {
    const full = path.join(folder, file)
    await writeFile(full, change(file, await readFile(full, 'utf8')))
  }
  await execa(process.execPath, ['scripts/build.ts'], { cwd: folder })
  return async (args) =>
    (await execa(process.execPath, ['--', path.join(folder, 'bin/platformctl.js'), ...args])).stdout
}

const withOneMore = (file: string, text: string) =>
  file.endsWith('migrations.ts')
    ? text.replace(
        /\n\]\n/,
        '\n  `ALTER TABLE subscription ADD COLUMN colour text; CREATE TABLE later (id text PRIMARY KEY) STRICT;`,\n]\n',
      )
    : text

/** A store that this build made and the next one migrated. */
async function migratedBy(next: (args: string[]) => Promise<string>) {
  const cwd = await emptyFolder()
  await mkdir(path.join(cwd, 'data'))
  expect((await platformctl(['db', 'migrate', '--data', 'data'], { cwd })).exitCode).toBe(0)
  const said = await next(['db', 'migrate', '--data', path.join(cwd, 'data')])
  expect(said).toMatch(/^migrated from schema (\d+) to \d+$/)
  return cwd
}

/** The last commit whose build knows schema 3. */
const SCHEMA_3 = '884535f20856546eafcd6ecfcede60ae0b323643'
const inHistory = hasProgram(['git', '-C', root, 'cat-file', '-e', SCHEMA_3], 'git, with the whole history')

test.skipIf(!inHistory)(
  'after a rollback a real earlier build runs on the schema of this one',
  async () => {
    const folder = await emptyFolder()
    const archive = path.join(folder, 'earlier.tar')
    await execa('git', ['-C', root, 'archive', `--output=${archive}`, SCHEMA_3])
    await execa('tar', ['-xf', archive, '-C', folder])
    await symlink(path.join(root, 'node_modules'), path.join(folder, 'node_modules'), 'dir')
    await execa(process.execPath, ['scripts/build.ts'], { cwd: folder })
    const program = path.join(folder, 'bin/platformctl.js')

    const cwd = await emptyFolder()
    expect((await platformctl(['db', 'migrate', '--data', 'data'], { cwd })).exitCode).toBe(0)
    const status = await platformctl(['db', 'status', '--data', 'data'], { cwd, program })
    expect(status.stdout).toMatch(/newer than this build’s 3, which can run on it/)
    const daemon = await startDaemon(['--data', 'data'], { cwd, program })
    onTestFinished(async () => void (await daemon.stop()))
    await subscribes(daemon)
    expect(await daemon.stop()).toBe(0)
    for (const other of [{ program }, {}]) {
      expect(
        (await platformctl(['course', 'show', 'ada@example.com', '--data', 'data'], { cwd, ...other }))
          .stdout,
      ).toContain('unconfirmed')
      expect((await platformctl(['db', 'verify', '--data', 'data'], { cwd, ...other })).exitCode).toBe(0)
    }
  },
  120_000,
)

async function subscribes({ urls }: Daemon): Promise<void> {
  const answer = await fetch(`${urls.web}/api/email/subscribe`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{"email":"ada@example.com"}',
  })
  expect(answer.status).toBe(202)
}

test('after a rollback this build runs on the schema of the one that came after it', async () => {
  const cwd = await migratedBy(await nextBuild(withOneMore))
  const status = await platformctl(['db', 'status', '--data', 'data'], { cwd })
  expect(status.stdout).toMatch(/schema .*newer than this build’s \d+, which can run on it/)
  const daemon = await startDaemon(['--data', 'data'], { cwd })
  onTestFinished(async () => void (await daemon.stop()))
  await subscribes(daemon)
  expect((await (await fetch(`${daemon.urls.web}/api/health?deep=1`)).json()) as object).toMatchObject({
    probes: { store: { state: 'ok' } },
  })
  expect(
    (await platformctl(['course', 'show', 'ada@example.com', '--data', 'data'], { cwd })).stdout,
  ).toContain('unconfirmed')
  expect((await platformctl(['db', 'verify', '--data', 'data'], { cwd })).exitCode).toBe(0)
}, 120_000)

test('a schema whose build says that this one cannot read it is refused, and nothing starts', async () => {
  const next = await nextBuild((file, text) =>
    file.endsWith('schema.ts')
      ? text.replace(/READABLE_FROM = \d+/, 'READABLE_FROM = 999')
      : withOneMore(file, text),
  )
  const cwd = await migratedBy(next)
  for (const args of [['daemon'], ['course', 'status'], ['db', 'migrate']]) {
    const refused = await platformctl([...args, '--data', 'data'], { cwd })
    expect(refused).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(
        /written by a newer platformctl .*: run that version, or restore a backup/,
      ),
    })
  }
}, 120_000)
