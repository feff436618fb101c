import { expect, test } from 'vitest'
import { type PlatformStatus, statusText } from '../../../src/cli/status/status.ts'

const NOW = Date.UTC(2026, 10, 22, 9)
const HOUR = 3_600_000

const COUNTS = { dueNow: 0, waiting: 0, nextTryAt: undefined, oldestDueAt: undefined, parked: 0, unknown: 0 }
/** The lines of a status by their labels. */
function lines(
  {
    daemon = {},
    store = {},
    counts = {},
    ...parts
  }: { daemon?: object; store?: object; counts?: object } & Partial<
    Pick<PlatformStatus, 'services' | 'alerts'>
  > = {},
  now = NOW,
) {
  const status = {
    daemon: {
      running: true,
      pid: 7,
      startedAt: new Date(NOW - 2 * HOUR).toISOString(),
      build: 'b1',
      schedule: true,
      envFiles: [],
      ...daemon,
    },
    services: [],
    store: {
      kind: 'sqlite',
      location: '/data/platform.sqlite',
      version: 9,
      latest: 9,
      backupAt: undefined,
      lastHour: undefined,
      counts: { ...COUNTS, ...counts },
      paused: [],
      lastMail: {},
      open: [],
      ...store,
    },
    alerts: [],
    ...parts,
  } as unknown as PlatformStatus
  const text = statusText(status, { now, platform: 'the default platform' })
  return (label: string) =>
    text
      .split('\n')
      .find((line) => line.startsWith(label.padEnd(11)))
      ?.slice(11)
}

test('the schedule names the processes that run it, or who else may', () => {
  const store = { lastHour: '2026-11-22T08' }
  expect(lines({ store })('schedule')).toBe('on in process 7, every minute, last hour 2026-11-22T08:00Z')
  const others = [
    { pid: 8, schedule: true },
    { pid: 9, schedule: false },
  ]
  expect(lines({ daemon: { others } })('schedule')).toBe(
    'on in process 7 and 8, every minute, no hour handled yet',
  )
  // A schedule that runs nowhere is off, whatever the daemon was started with.
  for (const daemon of [{ schedule: false }, { running: false }]) {
    expect(lines({ daemon })('schedule')).toMatch(/^off, no hour handled yet: something else must call/)
    expect(lines({ daemon, store })('schedule')).toMatch(/: another process of this store runs it, or did$/)
    const old = { lastHour: '2026-11-22T07' }
    expect(lines({ daemon, store: old })('schedule')).toMatch(/: something else must call/)
  }
})

test('mail is paused since when and why, and the last one was sent, refused and failed', () => {
  const at = NOW - HOUR
  const store = {
    paused: [
      { stream: 'course', at, reason: 'wrong prices' },
      { stream: 'mail', at, reason: 'wrong prices' },
    ],
    lastMail: { sentAt: NOW - 60_000, refused: { at, reason: 'no such address' }, failed: undefined },
  }
  expect(lines({ store })('paused')).toBe(
    'course, mail, since 2026-11-22T08:00:00.000Z: wrong prices; platformctl mail resume',
  )
  expect(lines({ store })('last mail')).toBe('sent 1 min ago; refused 1 h ago: no such address')
  expect(lines()('last mail')).toBe('none sent lately')
})

test('a daemon is running, has stopped, or ended without stopping', () => {
  expect(lines()('daemon')).toBe('running as process 7 since 2026-11-22T07:00:00.000Z (2 h ago), build b1')
  const stoppedAt = new Date(NOW - HOUR).toISOString()
  expect(lines({ daemon: { running: false, stoppedAt, build: null } })('daemon')).toBe('stopped 1 h ago')
  expect(lines({ daemon: { running: false } })('daemon')).toBe(
    'not running; it ended without stopping in order, after 2026-11-22T07:00:00.000Z, build b1',
  )
})

test('the backlog tells what is due, since when, and what waits after a failure', () => {
  const backlog = (counts: object) => lines({ counts })('backlog')
  expect(backlog({})).toBe('nothing is due')
  expect(backlog({ dueNow: 3, oldestDueAt: NOW - 5 * HOUR })).toBe('3 due, the oldest due 5 h ago')
  expect(backlog({ waiting: 2, nextTryAt: NOW })).toBe(
    '0 due; 2 after a failure, next try 2026-11-22T09:00:00.000Z',
  )
  expect(lines({ counts: { parked: 1, unknown: 2 } })('problems')).toMatch(/^1 parked, 2 unknown: /)
  expect(lines()('problems')).toBe('none')
})

test('schema, backup, alerts and env files are told as they are, and a store that fails by its fault alone', () => {
  expect(lines()('schema')).toBe('9, up to date')
  expect(lines({ store: { latest: 10 } })('schema')).toBe('9; this build has 10')
  expect([lines()('backup'), lines({ store: { backupAt: NOW - HOUR } })('backup')]).toEqual([
    'never by platformctl db backup',
    '1 h ago',
  ])
  expect(lines({ store: { kind: 'postgres' } })('backup')).toBe('by PostgreSQL’s own tools')
  expect(lines({ alerts: ['ALERT_WEBHOOK_URL', 'ALERT_EMAIL_TO'] })('alerts')).toBe(
    'ALERT_WEBHOOK_URL, ALERT_EMAIL_TO',
  )
  expect(lines({ daemon: { envFiles: ['/a', '/b'] } })('env files')).toBe('/a, /b')
  const failing = lines({ store: { fault: 'it is locked' } })
  expect(failing('store')).toBe('sqlite /data/platform.sqlite: it is locked')
  expect(failing('schema')).toBeUndefined()
  const web = { service: 'web', url: 'http://x', state: 'failing', reason: 'mail: refused' } as const
  expect(lines({ services: [web] })('web')).toBe('failing, http://x: mail: refused')
})
