import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { lessonSignature } from '../../src/core/course/links.ts'
import type { Message } from '../../src/core/mail/mailer.ts'
import { handlersOf, openPlatform } from '../../src/daemon/platform.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { emptyFolder } from '../support/folder.ts'
import { addressOf, openTestStore } from '../support/stores.ts'
import { keepingTransport } from '../support/test-transport.ts'

const BROWSER = 'text/html,application/xhtml+xml'
const SITE = 'https://www.example.com'

/** A platform in English with three courses: for everybody, by link, and in mails alone. */
async function choir(env: Readonly<Record<string, string>> = {}, ids = ['open', 'shy', 'shut'], lessons = 2) {
  const folder = await emptyFolder()
  for (const id of ids)
    for (const [language, name] of [
      ['.', 'Song'],
      ['de', 'Lied'],
      ['nl', 'Zang'],
    ] as const)
      for (let n = 1; n <= lessons; n += 1) {
        const file = path.join(folder, id, language, `${n}-song.md`)
        await mkdir(path.dirname(file), { recursive: true })
        await writeFile(file, `---\nsubject: ${name} ${n}\n---\n\n# ${name} ${n} of ${id}\n`)
      }
  const pages: Readonly<Record<string, object>> = { shy: { pages: 'link' }, shut: { pages: false } }
  const evening = { at: '18:00', zone: 'subscriber' }
  const cadences: Readonly<Record<string, object>> = {
    daily: { every: '1d' },
    rare: { ...evening, spacing: '3d' },
  }
  const cadence = (id: string) => cadences[id] ?? evening
  const course = (id: string) => [id, { lessons: `./${id}`, ...cadence(id), ...pages[id] }]
  let now = Date.UTC(2026, 2, 28)
  const messages: Message[] = []
  const platform = openPlatform({
    platform: resolvePlatform(
      { preset: 'base', name: 'Choir', courses: Object.fromEntries(ids.map(course)) },
      { folder },
    ),
    env: { NEXT_PUBLIC_SITE_URL: SITE, ...env },
    store: await openTestStore(await addressOf('sqlite')),
    mailer: keepingTransport(messages),
    clock: { now: () => now, monotonic: () => now, sleep: async () => {} },
  })
  const { web } = handlersOf(platform)
  const ask = async (url: string, accepts = 'en', form?: Readonly<Record<string, string>>) => {
    const response = await web?.fetch(
      new Request(new URL(url, SITE), {
        headers: { accept: BROWSER, 'accept-language': accepts },
        ...(form && { method: 'POST', body: new URLSearchParams(form) }),
      }),
    )
    return { status: response?.status, headers: response?.headers, html: (await response?.text()) ?? '' }
  }
  return { platform, messages, ask, pass: (ms: number) => (now += ms) }
}

const linkIn = (message: Message | undefined, part: string) =>
  [...(message?.text ?? '').matchAll(/https:\S+/g)].map(String).find((url) => url.includes(part)) ?? ''
const titleOf = (html: string) => /<title>(.*?)</.exec(html)?.[1]
const spokenIn = (html: string) => /<html lang="(..)"/.exec(html)?.[1]

