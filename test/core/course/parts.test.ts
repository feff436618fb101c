import { createHash, createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { createSemaphore } from '../../../src/core/calls.ts'
import { createCatalog } from '../../../src/core/course/catalog.ts'
import { createHours, type HourStore } from '../../../src/core/course/hours.ts'
import {
  confirmationToken,
  confirmUrl,
  hashToken,
  readUnsubscribeLink,
  suppressionHash,
  suppressionHashes,
  unicodeDomain,
  unsubscribeBy,
} from '../../../src/core/course/links.ts'
import { createPinnedTexts } from '../../../src/core/course/pinned-texts.ts'
import type { LessonText, LessonTexts } from '../../../src/core/mail/definition.ts'
import type { CompiledMail } from '../../../src/core/mail/template.ts'
import { secret } from '../../../src/core/secret.ts'
import { courseNamed } from '../../support/course.ts'
import { openTestStore } from '../../support/stores.ts'

test('a semaphore gives a place back when its work throws, to who has waited longest', async () => {
  const enter = createSemaphore(2)
  const begun: number[] = []
  const works = Array.from({ length: 8 }, () => Promise.withResolvers<void>())
  const results = works.map(({ promise }, n) =>
    enter(() => {
      begun.push(n)
      return promise
    }).catch(({ message }: Error) => message),
  )
  expect(begun).toEqual([0, 1])
  for (const n of [1, 0, 2, 3, 4]) {
    if (n % 2 === 0) works[n]?.resolve()
    else works[n]?.reject(new Error(`work ${n}`))
    expect(await results[n]).toBe(n % 2 === 0 ? undefined : `work ${n}`)
  }
  // Every place is free again, and there are no more than there were.
  expect(begun).toEqual([0, 1, 2, 3, 4, 5, 6])
})

const KEY = 'a key for links in tests only'
const ID = 'abcdefgh'
const link = (s: string, key = KEY) => ({
  s,
  t: createHmac('sha256', key).update(`unsubscribe:${s}`).digest('base64url'),
})

test('an unsubscribe link names its subscription and enrolment, and is ours to the last letter', () => {
  const keys = [secret(KEY), secret('the key before')] as const
  const { unsubscribeUrl } = unsubscribeBy('https://www.example.com', [...keys], { id: ID, enrolment: 3 })
  const url = new URL(unsubscribeUrl)
  expect(url.pathname).toBe('/api/email/unsubscribe')
  const read = { s: url.searchParams.get('s') ?? '', t: url.searchParams.get('t') ?? '' }
  expect(read).toEqual(link(`${ID}.3`))
  expect(readUnsubscribeLink(KEY, read)).toEqual({ id: ID, enrolment: 3 })
  for (const t of [`${read.t}A`, read.t.slice(0, -1), `${read.t.slice(0, -1)}*`, '', `A${read.t.slice(1)}`])
    expect(readUnsubscribeLink(KEY, { s: read.s, t })).toBeUndefined()
  expect(readUnsubscribeLink(KEY, link(read.s, 'another key'))).toBeUndefined()
})

test.each([
  [`${'a'.repeat(8)}.1`, true],
  [`${'a'.repeat(7)}.1`, false],
  [`${'a'.repeat(40)}.999999999`, true],
  [`${'a'.repeat(41)}.1`, false],
  [`${ID}.1000000000`, false],
  [`${ID}.`, false],
  [`${ID}.1 `, false],
  [` ${ID}.1`, false],
  [`${ID}!.1`, false],
])('a link that we signed for %j is read: %s', (s, isRead) => {
  expect(readUnsubscribeLink(KEY, link(s)) !== undefined).toBe(isRead)
})

test('a confirmation token depends on the key and the message, and its link names a course that is not the first', () => {
  const tokens = [confirmationToken('k', 'a'), confirmationToken('k', 'b'), confirmationToken('l', 'a')]
  expect(new Set(tokens).size).toBe(3)
  expect(tokens[0]).toBe(confirmationToken('k', 'a'))
  expect(Buffer.from(tokens[0] ?? '', 'base64url')).toHaveLength(32)
  expect(hashToken('t')).toBe(createHash('sha256').update('t').digest('base64url'))
  expect(confirmUrl('https://a.example', 't')).toBe('https://a.example/api/email/confirm?token=t')
  expect(confirmUrl('https://a.example', 't', { course: 'b', language: 'de' })).toBe(
    'https://a.example/api/email/confirm?token=t&course=b&language=de',
  )
})

test('the hash of an erased address depends on the key and the address, and is another than that of a link', () => {
  const of = (key: string, identity: string) => suppressionHash(key, identity)
  const [one, two] = [of('a', 'x@y.example'), of('b', 'x@y.example')]
  expect(new Set([one, two, of('a', 'z@y.example'), link('x@y.example', 'a').t]).size).toBe(4)
  expect(suppressionHashes([secret('a'), secret('b')], 'x@y.example')).toEqual([one, two])
  expect(unicodeDomain('xn--@xn--bcher-kva.example')).toBe('xn--@bücher.example')
})

const course = (id: string, of = ['a', 'b']) => courseNamed(id, { lessons: of })

test('an enrolment keeps the plan that it began with, which is read once, and again after a fault; a lost one is that of now', async () => {
  const now = createCatalog([course('pots')])
  const begun = (await now.begin())({ course: 'pots', confirmedAt: 5, timeZone: undefined })
  const answers = [Promise.reject(new Error('the store is away')), Promise.resolve(begun?.pinned?.plan)]
  const store = {
    pinnedPlan: async ({ version }: { version: string }) =>
      version === 'lost' ? undefined : answers.shift(),
  }
  const later = createCatalog([course('pots', ['c'])])
  const plan = (courseVersion = begun?.pinned?.version) =>
    later.plan({ course: 'pots', courseVersion, day: 1 }, store)
  await expect(plan()).rejects.toThrow('away')
  for (let times = 0; times < 2; times += 1) expect((await plan())?.lessons).toEqual(['a', 'b'])
  expect((await plan('lost'))?.lessons).toEqual(['c'])
})

/** One process’s hours over a store, told of everything. */
async function hours({
  store,
  work = async () => 'done' as const,
}: {
  store?: Partial<HourStore>
  work?: () => Promise<'done' | 'stopped'>
} = {}) {
  const real = await openTestStore(undefined)
  const time = { now: Date.UTC(2026, 10, 22, 4, 59) }
  const told: string[] = []
  const calls: unknown[] = []
  const note = (event: string, _: string, fields: object = {}) =>
    void told.push(`${event} ${JSON.stringify(fields)}`)
  let retry: () => Promise<void> = async () => void told.push('retry')
  const it = createHours({
    store: {
      ...real,
      keepHour: async (claim) => {
        calls.push(claim)
        await real.keepHour(claim)
      },
      endHour: async (hour, done) => {
        calls.push([hour, done])
        await real.endHour(hour, done)
      },
      ...store,
    },
    clock: { now: () => time.now },
    log: { debug: note, info: note, warn: note, error: note },
    run: work,
    minute: () => retry(),
    onDone: (hour) => void told.push(`done ${hour}`),
    onFault: (error, hour) => void told.push(`fault ${String(error)} ${hour}`),
  })
  const look = async () => {
    it.tick()
    // A look ends within some turns of the event loop: its store is in memory.
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  }
  const retries = (next: typeof retry) => {
    retry = next
  }
  return { ...it, look, told, calls, time, retries }
}

test('an hour that is done is logged and ended, and the minutes after it retry what waits', async () => {
  const it = await hours()
  await it.look()
  await it.look()
  it.time.now += 60_000
  await it.look()
  expect(it.told).toEqual([
    'schedule_hour {"hour":"2026-11-22T04"}',
    'done 2026-11-22T04',
    'retry',
    'schedule_hour {"hour":"2026-11-22T05"}',
    'done 2026-11-22T05',
  ])
  expect(it.calls).toEqual([
    ['2026-11-22T04', true],
    ['2026-11-22T05', true],
  ])
  it.retries(() => Promise.reject(new TypeError('a secret')))
  await it.look()
  expect(it.told.at(-1)).toBe('minute_failed {"fault":"TypeError"}')
})

test('an hour is not reported as done before the store has recorded it', async () => {
  const it = await hours({ store: { endHour: () => Promise.reject(new TypeError('read only')) } })
  await it.look()
  expect(it.told).toEqual([
    'schedule_hour {"hour":"2026-11-22T04"}',
    expect.stringContaining('schedule_failed'),
    expect.stringContaining('fault'),
  ])
})

test('while an hour’s work goes on, each look renews its claim for three minutes or logs why not, and none begins another', async () => {
  for (const fails of [false, true]) {
    const work = Promise.withResolvers<'done'>()
    const store = { keepHour: () => Promise.reject(new TypeError('no store')) }
    const it = await hours({ ...(fails && { store }), work: () => work.promise })
    await it.look()
    it.time.now += 120_000
    await it.look()
    expect(it.calls).toEqual(fails ? [] : [{ hour: '2026-11-22T04', leaseMs: 180_000 }])
    work.resolve('done')
    await it.stop()
    const lost = 'schedule_hour_not_held {"hour":"2026-11-22T04","fault":"TypeError"}'
    const told = ['schedule_hour {"hour":"2026-11-22T04"}', ...(fails ? [lost] : []), 'done 2026-11-22T04']
    expect(it.told).toEqual(told)
    // Stopped, it begins nothing.
    await it.look()
    expect(it.told).toEqual(told)
  }
})

test.each<[string, () => Promise<'stopped'>, string[]]>([
  ['ends before its work is done is given back, and nobody hears that it is done', async () => 'stopped', []],
  [
    'throws is logged and given back',
    () => Promise.reject(new RangeError('no')),
    ['schedule_failed {"hour":"2026-11-22T04","fault":"RangeError"}', 'fault RangeError: no 2026-11-22T04'],
  ],
])('an hour that %s', async (_, work, told) => {
  const it = await hours({ work })
  await it.look()
  expect(it.told).toEqual(['schedule_hour {"hour":"2026-11-22T04"}', ...told])
  expect(it.calls).toEqual([['2026-11-22T04', false]])
})

const textOf = (hash: string, language = ''): LessonText => ({ hash, format: 'md', language, source: hash })
const mailOf = (subject: string): CompiledMail => ({
  slots: {},
  subject: [subject],
  html: [],
  text: [],
  body: [],
})

test('an enrolment keeps the hash of each text by language, and none of a course that lacks a lesson’s text', async () => {
  const texts: LessonTexts = {
    of: (lesson) =>
      lesson === 'c' ? undefined : { de: textOf(`${lesson}-de`, 'de'), '': textOf(`${lesson}-en`) },
    compile: () => Promise.reject(new Error('nothing is compiled')),
  }
  const courses = [course('pots'), course('partial', ['a', 'c'])]
  const catalog = createCatalog(courses, { texts: async () => texts })
  const begin = await catalog.begin()
  const pinned = (id: string) => begin({ course: id, confirmedAt: 0, timeZone: undefined })?.pinned
  // In the order of the languages, because the version is made from it.
  expect(pinned('pots')?.plan).toContain('"texts":[{"":"a-en","de":"a-de"},{"":"b-en","de":"b-de"}]')
  expect(pinned('pots')?.texts.map(({ hash }) => hash)).toEqual(['a-de', 'a-en', 'b-de', 'b-en'])
  expect(pinned('partial')).toMatchObject({ texts: [], plan: expect.not.stringContaining('texts') })
  // Who comes from elsewhere needs no text of what they had there.
  const had = { sent: 2, sentLessons: ['c', 'b'], isFinished: false, timeZone: undefined }
  const arrived = (await catalog.arrival(course('pots'), had as never, 0)).pinned
  expect(JSON.parse(arrived?.plan ?? '')).toMatchObject({
    lessons: ['c', 'b', 'a'],
    texts: [{}, { '': 'b-en', de: 'b-de' }, { '': 'a-en', de: 'a-de' }],
  })
  expect(arrived?.texts.map(({ hash }) => hash).sort()).toEqual(['a-de', 'a-en', 'b-de', 'b-en'])
})

test('only a course whose lessons are in another order, or are others, than somebody got them needs a build that knows names', () => {
  const latest = courseNamed('pots', { lessons: ['a', 'b'], follow: 'latest' })
  const { progress } = createCatalog([latest])
  const after = (...lessons: string[]) =>
    progress({ ...latest, lessons }, { course: 'pots', courseVersion: undefined, day: 1 })
  expect(after('a', 'b')).toEqual({ sentLessons: ['a'], needs: 0 })
  expect(after('b', 'a')).toEqual({ sentLessons: ['b'], needs: 2 })
  expect(after('c', 'a', 'b')).toEqual({ sentLessons: ['c'], needs: 2 })
})

test('lesson texts that cannot be read are warned of with the reason, and read again for the next enrolment', async () => {
  const warnings: unknown[] = []
  let reads = 0
  const catalog = createCatalog([course('pots')], {
    texts: async () => {
      reads += 1
      throw new Error('no such folder')
    },
    log: { warn: (event, message) => void warnings.push([event, message]) },
  })
  await catalog.begin()
  await catalog.begin()
  expect(reads).toBe(2)
  expect(warnings).toEqual(
    Array(2).fill(['lesson_texts_unreadable', 'new enrolments keep no lesson texts: no such folder']),
  )
})

/** Texts of one lesson, and what is compiled, read and warned of. */
function pinnedTexts({
  compile = async (text: LessonText) => mailOf(text.source),
  stored = async (hash: string): Promise<LessonText | undefined> => textOf(hash),
} = {}) {
  const [compiled, read, warned]: [unknown[], string[], unknown[]] = [[], [], []]
  const get = createPinnedTexts({
    warn: (event, message, fields) => void warned.push([event, message, fields]),
  })
  const texts: LessonTexts = {
    of: (lesson) => (lesson === 'a' ? { '': textOf('now'), de: textOf('jetzt', 'de') } : undefined),
    compile: (text, like) => {
      compiled.push([text.hash, like])
      return compile(text)
    },
  }
  const store = {
    lessonText: (hash: string) => {
      read.push(hash)
      return stored(hash)
    },
  }
  const base = { lesson: 'a', like: 'first', language: 'de', hashes: undefined, texts, store }
  return {
    get: (more: Partial<Parameters<typeof get>[0]> = {}) => get({ ...base, ...more }),
    compiled,
    read,
    warned,
  }
}

test('a kept text that is missing or no longer compiles is warned of, with the reason, and the current one is sent', async () => {
  const broken = pinnedTexts({ compile: () => Promise.reject(new TypeError('line 3')) })
  const missing = pinnedTexts({ stored: async () => undefined })
  for (const it of [broken, missing])
    expect(await it.get({ hashes: { de: 'before' } })).toEqual({ kind: 'running', language: 'de' })
  expect(broken.warned).toEqual([
    ['lesson_text_broken', expect.stringContaining(' of a no longer compiles'), { reason: 'line 3' }],
  ])
  expect(missing.warned).toEqual([['lesson_text_missing', expect.stringContaining(' of a'), undefined]])
  expect(missing.compiled).toEqual([])
})

test('a kept text is asked for again after a store that could not be read, and one of the last hundred is not', async () => {
  let down = true
  const it = pinnedTexts({
    stored: async (hash) => {
      if (down) throw new RangeError('no store')
      return textOf(hash)
    },
  })
  const get = (n: number) => it.get({ hashes: { '': `h${n}` } })
  await expect(get(0)).rejects.toThrow('no store')
  down = false
  for (let n = 0; n < 100; n += 1) await get(n)
  expect(it.read).toHaveLength(101)
  // The first is used again, so the second is dropped for the next.
  await get(0)
  expect(it.read).toHaveLength(101)
  await get(100)
  await get(0)
  expect(it.read).toHaveLength(102)
  await get(1)
  expect(it.read.slice(102)).toEqual(['h1'])
})
