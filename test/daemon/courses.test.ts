import { expect, test } from 'vitest'
import type { CourseDefinition } from '../../src/core/course/definition.ts'
import type { Message } from '../../src/core/mail/mailer.ts'
import type { Store } from '../../src/core/store/store.ts'
import { handlersOf, openPlatform } from '../../src/daemon/platform.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { tokenIn } from '../support/course.ts'
import { asking } from '../support/opened.ts'
import { addressOf, openTestStore } from '../support/stores.ts'
import { keepingTransport } from '../support/test-transport.ts'

const pottery: CourseDefinition = {
  id: 'pottery',
  title: 'Pottery',
  lessons: ['course-day-2', 'course-day-3'],
  cadence: { kind: 'at', minute: 9 * 60, zone: undefined, weekdays: [] },
  spacingMs: 0,
  follow: 'start',
}

const chess: CourseDefinition = {
  ...pottery,
  id: 'chess',
  title: 'Chess',
  cadence: { kind: 'at', minute: 7 * 60 + 30, zone: 'Europe/Berlin', weekdays: [1, 4] },
}
const astronomy: CourseDefinition = {
  ...pottery,
  id: 'astronomy',
  title: 'Astronomy',
  cadence: { kind: 'every', ms: 36 * 3_600_000 },
}

const music: CourseDefinition = {
  ...chess,
  id: 'music',
  cadence: { ...chess.cadence, weekdays: [1, 2, 3, 4, 5, 6, 7] } as CourseDefinition['cadence'],
}

async function opened({
  store,
  courses = [...learning.courses, pottery, chess, astronomy, music],
}: {
  readonly store?: Store
  readonly courses?: readonly CourseDefinition[]
} = {}) {
  let now = Date.UTC(2026, 2, 28)
  const messages: Message[] = []
  const platform = openPlatform({
    platform: { ...learning, courses },
    env: { NEXT_PUBLIC_SITE_URL: 'https://www.example.com' },
    store: store ?? (await openTestStore(await addressOf('sqlite'))),
    mailer: keepingTransport(messages),
    clock: { now: () => now, monotonic: () => now, sleep: async () => {} },
  })
  const asked = asking(handlersOf(platform) as Parameters<typeof asking>[0])
  const subscribe = async (body: object) => {
    const response = await asked.post('/api/email/subscribe', { email: 'ada@example.com', ...body })
    return { status: response.status, body: (await response.json()) as { issues?: { path: string }[] } }
  }
  /** The path of the first mail's link, once all that was asked for is mailed. */
  const confirmation = async () => {
    await new Promise((resolve) => setImmediate(resolve))
    await (await platform.course()).close()
    return /https:\/\/www\.example\.com(\/api\/email\/confirm\?\S+)/.exec(messages[0]?.text ?? '')?.[1] ?? ''
  }
  return { ...asked, platform, subscribe, confirmation, messages, pass: (ms: number) => (now += ms) }
}

