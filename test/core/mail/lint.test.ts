import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { blend, parseColour } from '../../../src/core/colour.ts'
import { compileTemplate } from '../../../src/core/mail/compile/compile.ts'
import { lintCompiled } from '../../../src/core/mail/lint/lint.ts'
import { LINT_RULES, type LintRule } from '../../../src/core/mail/lint/rules.ts'
import { PAGES } from '../../../src/daemon/routes.ts'
import { MAILS } from '../../support/learning.ts'

const folder = fileURLToPath(new URL('../../../templates', import.meta.url))
const LAYOUT = readFileSync(`${folder}/layout.mjml`, 'utf8')
const SOURCE = `---
subject: A plain subject
preheader: A mail
slots:
  startUrl: { type: url, sample: https://www.example.com/ }
action: { label: Open, url: "{{startUrl}}" }
because: A test.
---

# Hello

This is the body of a mail, with some words in it, so that it is more than its footer.
`

const shown = (of: string, file: string) => `${path.basename(of)}/${file}`

interface Change {
  readonly source?: string
  readonly layout?: string
  readonly name?: string
}

async function lint({ source = SOURCE, layout = LAYOUT, name = 'welcome' }: Change, file = `${name}.md`) {
  const compiled = await compileTemplate({ file, source, layout })
  const definition = MAILS.find((mail) => mail.name === name) ?? { name }
  const files = { definition, file, source, layout, folder: 'mails', layoutFolder: 'mails' }
  return lintCompiled({ files, compiled, shown, pages: PAGES }).findings
}

const EMBEDDED = 'data:image/png;base64,AA=='
/** Paragraphs of one mail, each with the rule that it breaks. */
const PARAGRAPHS: readonly (readonly [LintRule, string])[] = [
  ['link-unsafe', '[x](/relative)'],
  ['link-unsafe', '[x](javascript:alert%281%29)'],
  ['link-misleads', '[www.bank.example](https://elsewhere.example/)'],
  ['link-shortened', '[more](https://bit.ly/x)'],
  ['support-missing', '<div style="display: grid">x</div>'],
  ['support-partial', '<p style="margin: 3px">x</p>'],
  ['words-of-spam', 'Click here, it is risk-free.'],
  ['image-embedded', `![a bowl](${EMBEDDED})`],
  ['text-hidden', '<p style="display:none">secret words</p>'],
  ['content-active', '<form action="https://a.example/"><input name="x"></form>'],
]
const FAULTY = `${SOURCE.replace('A plain subject', `"RE: ${'OPEN THIS NOW '.repeat(5).trim()}"`)
  .replace('A mail', 'word '.repeat(30))
  .replace('https://www.example.com/ }', 'https://www.example.com/nowhere }')
  .replace('because:', 'text: Hi.\nbecause:')
  .replace(/This is.*/, PARAGRAPHS.map(([, text]) => text).join('\n\n'))}
${'[a](https://a.example/) '.repeat(9)} ${`![b](${EMBEDDED})`.repeat(3)}
`
const FAULTY_LAYOUT = LAYOUT.replace('<mjml lang="en">', '<mjml>')
  .replaceAll('color="#5a6070"', 'color="#b0b0b0"')
  .replace('{{body}}', `{{body}}<mj-image src="${EMBEDDED}" />`)
  .replace('{{footer}}', 'Nothing')
const INVISIBLE = LAYOUT.replace('h2 { color: #e8eaf0 !important; }', 'h2 { color: #333333 !important; }')

/** Changes of a mail, and the rules that they break: each with the place where that was written. */
const FAULTS: readonly (readonly [Change, readonly (readonly [LintRule, string])[]])[] = [
  [
    { source: FAULTY },
    [
      ['subject-long', 'welcome.md:2'],
      ['subject-shouts', 'welcome.md:2'],
      ['subject-pretends', 'welcome.md:2'],
      ['preheader-long', 'welcome.md:3'],
      ['link-without-route', 'welcome.md:5'],
      ['plain-text-missing', 'welcome.md:7'],
      ...PARAGRAPHS.map(([id], index) => [id, `welcome.md:${13 + 2 * index}`] as const),
      ['links-many', 'welcome.md:1'],
      ['images-without-text', 'welcome.md:1'],
    ],
  ],
  [{ source: `${SOURCE}\n${'word '.repeat(8000)}` }, [['html-large', 'welcome.md:1']]],
  [
    { name: 'course-day-1', layout: FAULTY_LAYOUT },
    [
      ['contrast-low', 'layout.mjml:\\d+'],
      ['image-without-alt', 'layout.mjml:\\d+'],
      ['image-embedded', 'layout.mjml:\\d+'],
      ['language-missing', 'layout.mjml:1'],
      ['unsubscribe-missing', 'layout.mjml:\\d+'],
    ],
  ],
  [{ layout: INVISIBLE }, [['contrast-low', 'welcome.md:\\d+']]],
]

test.each(FAULTS)('each finding points at the line that was written (%#)', async (change, broken) => {
  const findings = await lint(change)
  for (const [id, place] of broken) {
    const found = findings.filter((finding) => finding.id === id)
    expect(found.map(({ location }) => `${location?.file}:${location?.line}:`)).toContainEqual(
      expect.stringMatching(new RegExp(`^mails/${place}:$`)),
    )
    for (const { cause, fix } of found) expect(`${cause} ${fix}`).toMatch(/^[A-Z].*\.? .*$/)
  }
})

test('a mail without a fault has no finding', async () => {
  expect((await lint({})).filter(({ severity }) => severity !== 'notice')).toEqual([])
})

test('every rule about one mail that compiles has a mail that breaks it', () => {
  const covered = new Set<string>(FAULTS.flatMap(([, broken]) => broken.map(([id]) => id)))
  const rest = Object.keys(LINT_RULES).filter((id) => !covered.has(id))
  expect(rest).toEqual(['template-broken', 'template-unused', 'translation-missing', 'language-unspoken'])
})

test('what is half transparent counts as painted, and what is no color as unknown', () => {
  const half = parseColour('rgba(0, 0, 0, 0.5)')
  const white = parseColour(' White')
  expect(half && white && blend(half, white).toHex()).toBe('#808080')
  expect(parseColour('linear-gradient(red, blue)')).toBeUndefined()
})
