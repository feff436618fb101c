import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileFolders, compileTemplate } from '../../../src/core/mail/compile/compile.ts'
import { joinPieces } from '../../../src/core/mail/encoding.ts'
import type { Message } from '../../../src/core/mail/mailer.ts'
import { composeMessage } from '../../../src/core/mail/open.ts'
import { fill, renderMail } from '../../../src/core/mail/template.ts'
import { jsonPiecesOf } from '../../../src/core/mail/transports/forms.ts'
import { mimeOf } from '../../../src/core/mail/transports/mime.ts'
import { ROUTES } from '../../../src/daemon/routes.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { compiledMails, TEMPLATES } from '../../support/learning.ts'

const jsonBodyOf = (message: Message) => joinPieces(jsonPiecesOf(message))
const layout = readFileSync(new URL('../../../templates/layout.mjml', import.meta.url), 'utf8')
const TEMPLATE = `---
subject: Hello {{name}}
preheader: A mail
slots:
  name: { type: text, sample: Ada }
  link: { type: url, sample: https://www.example.com/ }
action: { label: Open, url: "{{link}}" }
because: A test.
---

# Hello

For **{{name}}**.
`
const compile = (source: string, by = layout) => compileTemplate({ file: 'mail.md', source, layout: by })
const samples = async (name: (typeof TEMPLATES)[number]) => {
  const mail = (await compiledMails())[name]
  return {
    mail,
    slots: Object.fromEntries(Object.entries(mail.slots).map(([slot, { sample }]) => [slot, sample])),
  }
}

test.each(TEMPLATES)(
  '%s is within 40 KB, names its language, loads nothing, and has both parts',
  async (name) => {
    const { mail, slots } = await samples(name)
    const { subject, html, text } = renderMail(mail, slots)
    expect(Buffer.byteLength(html)).toBeLessThanOrEqual(40 * 1024)
    expect(html).toMatch(/<html[^>]* lang="en"/)
    expect(html).not.toMatch(/<img|<link|<script|@import|url\(/i)
    expect(text.length).toBeGreaterThan(100)
    expect(subject + html + text).not.toMatch(/\{\{|\}\}|slotx/)
  },
)

test.each(TEMPLATES.filter((name) => name.startsWith('course-day-')))(
  '%s is a lesson of 250 to 500 words, and every link of it is a route of the platform',
  async (name) => {
    const { mail, slots } = await samples(name)
    const words = mail.body
      .join('')
      .replace(/<[^>]+>/g, ' ')
      .split(/\s+/)
      .filter(Boolean).length
    expect(words).toBeGreaterThanOrEqual(250)
    expect(words).toBeLessThanOrEqual(500)
    const paths = Object.values(ROUTES).map(({ path }) => new RegExp(`^${path.replace(/:\w+/g, '[^/]+')}$`))
    const links = [...renderMail(mail, slots).html.matchAll(/href="([^"]+)"/g)].map(
      ([, href = '']) => new URL(href).pathname,
    )
    expect(links.length).toBeGreaterThanOrEqual(2)
    for (const link of links)
      expect(
        paths.some((path) => path.test(link)),
        link,
      ).toBe(true)
  },
)

test.each([
  [
    'an unknown slot',
    TEMPLATE.replace('**{{name}}**', '**{{nmae}}**'),
    /^mail\.md:13: there is no slot nmae; this template has name, link$/,
  ],
  [
    'a slot, and none declared',
    '---\nsubject: Hi {{name}}\n---\n\nHello\n',
    /^mail\.md:2: there is no slot name; this template has none$/,
  ],
  [
    'a slot that is never used',
    TEMPLATE.replace('  link:', '  other: { type: text, sample: x }\n  link:'),
    /^mail\.md:6: the slot other is never used; write \{\{other\}\} where it belongs$/,
  ],
  [
    'a slot inside a tag',
    TEMPLATE.replace('**{{name}}**', '<b style="color:{{name}}">x</b>'),
    /^mail\.md:\d+: the slot name is inside a tag/,
  ],
  [
    'a text slot as an address',
    TEMPLATE.replace('**{{name}}**', '[x]({{name}})'),
    /the slot name is inside a tag/,
  ],
  [
    'an image from elsewhere',
    TEMPLATE.replace('**{{name}}**', '![{{name}}](https://tracker.example/pixel.png)'),
    /^mail\.md:13: a mail loads nothing from elsewhere/,
  ],
])('a template with %s does not compile, and says where', async (_, source, sentence) => {
  await expect(compile(source)).rejects.toThrow(sentence)
})

