import { expect, test } from 'vitest'
import { readSettings } from '../../src/core/env/settings.ts'
import { systemClock } from '../../src/core/host.ts'
import { CONDITIONS } from '../../src/core/incidents/advice.ts'
import type { MessageRecord } from '../../src/core/incidents/incident.ts'
import type { Hold, StreamName } from '../../src/core/mail/holds.ts'
import type { Store } from '../../src/core/store/store.ts'
import { openMetrics } from '../../src/daemon/metrics/metrics.ts'
import { type ConditionsOptions, createConditions } from '../../src/daemon/watch.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { newStoreUrl, opened } from '../support/opened.ts'
import { addressOf, openTestStore } from '../support/stores.ts'

const NOW = Date.UTC(2026, 10, 22)
const HOUR = 60 * 60 * 1000
const DAY = 24 * HOUR
const MAIL = {
  MAILER_API_KEY: 'mailer-key-value',
  MAILER_FROM: 'a@example.com',
  MAILER_API_URL: 'https://mail.example',
}

/** The looks of a web service at itself, on a disk with room and a store that keeps nothing. */
const conditionsOf = (parts: Partial<ConditionsOptions>, now = () => NOW) =>
  createConditions(
    { now },
    {
      settings: readSettings(learning, {}),
      store: { persistent: false } as Store,
      dataFolder: '/data',
      known: () => ({ certificates: [], mailRefused: undefined }),
      services: ['web'],
      neighbours: new Map(),
      channels: [],
      freeSpace: async () => ({ freeBytes: 50e9, bytes: 100e9 }),
      ...parts,
    },
  )

/** What a daemon notes about itself: by condition, its state and reason. */
async function noted(
  env: Record<string, string>,
  {
    persistent = true,
    holds = [],
    known = {},
    told = [],
    stalledAt,
    sentAt,
    undecided = 0,
    ...parts
  }: Partial<Omit<ConditionsOptions, 'known'>> & {
    readonly persistent?: boolean
    readonly holds?: readonly Hold[]
    readonly told?: readonly MessageRecord[]
    readonly stalledAt?: number
    readonly sentAt?: number
    readonly undecided?: number
    readonly known?: Partial<ReturnType<ConditionsOptions['known']>>
  } = {},
) {
  const asked: unknown[] = []
  const course = {
    late: async (input: unknown) => {
      asked.push(input)
      return { at: NOW - DAY }
    },
    lastSentAt: async () => sentAt,
    undecided: async () => undecided,
  } as unknown as Store['course']
  const incidents = {
    unfinished: async () => ({ incidents: [], messages: told }),
  } as unknown as Store['incidents']
  const sending = {
    holds: async () => holds,
    lastMail: async () => ({}),
    stalledSince: async () => stalledAt,
  } as unknown as Store['sending']
  const report = await conditionsOf({
    settings: readSettings(learning, env),
    store: { persistent, course, incidents, sending },
    known: () => ({ certificates: [], mailRefused: undefined, ...known }),
    channels: [{ name: 'webhook' }],
    ...parts,
  })()
  const failing = Object.entries(report.probes).flatMap(([name, result]) =>
    result?.state === 'failing' ? [name] : [],
  )
  const reasons = Object.fromEntries(
    Object.entries(report.probes).map(([name, { reason }]) => [name, reason] as const),
  )
  return { failing, reasons, names: Object.keys(report.probes), asked }
}

test('lessons can only be late where the store keeps them, and mail is configured or sent some before', async () => {
  expect(await noted(MAIL)).toMatchObject({
    failing: ['lessons_late'],
    asked: [{ now: NOW, before: NOW - HOUR }],
  })
  expect(await noted({})).toMatchObject({ failing: [], asked: [] })
  expect((await noted({}, { sentAt: NOW - DAY })).reasons.lessons_late).toBe(
    'a lesson has been due since 2026-11-21 00:00 UTC and has not been sent: mail is not configured',
  )
  const holds = [{ stream: 'mail', at: NOW, reason: 'wrong prices' }] as const
  expect(await noted({}, { holds })).toMatchObject({ failing: ['mail_paused'] })
  expect(await noted(MAIL, { persistent: false })).toMatchObject({ failing: [], asked: [] })
})