test('a page speaks the language of the link, else that of the browser, else that of the platform', async () => {
  const it = await choir()
  const { courses } = it.platform
  await courses.subscribe({ email: 'ada@example.com', course: 'open', language: 'de' })
  await courses.subscribe({ email: 'bob@example.com', course: 'open' })
  await (await it.platform.course()).close()
  const [ada, bob] = it.messages.map((message) => linkIn(message, '/confirm'))
  expect(ada).toMatch(/&language=de$/)
  expect(bob).not.toContain('language=')
  expect(spokenIn((await it.ask(ada ?? '', 'fr, en;q=0.9')).html)).toBe('de')
  expect(spokenIn((await it.ask(bob ?? '', 'fr, de-AT;q=0.8, en;q=0.3')).html)).toBe('de')
  expect(spokenIn((await it.ask('/api/email/confirm?token=forged', 'de')).html)).toBe('de')
  expect(spokenIn((await it.ask('/api/email/unsubscribe?s=a&t=b', 'de;q=0, fr')).html)).toBe('en')
  it.pass(24 * 3_600_000)
  await it.platform.dispatch()
  const lesson = it.messages.find(({ to, subject }) => to.address.startsWith('ada') && subject === 'Lied 1')
  const page = linkIn(lesson, '/lessons/')
  expect(page).toBe(`${SITE}/lessons/1?language=de`)
  const { html } = await it.ask(page)
  expect(html).toContain('Lied 1 of open')
  expect(html).toContain('href="/lessons/2?language=de"')
  expect(spokenIn(html)).toBe('de')
  // The text follows the browser as well, where there is a translation.
  expect((await it.ask('/lessons/1', 'de-CH')).html).toContain('<article class="lesson" data-lesson="day-1">')
  expect((await it.ask('/lessons/1', 'de-CH')).html).toContain('Lied 1 of open')
  // The page around it is in English.
  expect((await it.ask('/lessons/1', 'nl')).html).toMatch(
    /data-lesson="day-1" lang="nl" dir="ltr">\s*<h1[^>]*>Zang 1/,
  )
  for (const accepts of ['fr', 'en, de;q=0.5'])
    expect((await it.ask('/lessons/1', accepts)).html).toContain('Song 1 of open')
})

test('who subscribes on the page of a translated lesson gets the course in its language', async () => {
  const it = await choir()
  const LANGUAGE = '<input type="hidden" name="language" value="de">'
  expect((await it.ask('/lessons/1', 'de-CH')).html).toContain(LANGUAGE)
  expect((await it.ask('/lessons/1', 'fr')).html).not.toContain('name="language"')
  const refused = await it.ask('/api/email/subscribe', 'de', { email: 'ada', language: 'de' })
  expect(refused).toMatchObject({ status: 400, html: expect.stringContaining(LANGUAGE) })
})

test('each lesson of a course that is longer than the default one is sent, counted, and has a page', async () => {
  const lessons = [1, 2, 3, 4, 5, 6, 7, 8, 9]
  const it = await choir({}, ['daily', 'open'], lessons.length)
  const course = await it.platform.course()
  await it.platform.courses.enrol({ email: 'ada@example.com', course: 'daily' })
  for (const day of lessons) {
    await it.platform.dispatch()
    const page = await it.ask(linkIn(it.messages.at(-1), '/lessons/'))
    expect(page).toMatchObject({ status: 200, html: expect.stringContaining(`Song ${day} of daily`) })
    expect((await course.counts()).byLessons).toEqual([0, ...lessons].map((sent) => (sent === day ? 1 : 0)))
    it.pass(24 * 3_600_000)
  }
  expect((await it.platform.dispatch()).processed).toBe(0)
  const { html } = await it.ask('/lessons')
  expect([...html.matchAll(/href="\/lessons\/(\d+)"/g)].map(([, day]) => Number(day))).toEqual(lessons)
  expect(html.match(/<h2>(?:daily|open)</g)).toEqual(['<h2>daily<', '<h2>open<'])
  expect(html).toContain('href="/lessons/9?course=open"')
})

test('links of lessons open with either of two secrets', async () => {
  const both = ['the-new-secret-of-thirty-two-bytes', 'the-old-secret-of-thirty-two-bytes']
  const it = await choir({ EMAIL_LINK_SECRET: both.join() })
  await it.platform.courses.enrol({ email: 'ada@example.com', course: 'shy' })
  it.pass(24 * 3_600_000)
  await it.platform.dispatch()
  expect(linkIn(it.messages[0], '/lessons/')).toContain(lessonSignature(both[0] ?? '', 'shy', 'shy-1-song'))
  for (const key of [...both, 'a-third-secret-of-thirty-two-bytes']) {
    // A link from when the lessons were pages for it opens those of a course that has none now no more.
    for (const course of ['shy', 'shut']) {
      const url = `/lessons/1?course=${course}&t=${lessonSignature(key, course, `${course}-1-song`)}`
      expect((await it.ask(url)).status).toBe(course === 'shy' && both.includes(key) ? 200 : 404)
    }
  }
})