test('a visitor subscribes to a course by its name, at their own nine o’clock', async () => {
  const it = await opened()
  const { ask, page } = it
  expect(await it.subscribe({ course: 'pottery', timeZone: 'America/New_York', language: 'en' })).toEqual({
    status: 202,
    body: { status: 'pending', sent: true },
  })
  await ask(await it.confirmation(), { method: 'POST' })
  expect(await it.platform.courses.list({ email: 'ada@example.com' })).toMatchObject([
    { course: 'pottery', state: 'confirmed', sent: 0, lessons: 2, nextAt: Date.UTC(2026, 2, 28, 13) },
  ])
  it.pass(13 * 3_600_000)
  await it.platform.dispatch()
  expect(it.messages[1]?.text).toContain('https://www.example.com/lessons/1?course=pottery')
  const one = await page('/lessons/1?course=pottery')
  expect(one).toContain('Pottery')
  // What its script records, and the script.
  expect(one).toMatch(/<script type="application\/json"[^>]*>\[.*"lesson\.viewed".*"lesson\.completed"/)
  expect(one).toContain('<script type="module"')
  // From lesson to lesson, and into the course, it stays the course of the page.
  expect(one).toContain('<a href="/lessons/2?course=pottery">')
  expect(one).toContain('name="course" value="pottery"')
  expect(await page('/lessons/2?course=pottery')).toContain('<a href="/lessons/1?course=pottery">')
  expect(await page('/lessons/1?course=pottery&language=en')).toMatch(
    /<a href="\/lessons\/2\?course=pottery&(?:amp;)?language=en">/,
  )
})

test.each([
  [undefined, 'Lessons come once a day,'],
  ['pottery', 'A lesson comes every day at 09:00 (in your time zone; UTC if you gave none).'],
  ['chess', 'A lesson comes every Monday and Thursday at 07:30 (Europe/Berlin).'],
  ['astronomy', 'A lesson comes every 1 day 12 hours,'],
  ['music', 'A lesson comes every day at 07:30 (Europe/Berlin).'],
])('the confirmation page of the course %s says when its lessons come', async (course, when) => {
  const it = await opened()
  await it.subscribe({ course })
  const link = await it.confirmation()
  expect(await it.page(link, { method: 'POST' })).toContain(when)
  expect(await it.page(link)).toContain(when)
})

test.each([
  [{ course: 'judo' }, 'course'],
  [{ timeZone: '+02:00' }, 'timeZone'],
  [{ timeZone: 'Mars/Olympus' }, 'timeZone'],
  [{ language: '<b>' }, 'language'],
])('a subscription with %j is refused, by a visitor and by a program', async (more, path) => {
  const it = await opened()
  const { status, body } = await it.subscribe(more)
  expect([status, body.issues?.map((issue) => issue.path)]).toEqual([400, [path]])
  const { courses } = it.platform
  await expect(courses.subscribe({ email: 'ada@example.com', ...more })).rejects.toMatchObject({
    code: 'bad_request',
    issues: [{ path }],
  })
})

test('a course that was removed waits and says so, its readers can leave, and it goes on once it is back', async () => {
  const store = await openTestStore(await addressOf('sqlite'))
  const was = await opened({ store })
  const people = ['ada@example.com', 'bob@example.com'].map((email) => ({ email, course: 'pottery' }))
  for (const person of people) await was.platform.courses.enrol(person)
  was.pass(9 * 3_600_000)
  expect(await was.platform.dispatch()).toMatchObject({ sent: 2 })
  const removed = await opened({ store, courses: learning.courses })
  removed.pass(33 * 3_600_000)
  expect(await removed.platform.dispatch()).toMatchObject({
    sent: 0,
    results: people.map(() => ({
      reason: 'the platform has no course pottery: put it back, or cancel its enrolments',
    })),
  })
  const link = /https:\/\/www\.example\.com(\/api\/email\/unsubscribe\S+)/.exec(
    was.messages[0]?.text ?? '',
  )?.[1]
  await removed.ask(link ?? '', { method: 'POST' })
  const back = await opened({ store })
  back.pass(57 * 3_600_000)
  expect(await back.platform.dispatch()).toMatchObject({ processed: 1, sent: 1 })
  expect(back.messages[0]?.to).not.toEqual(was.messages[0]?.to)
})

test('an embedding program enrols once for each key, lists, and cancels', async () => {
  const { courses } = (await opened()).platform
  const order = { email: 'ada@example.com', course: 'pottery', idempotencyKey: 'order-1' }
  const answers = await Promise.all([courses.enrol(order), courses.enrol(order)])
  expect(answers[0]).toMatchObject({ enrolled: true, enrolment: 1 })
  expect(answers[1]).toEqual(answers[0])
  expect(await courses.cancel(order)).toEqual({ cancelled: true })
  expect(await courses.cancel(order)).toEqual({ cancelled: false })
  // A retry that comes late does not begin it again.
  expect(await courses.enrol(order)).toEqual(answers[0])
  expect(await courses.list(order)).toMatchObject([{ state: 'unsubscribed', nextAt: undefined }])
  const second = { email: order.email, course: 'chess' }
  await courses.enrol(second)
  expect(await courses.set({ ...second, language: 'de' })).toEqual({ enrolments: 1 })
  // Nobody is taken for somebody else.
  const conflict = { enrolled: false, reason: 'conflict' }
  expect(await courses.enrol({ ...order, email: 'bob@example.com' })).toEqual(conflict)
  expect(await courses.list({ email: 'bob@example.com' })).toEqual([])
  await expect(courses.enrol({ email: 'nobody' })).rejects.toMatchObject({ code: 'bad_request' })
  const nobody = JSON.parse('{}')
  for (const asked of [courses.enrol, courses.subscribe, courses.cancel, courses.set, courses.list])
    await expect(asked(nobody)).rejects.toMatchObject({ code: 'bad_request', issues: [{ path: 'email' }] })
})

test('an enrolment takes a key of 200 characters without a space, a time zone and a language, and nothing else', async () => {
  const { courses } = (await opened()).platform
  for (const [field, value, taken] of [
    ['idempotencyKey', 'k'.repeat(200), true],
    ['idempotencyKey', 'k'.repeat(201), false],
    ['idempotencyKey', '', false],
    ['idempotencyKey', 'a b', false],
    ['timeZone', 'Europe/Berlin', true],
    ['timeZone', '+02:00', false],
    ['language', 'de', true],
    ['language', '<b>', false],
  ] as const) {
    const asked = courses.enrol({ email: `${field}@example.com`, [field]: value })
    if (taken) expect(await asked).toMatchObject({ enrolled: true })
    else await expect(asked).rejects.toMatchObject({ code: 'bad_request', issues: [{ path: field }] })
  }
})

test('a course whose last lesson was sent is finished, and its lessons are counted', async () => {
  const it = await opened()
  const { courses } = it.platform
  const asked = { email: 'Ada@example.com', course: 'pottery' }
  await courses.enrol(asked)
  for (let day = 0; day < 3; day += 1) {
    it.pass(24 * 3_600_000)
    await it.platform.dispatch()
  }
  expect(await courses.list({ email: 'ada@example.com' })).toMatchObject([
    { course: 'pottery', state: 'finished', enrolment: 1, sent: 2, lessons: 2, nextAt: undefined },
  ])
  expect(await courses.cancel(asked)).toEqual({ cancelled: false })
  expect(await courses.list(asked)).toMatchObject([{ state: 'finished' }])
  const [, link = ''] =
    /https:\/\/www\.example\.com(\/api\/email\/unsubscribe\?\S+)/.exec(it.messages.at(-1)?.text ?? '') ?? []
  await it.post(link, 'List-Unsubscribe=One-Click', { 'Content-Type': 'application/x-www-form-urlencoded' })
  expect(await courses.list(asked)).toMatchObject([{ state: 'unsubscribed', sent: 2 }])
  expect(await courses.cancel({ email: 'nobody@example.com' })).toEqual({ cancelled: false })
  await expect(courses.cancel({ email: 'nobody' })).rejects.toMatchObject({ issues: [{ path: 'email' }] })
})

test('a program subscribes a person by double opt-in, and learns nothing about the address', async () => {
  const it = await opened()
  const { courses } = it.platform
  const asked = { email: 'ada@example.com', course: 'pottery', language: 'de', timeZone: 'Europe/Vienna' }
  const answer = { status: 'pending', sent: true }
  expect(await courses.subscribe(asked)).toEqual(answer)
  // Known now, within the hour, suppressed: the answer is the same, and no second mail leaves.
  expect(await courses.subscribe(asked)).toEqual(answer)
  await (await it.platform.course()).erase('grace@example.com')
  expect(await courses.subscribe({ ...asked, email: 'grace@example.com' })).toEqual(answer)
  await (await it.platform.course()).close()
  expect(it.messages.map(({ to }) => to.address)).toEqual(['ada@example.com'])
  expect(await courses.list({ email: 'ada@example.com' })).toMatchObject([
    { state: 'unconfirmed', lessons: 2 },
  ])
  await courses.subscribe({ ...asked, email: 'eve@example.com' })
  const course = await it.platform.course()
  await course.close()
  await course.confirm(tokenIn(it.messages[1]))
  const { email: _, ...wanted } = asked
  expect(await course.find('eve@example.com')).toMatchObject({ state: 'confirmed', ...wanted })
  expect(await courses.set({ email: 'ada@example.com', language: 'en' })).toEqual({ enrolments: 1 })
  await expect(courses.subscribe({ email: 'ada' })).rejects.toMatchObject({ issues: [{ path: 'email' }] })
  const nowhere = courses.set({ email: 'ada@example.com', timeZone: 'Mars/Olympus' })
  await expect(nowhere).rejects.toMatchObject({ issues: [{ path: 'timeZone' }] })
  it.pass(7 * 24 * 3_600_000)
  const late = await it.ask(await it.confirmation())
  expect([late.status, await late.json()]).toMatchObject([400, { code: 'token_expired' }])
  const forged = await it.ask('/api/email/confirm?token=a-token-that-matches-nothing')
  expect([forged.status, await forged.json()]).toMatchObject([400, { code: 'token_invalid' }])
})