test('lessons that were given up are reported, also while courses are paused or mail is not configured', async () => {
  const holds = [{ stream: 'course', at: NOW, reason: 'wrong prices' }] as const
  expect(await noted({}, { undecided: 1, holds })).toMatchObject({
    failing: ['lessons_undecided', 'courses_paused'],
    reasons: { lessons_undecided: 'given up: 1 lesson' },
  })
  expect((await noted(MAIL, { undecided: 2 })).reasons.lessons_undecided).toBe('given up: 2 lessons')
  expect((await noted({}, { undecided: 2, persistent: false })).names).not.toContain('lessons_undecided')
  expect((await noted({})).names).toContain('lessons_undecided')
})

test('mail that nobody takes is reported however little of it there is, also while other mail is paused', async () => {
  const parts = { stalledAt: NOW - DAY, mailFailure: () => ({ reason: 'busy (503)', at: NOW }) }
  expect((await noted(MAIL, parts)).reasons.mail_failing).toBe(
    'a message has waited since 2026-11-21 00:00 UTC, and no mail of its stream has been sent since: busy (503)',
  )
  const counted = { ...parts, outcomes: async () => ({ mail_failing: '12 of 20 lessons failed' }) }
  expect((await noted(MAIL, counted)).reasons.mail_failing).toBe('12 of 20 lessons failed: busy (503)')
  const held = (stream: StreamName) => noted(MAIL, { ...parts, holds: [{ stream, at: NOW, reason: 'x' }] })
  for (const stream of ['course', 'notice'] as const)
    expect((await held(stream)).failing).toContain('mail_failing')
  expect((await noted({}, parts)).failing).not.toContain('mail_failing')
})

/** Alerts of a daemon whose counters are set by hand; gives the reasons a number of minutes after its start. */
function counting() {
  let now = NOW
  // The wall clock is set back, again and again: no alert counts its minutes by it.
  const clock = { ...systemClock, now: () => NOW - now, monotonic: () => now }
  const metrics = openMetrics(clock, {
    build: undefined,
    counting: () => 'local',
    mailConfigured: true,
    feedbackProvider: 'standard',
    analyticsBytes: async () => undefined,
    knownStore: async () => undefined,
  })
  const mailFailure = () => ({ reason: 'the mail server cannot take the message now (452)', at: NOW })
  const looks = conditionsOf({ outcomes: metrics.watchOutcomes(), mailFailure }, () => now)
  const times = (count: number, work: () => void) => Array.from({ length: count }).forEach(work)
  return {
    feedbackRefused: (count: number) =>
      times(count, () => metrics.series.platformctl_feedback_webhooks_total.inc({ result: 'refused' })),
    answered: (
      route: string,
      status: number,
      count: number,
      { isForged, health }: { readonly isForged?: true; readonly health?: string } = {},
    ) =>
      times(count, () =>
        metrics.answered({ service: 'web', method: 'POST', route, status, durationMs: 1, isForged }, health),
      ),
    storeBusy: (count: number) => times(count, () => metrics.series.platformctl_pool_exhausted_total.inc()),
    busy: metrics.storeBusyReason,
    mail: (stream: StreamName, outcome: 'sent' | 'failed' | 'unknown', count: number) =>
      times(count, () => metrics.series.platformctl_messages_total.inc({ stream, outcome })),
    async found(minutes: number, names: readonly string[]) {
      now = NOW + minutes * 60_000
      const { probes } = await looks()
      return names.filter((name) => Object.keys(probes).includes(name))
    },
    async reasons(minutes: number, failing = 'none') {
      now = NOW + minutes * 60_000
      const probes = { [failing]: { state: 'failing', checked: true } } as const
      return Object.fromEntries(
        Object.entries((await looks([{ service: 'web', probes }])).probes).flatMap(
          ([name, { state, reason }]) => (state === 'failing' ? [[name, reason]] : []),
        ),
      )
    },
  }
}

test('three webhooks that are refused within ten minutes are reported, until ten minutes have passed without', async () => {
  const it = counting()
  it.feedbackRefused(2)
  expect([await it.reasons(1), await it.reasons(6)]).toEqual([{}, {}])
  it.feedbackRefused(1)
  expect(await it.reasons(9)).toEqual({
    feedback_refused: 'within ten minutes 3 webhooks were refused: wrong secret or clock',
  })
  expect([await it.reasons(12), await it.reasons(23)]).toEqual([{}, {}])
  it.feedbackRefused(3)
  expect(await it.reasons(24)).toHaveProperty('feedback_refused')
})