test('a program in a lesson keeps its indentation and blank lines in the HTML, and may name what others load', async () => {
  const program = 'def fire(kiln):\n    if kiln.cold:\n        return 1\n\n    return 2'
  const list = `1. Add:\n\n   \`\`\`yaml\n   kiln:\n     cones:\n       - 6\n   \`\`\``
  const told = 'Write `@import`, `<link`, and src=https://a.example/ or url(https://a.example/) in CSS.'
  const code = `\`\`\`\n${program}\n\`\`\`\n\n${list}\n\n${told}\n`
  const { html } = renderMail(await compile(`${TEMPLATE}\n${code}`), {
    name: 'Ada',
    link: 'https://a.example/',
  })
  expect(html).toContain(`<pre><code>${program}\n</code></pre>`)
  expect(html).toContain('kiln:\n  cones:\n    - 6\n')
  expect(html).toContain('<code>@import</code>')
  // Only there: white space that nobody sees is no part of the mail.
  expect(html.replace(/<pre[\s\S]*?<\/pre>/g, 'pre')).not.toMatch(/\n\s/)
})

test.each([
  '<p title="a > b" style="background:url(https://a.example/x.png)">x</p>',
  "<img alt='a > b' src='//a.example/x.png'>",
  '<style>td > p { background: url(https://a.example/x.png) }</style>',
  '<style>\n@import "x.css";</style>',
  '<link rel="stylesheet" href="x.css">',
  '<img src="data:image/png;base64,AA" srcset="https://a.example/x.png 2x" alt="">',
  '<picture><source srcset="a.png 1x, //a.example/x.png 2x"></picture>',
  '<video poster="https://a.example/x.png"></video>',
  '<p style="background: image-set(\'https://a.example/x.png\' 1x)">x</p>',
  `<p style="background: image-set('data:image/png;base64,AA' 1x, 'https://a.example/x.png' 2x)">x</p>`,
  '<img src="data:," srcset="data:image/png;base64,LONG 1x, https://a.example/x.png 2x" alt="">',
  '<img src=" https://a.example/x.png" alt="">',
  '<img alt=""\nsrc=&#104;ttps://a.example/x.png>',
  '<svg><image href="https://a.example/x.png"/></svg>',
  '<svg><use xlink:href="//a.example/x.svg#a"/></svg>',
  '<object data="https://a.example/x.svg"></object>',
  `<iframe srcdoc="<img src='https://a.example/x.png'>"></iframe>`,
  '<svg><rect fill="url(https://a.example/x.svg#a)"/></svg>',
  '<img src="data:," srcset="a.png 1x,//a.example/x.png 2x" alt="">',
  '<table background="https://a.example/x.png"><tr><td>x</td></tr></table>',
])('a mail with %s does not compile: it would load something', async (markup) => {
  const source = `${TEMPLATE}\n${markup.replace('LONG', 'A'.repeat(1100))}\n`
  await expect(compile(source)).rejects.toThrow('a mail loads nothing from elsewhere')
})

test.each([
  '<img srcset="data:image/png;base64,AA 2x" src="data:image/png;base64,AA" alt="as on https://a.example">',
  '<img srcset="data:image/png;base64,AA 2x" src="data:image/png;base64,AA" title="=//">',
  `<p style="background: url(&quot;data:image/svg+xml;utf8,<svg xmlns='http://www.w3.org/2000/svg'/>&quot;)">x</p>`,
  '<img src="data:audio/mpeg;base64,//uQxA" srcset="data:image/png;base64,//AA 2x" alt="">',
  '<a href="https://a.example/?src=//b.example" title="url(https://a.example)">x</a>',
])('a mail with %s compiles: it loads nothing', async (markup) => {
  await expect(compile(`${TEMPLATE}\n${markup}\n`)).resolves.toBeDefined()
})

