import { describe, expect, test } from 'vitest'
import { TemplateError } from '../../../src/core/mail/compile/files.ts'
import { markdownOfMjml, plainText, wrapText } from '../../../src/core/mail/compile/plain-text.ts'
import { readTemplate } from '../../../src/core/mail/compile/source.ts'

const read = (front: string, body = 'Hello.', file = 'mail.md') =>
  readTemplate(file, `---\n${front}\n---\n${body}`)
const faultOf = (work: () => unknown) => {
  try {
    work()
  } catch (error) {
    expect(error).toBeInstanceOf(TemplateError)
    expect(error).toMatchObject({ name: 'TemplateError', file: 'mail.md' })
    return String((error as Error).message)
  }
  return undefined
}

test('a template of only a subject has nothing else', () => {
  expect(read('subject: Hi')).toEqual({
    file: 'mail.md',
    subject: 'Hi',
    preheader: '',
    slots: {},
    action: undefined,
    because: undefined,
    unsubscribe: undefined,
    text: undefined,
    body: 'Hello.',
    language: 'markdown',
  })
})

test('everything that front matter may hold is read, with line ends of Windows too', () => {
  const source = `---
subject: Hi
preheader: A mail
slots:
  name: { type: text, sample: Ada }
  link2: { type: url, sample: https://a.example/ }
action: { label: Open, url: "{{link2}}" }
because: You asked.
unsubscribe: Leave
text: Short.
---

One

---

Two

`
  const expected = {
    subject: 'Hi',
    preheader: 'A mail',
    slots: { name: { type: 'text', sample: 'Ada' }, link2: { type: 'url', sample: 'https://a.example/' } },
    action: { label: 'Open', url: '{{link2}}' },
    because: 'You asked.',
    unsubscribe: 'Leave',
    text: 'Short.',
    body: 'One\n\n---\n\nTwo',
    language: 'mjml',
  }
  expect(readTemplate('mail.mjml', source)).toMatchObject(expected)
  expect(readTemplate('mail.mjml', source.replaceAll('\n', '\r\n'))).toMatchObject(expected)
  expect(readTemplate('mjml.md', source).language).toBe('markdown')
})

test.each([
  [
    'subject: x\nsubjct: y',
    ':3: subjct is not a key of front matter; those are subject, preheader, slots, action, because, unsubscribe, text',
  ],
  ...['/booking/1', 'example', 'javascript:alert(1)'].map((sample): [string, string] => [
    `subject: x\nslots:\n  name: { type: text, sample: Ada }\n  link: { type: url, sample: "${sample}" }`,
    ':5: the sample of the slot link is not a whole address, as https://www.example.com/',
  ]),
  ...['one\\ntwo', 'one\\ttwo', 'x'.repeat(501)].map((sample): [string, string] => [
    `subject: x\nslots:\n  name: { type: text, sample: "${sample}" }`,
    ':4: the sample of the slot name is not one line of at most 500 characters',
  ]),
  ['preheader: x', ':1: subject is needed, as text'],
  ['preheader: x\nsubject: 5', ':3: subject is needed, as text: put 5 in quotes'],
  ['subject: " "', ':2: subject is needed, as text'],
  ['subject: x\npreheader: 5', ':3: preheader is needed, as text: put 5 in quotes'],
  ['subject: x\nbecause: []', ':3: because is needed, as text'],
  ['subject: x\nunsubscribe: ""', ':3: unsubscribe is needed, as text'],
  ['subject: x\ntext: null', ':3: text is needed, as text'],
  ['subject: x\nslots: [a]', ':3: slots holds a name with { type: text or url, sample: … } for each slot'],
  [
    'subject: x\nslots:\n  Name: { type: text, sample: a }',
    ':4: a slot is named in camelCase, and Name is not',
  ],
  ['subject: x\nslots:\n  na-me: { type: text, sample: a }', ':4: a slot is named in camelCase'],
  ['subject: x\nslots:\n  name: text', ':4: the slot name has the type text or url'],
  ['subject: x\nslots:\n  name: { type: html, sample: a }', ':4: the slot name has the type text or url'],
  [
    'subject: x\nslots:\n  name:\n    type: url\n    sample: 5',
    ':6: sample is needed, as text: put 5 in quotes',
  ],
  ['subject: x\nslots:\n  name: { type: url }', ':4: sample is needed, as text'],
  ['subject: x\naction: Open', ':3: action is { label: …, url: … }'],
  ['subject: x\naction:\n  url: a', ':3: label is needed, as text'],
  ['subject: x\naction:\n  label: a\n  url: 5', ':5: url is needed, as text'],
  ['', ':2: the front matter is empty'],
  ['subject', ':2: the front matter is empty'],
  ['subject: "x', ':2: the front matter is not YAML: Missing closing "quote'],
  ['subject: x\nbecause: @x', ':3: the front matter is not YAML: Plain value cannot start with'],
  ['subject: Kilns: a start', ':2: the front matter is not YAML: put a text that has a colon in quotes'],
  [
    'subject: x\nbecause: !new kilns',
    ':3: the front matter is not YAML: put a text that begins with ! in quotes',
  ],
])('front matter of %j is a fault with its line', (front, fault) => {
  expect(faultOf(() => read(front))).toContain(`mail.md${fault}`)
})

