import { expect, test } from 'vitest'
import { readSettings } from '../../src/core/env/settings.ts'
import type { ProbeParts } from '../../src/core/health/probe.ts'
import { systemClock } from '../../src/core/host.ts'
import type { PlatformDefinition, ProbeInput } from '../../src/platform/definition.ts'
import { ownProbe } from '../../src/platform/own-probe.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'

const platform = resolvePlatform(
  {
    preset: 'base',
    groups: {
      kiln: {
        unlocks: 'firings',
        absent: 'no firings',
        variables: {
          KILN_URL: { kind: 'text' },
          KILN_KEY: { kind: 'text' },
          KILN_SECRET: { kind: 'text' },
          KILN_TOKEN: { kind: 'secret' },
          KILN_TOKENS: { kind: 'secret' },
          KILN_HOOK: { kind: 'url', secret: true },
        },
        rules: [{ allOrNone: ['KILN_KEY', 'KILN_SECRET'] }],
      },
    },
  } satisfies PlatformDefinition,
  { folder: '/' },
)

/** The probe's result in an environment. */
async function found(
  probe: Omit<ProbeInput, 'service'>,
  { env = {}, deep = true }: { env?: Record<string, string>; deep?: boolean } = {},
) {
  const settings = readSettings(platform, env)
  // Probes of definitions take settings and the network, and nothing else of the process.
  const parts = { settings, clock: systemClock } as unknown as ProbeParts
  const run = ownProbe('kiln', { service: 'web', ...probe }).open(parts)
  return run({ deep, signal: new AbortController().signal })
}

test.each<[given: unknown, result: object]>([
  [{ state: 'ok' }, { state: 'ok', checked: true }],
  [
    { state: 'degraded', reason: 'warm' },
    { state: 'degraded', checked: true, reason: 'warm' },
  ],
  [
    { state: 'failing', reason: 'cold' },
    { state: 'failing', checked: true, reason: 'cold' },
  ],
  [{ state: 'skipped' }, { state: 'skipped', checked: false }],
  [
    { state: 'ok', reason: 3 },
    { state: 'ok', checked: true },
  ],
  [
    { state: 'ok', reason: 'x'.repeat(201) },
    { state: 'ok', checked: true, reason: 'x'.repeat(200) },
  ],
])('a check that gives %j is taken by its word', async (given, result) => {
  expect(await found({ check: async () => given as never })).toEqual(result)
})

test('the reason of a check is shown without secrets and addresses', async () => {
  const reason =
    'ada@example.com got 401 from http://10.1.2.3/?key=1 with kiln-key-of-1999, list-2 and eyJhbGciOi.x by https://hook.example/4f1a'
  const env = {
    KILN_TOKEN: 'kiln-key-of-1999',
    KILN_TOKENS: 'list-one,list-2 ',
    KILN_HOOK: 'https://hook.example/4f1a',
  }
  const result = await found({ check: async () => ({ state: 'failing', reason }) }, { env })
  expect(result.reason).toBe(
    '[address] got 401 from http://[address]/ with [secret], [secret] and [secret] by [secret]',
  )
  // Cut first, the end of a secret would be missing, and nothing would recognize the rest.
  const late = `${'x'.repeat(190)} ${env.KILN_TOKEN}`
  const cut = await found({ check: async () => ({ state: 'failing', reason: late }) }, { env })
  expect(cut.reason).not.toContain('kiln')
})

test.each([[undefined], [{}], [{ state: 'OK' }], [{ state: 'toString' }]])(
  'a check that gives %j fails',
  async (given) => {
    expect(await found({ check: async () => given as never })).toMatchObject({
      state: 'failing',
      reason: 'its check gave no state',
    })
  },
)

test('a check is called with the values of the environment, once its group is configured', async () => {
  const calls: (string | undefined)[] = []
  const probe: Omit<ProbeInput, 'service'> = {
    group: 'kiln',
    check: async ({ value, deep }) => {
      calls.push(value('KILN_URL'), String(deep))
      return { state: 'ok' }
    },
  }
  expect(await found(probe)).toMatchObject({ state: 'skipped' })
  expect(await found(probe, { env: { KILN_KEY: 'a' } })).toMatchObject({ state: 'degraded' })
  expect(calls).toEqual([])
  expect(await found(probe, { env: { KILN_URL: 'a' } })).toMatchObject({ state: 'ok' })
  expect(calls).toEqual(['a', 'true'])
})

test('a target waits for its group and its variable, and a shallow check opens no connection', async () => {
  const probe = { group: 'kiln', tcp: 'KILN_URL' }
  expect(await found(probe)).toMatchObject({ state: 'skipped' })
  expect(await found(probe, { env: { KILN_KEY: 'a' } })).toMatchObject({ state: 'degraded' })
  for (const deep of [true, false])
    expect(await found(probe, { env: { KILN_KEY: 'a', KILN_SECRET: 'b' }, deep })).toMatchObject({
      state: 'skipped',
      reason: 'its address is not set',
    })
  expect(await found({ tcp: '127.0.0.1:1' }, { deep: false })).toMatchObject({ state: 'ok', checked: false })
  await expect(found({ tcp: '127.0.0.1:1' })).rejects.toMatchObject({ code: 'connect_refused' })
})

test('the code of an error in a check of the definition is no cause of ours', async () => {
  const fault = Object.assign(new Error('no such list'), { code: 'not_found' })
  const check = () => Promise.reject(fault)
  await expect(found({ check })).rejects.not.toHaveProperty('code')
})

test('a target in a variable with a name in lower case is looked up too', async () => {
  const reason = 'its address is not set'
  for (const tcp of ['kiln_queue', '_KILN_QUEUE'])
    expect(await found({ tcp })).toEqual({ state: 'skipped', checked: false, reason })
})

test('keeps the definition’s fields of a probe, and no others', () => {
  const open = expect.any(Function)
  expect(ownProbe('kiln', { service: 'web', check: async () => ({ state: 'ok' }) })).toEqual({
    name: 'kiln',
    service: 'web',
    hasDeep: true,
    open,
  })
  const texts = { group: 'kiln', label: 'Kiln', optional: false, meaning: 'no firings' }
  expect(ownProbe('kiln', { service: 'web', tcp: 'KILN_URL', deadline: '1500ms', ...texts })).toEqual({
    name: 'kiln',
    service: 'web',
    hasDeep: true,
    ...texts,
    deadlineMs: 1500,
    target: open,
    variable: 'KILN_URL',
    open,
  })
  const target = (tcp: string, env: Record<string, string>) =>
    ownProbe('kiln', { service: 'web', tcp }).target?.(readSettings(platform, env))
  expect(target('KILN_URL', { KILN_URL: 'a:1' })).toBe('a:1')
  expect(target('KILN_URL', {})).toBeUndefined()
  expect(target('kiln.internal:1', {})).toBe('kiln.internal:1')
})