test('what a layout loads for Outlook alone is found too, at its line', async () => {
  const picture = '<v:fill src="https://a.example/x.png" />'
  for (const condition of ['mso', '!mso'])
    for (const [open, close] of [
      [`<!--[if ${condition}]>`, '<![endif]-->'],
      [`<!--[if ${condition}]><!-->`, '<!--<![endif]-->'],
    ]) {
      const raw = `<mj-raw>\n${open}${picture}${close}\n</mj-raw>\n</mj-body>`
      const outlook = layout.replace('</mj-body>', raw)
      const line = outlook.split('\n').findIndex((one) => one.includes(picture)) + 1
      const compiled = compileTemplate({ file: 'mail.md', source: TEMPLATE, layout: outlook })
      await expect(compiled).rejects.toThrow(`layout.mjml:${line}`)
    }
})

test('a comment in a lesson reaches nobody, and one in a program is shown', async () => {
  const mail = await compile(
    `${TEMPLATE}\n<!-- TODO Anna -->\n\nClay <!-- TODO Ben -->\n\n\`\`\`\n<!-- shown -->\n\`\`\`\n`,
  )
  const slots = { name: 'Ada', link: 'https://a.example/' }
  const { html, text } = renderMail(mail, slots)
  const page = fill(mail.body, slots)
  expect(`${html}${text}${page}`).not.toContain('TODO')
  for (const one of [html, page]) expect(one).toContain('&lt;!-- shown --&gt;')
  expect(text).toContain('<!-- shown -->')
})

test('a text slot stays text in the HTML and one line in the subject, whatever its value', async () => {
  const mail = await compile(TEMPLATE)
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), (name) => {
      let rendered: ReturnType<typeof renderMail>
      try {
        rendered = renderMail(mail, { name, link: 'https://www.example.com/' })
      } catch (error) {
        // Only line ends, control characters and those that turn the direction are refused.
        expect(String(error)).toMatch(/is not a text/)
        return
      }
      const tags = (html: string) => html.match(/<[^>]*>/g)?.length
      expect(tags(rendered.html)).toBe(
        tags(renderMail(mail, { name: 'x', link: 'https://www.example.com/' }).html),
      )
      expect(rendered.subject).not.toMatch(/[\r\n]/)
    }),
    { numRuns: 300 },
  )
})

test.each(['\u202a', '\u202e', '\u2066', '\u2069'])(
  'a text slot takes no mark that turns the direction: %j',
  async (mark) => {
    const mail = await compile(TEMPLATE)
    const render = (name: string) => renderMail(mail, { name, link: 'https://www.example.com/' }).subject
    expect(() => render(`Ada${mark}`)).toThrow('is not a text')
    // What writers of right-to-left scripts type is a text.
    expect(render('עדה\u200fAda')).toContain('עדה\u200fAda')
  },
)

const MJML = TEMPLATE.slice(0, TEMPLATE.indexOf('# Hello')).concat(`<mj-text mj-class="body">
  <h1>Hello</h1>
  <p>For <strong>{{name}}</strong>, with <a href="{{link}}">a link</a>.</p>
  <ul><li>one</li><li>two</li></ul>
</mj-text>
<mj-image src="data:image/png;base64,AA==" alt="A circuit of two gates" />
`)
const compileMjml = (source: string, by = layout) =>
  compileTemplate({ file: 'mail.mjml', source, layout: by })

test('a body in MJML is laid out like one in Markdown, and its plain text says the same', async () => {
  const mail = await compileMjml(MJML)
  const { html, text } = renderMail(mail, { name: 'Ada & co', link: 'https://www.example.com/?a=1&b=2' })
  expect(html).toContain(
    'For <strong>Ada &amp; co</strong>, with <a href="https://www.example.com/?a=1&amp;b=2">',
  )
  expect(html).toMatch(/class="ink"/)
  expect(text).toContain('Hello\n=====\n')
  expect(text).toContain('For Ada & co, with a link (https://www.example.com/?a=1&b=2).')
  expect(text).toContain('- one\n- two')
  expect(text).toContain('A circuit of two gates')
  expect(text).toContain('Open: https://www.example.com/?a=1&b=2')
})

