import { expect, test } from 'vitest'
import { type AlertList, alertsText } from '../../../src/cli/commands/alert.ts'
import { summariseEvents, summaryText } from '../../../src/cli/commands/analytics.ts'
import { elapsedText } from '../../../src/cli/commands/dispatch.ts'
import { loadPaint, shown } from '../../../src/cli/context.ts'
import { feedbackStatusText } from '../../../src/cli/email/feedback.ts'
import { githubText } from '../../../src/cli/output/annotations.ts'
import { addressHint, cadenceText, hourText } from '../../../src/cli/output/course-text.ts'
import { liveCounts, liveText } from '../../../src/cli/output/findings-text.ts'
import { junitText } from '../../../src/cli/output/junit.ts'
import { agoText, beside, sizeText, table, wrap } from '../../../src/cli/output/text.ts'
import { durationText } from '../../../src/core/durations.ts'
import type { Finding } from '../../../src/core/finding.ts'
import type { LiveResult } from '../../../src/core/live/live.ts'
import type { MailDayCount } from '../../../src/core/mail/feedback/sending.ts'
import { escapeXml } from '../../../src/core/xml.ts'

const NOW = Date.UTC(2026, 10, 22, 12)
const paint = await loadPaint(false)

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1.0 kB'],
  [999_900, '999.9 kB'],
  [1e6, '1.0 MB'],
  [1e9, '1.0 GB'],
  [1e12, '1.0 TB'],
  [1e16, '10000.0 TB'],
])('%d bytes are %s', (bytes, text) => {
  expect(sizeText(bytes)).toBe(text)
})

test.each([
  [-5000, '0 s ago'],
  [0, '0 s ago'],
  [59_499, '59 s ago'],
  [59_500, '1 min ago'],
  [3_599_499, '59 min ago'],
  [3_600_000, '1 h ago'],
  [86_399_000, '23 h ago'],
  [86_400_000, '1 d ago'],
  [40 * 86_400_000, '40 d ago'],
])('what was %d ms before now was %s', (ms, text) => {
  expect(agoText(NOW - ms, NOW)).toBe(text)
})

test.each([
  [0.2, '1 s'],
  [89.1, '1 min 30 s'],
  [5400, '1 h 30 min'],
])('%d seconds more are %s', (seconds, text) => {
  expect(elapsedText(seconds)).toBe(text)
})

test.each([
  [172_800_000, '2 d'],
  [90_061_000, '1 d 1 h'],
  [3_605_000, '1 h'],
  [5_400_000, '1 h 30 min'],
  [61_999, '1 min 1 s'],
  [1500, '1 s'],
  [850, '850 ms'],
  [0, '0 s'],
])('%d ms are %s', (ms, text) => {
  expect(durationText(ms)).toBe(text)
})

test('a cadence names its days, its hour and whose clock it is', () => {
  expect(cadenceText({ kind: 'every', ms: 172_800_000 })).toBe('every 2 d')
  const at = { kind: 'at', minute: 9 * 60 + 5, zone: 'Europe/Berlin', weekdays: [1, 7] } as const
  expect(cadenceText(at)).toBe('Mon, Sun at 09:05, Europe/Berlin')
  expect(cadenceText({ ...at, weekdays: [], zone: undefined })).toBe('daily at 09:05, the subscriber’s zone')
  expect([hourText(0), hourText(1439)]).toEqual(['00:00', '23:59'])
})

test('columns are as wide as their widest cell, and no line ends in space', () => {
  expect(
    table([
      ['a', 'bbb', 'c'],
      ['aaaa', 'b', ''],
    ]),
  ).toBe('a     bbb  c\naaaa  b\n')
  expect(table([])).toBe('')
})

test('a hint of an address is its first character and its last domain', () => {
  expect(addressHint('ada@example.com')).toBe('a…@example.com')
  expect(addressHint('"a@b"@example.com')).toBe('"…@example.com')
  expect(addressHint('🔥a@example.com')).toBe('🔥…@example.com')
})

test('text is beside its lead where 24 columns are left, and below it where one fewer is', () => {
  const text = 'one two three four five'
  expect(beside('lead  ', text, 30)).toBe('lead  one two three four five')
  expect(beside('lead  ', text, 29)).toBe('lead\n    one two three four five')
  expect(beside('lead  ', `${text} six`, 30)).toBe('lead  one two three four five\n      six')
  // Escape sequences have no width.
  expect(beside('\u001b[1mlead\u001b[0m  ', text, 30).split('\n')).toHaveLength(1)
  expect(wrap('averylongword x', 5)).toEqual(['averylongword', 'x'])
})

