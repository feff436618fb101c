import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { TEMPLATES } from '../../../src/core/mail/catalog.ts'
import { compileTemplate } from '../../../src/core/mail/compile/compile.ts'
import { compiledMails } from '../../../src/core/mail/compiled.ts'
import { renderMail } from '../../../src/core/mail/render.ts'
import { ROUTES } from '../../../src/core/routes.ts'

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
    'a slot that is never used',
    TEMPLATE.replace('  link:', '  other: { type: text, sample: x }\n  link:'),
    /^mail\.md:6: the slot other is declared and never used$/,
  ],
  ['no front matter', '# Hello', /^mail\.md:1: a template begins with front matter/],
  [
    'front matter that is not YAML',
    TEMPLATE.replace('preheader: A mail', 'preheader: "A mail'),
    /^mail\.md:2: the front matter is not YAML/,
  ],
  [
    'a key that means nothing',
    TEMPLATE.replace('preheader:', 'preheadr:'),
    /^mail\.md:3: preheadr is not a key of front matter/,
  ],
  [
    'a slot of an unknown type',
    TEMPLATE.replace('type: text', 'type: html'),
    /^mail\.md:5: the slot name has the type text or url$/,
  ],
  [
    'a slot inside a tag',
    TEMPLATE.replace('**{{name}}**', '<b style="color:{{name}}">x</b>'),
    /^mail\.md:\d+: the slot name stands inside a tag/,
  ],
  [
    'a text slot as an address',
    TEMPLATE.replace('**{{name}}**', '[x]({{name}})'),
    /the slot name stands inside a tag/,
  ],
  [
    'an image from elsewhere',
    TEMPLATE.replace('**{{name}}**', '![{{name}}](https://tracker.example/pixel.png)'),
    /loads nothing from elsewhere/,
  ],
])('a template with %s does not compile, and says where', async (_, source, sentence) => {
  await expect(compile(source)).rejects.toThrow(sentence)
})

test('whatever a text slot holds, it stays text in the HTML and one line in the subject', async () => {
  const mail = await compile(TEMPLATE)
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), (name) => {
      let rendered: ReturnType<typeof renderMail>
      try {
        rendered = renderMail(mail, { name, link: 'https://www.example.com/' })
      } catch (error) {
        // Only line ends and control characters are refused.
        expect(String(error)).toMatch(/is not a text/)
        return
      }
      const tags = (html: string) => html.match(/<[^>]*>/g)?.length
      expect(tags(rendered.html)).toBe(
        tags(renderMail(mail, { name: 'x', link: 'https://www.example.com/' }).html),
      )
      expect(rendered.subject).not.toMatch(/[\r\n]/)
    }),
    { numRuns: 2000 },
  )
})