test('the lessons of a course are pages for everybody, for the link of a mail, or for nobody', async () => {
  const it = await choir()
  for (const course of ['open', 'shy', 'shut'])
    await it.platform.courses.enrol({ email: 'ada@example.com', course })
  it.pass(24 * 3_600_000)
  await it.platform.dispatch()
  const mail = (course: string) => it.messages.find(({ text }) => text.includes(`of ${course}`))
  expect((await it.ask('/lessons/2?course=open')).status).toBe(200)
  // A page has one address.
  expect((await it.ask('/lessons/02?course=open')).status).toBe(404)
  const page = linkIn(mail('shy'), '/lessons/')
  expect(page).toMatch(/\/lessons\/1\?course=shy&t=[\w-]{22}$/)
  const shy = await it.ask(page)
  expect(shy.status).toBe(200)
  expect(shy.html).toContain('Song 1 of shy')
  expect(shy.html).toContain('<meta name="robots" content="noindex, nofollow">')
  expect(shy.headers?.get('x-robots-tag')).toContain('noindex')
  expect(shy.html).not.toMatch(/href="[^"]*\/lessons\/|<form/)
  for (const url of [
    '/lessons/1?course=shy',
    page.replace('/1?', '/2?').replace(/.$/, ''),
    page.replace('course=shy', 'course=shut'),
    '/lessons/1?course=shut',
  ])
    expect([url, (await it.ask(url)).status]).toEqual([url, 404])
  const index = await it.ask('/lessons', 'de')
  expect(index.html).toContain('<a href="/lessons/2" lang="de">Lied 2</a>')
  expect(index.html).not.toMatch(/shy|shut/)
  expect(index.headers?.get('x-robots-tag')).toContain('noindex')
  expect((await it.ask('/lessons?language=de', 'en')).html).toContain('href="/lessons/1?language=de"')
  expect((await it.ask('/lessons/9')).html).toContain('<a href="/lessons">all lessons</a>')
  expect(mail('shut')?.text).not.toContain('/lessons/')
  expect(mail('shut')?.html).not.toContain('/lessons/')
  expect(mail('shut')?.text).toContain('/api/email/unsubscribe')
  // The status page invites to the first course, and links to its lessons if everybody can read them.
  expect((await it.ask('/')).html).toContain('href="/lessons/1"')
})

test('pages name the course that they lead to where it is not the first, also if only that one has pages or local hours', async () => {
  const it = await choir({}, ['shut', 'open'])
  expect((await it.ask('/lessons')).html).toContain('href="/lessons/1?course=open"')
  expect((await it.ask('/')).html).not.toContain('href="/lessons/1"')
  const mixed = await choir({}, ['daily', 'open'])
  expect((await mixed.ask('/api/email/unsubscribe?s=a&t=b')).html).toContain('<option value="Europe/Vienna">')
  const refused = await it.ask('/api/email/subscribe', 'en', { email: 'ada', course: 'open' })
  expect(refused).toMatchObject({ status: 400, html: expect.stringContaining('name="course" value="open"') })
})

test('the page of a confirmation says when the lessons of its own course come', async () => {
  const it = await choir({}, ['rare', 'daily'])
  for (const course of ['rare', 'daily'])
    await it.platform.courses.subscribe({ email: 'ada@example.com', course })
  await (await it.platform.course()).close()
  const [rare = '', daily = ''] = it.messages.map((message) => linkIn(message, '/confirm'))
  expect((await it.ask(rare)).html).toContain('A lesson comes every 3 days')
  expect((await it.ask(daily)).html).toContain('Lessons come once a day')
  // Another course may be the first by the time of the click, and this one gone by that of the next.
  expect(rare).toContain('&course=rare')
  const gone = (await it.ask(rare.replace('=rare', '=gone'))).html
  expect(gone).toContain('You are subscribed')
  expect(gone).not.toMatch(/A lesson comes|Lessons come/)
})