test.each([
  [
    'an element that MJML does not have',
    MJML.replace('<mj-image', '<mj-picture'),
    /^mail\.mjml:16: .*mj-picture/,
  ],
  [
    'an unknown slot',
    MJML.replace('<strong>{{name}}', '<strong>{{nmae}}'),
    /^mail\.mjml:13: there is no slot nmae/,
  ],
  [
    'a slot in a style',
    MJML.replace('<strong>', '<strong style="color:{{name}}">'),
    /^mail\.mjml:13: the slot name is inside a tag/,
  ],
])('a body in MJML with %s does not compile, and says where', async (_, source, sentence) => {
  await expect(compileMjml(source)).rejects.toThrow(sentence)
})

test('a layout with a part that does not exist does not compile, and says where', async () => {
  await expect(compile(TEMPLATE, layout.replace('{{footer}}', '{{foot}}'))).rejects.toThrow(
    /^layout\.mjml:\d+: there is no foot; the layout has subject, preheader, body/,
  )
})

test('a layout that loads something from elsewhere is at fault, and not the mail', async () => {
  const by = layout.replace('{{body}}', '{{body}}<mj-image src="https://tracker.example/pixel.png" />')
  await expect(compile(TEMPLATE, by)).rejects.toThrow(
    /^layout\.mjml:[2-9]\d*: a mail loads nothing from elsewhere/,
  )
})

test.each([
  [
    'leaves a slot of the platform unused',
    { name: 'text', link: 'url', team: 'text' },
    /^mail\.md:1: the slot team is never used; write \{\{team\}\} where it belongs$/,
  ],
  [
    'declares a slot of the platform with another type',
    { name: 'url', link: 'url' },
    /^mail\.md:5: the slot name has the type url$/,
  ],
  [
    'declares a slot that the platform does not fill',
    { link: 'url' },
    /^mail\.md:5: nothing fills the slot name: the platform fills link$/,
  ],
] as const)('rejects a template that %s', async (_, slots, sentence) => {
  await expect(compileTemplate({ file: 'mail.md', source: TEMPLATE, layout, slots })).rejects.toThrow(
    sentence,
  )
})

describe('a template that says no more than its subject', () => {
  const source = '---\nsubject: First steps\n---\n\n# Hello\n\nWedge the clay.\n'
  const lesson = { lessonUrl: 'url', unsubscribeUrl: 'url' } as const
  const slots = { lessonUrl: 'https://kiln.example/lessons/1', unsubscribeUrl: 'https://kiln.example/end' }

  test('is a mail without a button, which says why it came', async () => {
    const mail = renderMail(await compileTemplate({ file: 'mail.md', source, layout }), {})
    expect(mail.subject).toBe('First steps')
    expect(mail.text).toBe(
      'Hello\n=====\n\nWedge the clay.\n\n--\nYou get this mail because you gave us this address.\n',
    )
    expect(mail.html).toContain('You get this mail because you gave us this address.')
    expect(mail.html).not.toContain('href')
  })

  test.each([
    ['en', 'Read it in your browser', 'because you are in this course', 'Unsubscribe'],
    ['de', 'Im Browser lesen', 'weil Sie an diesem Kurs teilnehmen', 'Abmelden'],
  ])('as a lesson it leads to its page and out of the course (%s)', async (language, ...texts) => {
    const compiled = await compileTemplate({ file: '1-hello.md', source, layout, language, slots: lesson })
    const { html, text } = renderMail(compiled, slots)
    for (const part of [html, text])
      for (const wanted of [...texts, ...Object.values(slots)]) expect(part).toContain(wanted)
    const own = source.replace('---\n\n', 'text: My own.\n---\n\n')
    const ownText = await compileTemplate({ file: '1.md', source: own, layout, language, slots: lesson })
    const written = renderMail(ownText, slots).text
    expect(written).toMatch(/^My own\.\n/)
    for (const wanted of [...texts.slice(1), slots.unsubscribeUrl]) expect(written).toContain(wanted)
  })
})