test('for ten minutes after a start nobody knows that nothing failed for ten minutes', async () => {
  const it = counting()
  const outcomes = ['mail_failing', 'requests_failing', 'calls_refused', 'feedback_refused', 'store_busy']
  expect([await it.found(1, outcomes), await it.found(9, outcomes)]).toEqual([[], []])
  it.feedbackRefused(3)
  expect(await it.found(9.5, outcomes)).toEqual(['feedback_refused'])
  expect(await it.found(10, outcomes)).toEqual(outcomes)
})

test('requests that fail while the store does are not reported once it works again, later ones are', async () => {
  const it = counting()
  it.answered('/api/email/subscribe', 503, 14)
  expect(await it.reasons(1, 'store')).toHaveProperty('requests_failing')
  // Between the last look at a store that fails and its recovery.
  it.answered('/api/email/subscribe', 503, 14)
  expect([await it.reasons(2), await it.reasons(3)]).toEqual([{}, {}])
  it.answered('/api/email/subscribe', 503, 14)
  expect(await it.reasons(4)).toEqual({
    requests_failing:
      'within ten minutes 14 of 14 requests to /api/email/subscribe were answered with an error (5xx)',
  })
  // A refused key explains the mail that fails, and none of the requests.
  it.mail('course', 'failed', 10)
  expect(await it.reasons(5, 'mail_refused')).toHaveProperty('mail_failing')
  expect(Object.keys(await it.reasons(6))).toEqual(['requests_failing'])
  // The same long after the start.
  expect([await it.reasons(30), await it.reasons(31)]).toEqual([{}, {}])
  it.answered('/api/email/subscribe', 503, 14)
  expect(await it.reasons(32, 'store')).toHaveProperty('requests_failing')
  expect(await it.reasons(33)).toEqual({})
})

test('a route whose answers are errors is reported, although every probe is well', async () => {
  const it = counting()
  it.answered('/api/email/subscribe', 200, 4)
  it.answered('/api/email/subscribe', 503, 4)
  for (const health of ['/api/health', '/up']) it.answered(health, 503, 100, { health })
  it.answered('/api/insights', 500, 5)
  it.answered('/api/insights', 200, 95)
  expect(await it.reasons(1)).toEqual({})
  it.answered('/api/email/subscribe', 503, 8)
  expect(await it.reasons(2)).toEqual({
    requests_failing:
      'within ten minutes 12 of 16 requests to /api/email/subscribe were answered with an error (5xx)',
  })
  expect(await it.reasons(13)).toEqual({})
  // Too few for an alert, whose end must not say that there are none.
  it.answered('/api/email/subscribe', 503, 4)
  expect(await it.reasons(14)).toEqual({})
  for (const name of ['mail_failing', 'requests_failing', 'calls_refused'] as const)
    expect(CONDITIONS[name].words?.ended).toMatch(/ rarely (failed|refused) for ten minutes$/)
})

test('unsubscriptions and payments that are refused are reported, but not forged ones, feedback, or what anybody asks for that is not there', async () => {
  const it = counting()
  it.answered('/api/email/unsubscribe', 405, 50)
  it.answered('/api/email/feedback/:provider', 400, 50)
  it.answered('/api/payments/webhook', 400, 50, { isForged: true })
  it.answered('/api/payments/webhook', 503, 50, { isForged: true })
  it.answered('/api/payments/webhook', 400, 3)
  it.answered('/api/payments/webhook', 200, 3)
  expect(await it.reasons(1)).toEqual({})
  it.answered('/api/payments/webhook', 401, 1)
  it.answered('/api/email/unsubscribe', 429, 60)
  expect(await it.reasons(2)).toEqual({
    calls_refused:
      'within ten minutes 4 of 7 requests to /api/payments/webhook were refused (4xx or 5xx); 60 of 60 requests to /api/email/unsubscribe were refused (4xx or 5xx)',
  })
})

