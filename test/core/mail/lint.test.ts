import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { blend, parseColour } from '../../../src/core/colour.ts'
import { compileTemplate } from '../../../src/core/mail/compile/compile.ts'
import { lintCompiled, lintMails } from '../../../src/core/mail/lint/lint.ts'
import { LINT_RULES, type LintRule } from '../../../src/core/mail/lint/rules.ts'
import { PAGES } from '../../../src/daemon/routes.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
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

const body = (text: string) => ({ source: `${SOURCE}\n${text}\n` })
const subject = (text: string) => ({ source: SOURCE.replace('A plain subject', text) })

/** A mail for each rule that has that fault and no other of its kind. */
const FAULTS: readonly (readonly [LintRule, Change, string])[] = [
  [
    'link-without-route',
    { source: SOURCE.replace('https://www.example.com/ }', 'https://www.example.com/nowhere }') },
    'mails/welcome.md:5',
  ],
  ['link-unsafe', body('[x](/relative)'), 'mails/welcome.md:14'],
  ['link-unsafe', body('[x](javascript:alert%281%29)'), 'mails/welcome.md:14'],
  ['link-misleads', body('[www.bank.example](https://elsewhere.example/)'), 'mails/welcome.md:14'],
  ['link-shortened', body('[more](https://bit.ly/x)'), 'mails/welcome.md:14'],
  ['html-large', body('word '.repeat(8000)), 'mails/welcome.md:1'],
  [
    'contrast-low',
    {
      layout: LAYOUT.replaceAll('color="#5a6070"', 'color="#b0b0b0"').replace(
        '.foot a { color: #5a6070; }',
        '.foot a {}',
      ),
    },
    'mails/layout.mjml',
  ],
  [
    'contrast-low',
    { layout: LAYOUT.replace('h2 { color: #e8eaf0 !important; }', 'h2 { color: #333333 !important; }') },
    'mails/welcome.md',
  ],
  ['support-missing', body('<div style="display: grid">x</div>'), 'mails/welcome.md:14'],
  ['support-missing', body('<p style="position: fixed">x</p>'), 'mails/welcome.md:14'],
  ['support-partial', body('<p style="margin: 3px">x</p>'), 'mails/welcome.md:14'],
  ['plain-text-missing', { source: SOURCE.replace('because:', 'text: Hi.\nbecause:') }, 'mails/welcome.md:7'],
  ['subject-long', subject('word '.repeat(16).trim()), 'mails/welcome.md:2'],
  ['subject-shouts', subject('OPEN THIS NOW'), 'mails/welcome.md:2'],
  ['subject-shouts', subject('Open this!!'), 'mails/welcome.md:2'],
  ['subject-pretends', subject('"Re: your question"'), 'mails/welcome.md:2'],
  ['words-of-spam', body('Click here, it is risk-free.'), 'mails/welcome.md:14'],
  ['preheader-long', { source: SOURCE.replace('A mail', 'word '.repeat(30)) }, 'mails/welcome.md:3'],
  ['links-many', body('[a](https://a.example/) '.repeat(9)), 'mails/welcome.md:1'],
  [
    'image-without-alt',
    { layout: LAYOUT.replace('{{body}}', '{{body}}<mj-image src="data:image/png;base64,AA==" />') },
    'mails/layout.mjml',
  ],
  [
    'images-without-text',
    body(
      '![a](data:image/png;base64,AA==) ![b](data:image/png;base64,AA==) ![c](data:image/png;base64,AA==)',
    ),
    'mails/welcome.md',
  ],
  ['image-embedded', body('![a bowl](data:image/png;base64,AA==)'), 'mails/welcome.md:14'],
  [
    'image-embedded',
    { layout: LAYOUT.replace('{{body}}', '{{body}}<mj-image alt="" src="data:image/png;base64,AA==" />') },
    'mails/layout.mjml',
  ],
  ['text-hidden', body('<p style="display:none">secret words</p>'), 'mails/welcome.md:14'],
  [
    'content-active',
    body('<form action="https://a.example/"><input name="x"></form>'),
    'mails/welcome.md:14',
  ],
  ['language-missing', { layout: LAYOUT.replace('<mjml lang="en">', '<mjml>') }, 'mails/layout.mjml:1'],
  [
    'unsubscribe-missing',
    { name: 'course-day-1', layout: LAYOUT.replace('{{footer}}', 'Nothing') },
    'mails/layout.mjml',
  ],
]

test.each(FAULTS)(
  '%s is found, and the finding points at the line that was written',
  async (id, change, place) => {
    const findings = await lint(change)
    const found = findings.filter((finding) => finding.id === id)
    expect(findings.map((finding) => finding.id)).toContain(id)
    expect(found.map(({ location }) => `${location?.file}:${location?.line}:`)).toContainEqual(
      expect.stringMatching(new RegExp(`^${place.replaceAll('.', '\\.')}:`)),
    )
    for (const { cause, fix } of found) expect(`${cause} ${fix}`).toMatch(/^[A-Z].*\.? .*$/)
  },
)

test('a mail without a fault has no finding', async () => {
  expect((await lint({})).filter(({ severity }) => severity !== 'notice')).toEqual([])
})

test('every rule about one mail that compiles has a mail that breaks it', () => {
  const covered = new Set<string>(FAULTS.map(([id]) => id))
  const rest = Object.keys(LINT_RULES).filter((id) => !covered.has(id))
  expect(rest).toEqual(['template-broken', 'template-unused', 'translation-missing', 'language-unspoken'])
})

test('the mails of the package pass, with no warning', async () => {
  const { ok, mails, findings } = await lintMails(learning.mails, shown, PAGES)
  expect(ok).toBe(true)
  expect(mails).toHaveLength(14)
  for (const { htmlBytes } of mails) expect(htmlBytes).toBeLessThanOrEqual(40 * 1024)
  expect(findings.filter(({ severity }) => severity !== 'notice')).toEqual([])
})

test('what is half transparent counts as painted, and what is no color as unknown', () => {
  const half = parseColour('rgba(0, 0, 0, 0.5)')
  const white = parseColour(' White')
  expect(half && white && blend(half, white).toHex()).toBe('#808080')
  expect(parseColour('linear-gradient(red, blue)')).toBeUndefined()
})
