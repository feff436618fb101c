import { expect, test } from 'vitest'
import {
  conditionsReport,
  lateBefore,
  type SelfObservations,
} from '../../../src/core/incidents/conditions.ts'
import type { MessageRecord } from '../../../src/core/incidents/incident.ts'
import type { StreamName } from '../../../src/core/mail/holds.ts'

const NOW = Date.UTC(2026, 10, 21, 9, 30)
const HOUR_MS = 60 * 60 * 1000
const DAY_MS = 24 * HOUR_MS
const GB = 1024 ** 3

const WELL: SelfObservations = {
  certificates: [],
  builds: new Map([
    ['web', 'b2'],
    ['api', 'b2'],
    ['agent', null],
  ]),
  halfConfigured: [],
  mailRefused: undefined,
}

function reasons(observed: Partial<SelfObservations>) {
  const { probes } = conditionsReport({ ...WELL, ...observed }, NOW)
  return Object.fromEntries(
    Object.entries(probes).flatMap(([name, { state, reason }]) =>
      state === 'failing' ? [[name, reason]] : [],
    ),
  )
}

const certificate = (
  left: number,
  { life = 90 * DAY_MS, fault }: { life?: number; fault?: string } = {},
) => ({
  certificates: [
    { variable: 'NEXT_PUBLIC_SITE_URL', validFrom: NOW + left - life, validTo: NOW + left, fault },
  ],
})

test('when all is well no condition is reported, and unknown ones are left out', () => {
  expect(reasons({})).toEqual({})
  expect(Object.keys(conditionsReport(WELL, NOW).probes)).not.toContain('lessons_late')
})

test('a certificate raises an alert from seven days before its end, or in the last third of a shorter life', () => {
  expect(reasons(certificate(7 * DAY_MS + 1))).toEqual({})
  expect(reasons(certificate(7 * DAY_MS))).toEqual({
    certificate_expiring: 'that of NEXT_PUBLIC_SITE_URL ends in 7 days (2026-11-28)',
  })
  expect(reasons(certificate(3 * DAY_MS, { life: 6 * DAY_MS }))).toEqual({})
  expect(reasons(certificate(2 * DAY_MS, { life: 6 * DAY_MS }))).toMatchObject({
    certificate_expiring: 'that of NEXT_PUBLIC_SITE_URL ends in 2 days (2026-11-23)',
  })
  // Half an hour after midnight in UTC.
  expect(reasons(certificate(1.625 * DAY_MS, { life: 6 * DAY_MS }))).toEqual({
    certificate_expiring: 'that of NEXT_PUBLIC_SITE_URL ends in 1 day (2026-11-23)',
  })
  expect(reasons(certificate(-1))).toMatchObject({
    certificate_expiring: expect.stringContaining('has expired'),
  })
  expect(reasons(certificate(80 * DAY_MS, { fault: 'ERR_TLS_CERT_ALTNAME_INVALID' }))).toMatchObject({
    certificate_expiring: expect.stringContaining('is refused by programs (ERR_TLS_CERT_ALTNAME_INVALID)'),
  })
})

test('a lesson is late an hour after the full hour that should have sent it', () => {
  const due = (at?: number, stalledAt?: number, why?: string) =>
    reasons({ lessonsLate: { at, stalledAt, why } })
  const [eight, later] = [Date.UTC(2026, 10, 21, 8, 0), Date.UTC(2026, 10, 21, 8, 1)]
  expect(due()).toEqual({})
  // Due at 8:01: the run of 9:00 has not sent it, and the hour after that has not passed.
  expect(lateBefore(NOW)).toBe(eight)
  expect(due(eight)).toEqual({
    lessons_late: 'a lesson has been due since 2026-11-21 08:00 UTC and has not been sent',
  })
  expect(due(eight, undefined, 'put its file back').lessons_late).toMatch(/ and has not been sent: put its/)
  expect(due(later, eight)).toEqual({
    lessons_late:
      'a lesson has been due since 2026-11-21 08:00 UTC; every attempt failed, and no lesson has been sent since',
  })
})

test('paused courses are reported with the reason, and their lessons are not also late', () => {
  expect(
    reasons({
      holds: [{ stream: 'course', at: NOW, reason: '5 of 60 were reported as spam' }],
      lessonsLate: { at: NOW - DAY_MS, stalledAt: NOW - DAY_MS },
    }),
  ).toEqual({ courses_paused: '5 of 60 were reported as spam' })
  // Nor are they well: a pause ends no alert about them.
  const holds = [{ stream: 'course' as const, at: NOW, reason: 'spam' }]
  const { probes } = conditionsReport({ ...WELL, holds, lessonsLate: {} }, NOW)
  expect(probes).not.toHaveProperty('lessons_late')
})