test('a slot is filled in the label of the button, in the reason and in what the unsubscribe link says', async () => {
  const source = `---
subject: A kiln
slots:
  kiln: { type: text, sample: Gas }
  unsubscribeUrl: { type: url, sample: https://kiln.example/end }
action: { label: "Book {{kiln}}", url: "{{unsubscribeUrl}}" }
because: "You asked for {{ kiln }}."
unsubscribe: "No more of {{kiln}}"
---

Hello.
`
  const filled = { kiln: '<Raku>', unsubscribeUrl: 'https://kiln.example/end' }
  const { html, text } = renderMail(await compile(source), filled)
  for (const says of ['Book <Raku>', 'You asked for <Raku>.', 'No more of <Raku>']) {
    expect(text).toContain(says)
    expect(html).toContain(says.replace('<Raku>', '&lt;Raku&gt;'))
  }
})

// The second has fewer letters than there may be bytes.
test.each(['many words '.repeat(10_000), 'много слов '.repeat(6_000)])(
  'a mail whose HTML clients would clip does not compile',
  async (words) => {
    await expect(compile(`${TEMPLATE}\n${words}`)).rejects.toThrow(
      /^mail\.md:1: the HTML is \d+ bytes, and mail clients clip at 100000$/,
    )
  },
)

test.each(['> ', '- '])('a mail that nests %j too deeply does not compile', async (level) => {
  await expect(compile(`${TEMPLATE}\n${level.repeat(5_000)}a`)).rejects.toThrow(
    /^mail\.md:1: it is nested too deeply$/,
  )
})

test('a plain text of one’s own takes the place of the one that is made', async () => {
  const mail = await compile(TEMPLATE.replace('because:', 'text: "Dear {{name}}, hello."\nbecause:'))
  const { text } = renderMail(mail, { name: 'Ada', link: 'https://www.example.com/' })
  expect(text).toMatch(/^Dear Ada, hello\.\n\nOpen: https:\/\/www\.example\.com\/\n/)
})

test.each(TEMPLATES)('%s, composed anew, has the same bytes over SMTP and over a mail API', async (name) => {
  const { mail: compiled, slots } = await samples(name)
  const compose = () =>
    composeMessage(
      {
        template: name,
        slots: { ...slots },
        to: { name: undefined, address: 'ada@example.com' },
        about: 'record.1',
        date: new Date('2026-11-21T04:00:00Z'),
        ...(slots.unsubscribeUrl === undefined ? {} : { unsubscribeUrl: slots.unsubscribeUrl }),
      },
      structuredClone(compiled),
      { name: 'Course', address: 'course@example.com' },
      undefined,
    )
  const [first, second] = [compose(), compose()]
  expect(mimeOf(second).equals(mimeOf(first))).toBe(true)
  expect(jsonBodyOf(second).equals(jsonBodyOf(first))).toBe(true)
  // A transport of one's own has no compiled parts to go by, and still sees the same mail.
  const { source: _, ...bare } = first
  const html = (bytes: Buffer) => (JSON.parse(bytes.toString()) as { html: string }).html
  expect(html(jsonBodyOf({ ...bare }))).toBe(html(jsonBodyOf(first)))
})

test('another record, another template or another day has another Message-ID', async () => {
  const { mail: compiled, slots } = await samples('course-day-1')
  const of = (template: (typeof TEMPLATES)[number], about: string) =>
    composeMessage(
      { template, slots, to: { name: undefined, address: 'a@example.com' }, about, date: new Date(0) },
      compiled,
      { name: undefined, address: 'course@example.com' },
      undefined,
    )
  const messages = [of('course-day-1', 'a'), of('course-day-1', 'b'), of('course-day-2', 'a')]
  expect(new Set(messages.map(({ messageId }) => messageId)).size).toBe(3)
  expect(new Set(messages.map(({ key }) => key)).size).toBe(3)
})

test.each(['subscription-confirmation', 'magic-link'] as const)(
  '%s shows its address as text too, for readers whose button does not work',
  async (name) => {
    const { mail, slots } = await samples(name)
    const { html } = renderMail(mail, slots)
    const shown = html.replace(/<[^>]+>/g, '').replaceAll('&amp;', '&')
    expect(shown).toContain(`copy this address into your browser: ${Object.values(slots)[0]}`)
  },
)

test('a fault of ours while a mail is compiled is not blamed on its template', async () => {
  const fault = new RangeError('no slots')
  const definition = {
    name: 'welcome',
    get slots(): never {
      throw fault
    },
  }
  await expect(compileFolders({ ...learning.mails, definitions: [definition] })).rejects.toBe(fault)
})