test('a subject of several lines is one line, because a header field is', () => {
  for (const front of ['subject: >\n  Clay\n  and fire\n', 'subject: "Clay\\nand\\tfire\\x07"'])
    expect(read(front).subject).toBe('Clay and fire')
})

test.each(['', 'subject: x\n---\nHello', '---\nsubject: x\nHello', '\n---\nsubject: x\n---'])(
  'a file of %j has no front matter',
  (source) => {
    expect(faultOf(() => readTemplate('mail.md', source))).toBe(
      'mail.md:1: a template begins with front matter between two lines of ---',
    )
  },
)

test('a fault of YAML is placed by the line of the file alone', () => {
  expect(faultOf(() => read('subject: ['))).toMatch(/^mail\.md:2: .*[^.:]$/)
  expect(faultOf(() => read('subject: ['))).not.toMatch(/line|column/)
})

test('ignores trailing spaces in front matter', () => {
  expect(readTemplate('mail.md', '--- \r\nsubject: x\r\n---\t\r\nHello\r\n')).toMatchObject({
    subject: 'x',
    body: 'Hello',
  })
})

describe('the plain text of Markdown', () => {
  test.each([
    ['# Title', 'Title\n====='],
    ['## Part', 'Part\n----'],
    ['# A *b* `c`', 'A b c\n====='],
    [`# ${'x'.repeat(73)}`, `${'x'.repeat(73)}\n${'='.repeat(72)}`],
    ['One  \nTwo\nThree', 'One Two Three'],
    ['- a\n- b', '- a\n- b'],
    ['9. a\n10. b', '9. a\n10. b'],
    ['0. a\n1. b', '0. a\n1. b'],
    [`- ${'word '.repeat(15)}`, `- ${'word '.repeat(14).trim()}\n  word`],
    [`10. ${'word '.repeat(15)}`, `10. ${'word '.repeat(13).trim()}\n    word word`],
    ['```\na\n  b\n```', '    a\n      b'],
    ['[here](https://a.example/)', 'here (https://a.example/)'],
    ['[*here*](https://a.example/)', 'here (https://a.example/)'],
    ['a &lt; b &gt; c &quot;d&quot; &#39;e&#39; &amp; f', 'a < b > c "d" \'e\' & f'],
    ['&amp;lt;', '&lt;'],
    ['> quoted', '> quoted'],
    ['# Dome {{ dome }}: {{title}}\n\n## Dome', '# Dome {{ dome }}: {{title}}\n\nDome\n----'],
    ['<!-- TODO Anna: ask first -->\n\nClay', 'Clay'],
    ['Clay <!-- ask\nAnna --> and fire', 'Clay and fire'],
    ['Clay\n\n<!-- never ended', 'Clay'],
    ['`<!-- a -->`\n\n```\n<!-- b -->\n<br>\n```', '<!-- a -->\n\n    <!-- b -->\n    <br>'],
    ['H<sub>2</sub>O<br>and <kbd>Ctrl</kbd>', 'H2O and Ctrl'],
    [
      '<a class="b" href="https://a.example/"><b>here</b></a>, <a>there</a>',
      'here (https://a.example/), there',
    ],
    ['<div align="center">\n<h2>Part</h2>\n<ul><li>a</li><li>b</li></ul>\n</div>', 'Part\n----\n\n- a\n- b'],
    ['<p>See <a href="https://a.example/">here</a> &amp; there</p>', 'See here (https://a.example/) & there'],
    ['<div class="x', '<div class="x'],
    ['Gr&uuml;&szlig;e: 5&nbsp;&#8364; &mdash; R&D &sonst;', 'Grüße: 5 € — R&D &sonst;'],
    [
      '<a href="https://a.example/?a=1&amp;b=2">a</a> [b](https://b.example/?a=1&amp;copy=2)',
      'a (https://a.example/?a=1&b=2) b (https://b.example/?a=1&copy=2)',
    ],
    ['[here][x]\n\n[x]: https://a.example/ "Title"', 'here (https://a.example/)'],
  ])('%j is %j', (markdown, text) => {
    expect(plainText(markdown)).toBe(text)
  })

  test('lines have up to 72 characters, and a longer word has its own', () => {
    const [full, over] = ['x'.repeat(72), 'x'.repeat(73)]
    expect(wrapText(`${'x'.repeat(35)} ${'y'.repeat(36)} z`)).toBe(`${'x'.repeat(35)} ${'y'.repeat(36)}\nz`)
    expect(wrapText(`${'x'.repeat(35)} ${'y'.repeat(37)}`)).toBe(`${'x'.repeat(35)}\n${'y'.repeat(37)}`)
    expect(wrapText(`a ${full} b ${over} c`)).toBe(`a\n${full}\nb\n${over}\nc`)
    expect(wrapText('  a \n b\tc ')).toBe('a b c')
    expect(wrapText('')).toBe('')
    expect(wrapText('a b', 3)).toBe('a b')
    expect(wrapText('a b', 2)).toBe('a\nb')
  })
})

