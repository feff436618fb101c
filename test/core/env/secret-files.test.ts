import { readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { createContract } from '../../../src/core/env/contract.ts'
import { readSecretFiles } from '../../../src/core/env/secret-files.ts'
import { emptyFolder } from '../../support/folder.ts'

const contract = createContract({
  services: ['web'],
  groups: {
    kiln: {
      services: 'all',
      unlocks: 'kiln bookings',
      absent: 'bookings are shown as unavailable',
      variables: {
        KILN_KEY: { kind: 'secret' },
        KILN_HOOK: { kind: 'url', secret: true },
        KILN_REGION: { kind: 'text' },
      },
    },
  },
})

async function read(content: string | Uint8Array, env: Record<string, string> = { KILN_KEY_FILE: 'secret' }) {
  const folder = await emptyFolder()
  writeFileSync(path.join(folder, 'secret'), content)
  return readSecretFiles(contract, env, folder)
}

test('a secret of exactly 64 KB is read whole, and one byte more is refused', async () => {
  const largest = 'x'.repeat(64 * 1024)
  expect(await read(largest)).toEqual({
    env: { KILN_KEY: largest },
    findings: [],
    files: [expect.stringMatching(/\/secret$/)],
  })
  const { env, findings } = await read(`${largest}x`)
  expect(env).toEqual({ KILN_KEY_FILE: 'secret' })
  expect(findings).toMatchObject([
    {
      id: 'unreadable-secret-file',
      severity: 'error',
      present: ['KILN_KEY_FILE'],
      cause: 'secret, which KILN_KEY_FILE names, is larger than 64 KB.',
    },
  ])
})

test('does not name a missing file unless it looks like a path, as it may be the secret itself', async () => {
  for (const [file, named] of [
    ['sk-live-canary', 'The file'],
    ['/9jcanary/4AAQSkZJRg+gAAQ==', 'The file'],
    ['/run/secrets/kiln-key', '/run/secrets/kiln-key'],
  ] as const)
    expect((await read('', { KILN_KEY_FILE: file })).findings[0]?.cause).toBe(
      `${named}, which KILN_KEY_FILE names, does not exist.`,
    )
})

test('a file of white space holds no secret', async () => {
  for (const content of ['', '\n', ' \t\n'])
    expect((await read(content)).findings).toMatchObject([{ cause: expect.stringMatching(/is empty\.$/) }])
})

test('every file is closed, whether it could be read or not', async () => {
  const open = () => readdirSync('/proc/self/fd').length
  if (process.platform !== 'linux') return
  const folder = await emptyFolder()
  writeFileSync(path.join(folder, 'good'), 'secret')
  writeFileSync(path.join(folder, 'empty'), '')
  const before = open()
  for (const file of ['good', 'empty', '.', 'missing'])
    readSecretFiles(contract, { KILN_KEY_FILE: file }, folder)
  expect(open()).toBe(before)
})

test('only secrets are read from files, and what is not read stays as it is', async () => {
  const env = { KILN_REGION_FILE: 'secret', OTHER: 'x' }
  expect(await read('eu', env)).toEqual({ env, findings: [], files: [] })
  // By their kind, or because their variable says so.
  for (const name of ['KILN_KEY', 'KILN_HOOK'])
    expect((await read('key', { ...env, [`${name}_FILE`]: 'secret' })).env).toEqual({ ...env, [name]: 'key' })
})

test.each(['', ' \t'])(
  'a secret that is there but blank (%j) is absent, so its file counts',
  async (blank) => {
    const { env, findings } = await read('key', { KILN_KEY: blank, KILN_KEY_FILE: 'secret' })
    expect({ env, findings }).toEqual({ env: { KILN_KEY: 'key' }, findings: [] })
  },
)

test('a fault of a secret file concerns the group and the readers of its secret', async () => {
  const common = { severity: 'error', services: ['web'], group: 'kiln', missing: [] }
  const missing = await read('', { KILN_KEY_FILE: 'no/such' })
  expect(missing.findings).toEqual([
    {
      ...common,
      id: 'unreadable-secret-file',
      present: ['KILN_KEY_FILE'],
      cause: 'The file, which KILN_KEY_FILE names, does not exist.',
      fix: 'Set KILN_KEY_FILE to the path of a file that holds the secret, or remove it.',
    },
  ])
  const twice = await read('b', { KILN_KEY_FILE: 'secret', KILN_KEY: 'a' })
  expect(twice).toEqual({
    env: { KILN_KEY_FILE: 'secret', KILN_KEY: 'a' },
    files: [],
    findings: [
      {
        ...common,
        id: 'secret-set-twice',
        present: ['KILN_KEY', 'KILN_KEY_FILE'],
        cause: 'KILN_KEY and KILN_KEY_FILE are both set, and they may hold different secrets.',
        fix: 'Keep one of the two.',
      },
    ],
  })
})