test('one kind of mail that often fails is reported, however much of another goes out', async () => {
  const it = counting()
  it.mail('course', 'sent', 1000)
  it.mail('course', 'failed', 20)
  it.mail('sign-in', 'failed', 9)
  expect(await it.reasons(1)).toEqual({})
  it.mail('sign-in', 'unknown', 1)
  it.mail('sign-in', 'sent', 30)
  expect(await it.reasons(2)).toEqual({
    mail_failing:
      'within ten minutes 10 of 40 attempts to send sign-in mail failed: the mail server cannot take the message now (452)',
  })
})

test('requests that get no connection of the store are reported and degrade its health, until ten minutes have passed without', async () => {
  const it = counting()
  it.storeBusy(2)
  expect([await it.reasons(1), it.busy()]).toEqual([{}, undefined])
  it.storeBusy(1)
  const reason = 'within ten minutes 3 requests got no connection of the store in time'
  expect([await it.reasons(2), it.busy()]).toEqual([{ store_busy: reason }, reason])
  expect([await it.reasons(13), it.busy()]).toEqual([{}, undefined])
  const { platform } = opened({ env: { STORE_URL: await newStoreUrl() } })
  platform.metrics.series.platformctl_pool_exhausted_total.inc(3)
  await platform.metrics.watchOutcomes()()
  expect((await platform.health('web')).probes.store).toMatchObject({ state: 'degraded', reason })
})

test.each([
  [30_000, undefined],
  [30_600, '31 seconds ahead of that of most servers it asks'],
  [-90_000, '90 seconds behind that of most servers it asks'],
])('a clock that is %d ms ahead of most servers is reported as %j', async (aheadMs, reason) => {
  expect((await noted({}, { clockAheadMs: () => aheadMs })).reasons.clock_wrong).toBe(reason)
})

test('where there is a server of the store, its clock counts and no other', async () => {
  const storeTime = async () => NOW - 40_000
  const parts = { storeTime, clockAheadMs: () => 0 }
  expect((await noted({}, parts)).reasons.clock_wrong).toBe('40 seconds ahead of the store’s')
  const away = () => Promise.reject(new Error('away'))
  expect((await noted({}, { ...parts, storeTime: away })).names).toContain('clock_wrong')
  expect((await noted({}, { storeTime: away })).names).not.toContain('clock_wrong')
})

test('a schedule without progress for longer than a mail server may take is reported, where it runs', async () => {
  const stalled = async (ms: number) => (await noted({}, { known: { scheduleStalledMs: ms } })).reasons
  expect((await stalled(21 * 60_000 - 1)).schedule_stalled).toBeUndefined()
  expect((await stalled(21 * 60_000)).schedule_stalled).toBe('no progress for 21 minutes')
  expect((await noted({})).names).not.toContain('schedule_stalled')
})

test('five starts within fifteen minutes are reported, until one of them is older', async () => {
  const starts = [-16, -15, -14, -9, -4, -2].map((minute) => NOW + minute * 60_000)
  expect((await noted({}, { known: { starts } })).reasons.restart_loop).toBeUndefined()
  expect((await noted({}, { known: { starts: [...starts, NOW] } })).reasons.restart_loop).toBe(
    'started 5 times within 15 minutes',
  )
})

test('a store or a disk that cannot be asked leaves its condition out', async () => {
  const lost = () => Promise.reject(new Error('canary'))
  const broken = {
    course: { late: lost, undecided: lost },
    incidents: { unfinished: lost },
    sending: { holds: lost, stalledSince: lost },
  } as unknown as Store
  const { names } = await noted(MAIL, { store: { ...broken, persistent: true }, freeSpace: lost })
  const asked = [
    'lessons_late',
    'lessons_undecided',
    'courses_paused',
    'alerts_unheard',
    'mail_failing',
    'disk_nearly_full',
  ]
  expect(names.filter((name) => asked.includes(name))).toEqual([])
  expect(names).toContain('certificate_expiring')
})

test('a channel that takes no alerts is reported, until it is taken out of the settings', async () => {
  const refused = {
    incident: 'a',
    kind: 'opened',
    outcome: 'pending',
    attempts: 5,
    reason: 'no answer',
  } as const
  const told = [{ ...refused, channel: 'webhook', at: NOW }]
  expect((await noted({}, { told })).reasons.alerts_unheard).toBe('by webhook: no answer')
  expect((await noted({}, { told, channels: [{ name: 'mail' }] })).failing).toEqual([])
})