test('XML holds no character that it cannot hold, and nothing ends an attribute or an element', () => {
  expect(escapeXml(`<a b="c" d='e'>&\n\t\u0000\u000b\u001f\r`)).toBe(
    '&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;\n\t',
  )
  // Neither these two nor half of a pair are characters of XML 1.0 (§2.2).
  expect(escapeXml('a\ufffe\uffff\ud800b\udc00🔥é')).toBe('ab🔥é')
})

const finding = (parts: Partial<Finding> = {}): Finding => ({
  id: 'one',
  severity: 'warning',
  services: ['web'],
  group: 'mail',
  present: ['A'],
  missing: [],
  cause: 'A <b> fails.',
  fix: 'Mend 100 % of it.',
  ...parts,
})

test('GitHub is told each finding at its place, with what would end a field escaped', () => {
  const text = shown(
    githubText(
      [
        finding({ location: { file: 'a,b:c%\n.env', line: 3, column: 7 }, cause: 'one\r\ntwo' }),
        finding({ severity: 'notice' }),
        finding({ severity: 'error' }),
      ],
      [live()],
    ),
    false,
  )
  expect(text.split('\n')).toEqual([
    '::warning file=a%2Cb%3Ac%25%0A.env,line=3,col=7,title=one::one%0D%0Atwo Mend 100 %25 of it.',
    '::notice title=one::A <b> fails. Mend 100 %25 of it.',
    '::error title=one::A <b> fails. Mend 100 %25 of it.',
    '::notice title=live checks::1 passed',
    '',
  ])
  expect(shown(githubText([], [live()]), false)).toBe('::notice title=live checks::1 passed\n')
})

/** One result of a live check, of which only what a text shows is given. */
function live(parts: object = {}): LiveResult {
  const result = { target: 'mail', check: 'SPF', state: 'passed', detail: 'connected' }
  return { ...result, services: ['web'], variables: [], ...parts } as LiveResult
}

test('JUnit counts what fails, with strict the warnings too, and live checks that passed or were skipped', () => {
  const found = [finding(), finding({ severity: 'error' }), finding({ severity: 'notice', present: [] })]
  const others = [
    live({ latencyMs: 1234 }),
    live({ state: 'skipped', detail: 'no <mail>' }),
    live({ state: 'failed', id: 'live-name' }),
  ]
  const heads = (strict: boolean) =>
    [...junitText('pre<flight', found, strict, others).matchAll(/<testsuites? [^>]*>/g)].map(([head]) => head)
  expect(heads(false)[1]).toBe(
    '<testsuite name="pre&lt;flight" tests="5" failures="1" errors="0" skipped="1" time="1.2340">',
  )
  expect(heads(false)[0]).toContain('tests="5" failures="1"')
  expect(heads(true)[0]).toContain('failures="2"')
  for (const type of ['warning', 'error'])
    expect(junitText('pre', found, true)).toContain(`<failure type="${type}" message="A &lt;b&gt; fails.">`)
  const text = junitText('pre', found, false, others)
  expect(text).toContain('<testcase classname="pre.live.mail" name="SPF" time="1.2340"></testcase>')
  expect(text).toContain('<skipped>no &lt;mail&gt;</skipped>')
  expect(text).toContain('name="one A" time="0.0000"><failure type="error" message="A &lt;b&gt; fails.">')
  expect(text).toContain('name="one" time="0.0000"><system-out>notice: ')
  const none = junitText('pre', [], true)
  expect(none).toContain('tests="1" failures="0"')
  expect(none).toContain('name="no findings"')
  expect(junitText('pre', [], true, [live()])).toMatch(/tests="1" .*name="SPF"/s)
})

test('live checks are counted by what became of them, and those skipped for one reason share a line', () => {
  const results = [
    live({ latencyMs: 0.9 }),
    live({ check: 'DKIM', latencyMs: 1 }),
    live({ check: 'health', state: 'skipped', detail: 'no answer' }),
    live({ check: 'DMARC', state: 'skipped', detail: 'no answer' }),
    live({ target: 'store', state: 'warning', detail: 'old' }),
    live({ target: 'payments', check: 'configuration', state: 'skipped', detail: 'not configured' }),
    live({ target: 'agent', check: 'configuration', state: 'skipped', detail: 'not configured' }),
  ]
  expect(liveCounts(results)).toBe('2 passed, 1 doubtful, 4 skipped')
  expect(liveCounts([])).toBe('0 passed')
  expect(liveText(results, paint, 100).split('\n').slice(2)).toEqual([
    'mail      ✔ SPF     connected',
    '          ✔ DKIM    connected, 1 ms',
    '          ○ skipped (no answer): health, DMARC',
    'store     ▲ SPF     old',
    '○ skipped (not configured): payments, agent',
  ])
})

