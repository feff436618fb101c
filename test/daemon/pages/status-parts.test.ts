import { inflateSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { announcementKind, type StatusUpdate, saidIn } from '../../../src/core/incidents/incident.ts'
import type { DayOfMail } from '../../../src/core/mail/feedback/sending.ts'
import { en } from '../../../src/core/messages/en.ts'
import type { RootIncident } from '../../../src/core/status/history.ts'
import type { DayState, Line, Summary } from '../../../src/core/status/summary.ts'
import { createLabels, headline } from '../../../src/core/status/words.ts'
import { bars, legend, SHAPES, sign, stateIcon } from '../../../src/daemon/pages/status/bars.ts'
import { announcementCalendar, incidentFeed } from '../../../src/daemon/pages/status/feed.ts'
import { buildName, written } from '../../../src/daemon/pages/status/format.ts'
import {
  allIncidents,
  announcements,
  closed,
  incidentBody,
  ongoing,
} from '../../../src/daemon/pages/status/incidents.ts'
import { mailSection } from '../../../src/daemon/pages/status/mail.ts'
import { badge, statusPicture } from '../../../src/daemon/pages/status/pictures.ts'
import type { StatusView } from '../../../src/daemon/pages/status/services.ts'
import { learning } from '../../../src/presets/learning/platform.ts'

const NOW = Date.UTC(2026, 10, 22, 12, 30)

/** The drawing of these days: one letter each, o, d, f or -. */
function drawn(letters: string) {
  const state: Record<string, DayState> = { o: 'ok', d: 'degraded', f: 'failing', '-': 'none' }
  const days = [...letters].map((letter) => state[letter] ?? 'none')
  // A drawing reads nothing else of its line.
  const svg = bars(en, { service: 'web', probe: 'mail', days } as unknown as Line)
  return {
    svg,
    path: (name: string) => new RegExp(`<path class="${name}" d="([^"]*)"`).exec(svg)?.[1],
  }
}

test('each run of equal days is one stroke where its days are, and each state has its own', () => {
  const { svg, path } = drawn('ood-fo')
  expect([path('o'), path('d'), path('f'), path('n')]).toEqual([
    'M0 12h8m12 0h4',
    'M0 12m8 0h4',
    'M0 12m16 0h4',
    'M0 12m12 0h4',
  ])
  expect(svg).toContain('viewBox="0 0 23 24"')
  expect(svg).toContain('aria-label="The last 6 days: 3 ok, 1 degraded, 1 failing, 1 without data"')
  expect(drawn('ooo').svg).not.toMatch(/class="[dfn]"/)
})

test('the legend shows every state in the shape of the bars', () => {
  const list = legend(en)
  for (const state of ['ok', 'degraded', 'failing']) expect(list).toContain(`</svg> ${state}</li>`)
  expect(list).toContain('</svg> no data</li>')
  for (const [, name] of list.matchAll(/<path class="(.)"/g)) expect(SHAPES).toContain(`id="p-${name}"`)
})

test('a badge is as wide as its words, says them once more for who cannot see it, and escapes a name', () => {
  const picture = badge(en, 'A <b> & C', 'degraded')
  expect(picture).not.toContain('<b>')
  expect(picture).toContain('aria-label="A &lt;b&gt; &amp; C: working, with limits"')
  expect(picture).toContain('fill="#8a5a00"')
  const plain = badge(en, undefined, 'ok')
  // 6 letters and 11, at 6.4 each, with 14 around each.
  expect(plain).toContain('width="136" height="20"')
  expect(plain).toContain('M0 0h52v20H0z')
  expect(plain).toContain('M52 0h84v20H52z')
  expect(
    [...plain.matchAll(/<text x="([\d.]+)" y="14" textLength="(\d+)"[^>]*>([^<]*)</g)].map((m) => m.slice(1)),
  ).toEqual([
    ['26', '38', 'status'],
    ['94', '70', 'all working'],
  ])
})

test('each state has a sign of its own, on the page and in the tab', () => {
  const states = ['ok', 'degraded', 'failing', 'skipped', 'unknown'] as const
  for (const state of states) {
    expect(SHAPES).toContain(`id="s-${state}"`)
    expect(sign(state)).toContain(`href="#s-${state}"`)
    expect(sign(state)).toContain(`class="sign ${state}"`)
  }
  const icons = states.map(stateIcon)
  expect(new Set(icons).size).toBe(5)
  // In an attribute of HTML, and with a # that begins no fragment.
  for (const icon of icons) expect(icon).toMatch(/^data:image\/svg\+xml,[^"'#<>\s]+$/)
})

const incident = (parts: Partial<RootIncident> = {}): RootIncident => ({
  service: 'web',
  probe: 'mail',
  state: 'failing',
  reason: 'canary',
  beganAt: NOW - 3_600_000,
  endedAt: undefined,
  lengthMs: 3_600_000,
  feltBy: [],
  ...parts,
})
function feed(incidents: readonly RootIncident[], parts: Partial<Summary> = {}) {
  // A feed reads nothing else of its summary.
  const summary = { now: NOW, since: NOW - 86_400_000, announcements: [], incidents, ...parts } as Summary
  return incidentFeed(summary, createLabels(learning), 'A & <B>', 'https://x.example')
}

test('the feed is as new as its newest change, and as its first look without any', () => {
  const updated = (text: string) => [...text.matchAll(/<updated>(.*?)<\/updated>/g)].map(([, at]) => at)
  const over = incident({ beganAt: NOW - 7_200_000, endedAt: NOW - 60_000, lengthMs: 7_140_000 })
  expect(updated(feed([incident(), over]))).toEqual([
    '2026-11-22T12:29:00.000Z',
    '2026-11-22T11:30:00.000Z',
    '2026-11-22T12:29:00.000Z',
  ])
  // A post-mortem comes after the end.
  const update = {
    id: 'u',
    subject: 'i',
    text: 'Why',
    state: 'postmortem',
    by: 'ada',
    at: NOW - 30_000,
  } as const
  const updates = [{ ...update, at: NOW - 45_000 }, update]
  expect(updated(feed([{ ...over, updates }]))).toEqual(Array(2).fill('2026-11-22T12:29:30.000Z'))
  const announced = { id: 'a', text: 'Moving', from: NOW - 90_000, until: undefined, by: 'ada' }
  expect(updated(feed([], { announcements: [{ ...announced, updates: [update] }] }))).toEqual(
    Array(2).fill('2026-11-22T12:29:30.000Z'),
  )
  const planned = { ...announced, from: NOW + 3_600_000 }
  expect(updated(feed([], { announcements: [planned] }))[0]).toBe('2026-11-22T12:30:00.000Z')
  expect(updated(feed([]))).toEqual(['2026-11-21T12:30:00.000Z'])
  expect(updated(feed([], { since: undefined }))).toEqual(['2026-11-22T12:30:00.000Z'])
})

test('an entry says what goes on and what is over, by the minute, without its reason and without markup', () => {
  const text = feed([
    incident(),
    incident({ endedAt: NOW, feltBy: ['api'], probe: 'a<b>', beganAt: NOW - 3_600_000 - 59_000 }),
  ])
  expect(text).toContain('<title>Mail (Web) has been failing since 22 Nov 2026, 11:30 UTC</title>')
  expect(text).toContain('Began 22 Nov 2026, 11:30 UTC, still ongoing.')
  expect(text).toContain('Began 22 Nov 2026, 11:29 UTC, ended 22 Nov 2026, 12:30 UTC.\nfelt by API<')
  expect(text).toContain('was failing for 1 hour</title>')
  expect(text).toContain('<title>A &amp; &lt;B&gt;: incidents</title>')
  expect(text).not.toMatch(/canary|<b>|<B>/)
  expect(text.match(/<published>[^<]*/g)).toEqual(
    ['11:30:00', '11:29:01'].map((time) => `<published>2026-11-22T${time}.000Z`),
  )
})

test('an announcement with control characters leaves the feed readable', () => {
  const text = 'No\u001b[31m sign-in\u0007\ud800 ]]> today'
  const told = feed([], { announcements: [{ id: 'a', text, from: NOW, until: undefined, by: 'ada' }] })
  expect(told).toContain('<content type="text">No[31m sign-in ]]&gt; today</content>')
  expect(told).not.toMatch(/(?!\n)\p{Cc}|\p{Cs}/u)
})

test('what failed because of a service is named apart from the services that saw it', () => {
  const text = feed([incident({ probe: 'api', feltBy: ['agent', 'job_store'] })])
  expect(text).toContain('<title>API, as seen from Web and Agent, has been failing')
  expect(text).toContain('felt by Job store</content>')
})

test('a feed holds the newest fifty incidents', () => {
  const many = Array.from({ length: 51 }, (_, n) => incident({ beganAt: NOW - n * 60_000 }))
  const text = feed(many)
  expect(text.match(/<entry>/g)).toHaveLength(50)
  expect(text).toContain('12:30 UTC</title>')
})

/** What a page of the status reads of its platform; the parts below read nothing else. */
function view(parts: Partial<Summary>, details?: StatusView['details']): StatusView {
  const summary = { now: NOW, since: NOW - 86_400_000, announcements: [], incidents: [], ...parts }
  return { summary: summary as Summary, labels: createLabels(learning), details }
}
const updatesOf = (subject: string, ...states: StatusUpdate['state'][]): StatusUpdate[] =>
  states.map((state, n) => ({
    id: `u${n}`,
    subject,
    at: NOW + n * 60_000,
    text: `said ${n}`,
    state,
    by: 'ada',
  }))
const countOf = (html: string, part: string) => html.split(part).length - 1

test('of many incidents the newest five that go on have what was said last, twelve more and twelve of those over a line', () => {
  const updates = updatesOf('i', ...Array(7).fill(undefined))
  const some = (count: number, endedAt?: number) =>
    Array.from({ length: count }, (_, n) => incident({ beganAt: NOW - n * 60_000, endedAt, updates }))
  const incidents = [...some(20), ...some(13, NOW)]
  const open = ongoing(view({ incidents })).join('\n')
  expect([countOf(open, '<article class="incident failing"'), countOf(open, '<li id=')]).toEqual([5, 12])
  expect(open.slice(0, open.indexOf('</article>')).match(/said \d/g)).toEqual(
    [6, 5, 4, 3, 2].map((n) => `said ${n}`),
  )
  const over = closed(view({ incidents }))
  expect([
    countOf(over, '<li id='),
    over.includes('<a href="incidents/index.html">All 33 incidents</a>'),
  ]).toEqual([12, true])
  expect(closed(view({ incidents: some(12, NOW) }))).not.toContain('index.html')
  expect(closed(view({}))).toContain('None since the record began (<time')
  expect(closed(view({ incidents: some(1) }))).toBe('')
  expect(allIncidents(view({ since: NOW - 91 * 86_400_000 }))).toContain('None in the last 90 days.')
  const all = [400, 401].map((count) => allIncidents(view({ incidents: some(count, NOW) })))
  expect(all.map((html) => countOf(html, '<li id='))).toEqual([400, 400])
  expect(all.map((html) => /\d+ more in/.exec(html)?.[0])).toEqual([undefined, '1 more in'])
})

test('what goes on is announced first, then what is planned, with its calendar, then what was resolved', () => {
  const one = (id: string, inMs: number, ...states: StatusUpdate['state'][]) => ({
    ...{ id, text: `It is ${id}`, from: NOW + inMs, until: undefined, by: 'ada' },
    updates: updatesOf(id, ...states),
  })
  const all = [one('over', -1, 'resolved'), one('planned', 3_600_000), one('now', -3_600_000, 'identified')]
  const html = announcements(view({ announcements: all }))
  expect(html.map((text) => /id="announcement-(\w+)"/.exec(text)?.[1])).toEqual(['now', 'planned', 'over'])
  expect(html.map((text) => text.includes('status.ics'))).toEqual([false, true, false])
  const [now = '', planned = '', over = ''] = html
  expect(now).toMatch(/since <time[^>]*2026-11-22T11:30.*It is now<.*<strong>Identified<.*said 0/)
  expect(planned).toMatch(/from <time[^>]*2026-11-22T13:30/)
  expect(over).toContain('class="announcement resolved"')
})

test('the page of an incident has all that was said, the newest first, and its post-mortem apart, the last one', () => {
  const updates = updatesOf('i', ...Array(7).fill('identified'), 'postmortem', 'postmortem')
  const over = incident({ endedAt: NOW + 3_600_000, updates })
  const html = incidentBody(over, view({}))
  const [post = '', timeline = ''] = html.split('<h2>Timeline</h2>')
  expect(timeline.match(/said \d|Ended|Began/g)).toEqual([
    ...['Ended', ...[6, 5, 4, 3, 2, 1, 0].map((n) => `said ${n}`), 'Began'],
  ])
  expect(post).toContain('>said 8<')
  expect(post).not.toContain('said 7')
  expect(html).toContain('<div class="verdict ok">')
  expect(html).not.toContain('canary')
  const open = incidentBody(incident(), view({}, { targetOf: () => undefined, mail: undefined }))
  expect(open).toContain('<div class="verdict failing">')
  expect(open).toContain('canary')
  expect(open).not.toMatch(/Ended|postmortem/)
})

const day = (sent: number, hardBounces = 0, complaints = 0, softBounces = 0): DayOfMail => ({
  day: `2026-11-${sent % 30}`,
  sent,
  hardBounces,
  softBounces,
  complaints,
})

test('rates of mail are columns, those at the limit in another color, and a line marks the limit', () => {
  const html = mailSection({ days: [day(100, 5), day(100, 4), day(100), day(0, 2)], holds: [] }, en)
  const [bounces = '', complaints = ''] = html.split('<figure>').slice(1)
  const path = (figure: string, name: string) => new RegExp(`class="${name}" d="([^"]*)"`).exec(figure)?.[1]
  // 5 and 4 of 100, and 2 of which nothing was sent: all of it.
  expect(path(bounces, 'over')).toBe('M1.5 40v-2M13.5 40v-40')
  expect(path(bounces, 'under')).toBe('M5.5 40v-2')
  expect(path(bounces, 'limit')).toBe('M0 38h15')
  expect(bounces).toContain('Hard bounces: 3.67 % (11 of 300 messages). Courses pause at 5 % in 24 hours.')
  expect([path(complaints, 'over'), path(complaints, 'under')]).toEqual(['', ''])
  // Without any, the limit stands at four fifths.
  expect(path(complaints, 'limit')).toBe('M0 8h15')
  expect(complaints).toContain('Complaints: 0 % (0 of 300 messages). Courses pause at 0.3 % in 24 hours.')
})

test('days with mail are rows, the newest first, with shares that never round a complaint away', () => {
  const html = mailSection({ days: [day(0), day(1001, 0, 1, 3), day(8, 2), day(0, 1)], holds: [] }, en)
  const rows = html.match(/<tr><th scope="row">.*?<\/tr>/g) ?? []
  const cells = rows.map((row) => [...row.matchAll(/<td[^>]*>(.*?)<\/td>/g)].map(([, cell]) => cell))
  expect(cells).toEqual([
    ['0', '1 <small>–</small>', '0', '0'],
    ['8', '2 <small>25 %</small>', '0', '0'],
    ['1001', '0', '3 <small>0.30 %</small>', '1 <small>0.100 %</small>'],
  ])
  expect(rows[0]).toContain('data-name="Complaints">0<')
  expect(mailSection({ days: [day(0)], holds: [] }, en)).not.toContain('<table')
})

test('a pause is told with its time and its reason, escaped', () => {
  const html = mailSection({ days: [day(1)], holds: [{ stream: 'mail', at: NOW, reason: '<b>' }] }, en)
  expect(html).toContain('<time datetime="2026-11-22T12:30:00.000Z">')
  expect(html).toContain('&lt;b&gt;')
  expect(html).not.toContain('<b>')
})

test('a hash is shown by its first twelve digits, another build by its first forty characters, escaped', () => {
  expect(buildName(en, null)).toBe('unstamped')
  expect(buildName(en, '0123456789abcdef')).toBe('0123456789ab')
  expect(buildName(en, '0123456789abcde')).toBe('0123456789abcde')
  expect(buildName(en, 'x'.repeat(41))).toBe('x'.repeat(40))
  expect(buildName(en, '<b>')).toBe('&lt;b&gt;')
})

test.each([
  [
    'Details: https://example.com/a?b=1&c=2.',
    'Details: <a href="https://example.com/a?b=1&amp;c=2" rel="nofollow">https://example.com/a?b=1&amp;c=2</a>.',
  ],
  [
    '(see http://example.com/x)',
    '(see <a href="http://example.com/x" rel="nofollow">http://example.com/x</a>)',
  ],
  ['javascript:alert(1) ftp://example.com', 'javascript:alert(1) ftp://example.com'],
])('what operators write, %j, has its addresses as links and nothing else', (text, html) => {
  expect(written(text)).toBe(`<p class="written" dir="auto">${html}</p>`)
  // A blank line begins a paragraph, and one line end does not.
  expect(written(' one\ntwo\n \nthree\n').match(/<p/g)).toHaveLength(2)
})

test.each([
  ['Search is slow while we move it. It ends at noon.', 'Search is slow while we move it'],
  ['Version 4.2.1 is out', 'Version 4.2.1 is out'],
  [' two\n lines ', 'two lines'],
  ['word '.repeat(30), `${'word '.repeat(16).trim()}…`],
  ['x'.repeat(90), `${'x'.repeat(80)}…`],
  [`${'x'.repeat(79)}🔥🔥`, `${'x'.repeat(79)}…`],
])('%j is announced in a title as %j', (text, title) => {
  expect(headline(text)).toBe(title)
})

test.each([
  ['de-AT', 'Umzug'],
  ['pt-BR', 'Mudança'],
  ['pt', 'Moving'],
])('an announcement is read in %s as: %s', (language, said) => {
  expect(saidIn({ text: 'Moving', translations: { de: 'Umzug', 'pt-br': 'Mudança' } }, language)).toBe(said)
})

test.each<[string, number, readonly StatusUpdate['state'][]]>([
  ['current', 0, []],
  ['planned', 1, []],
  ['resolved', 0, ['identified', 'resolved']],
  // Words without a state change none.
  ['resolved', 0, ['resolved', undefined, undefined]],
  ['current', 0, ['resolved', 'identified', undefined]],
])('an announcement is %s that begins in %i ms, after updates with the states %j', (kind, inMs, states) => {
  const updates = states.map((state, at) => ({
    id: `u${at}`,
    subject: 'p1',
    text: 'News',
    state,
    by: 'ada',
    at,
  }))
  const announcement = { id: 'p1', text: 'Moving', from: NOW + inMs, until: undefined, by: 'ada', updates }
  expect(announcementKind(announcement, NOW)).toBe(kind)
})

test('a calendar has an event for each announcement, in lines of at most 75 bytes that end as RFC 5545 says', () => {
  const from = Date.UTC(2027, 0, 10, 22)
  const update = { id: 'u1', subject: 'c1', text: 'Half done', state: undefined, by: 'ada', at: NOW + 60_000 }
  const announcements = [
    { id: 'p1', text: 'No sign-in; see a,b\\c. Later\nmore', from, until: from + 600_000, by: 'ada' },
    { id: 'c1', text: 'ü'.repeat(100), from: NOW, until: undefined, by: 'ada', updates: [update] },
    { id: 'h1', text: 'Slow', from: NOW - 600_000, until: NOW + 600_000, by: 'ada' },
  ]
  const text = announcementCalendar(
    { now: NOW, announcements } as unknown as Summary,
    createLabels(learning),
    'Kiln',
    'https://x.example',
  )
  expect(text.split('\r\n').every((line) => Buffer.byteLength(line) <= 75)).toBe(true)
  expect(text.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/)
  const lines = text.replaceAll('\r\n ', '').split('\r\n')
  expect(lines.slice(0, 2)).toEqual(['BEGIN:VCALENDAR', 'VERSION:2.0'])
  expect(lines.slice(-2)).toEqual(['END:VCALENDAR', ''])
  expect(lines).toEqual(
    expect.arrayContaining([
      'UID:announcement-p1@x.example',
      // When each was last changed.
      'DTSTAMP:20261122T123000Z',
      'DTSTAMP:20261122T123100Z',
      'DTSTART:20270110T220000Z',
      'DTEND:20270110T221000Z',
      'DTEND:20261122T124000Z',
      'SUMMARY:Kiln: No sign-in\\; see a\\,b\\\\c',
      'DESCRIPTION:No sign-in\\; see a\\,b\\\\c. Later\\nmore',
      `DESCRIPTION:${'ü'.repeat(100)}\\n\\nHalf done`,
      'URL:https://x.example/#announcement-p1',
    ]),
  )
  expect(lines.filter((line) => line.startsWith('DTEND'))).toHaveLength(2)
})

test('calendar and feed say an announcement in the language of the platform', () => {
  const translations = {
    de: 'Umzug der Suche. Danach geht es weiter.',
    fr: 'La recherche déménage. Puis tout reprend.',
  }
  const one = {
    id: 'p1',
    text: 'Search moves. Then it goes on.',
    translations,
    from: NOW,
    until: undefined,
    by: 'ada',
  }
  const summary = { now: NOW, since: NOW, announcements: [one], incidents: [] } as unknown as Summary
  const german = createLabels({ ...learning, language: 'de' })
  // English and German are shipped; the words of a platform’s own language are in its message file.
  const labels = { ...german, messages: { ...german.messages, language: 'fr' } }
  const [said = ''] = translations.fr.split('.')
  const calendar = announcementCalendar(summary, labels, 'Kiln', 'https://x.example').replaceAll('\r\n ', '')
  expect(calendar).toContain(`SUMMARY:Kiln: ${said}\r\n`)
  expect(calendar).toContain(`DESCRIPTION:${said}.`)
  const feed = incidentFeed(summary, labels, 'Kiln', 'https://x.example')
  expect(feed.split(said)).toHaveLength(3)
  for (const text of [calendar, feed]) expect(text).not.toContain('Search')
})

test('a picture for link previews is a PNG of 1200 by 630 in the color of the state', () => {
  const days = Array.from({ length: 90 }, () => 'ok' as const)
  const services = [{ whole: { days } }] as unknown as Summary['services']
  const [fine, bad] = (['ok', 'failing'] as const).map((state) => statusPicture({ state, services }))
  for (const picture of [fine, bad]) {
    const view = Buffer.from(picture ?? [])
    expect(view.subarray(1, 4).toString()).toBe('PNG')
    expect([view.readUInt32BE(16), view.readUInt32BE(20)]).toEqual([1200, 630])
    expect(view.length).toBeLessThan(30_000)
  }
  const pixelOf = (picture: Uint8Array | undefined, x: number, y: number) => {
    const view = Buffer.from(picture ?? [])
    const length = view.readUInt32BE(33)
    const rows = inflateSync(view.subarray(41, 41 + length))
    return rows
      .subarray(y * 3601 + 1 + x * 3)
      .subarray(0, 3)
      .toString('hex')
  }
  expect([pixelOf(fine, 5, 5), pixelOf(bad, 5, 5)]).toEqual(['1e7a46', 'b3261e'])
  // The cross is white, the bars of the days are green.
  expect([pixelOf(bad, 600, 240), pixelOf(bad, 62, 569)]).toEqual(['ffffff', '1e7a46'])
})
