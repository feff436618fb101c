import { expect, onTestFinished, test } from 'vitest'
import { secret } from '../../src/core/secret.ts'
import { openPlatform } from '../../src/daemon/platform.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { standingClock } from '../support/standing-clock.ts'
import { addressOf, openTestStore } from '../support/stores.ts'

const MINUTE = 60_000
const ENV = { LOG_LEVEL: 'warn', EMAIL_DISPATCH_SECRET: 'a-dispatch-secret-of-thirty-two-b' }

async function replicas() {
  const address = await addressOf('postgres')
  const url = address?.kind === 'postgres' ? address.url.reveal() : ''
  const { clock, pass } = standingClock(Date.parse('2026-11-25T06:00:00Z'))
  const replica = (name: string, env: Record<string, string>, platform = learning) => {
    const it = openPlatform({
      env: { STORE_URL: url, ...ENV, ...env },
      platform,
      clock,
      sources: {
        replica: name,
        files: [],
        sourceOf: (variable) => (variable === 'NEXT_PUBLIC_SITE_URL' ? 'default' : 'environment'),
      },
    })
    onTestFinished(() => it.close())
    return async (deep = true) => (await it.health('web', { deep })).probes.configuration
  }
  return { replica, pass, store: () => openTestStore({ kind: 'postgres', url: secret(url) }) }
}

test('replicas of one PostgreSQL are degraded while they run with different values, and for three minutes after', async () => {
  const { replica, pass, store } = await replicas()
  const [first, second] = [
    replica('a', { BUILD_STAMP: '1', NEXT_PUBLIC_SITE_URL: 'http://127.0.0.1:1' }),
    replica('b', { BUILD_STAMP: '2', NEXT_PUBLIC_SITE_URL: 'http://127.0.0.1:2' }),
  ]
  expect(await first(false)).toEqual({ state: 'ok', checked: false })
  expect([await first(), await second(), await first()]).toMatchObject(Array(3).fill({ state: 'ok' }))
  // What web does not read is not what visitors get.
  expect(await replica('d', { COURSE_INDEX_PATH: './index.json' })()).toMatchObject({ state: 'ok' })
  const other = replica('c', { RATE_LIMIT_PER_MINUTE: '71' })
  expect(await other()).toMatchObject({
    state: 'degraded',
    reason: 'replicas run with different configurations: platformctl env verify names the variables',
  })
  expect(await first()).toMatchObject({ state: 'degraded' })
  pass(2 * MINUTE)
  expect(await first()).toMatchObject({ state: 'degraded' })
  pass(MINUTE)
  expect(await first()).toMatchObject({ state: 'ok' })
  const kept = await (await store()).getOrCreate('configurations', () => '')
  expect(Object.keys(JSON.parse(kept) as object)).toEqual(['a'])
  for (const value of ['warn', ENV.EMAIL_DISPATCH_SECRET]) expect(kept).not.toContain(value)
})

test('a replica that is restarted with other values takes the place of the one before it', async () => {
  const { replica } = await replicas()
  expect(await replica('a', {})()).toMatchObject({ state: 'ok' })
  expect(await replica('a', { RATE_LIMIT_PER_MINUTE: '71' })()).toMatchObject({ state: 'ok' })
})

test('replicas with different definitions disagree, and a platform without PostgreSQL has no such probe', async () => {
  const { replica } = await replicas()
  const written = (fingerprint: string) => ({
    ...learning,
    definition: { file: '/a', fingerprint: () => fingerprint, lessons: () => '', assets: [] },
  })
  await replica('a', {}, written('x'))()
  expect(await replica('b', {}, written('y'))()).toMatchObject({ state: 'degraded' })
  for (const platform of [learning, resolvePlatform({ preset: 'base' }, { folder: '/' })]) {
    const alone = openPlatform({ env: {}, platform })
    onTestFinished(() => alone.close())
    expect((await alone.health('web')).probes).not.toHaveProperty('configuration')
  }
})