const counted = (parts: Partial<MailDayCount>): MailDayCount => ({
  day: '2026-11-22',
  source: 'smtp',
  kind: 'sent',
  domain: 'other',
  count: 1,
  ...parts,
})

test('a source that only reports is compared with all that was sent, and good news is no share', () => {
  const text = feedbackStatusText(
    [
      counted({ count: 150 }),
      counted({ count: 50, source: 'api', day: '2026-11-21' }),
      counted({ kind: 'hard-bounce', source: 'standard', count: 3 }),
      counted({ kind: 'delivered', source: 'standard', count: 100 }),
      counted({ kind: 'complaint', day: '2026-11-21' }),
    ],
    undefined,
  )
  const row = (name: string) =>
    text
      .split('\n')
      .find((line) => line.startsWith(name))
      ?.trim()
      .split(/ {2,}/)
  expect(row('standard')).toEqual(['standard', '0', '100', '3 (1.50%)', '0', '0', '0'])
  expect(row('2026-11-21')).toEqual(['2026-11-21', '50', '0', '0', '0', '1 (2.00%)', '0'])
  expect(row('other')).toEqual(['other', '200', '100', '3 (1.50%)', '0', '1 (0.50%)', '0'])
  expect(feedbackStatusText([], { at: 0, reason: 'bounces' })).toBe(
    'courses are paused: bounces; platformctl course resume goes on\n\nnothing was sent or reported in this time\n',
  )
})

test('a kind of event that is rare has a bar, and the quiet days before the first event have no line', () => {
  const counts = [
    { day: '2026-11-22', kind: 'b', count: 100_000 },
    { day: '2026-11-22', kind: 'a', count: 1 },
  ]
  const summary = summariseEvents(counts, { batches: 1, events: 9, bytes: undefined }, NOW, 3)
  const text = summaryText(summary, paint, 60)
  expect(text).toMatch(/ {2}a {8}1 {4}0\.0 % {2}▏\n/)
  expect(text).not.toContain('  2026-11-20')
})

test('an incident is listed with whom it concerns, what was tried, and what is due or held back', () => {
  const tried = { incident: 'i1', kind: 'opened', attempts: 2, at: NOW } as const
  const incident = {
    id: 'i1',
    cause: 'mail',
    service: 'web',
    affected: ['api'],
    reason: 'no answer',
    openedAt: NOW,
    seenAt: NOW,
    closedAt: undefined,
    acknowledgedAt: undefined,
    acknowledgedBy: undefined,
    messages: [
      { ...tried, channel: 'mail', outcome: 'pending', reason: '451' },
      { ...tried, channel: 'webhook', outcome: 'sent', reason: 'no answer' },
    ],
    due: [{ kind: 'opened', channel: 'mail' }],
    held: [{ kind: 'reminder-1', channel: 'webhook' }],
  } satisfies AlertList['incidents'][number]
  const acknowledged = { ...incident, id: 'i2', acknowledgedBy: 'ada', messages: [], due: [], held: [] }
  const list = {
    incidents: [incident, acknowledged, { ...acknowledged, id: 'i3', closedAt: NOW + 60_000 }],
    channels: ['webhook', 'mail'],
    silence: { from: NOW, until: NOW + 60_000, reason: 'deploy', by: 'ci' },
  }
  const text = alertsText(list, 200)
  expect(text.split('\n').slice(0, 11)).toEqual([
    'alerts    by webhook and by mail',
    'silence   until 2026-11-22 12:01 UTC, by ci: deploy',
    '',
    'i1  mail (web, api), open',
    '  since   2026-11-22 12:00 UTC',
    '  cause   no answer',
    '  tried   opened by mail, 2026-11-22 12:00 UTC, attempt 2: 451',
    '  sent    opened by webhook, 2026-11-22 12:00 UTC, attempt 2; before: no answer',
    '  due     opened by mail',
    '  held    reminder-1 by webhook, by the silence',
    '',
  ])
  expect(text).toContain('i2  mail (web, api), open, acknowledged by ada\n')
  expect(text).toContain('i3  mail (web, api), closed 2026-11-22 12:01 UTC\n')
})