test('each condition is that of its part', async () => {
  // Their lessons are not late then.
  const holds = [{ stream: 'course', at: NOW, reason: 'too many complaints' }] as const
  expect((await noted(MAIL, { holds })).failing).toEqual(['courses_paused'])
  expect((await noted({}, { known: { mailRefused: 'the key is refused' } })).failing).toEqual([
    'mail_refused',
  ])
  expect((await noted({}, { freeSpace: async () => ({ freeBytes: 1e8, bytes: 1e11 }) })).failing).toEqual([
    'disk_nearly_full',
  ])
  expect((await noted({ MAILER_API_KEY: 'mailer-key-value' })).failing).toEqual(['half_configured'])
  const certificate = { variable: 'API_URL', validFrom: NOW - DAY, validTo: NOW - 1, fault: undefined }
  expect((await noted({}, { known: { certificates: [certificate] } })).failing).toEqual([
    'certificate_expiring',
  ])
})

test('the builds of this process and of its neighbors must be one', async () => {
  const neighbours = new Map([['api', 'build-2']])
  expect((await noted({ BUILD_STAMP: 'build-1' }, { neighbours })).failing).toEqual(['build_skew'])
  expect((await noted({ BUILD_STAMP: 'build-2' }, { neighbours })).failing).toEqual([])
  // Where there are others and none answers, nobody knows whether a skew is over.
  const split = { API_URL: 'http://api.example' }
  expect((await noted(split)).names).not.toContain('build_skew')
  expect((await noted(split, { neighbours })).names).toContain('build_skew')
  expect((await noted(split, { services: ['web', 'api'] })).names).toContain('build_skew')
  // A service that runs here as well is of this build, whichever replica answers at its address.
  const own = { services: ['web', 'api'], neighbours }
  expect((await noted({ BUILD_STAMP: 'build-1' }, own)).failing).toEqual([])
})

test('a service of another build that stops answering does not end the alert', async () => {
  const neighbours = new Map([
    ['api', 'build-1'],
    ['agent', 'build-2'],
  ])
  const looks = conditionsOf({ settings: readSettings(learning, { BUILD_STAMP: 'build-1' }), neighbours })
  const state = async () => (await looks()).probes.build_skew?.state
  expect(await state()).toBe('failing')
  neighbours.delete('agent')
  expect(await state()).toBe('failing')
  neighbours.set('agent', 'build-1')
  expect(await state()).toBe('ok')
})

test('until every certificate was read since the start, a bad one raises the alert and none ends it', async () => {
  const found = (left: number, areCertificatesRead: boolean) => {
    const one = {
      variable: 'API_URL',
      validFrom: NOW - 90 * DAY,
      validTo: NOW + left * DAY,
      fault: undefined,
    }
    return noted({}, { known: { certificates: [one], areCertificatesRead } })
  }
  expect((await found(60, false)).names).not.toContain('certificate_expiring')
  expect((await found(60, true)).names).toContain('certificate_expiring')
  expect((await found(1, false)).failing).toEqual(['certificate_expiring'])
})

test('the free space of a real folder is read', async () => {
  expect((await noted({}, { dataFolder: '.', freeSpace: undefined })).names).toContain('disk_nearly_full')
  expect((await noted({}, { dataFolder: './none', freeSpace: undefined })).names).not.toContain(
    'disk_nearly_full',
  )
})

test('a refusal that one process met ten minutes ago is over once another process of the store sends', async () => {
  const store = await openTestStore(await addressOf('sqlite'))
  let refusedAt = NOW
  const reason = 'the sender is refused'
  const looks = conditionsOf(
    {
      store,
      known: () => ({ certificates: [], mailRefused: reason }),
      mailFailure: () => ({ reason, at: refusedAt }),
    },
    () => NOW + 20 * 60_000,
  )
  const state = async () => (await looks()).probes.mail_refused?.state
  const sent = (minutes: number) => {
    const message = { kind: 'sent', source: 'smtp', domain: 'example.com', count: 1 } as const
    return store.sending.count([{ ...message, at: NOW + minutes * 60_000 }])
  }
  expect(await state()).toBe('failing')
  await sent(-5)
  await sent(8)
  expect(await state()).toBe('failing')
  await sent(12)
  expect(await state()).toBe('ok')
  // It goes on here, although others send.
  refusedAt = NOW + 11 * 60_000
  expect(await state()).toBe('failing')
})
