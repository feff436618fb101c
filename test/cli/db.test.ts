import { readdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder } from '../support/folder.ts'

/** Runs `platformctl db …` in a folder of its own. */
async function operator() {
  const cwd = await emptyFolder()
  return {
    cwd,
    async db(...args: string[]) {
      const { context, stdout, stderr } = testContext({ cwd })
      const code = await runProgram(['db', ...args], context)
      return { code, stdout: stdout(), stderr: stderr() }
    },
  }
}

test('migrate makes the store, status describes it, verify passes and is remembered', async () => {
  const { db } = await operator()
  expect(await db('migrate')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^migrated from schema 0 to \d+\n$/),
  })
  expect(await db('migrate')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^nothing to do: schema \d+\n$/),
  })
  expect((await db('status')).stdout).toMatch(
    /schema {4}\d+ \(up to date\)\nsize .*\nrows .*meta 1\nverified {2}never/,
  )
  expect(await db('verify')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('0 subscriptions keep'),
  })
  expect((await db('status')).stdout).toMatch(/verified {2}\d+ s ago/)
  expect(JSON.parse((await db('status', '--format', 'json')).stdout)).toMatchObject({
    version: 1,
    store: { kind: 'sqlite' },
  })
})

test('a backup and its restore, by the command line', async () => {
  const { db, cwd } = await operator()
  await db('migrate')
  expect(await db('backup', 'b.sqlite.zst')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^b\.sqlite\.zst: [\d.]+ k?B, schema \d+, rows: meta 1\nchecked, packed/),
  })
  const refused = await db('restore', 'b.sqlite.zst')
  expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/--force replaces it/) })
  expect((await db('restore', 'b.sqlite.zst', '--force')).stdout).toMatch(
    /kept as .*platform\.sqlite\.before-/,
  )
  expect((await db('restore', 'b.sqlite.zst', '--data', 'elsewhere')).stdout).toMatch(
    /^restored b\.sqlite\.zst/,
  )
  expect(await readdir(path.join(cwd, 'elsewhere'))).toEqual(['platform.sqlite'])
})

test('the plan of a store that does not exist makes none', async () => {
  const { db, cwd } = await operator()
  expect(await db('migrate', '--plan')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/there is no store at/),
  })
  expect(await readdir(cwd)).toEqual([])
})

test('a store that is another file is said to be one, exit 2, and a backup that is missing, exit 1', async () => {
  const { db, cwd } = await operator()
  await writeFile(path.join(cwd, 'platform.sqlite'), 'this is a text file and no database')
  expect(await db('status', '--data', '.')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/is not an SQLite file/),
  })
  expect(await db('restore', 'missing.zst')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/there is no file .*missing\.zst/),
  })
})

test('a server of STORE_URL that is not there is exit code 3', async () => {
  for (const args of [
    ['db', 'status'],
    ['course', 'status'],
  ]) {
    const { context, stderr } = testContext({ env: { STORE_URL: 'postgres://user:canary@127.0.0.1:1/none' } })
    expect(await runProgram(args, context)).toBe(3)
    expect(stderr()).toMatch(/^platformctl: The PostgreSQL of STORE_URL refused the connection/)
    expect(stderr()).not.toContain('canary')
  }
})