test('one pause is one incident, whatever it holds, and a breaker that tripped before is another', () => {
  const hold = (stream: StreamName, at: number, reason = 'wrong prices') => ({ stream, at, reason })
  const all = [hold('notice', NOW), hold('course', NOW), hold('mail', NOW)]
  const late = { at: NOW - DAY_MS, stalledAt: NOW - DAY_MS }
  expect(reasons({ holds: all, lessonsLate: late })).toEqual({
    mail_paused: 'notice, course, mail: wrong prices',
  })
  expect(reasons({ holds: [hold('course', NOW - 1, '5 of 60'), hold('mail', NOW)] })).toEqual({
    courses_paused: '5 of 60',
    mail_paused: 'mail: wrong prices',
  })
  const two = [
    hold('sign-in', NOW - 1, 'links leak'),
    hold('mail', NOW),
    hold('notice', NOW - 1, 'links leak'),
  ]
  expect(reasons({ holds: two })).toEqual({ mail_paused: 'sign-in, notice: links leak; mail: wrong prices' })
  // Lessons that no pause holds are late all the same.
  expect(reasons({ holds: two, lessonsLate: late })).toHaveProperty('lessons_late')
  const later = [hold('course', NOW - 1), hold('mail', NOW)]
  expect(reasons({ holds: later })).toEqual({
    courses_paused: 'wrong prices',
    mail_paused: 'mail: wrong prices',
  })
})

test('a disk is nearly full below a twentieth and 2 GB, or below 200 MB', () => {
  const disk = (freeBytes: number, bytes: number) => reasons({ disk: { freeBytes, bytes } })
  expect(disk(4 * GB, 1000 * GB)).toEqual({})
  expect(disk(1 * GB, 10 * GB)).toEqual({})
  expect(disk(0.4 * GB, 10 * GB)).toEqual({
    disk_nearly_full: '409 MB of 10.0 GB are left on the disk of the data folder',
  })
  expect(disk(0.1 * GB, 1 * GB)).toHaveProperty('disk_nearly_full')
  // Each limit from both sides: 200 MB of any disk, 2 GB, a twentieth.
  for (const [free, of] of [
    [0.2 * GB, 1 * GB],
    [2 * GB, 100 * GB],
    [1 * GB, 20 * GB],
  ] as const) {
    expect(disk(free, of)).toEqual({})
    expect(disk(free - 1, of + (of === 20 * GB ? 20 : 0))).toHaveProperty('disk_nearly_full')
  }
})

test('a disk is slow when a write takes more than two seconds', () => {
  expect([reasons({ writeMs: 2000 }), reasons({ writeMs: undefined })]).toEqual([{}, {}])
  expect(reasons({ writeMs: 12_400 })).toEqual({ disk_slow: 'a write took 12 seconds' })
  expect(reasons({ writeMs: 2001 })).toEqual({ disk_slow: 'a write took 2 seconds' })
})

test('different builds, half-configured groups and refused mail are reported with their names', () => {
  expect(
    reasons({
      builds: new Map([
        ['web', 'b2'],
        ['api', 'b1'],
        ['agent', null],
      ]),
    }),
  ).toEqual({
    build_skew: 'web b2, api b1',
  })
  expect(reasons({ halfConfigured: ['mail', 'payments'] })).toEqual({
    half_configured: 'half-configured: mail, payments',
  })
  expect(reasons({ mailRefused: 'the mail server refused the credentials' })).toEqual({
    mail_refused: 'the mail server refused the credentials',
  })
})

test('until a message was taken or refused, nobody knows whether mail is refused, and without settings nobody looks', () => {
  const found = (mailRefused: SelfObservations['mailRefused']) =>
    conditionsReport({ ...WELL, mailRefused }, NOW).probes.mail_refused?.state
  expect(([undefined, null, false, 'no'] as const).map(found)).toEqual([
    undefined,
    'skipped',
    'ok',
    'failing',
  ])
})

test('a channel that takes no alert any more is named, until one that was tried later is taken', () => {
  const tried = (channel: string, at: number, parts: Partial<MessageRecord>): MessageRecord => ({
    ...{
      incident: 'i1',
      kind: 'opened',
      channel,
      at,
      outcome: 'pending',
      attempts: 5,
      reason: 'it answered 404',
    },
    ...parts,
  })
  const unheard = (...alerts: readonly MessageRecord[]) => reasons({ alerts }).alerts_unheard
  expect(unheard()).toBeUndefined()
  expect(unheard(tried('webhook', NOW, { attempts: 4 }))).toBeUndefined()
  expect(unheard(tried('webhook', NOW, {}))).toBe('by webhook: it answered 404')
  const gone = { attempts: 1, outcome: 'failed', reason: 'it answered 410' } as const
  expect(unheard(tried('webhook', NOW, gone))).toBe('by webhook: it answered 410')
  expect(unheard(tried('webhook', NOW, {}), tried('mail', NOW, { outcome: 'sent' }))).toBe(
    'by webhook: it answered 404',
  )
  const again = tried('webhook', NOW + 1, { incident: 'i2', attempts: 1 })
  expect(unheard(tried('webhook', NOW, { outcome: 'failed' }), again)).toBe('by webhook: it answered 404')
  expect(unheard(tried('webhook', NOW, {}), { ...again, outcome: 'sent' })).toBeUndefined()
  expect(unheard({ ...again, outcome: 'sent' }, tried('webhook', NOW, {}))).toBeUndefined()
  expect(unheard(tried('mail', NOW, { reason: undefined }), tried('webhook', NOW, {}), again)).toBe(
    'by mail; by webhook: it answered 404',
  )
})
