import { mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { noticeSamples } from '../../../src/cli/preview/page.ts'
import { openSender } from '../../../src/cli/preview/sender.ts'
import { servePreview } from '../../../src/cli/preview/server.ts'
import { testContext } from '../../support/context.ts'
import { kilnSchool } from '../../support/kiln-school.ts'

/** The text of a page, without its marks, form and style. */
function textOf(html: string): string {
  return html
    .replace(/^[\s\S]*<main>/, '')
    .replaceAll(/<(script|datalist|select|style)[\s\S]*?<\/\1>/g, '')
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll('&#39;', "'")
    .replaceAll(/\s+/g, ' ')
    .trim()
}

describe('the pages of courses and languages', () => {
  let folder: string
  let school: Awaited<ReturnType<typeof kilnSchool>>
  let preview: Awaited<ReturnType<typeof servePreview>>
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'platformctl-test-'))
    school = await kilnSchool(folder)
    const { courses, language } = school.platform
    preview = await servePreview(school.workshop, 0, openSender(testContext().context, {}), {
      courses,
      language,
      zone: 'Asia/Kathmandu',
      now: () => Date.parse('2026-11-22T12:00:30Z'),
      notices: noticeSamples(school.platform),
    })
  })
  afterAll(async () => {
    await preview.close()
    school.workshop.close()
    await rm(folder, { recursive: true })
  })

  const open = async (path: string) => {
    const response = await fetch(`${preview.url}${path}`)
    const html = await response.text()
    return { html, text: textOf(html), policy: response.headers.get('content-security-policy') }
  }
  const BERLIN = 'course=firing&zone=Europe/Berlin&start=2026-03-28T01:00'

  test('a course is a list of what is due when, in the order of time', async () => {
    const { text, html } = await open(`/courses?${BERLIN}&language=en`)
    const order = [
      'First firing 3 lessons · daily at 02:30, the subscriber’s zone',
      'Takes 2 days',
      'March 2026',
      'Sat, Mar 28, 2026 01:00 UTC+1 Confirmed',
      'Sat, Mar 28, 2026 02:30 UTC+1 Lesson 1 Wedging the clay',
      'Sun, Mar 29, 2026 03:00 UTC+2 Clocks in Europe/Berlin go forward by 1 hour: 02:00 becomes 03:00',
      'Sun, Mar 29, 2026 03:30 UTC+2 Lesson 2 Centering',
      'The clock in Europe/Berlin skips 02:30 on this day, so it is due at 03:30',
      'Mon, Mar 30, 2026 02:30 UTC+2 Lesson 3 Glazing',
    ].map((part) => text.indexOf(part))
    expect(order).toEqual([...order].sort((one, other) => one - other))
    expect(order).not.toContain(-1)
    expect(html).toContain('<time datetime="2026-03-29T01:30:00.000Z">')
    expect(text).not.toContain('translation')
  })

  test('without a choice it is the first course, begun now by somebody in the reader’s zone', async () => {
    const { html } = await open('/courses')
    expect(html).toContain('<option value="firing" selected>')
    expect(html).toContain('value="Asia/Kathmandu"')
    expect(html).toContain('type="datetime-local" value="2026-11-22T17:45"')
  })

  test('lessons are in the subscriber’s language, and a missing translation is said plainly', async () => {
    const german = (await open(`/courses?${BERLIN}&language=de-AT`)).text
    expect(german).toMatch(/Lesson 1 Den Ton schlagen .*Lesson 2 Zentrieren .*Lesson 3 Glazing/)
    expect(german).toContain('No translation into Austrian German; sent in English')
    expect(german).toContain('Without a translation into Austrian German: 1 of 3 lessons.')
    const { html, text } = await open(`/courses?${BERLIN}&language=ar`)
    expect(html).toContain('<bdi lang="ar" dir="rtl">عجن الطين</bdi>')
    expect(text.match(/No translation into Arabic/g)).toHaveLength(2)
  })

  test('shows all 365 lessons of a course with its own time zone, in both zones', async () => {
    const { text, html } = await open('/courses?course=year&zone=UTC&start=2026-01-01T00:00')
    expect(html.match(/class="lesson"/g)).toHaveLength(365)
    expect(text).toMatch(/Jan 1, 2026 08:00 UTC Lesson 1 Day 1 .*09:00 in Europe\/Berlin/)
    expect(text).toMatch(/Jul 1, 2026 07:00 UTC Lesson 182 .*09:00 in Europe\/Berlin/)
    expect(text).toContain('December 2026')
  })

  test.each([
    ['zone=Mars/Olympus', 'Mars/Olympus is not an IANA time zone'],
    ['start=2026-02-30T10:00', '2026-02-30T10:00 is not a date and time'],
    ['language=%3Cu%3E', '&lt;u&gt; is not a language tag'],
    ['course=chess', 'There is no course chess. This is the first one.'],
    [
      'zone=Europe/Berlin&start=2026-03-29T02:30',
      'The clock skips 02:30 in Europe/Berlin. The course begins at 03:30.',
    ],
    [
      'zone=Pacific/Apia&start=2011-12-30T10:00',
      'The clock skips 2011-12-30 10:00 in Pacific/Apia. The course begins at 2011-12-31 10:00.',
    ],
    ['language=old-v2', 'old-v2 is not a language tag'],
  ])('%s is said to be what it is, and a course is shown all the same', async (query, sentence) => {
    const { html } = await open(`/courses?${query}`)
    expect(html).toContain(sentence)
    expect(html).toContain('class="lesson"')
    expect(html).not.toContain('<u>')
  })

  test.each([
    [
      'Pacific/Apia&start=2011-12-28T10:00',
      'Clocks in Pacific/Apia go forward by 1 day: Fri, Dec 30, 2011, 00:00 becomes Sat, Dec 31, 2011, 00:00',
    ],
    [
      'Europe/Berlin&start=1893-03-31T10:00',
      'Clocks in Europe/Berlin go forward by 6 minutes: 00:00 becomes 00:06',
    ],
  ])(
    'a change of the clock by a day, or by minutes and seconds, is said in words: %s',
    async (zone, said) => {
      expect((await open(`/courses?course=firing&zone=${zone}`)).text).toContain(said)
    },
  )

  test.each([
    ['Europe/Berlin&start=0050-01-01T10:00', 'Jan 1, 50'],
    ['America/New_York&start=0001-01-01T10:00', 'Jan 1, 1'],
    ['Africa/Monrovia&start=1890-06-01T10:00', 'Jun 1, 1890'],
    ['America/New_York&start=9999-12-31T10:00', 'Dec 31, 9999'],
  ])('a start in any year of the field is taken as it is: %s', async (query, date) => {
    const { html, text } = await open(`/courses?course=firing&zone=${query}`)
    expect(html).toContain('<div id="faults" role="alert"></div>')
    expect(html).toContain(`value="${query.split('=')[1]}"`)
    expect(text).toContain(`${date} 10:00`)
  })

  test('languages that are none give way to the platform’s own', async () => {
    const { html } = await open('/languages?mail=firing-1-clay&left=en-12&right=old-v2')
    expect(html).toContain('<option value="en" selected>')
    expect(html).toMatch(/src="\/mails\/(ar|de)\/firing-1-clay.html/)
  })

  test('a mail is shown in two languages side by side, each in its direction', async () => {
    const { html, policy } = await open('/languages?mail=firing-1-clay&left=de&right=ar')
    expect(html).toContain('<bdi lang="de" dir="ltr">Den Ton schlagen</bdi>')
    expect(html).toContain('<bdi lang="ar" dir="rtl">عجن الطين</bdi>')
    expect([...html.matchAll(/<iframe [^>]*src="([^"]+)"/g)].map(([, src]) => src)).toEqual([
      '/mails/de/firing-1-clay.html?scheme=light',
      '/mails/ar/firing-1-clay.html?scheme=light',
    ])
    expect(policy).toMatch(/default-src 'none'.*form-action 'self'/)
  })

  test('without a translation the page says who gets which language and which file to add', async () => {
    const { text, html } = await open('/languages?mail=firing-3-glaze&right=de')
    expect(text).toContain(
      'There is no translation into German, so readers of German get this one, in English. To translate it, write de/3-glaze.md beside 3-glaze.md.',
    )
    expect(html.match(/src="\/mails\/firing-3-glaze.html/g)).toHaveLength(2)
  })

  test('a translation of a mail in MJML is a file in MJML, also where the original is broken', async () => {
    const original = path.join(folder, 'firing/3-glaze.md')
    const ask = async () => (await open('/languages?mail=firing-3-glaze&right=de')).text
    const sentence = 'To translate it, write de/3-glaze.mjml beside 3-glaze.mjml.'
    await rename(original, `${original}.aside`)
    for (const body of ['<mj-text>Hot</mj-text>', '<mj-text>']) {
      await school.write('firing/3-glaze.mjml', `---\nsubject: Glaze\npreheader: Glaze\n---\n${body}\n`)
      await expect.poll(ask).toContain(sentence)
    }
    await school.write('firing/3-glaze.mjml', 'no front matter')
    await expect.poll(ask).toContain('3-glaze.mjml:1: a template begins with front matter')
    expect(await ask()).toContain(sentence)
    await rm(path.join(folder, 'firing/3-glaze.mjml'))
    await rename(`${original}.aside`, original)
    await expect.poll(ask).toContain('beside 3-glaze.md')
  })

  test('the engine’s own mails are compared too, and a mail that does not exist is named', async () => {
    const { text } = await open('/languages?mail=subscription-confirmation&right=de')
    expect(text).toContain('de/subscription-confirmation')
    expect((await open('/languages?mail=<x>')).html).toContain('There is no mail &lt;x&gt;')
  })

  test('a lesson that does not compile says so in the timeline and beside its original', async () => {
    await school.write('firing/de/2-wheel.md', 'no front matter')
    const fault = '2-wheel.md:1: a template begins with front matter'
    expect((await open(`/courses?${BERLIN}&language=de`)).text).toContain(fault)
    expect((await open('/languages?mail=firing-2-wheel&right=de')).text).toContain(fault)
    await school.write('firing/de/2-wheel.md', school.lesson('Zentrieren'))
  })

  test('the mail about incidents is shown for a failure, for its end and for an announcement, in each language', async () => {
    const mails = (await (await fetch(`${preview.url}/mails.json`)).json()) as {
      id: string
      samples?: Record<string, { title: string }>
    }[]
    const titles = (id: string) =>
      Object.values(mails.find((mail) => mail.id === id)?.samples ?? {}).map(({ title }) => title)
    expect(titles('status-notice')).toEqual([
      expect.stringMatching(/not working|failing/),
      expect.stringMatching(/works again/),
      expect.stringMatching(/no sign-in for ten minutes/),
    ])
    expect(titles('de/status-notice')[1]).toMatch(/wieder/)
    const { html } = await open(`/mails/status-notice.html?slot.title=Works+again`)
    expect(html).toContain('<h1>Works again</h1>')
  })

  test('every page links to the others and marks itself', async () => {
    for (const path of ['/', '/courses', '/languages']) {
      const { html } = await open(path)
      expect(html).toContain(`<a href="${path}" aria-current="page">`)
      expect(html.match(/<a href="\/(courses|languages)?"/g)).toHaveLength(3)
    }
  })
})
