import { expect, test } from 'vitest'
import { folderWith } from '../support/folder.ts'
import { run } from '../support/run.ts'

async function preflight(
  file: string | Uint8Array | undefined,
  args: string[] = [],
  env: Record<string, string> = {},
) {
  const cwd = await folderWith(file === undefined ? {} : { 'a.env': file })
  return run(['preflight', ...(file === undefined ? [] : ['--env-file', 'a.env']), ...args], { cwd, env })
}

test('an empty environment and an empty file pass', async () => {
  expect(await preflight(undefined)).toMatchObject({ code: 0, stderr: '' })
  expect(await preflight('')).toMatchObject({ code: 0, stderr: '' })
})

test('half-configuration fails, names what is present and missing, and points at the line', async () => {
  const { code, stdout } = await preflight('# limits\nSHAREDSTORE_REST_URL=https://limits.example.com\n')
  expect(code).toBe(1)
  expect(stdout).toContain('sharedstore-pair  a.env:2:1  web, api\n     2 │ SHAREDSTORE_REST_URL=••••\n')
  expect(stdout).toMatch(/present +SHAREDSTORE_REST_URL\n +missing +SHAREDSTORE_REST_TOKEN/)
  expect(stdout).toMatch(/✖ failed: 1 error, 0 warnings; 0 of \d+ groups configured, 1 half-configured\n$/)
})

test('errors come first, then the groups, with those that are absent in one line, then warnings', async () => {
  const { stdout } = await preflight('SHAREDSTORE_REST_URL=https://limits.example.com\nLOG_LEVEL=loud\n')
  const [error, half, absent, warning, verdict] = [
    stdout.search(/^✖ error sharedstore-pair/m),
    stdout.search(/^◐ sharedstore +half-configured/m),
    stdout.search(/^○ absent +site, store, datastore, payments, /m),
    stdout.search(/^▲ warning malformed-value/m),
    stdout.search(/^✖ failed/m),
  ]
  expect([error, half, absent, warning, verdict]).toEqual(
    [error, half, absent, warning, verdict].toSorted((a, b) => a - b),
  )
  expect(error).toBeGreaterThan(0)
  expect(stdout.match(/^. absent/gm)).toHaveLength(1)
})

test('warnings pass, and fail with --strict', async () => {
  const file = 'RATE_LIMIT_PER_MINUTE=many\n'
  for (const [code, verdict, ...args] of [
    [0, '✔ passed'],
    [1, '✖ failed', '--strict'],
  ] as const) {
    const stdout = expect.stringContaining(`\n\n${verdict}: 0 errors, 1 warning; `)
    expect(await preflight(file, args)).toMatchObject({ code, stdout })
  }
})

test('JSON is the only thing on standard output, and has a version', async () => {
  const { code, stdout, stderr } = await preflight('MAILER_API_KEY=some-key-value', ['--format', 'json'])
  expect(code).toBe(1)
  expect(JSON.parse(stdout)).toMatchObject({ version: 1, ok: false, services: ['web', 'api', 'agent'] })
  expect(stderr).toBe('')
})

test('one service at a time can be asked for', async () => {
  const file = 'HARDWARE_A_TOKEN=token-value\n'
  expect((await preflight(file, ['--service', 'web'])).code).toBe(0)
  expect((await preflight(file, ['--service', 'web,api'])).code).toBe(1)
  expect(await preflight(file, ['--service', 'database'])).toMatchObject({ code: 2, stdout: '' })
})

test('a finding of a file names those of the requested services that read its variables', async () => {
  const services = async (file: string, args: string[]) => {
    const { findings } = JSON.parse((await preflight(file, [...args, '--format', 'json'])).stdout) as {
      findings: { severity: string; services: string[] }[]
    }
    return findings.filter(({ severity }) => severity === 'warning').map((finding) => finding.services)
  }
  const file = 'API_URL="https://api.example.com" \nAPI_URL=https://api.example.com\n'
  expect(await services(file, [])).toEqual([['web', 'agent']])
  expect(await services('not an assignment\n', ['--service', 'api', '--readers', 'node'])).toEqual([['api']])
})

test('on a terminal of 40 columns no line is longer, and a group’s meaning is below it', async () => {
  const { stdout } = await run(['preflight'], {
    columns: 40,
    env: { SHAREDSTORE_REST_URL: 'https://a.example' },
  })
  expect(stdout).toMatch(
    /\n◐ sharedstore {2}half-configured\n {4}rate limits count in this process\n {4}only\n○ absent {2}site, store, datastore,/,
  )
  expect(stdout.split('\n\n')[2]?.split('\n')).toEqual(
    expect.not.arrayContaining([expect.stringMatching(/.{41}/)]),
  )
})