test('a reader changes language and time zone on the page of the unsubscribe link, which tells nothing about anybody', async () => {
  const it = await choir()
  const { courses } = it.platform
  await courses.enrol({ email: 'ada@example.com', course: 'open', timeZone: 'America/New_York' })
  it.pass(24 * 3_600_000)
  await it.platform.dispatch()
  const link = linkIn(it.messages[0], '/unsubscribe')
  const opened = await it.ask(link)
  const forged = await it.ask(link.replace(/t=[\w-]{6}/, 't=forged'))
  const parts = (html: string) => html.replaceAll(/nonce="[^"]*"|t=[\w-]+|nonce-[^']*/g, '')
  expect(parts(forged.html)).toBe(parts(opened.html))
  expect(opened.html).toContain('<option value="de">German</option>')
  expect(opened.html).toContain('<option value="Europe/Vienna">')
  const notices = '/api/email/unsubscribe?s=a.1&t=b&course=status'
  expect((await it.ask(notices)).html).not.toContain('name="preferences"')
  expect((await it.ask(notices, 'en', { undo: '1' })).html).toContain('mails about incidents again')
  const { pathname, search } = new URL(link)
  const hidden = ['undo', 'preferences'].map((name) => `<input type="hidden" name="${name}" value="1">`)
  const action = `${pathname}${search.replaceAll('&', '&amp;')}`
  expect(opened.html).toContain(`<form method="post" action="${action}">${hidden.join('')}`)
  const [{ state } = {}] = await courses.list({ email: 'ada@example.com' })
  expect(state).toBe('unsubscribed')
  const form = { preferences: '1', undo: '1', language: 'de', timeZone: 'Europe/Vienna' }
  expect(titleOf((await it.ask(link, 'en', form)).html)).toBe('Welcome back · Choir')
  const find = async () => (await it.platform.course()).find('ada@example.com', 'open')
  expect(await find()).toMatchObject({ state: 'confirmed', language: 'de', timeZone: 'Europe/Vienna' })
  expect(new Date((await find())?.dueAt ?? 0).toISOString()).toBe('2026-03-29T16:00:00.000Z')
  it.pass(8 * 24 * 3_600_000)
  await it.platform.dispatch()
  expect(linkIn(it.messages.at(-1), '/unsubscribe')).toContain('language=de')
  // Without the undo, a subscriber stays subscribed; a setting left blank stays as it was.
  const again = { preferences: '1', language: 'en', timeZone: '' }
  expect(titleOf((await it.ask(link, 'en', again)).html)).toBe('Saved · Choir')
  expect(await find()).toMatchObject({ state: 'confirmed', language: 'en', timeZone: 'Europe/Vienna' })
  expect((await it.ask(link, 'en', { preferences: '1', timeZone: 'Mars' })).status).toBe(400)
  expect((await it.ask(link.replace(/t=[\w-]{6}/, 't=forged'), 'en', form)).html).toContain('Welcome back')
  expect(await find()).toMatchObject({ language: 'en' })
  for (const bad of [{ preferences: '1', timeZone: 'Mars' }, { long: 'x'.repeat(9000) }])
    expect((await it.ask(`${pathname}?s=nobody.1&t=forged`, 'en', bad)).status).toBe(
      'long' in bad ? 413 : 400,
    )
  // Whoever changes to and fro writes to the store no faster than one who subscribes; unsubscribing stays.
  const statuses = []
  for (let n = 0; n < 31; n += 1) statuses.push((await it.ask(link, 'en', n % 2 ? form : again)).status)
  expect([statuses[0], statuses.at(-1)]).toEqual([200, 429])
  const limited = await it.ask(link, 'en', { undo: '1' })
  expect([limited.status, limited.headers?.get('retry-after')]).toEqual([429, '2'])
  // Anybody can have these answers, so they count for no alert about this route.
  const { html: metrics } = await it.ask('/metrics')
  for (const status of [400, 413, 429])
    expect(metrics).toMatch(
      new RegExp(`_http_requests_total\\{.*route="\\(forged\\)",status="${status}"\\} 1?\\d$`, 'm'),
    )
  expect(metrics).not.toMatch(/route="\(forged\)",status="[23]/)
  await it.ask(link, 'en', { 'List-Unsubscribe': 'One-Click' })
  expect(await find()).toMatchObject({ state: 'unsubscribed' })
})
