import { mkdir, readdir, rename } from 'node:fs/promises'
import { hostname } from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import { withPlatform } from '../../src/cli/command.ts'
import { CommandError } from '../../src/cli/context.ts'
import { storeAddress, storeFaultError } from '../../src/cli/local.ts'
import { writeRecord } from '../../src/core/daemon-record.ts'
import { secret } from '../../src/core/secret.ts'
import { StoreOpenError } from '../../src/core/store/errors.ts'
import { openStore } from '../../src/core/store/open.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder } from '../support/folder.ts'

test('a store that cannot be opened is wrong usage, and a server that did not answer the remote side', () => {
  const postgres = { kind: 'postgres', url: secret('postgres://db/x') } as const
  const sqlite = { kind: 'sqlite', file: '/x.sqlite' } as const
  const code = (...[address, error]: Parameters<typeof storeFaultError>) => {
    const fault = storeFaultError(address, error)
    return fault instanceof CommandError ? fault.exitCode : fault
  }
  const [refused, failed] = [
    new StoreOpenError('newer'),
    new StoreOpenError('away', { cause: new Error('x') }),
  ]
  expect([code(postgres, refused), code(postgres, failed), code(sqlite, failed)]).toEqual([2, 3, 2])
  const other = new TypeError('a fault of ours')
  expect(code(postgres, other)).toBe(other)
})

/** What a daemon with its store at this place leaves in its folder. */
const record = (folder: string, location: string, envFiles: string[] = []) =>
  writeRecord(folder, {
    version: 1,
    pid: process.pid,
    host: hostname(),
    startedAt: '2026-11-22T00:00:00.000Z',
    build: null,
    store: { kind: 'sqlite', location },
    envFiles,
    schedule: true,
    urls: {},
  })

test('a folder whose daemon keeps another store is refused with --data, whatever STORE_URL names', async () => {
  const folder = await emptyFolder()
  const { context } = testContext({ cwd: folder })
  record(folder, '/elsewhere/platform.sqlite', ['/etc/a.env', '/etc/b.env'])
  const STORE_URL = `sqlite:${path.join(folder, 'own.sqlite')}`
  for (const env of [{ STORE_URL }, {}])
    expect(() => storeAddress(context, env, folder)).toThrow(
      'has kept its store in /elsewhere/platform.sqlite since 2026-11-22',
    )
  expect(() => storeAddress(context, {}, folder)).toThrow('Add --env-file /etc/a.env --env-file /etc/b.env;')
  record(folder, '/elsewhere/platform.sqlite', ['/etc/a b;touch c'])
  expect(() => storeAddress(context, {}, folder)).toThrow("Add --env-file '/etc/a b;touch c';")
  // The env files were read, and may have been changed since the daemon started.
  expect(() => storeAddress(context, { STORE_URL }, folder)).toThrow(
    'Set STORE_URL as that daemon has it, or restart it if STORE_URL was changed;',
  )
  expect(storeAddress(context, { STORE_URL }, undefined)).toEqual({
    kind: 'sqlite',
    file: path.join(folder, 'own.sqlite'),
  })
  expect(storeAddress(context, { STORE_URL: 'sqlite:/elsewhere/platform.sqlite' }, folder)).toMatchObject({
    file: '/elsewhere/platform.sqlite',
  })
})

test('a folder that was moved with its store is used where it is now', async () => {
  const [before, after] = [path.join(await emptyFolder(), 'before'), path.join(await emptyFolder(), 'after')]
  const { context } = testContext()
  const location = path.join(before, 'platform.sqlite')
  await mkdir(before)
  record(before, location)
  await rename(before, after)
  expect(storeAddress(context, {}, after)).toEqual({
    kind: 'sqlite',
    file: path.join(after, 'platform.sqlite'),
  })
})

test('a command has closed its store when it is over, whether its work was done or failed', async () => {
  const data = await emptyFolder()
  await (await openStore({ kind: 'sqlite', file: path.join(data, 'platform.sqlite') })).close()
  const { context } = testContext({ cwd: data })
  const work = (outcome: () => Promise<string>) =>
    withPlatform(context, { envFile: [], data }, async (platform) => {
      await (await platform.store()).ping()
      return outcome()
    })
  expect(await work(async () => 'done')).toBe('done')
  expect(await readdir(data)).toEqual(['platform.sqlite'])
  await expect(work(() => Promise.reject(new Error('no luck')))).rejects.toThrow('no luck')
  expect(await readdir(data)).toEqual(['platform.sqlite'])
})
