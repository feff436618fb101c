import { expect, test } from 'vitest'
import { readSettings } from '../../src/core/env/settings.ts'
import type { Hold } from '../../src/core/mail/holds.ts'
import type { Store } from '../../src/core/store/store.ts'
import { type ConditionsOptions, createConditions } from '../../src/daemon/conditions.ts'
import { learning } from '../../src/presets/learning/platform.ts'

const NOW = Date.UTC(2026, 10, 22)
const DAY = 24 * 60 * 60 * 1000
const MAIL = {
  MAILER_API_KEY: 'mailer-key-value',
  MAILER_FROM: 'a@example.com',
  MAILER_API_URL: 'https://mail.example',
}

/** What a daemon notes about itself: by condition, its state and reason. */
async function noted(
  env: Record<string, string>,
  {
    persistent = true,
    holds = [],
    ...parts
  }: Partial<ConditionsOptions> & { readonly persistent?: boolean; readonly holds?: readonly Hold[] } = {},
) {
  const asked: unknown[] = []
  const course = {
    listDue: async (...input: unknown[]) => {
      asked.push(input)
      return [{ nextAttemptAt: NOW - DAY }]
    },
    stalledSince: async () => undefined,
  } as unknown as Store['course']
  const sending = { holds: async () => holds } as unknown as Store['sending']
  const report = await createConditions({
    settings: readSettings(learning, env),
    store: { persistent, course, sending },
    dataFolder: '/data',
    certificates: () => [],
    services: ['web'],
    neighbours: new Map(),
    mailRefused: () => undefined,
    clock: { now: () => NOW },
    freeSpace: async () => ({ freeBytes: 50e9, bytes: 100e9 }),
    ...parts,
  })()
  const failing = Object.entries(report.probes).flatMap(([name, result]) =>
    result?.state === 'failing' ? [name] : [],
  )
  return { failing, names: Object.keys(report.probes), asked }
}

test('lessons can only be late where mail is configured and the store keeps them', async () => {
  expect(await noted(MAIL)).toMatchObject({ failing: ['lessons_late'], asked: [[NOW, 1]] })
  expect(await noted({})).toMatchObject({ failing: [], asked: [] })
  const holds = [{ stream: 'mail', at: NOW, reason: 'wrong prices' }] as const
  expect(await noted({}, { holds })).toMatchObject({ failing: ['mail_paused'] })
  expect(await noted(MAIL, { persistent: false })).toMatchObject({ failing: [], asked: [] })
})

test('three webhooks that are refused within ten minutes are reported, until ten minutes have passed without', async () => {
  let [now, refused] = [NOW, 0]
  const looks = createConditions({
    settings: readSettings(learning, {}),
    store: { persistent: false } as Store,
    dataFolder: '/data',
    certificates: () => [],
    services: ['web'],
    neighbours: new Map(),
    mailRefused: () => undefined,
    feedbackRefused: () => refused,
    clock: { now: () => now },
    freeSpace: async () => ({ freeBytes: 50e9, bytes: 100e9 }),
  })
  const reason = async (minutes: number, total: number) => {
    now = NOW + minutes * 60_000
    refused = total
    return (await looks()).probes.feedback_refused?.reason
  }
  expect([await reason(1, 2), await reason(6, 2)]).toEqual([undefined, undefined])
  expect(await reason(9, 3)).toBe('3 webhooks were refused within ten minutes: not signed by the provider')
  expect([await reason(12, 3), await reason(23, 3)]).toEqual([undefined, undefined])
  expect(await reason(24, 6)).toContain('3 webhooks')
})

test('a store or a disk that cannot be asked leaves its condition out', async () => {
  const broken = {
    persistent: true,
    course: { listDue: () => Promise.reject(new Error('canary')) } as unknown as Store['course'],
    sending: { holds: () => Promise.reject(new Error('canary')) } as unknown as Store['sending'],
  }
  const { names } = await noted(MAIL, {
    store: broken,
    freeSpace: () => Promise.reject(new Error('canary')),
  } as Partial<ConditionsOptions>)
  expect(names).not.toContain('lessons_late')
  expect(names).not.toContain('courses_paused')
  expect(names).not.toContain('disk_nearly_full')
  expect(names).toContain('certificate_expiring')
})

test('courses that the breaker paused are reported, and their lessons are not late', async () => {
  expect(
    await noted(MAIL, {
      holds: [{ stream: 'course', at: NOW, reason: 'too many complaints' }],
    }),
  ).toMatchObject({
    failing: ['courses_paused'],
  })
})

test('each condition is that of its part', async () => {
  expect((await noted({}, { mailRefused: () => 'the key is refused' })).failing).toEqual(['mail_refused'])
  expect((await noted({}, { freeSpace: async () => ({ freeBytes: 1e8, bytes: 1e11 }) })).failing).toEqual([
    'disk_nearly_full',
  ])
  expect((await noted({ MAILER_API_KEY: 'mailer-key-value' })).failing).toEqual(['half_configured'])
  const certificate = { variable: 'API_URL', validFrom: NOW - DAY, validTo: NOW - 1, fault: undefined }
  expect((await noted({}, { certificates: () => [certificate] })).failing).toEqual(['certificate_expiring'])
})

test('the builds of this process and of its neighbors must be one', async () => {
  const neighbours = new Map([['api', 'build-2']])
  expect((await noted({ BUILD_STAMP: 'build-1' }, { neighbours })).failing).toEqual(['build_skew'])
  expect((await noted({ BUILD_STAMP: 'build-2' }, { neighbours })).failing).toEqual([])
})

test('the free space of a real folder is read', async () => {
  expect((await noted({}, { dataFolder: '.', freeSpace: undefined })).names).toContain('disk_nearly_full')
  expect((await noted({}, { dataFolder: './none', freeSpace: undefined })).names).not.toContain(
    'disk_nearly_full',
  )
})