test.each([
  ['<mj-text>One</mj-text><mj-text>Two</mj-text>', 'One\n\nTwo'],
  ['<!-- a\nb -->One<!-- c -->', 'One'],
  [
    '<mj-button css-class="b" href="https://a.example/" color="x"> Open </mj-button>',
    '[Open](https://a.example/)',
  ],
  [
    '<a href="https://a.example/">one</a> and <a\nhref="https://b.example/">two</a>',
    '[one](https://a.example/) and [two](https://b.example/)',
  ],
  ['One<mj-image src="a.png" alt="A bowl" />Two', 'One\n\nA bowl\n\nTwo'],
  ['One<img alt="A kiln">Two', 'One\n\nA kiln\n\nTwo'],
  ['<h1>One</h1><h3 class="x">Three</h3>', '# One\n\n### Three'],
  ['<ul><li>a</li><li class="x">b</li></ul>', '- a\n- b'],
  ['One<br>Two<br />Three', 'One\nTwo\nThree'],
  ['<p>a <strong>b</strong> <b>c</b> <i>d</i></p>', 'a **b** **c** d'],
  ['<table><tr><td>a</td></tr></table><blockquote>b</blockquote><div>c</div>', 'a\n\nb\n\nc'],
  ['  <p>\n\n\n   a\t\n</p>  ', 'a'],
])('MJML of %j says %j', (mjml, markdown) => {
  expect(markdownOfMjml(mjml)).toBe(markdown)
})

test('the text part writes an address once, and a task beside its box', () => {
  expect(
    plainText('See https://www.example.com/a, [here](https://www.example.com/b), ada@example.com.'),
  ).toBe('See https://www.example.com/a, here (https://www.example.com/b),\nada@example.com.')
  expect(plainText('- [ ] sing\n- [x] listen')).toBe('- [ ] sing\n- [x] listen')
})

test('the text part keeps tables, quotes and lists within lists readable', () => {
  const markdown = `| Day | Where |
|---|---|
| Tuesday | **Great** hall |
| Friday | Café |

> Sing
> softly.

- one
  - two
- three`
  expect(plainText(markdown)).toBe(`Day      Where
-------  ----------
Tuesday  Great hall
Friday   Café

> Sing softly.

- one
  - two
- three`)
  const wide = `| Day | Where |\n|---|---|\n| Tuesday | ${'here '.repeat(16)}|\n| Friday | there |`
  const text = plainText(wide)
  expect(text).toBe(
    `Day: Tuesday\nWhere: ${'here '.repeat(12)}here\nhere here here\n\nDay: Friday\nWhere: there`,
  )
})
