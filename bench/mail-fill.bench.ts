import { readFileSync } from 'node:fs'
import mjml2html from 'mjml'
import { compileTemplate } from '../src/core/mail/compile/compile.ts'
import { encodedFill, type Piece, writePieces } from '../src/core/mail/encoding.ts'
import { type CompiledMail, checkSlots, type Part, renderMail } from '../src/core/mail/template.ts'
import type { Benchmark } from './harness.ts'
import { peer } from './peers.ts'

const SLOTS = [
  'name',
  'course',
  'exam',
  'score',
  'device',
  'circuit',
  'tutor',
  'city',
  'team',
  'note',
] as const
const VALUES = Object.fromEntries(
  SLOTS.map((slot, index) => [
    slot,
    index % 3 === 0 ? `Ada & "Grace" <${slot}>` : `A ${slot} of ordinary words`,
  ]),
)
const LAYOUT = readFileSync(new URL('../templates/layout.mjml', import.meta.url), 'utf8')
const PARAGRAPH =
  'A qubit is two amplitudes whose squares add up to one; looking gives 0 or 1, with the squares as chances, and replaces the qubit by that answer. Amplitudes can be negative, so they can cancel. '
const BODY = SLOTS.map((slot) => `${PARAGRAPH.repeat(2)}For **{{${slot}}}**.`).join('\n\n')
const SOURCE = `---
subject: A mail of twelve kilobytes
preheader: With ten slots
slots:
${SLOTS.map((slot) => `  ${slot}: { type: text, sample: x }`).join('\n')}
action: { label: Open, url: https://www.example.com/ }
because: A benchmark.
---

${BODY}
`

/** Fills for a fifth of a second and gives mails a second. */
async function rate(fill: () => unknown, batch: number): Promise<number> {
  let mails = 0
  const started = performance.now()
  while (performance.now() - started < 200) {
    for (let index = 0; index < batch; index += 1) await fill()
    mails += batch
  }
  return (mails / (performance.now() - started)) * 1000
}

/** The same without a turn of the event loop for each mail, for what needs none. */
async function rateSync(fill: () => unknown): Promise<number> {
  let mails = 0
  const started = performance.now()
  while (performance.now() - started < 200) {
    for (let index = 0; index < 100; index += 1) fill()
    mails += 100
  }
  return (mails / (performance.now() - started)) * 1000
}

const written = (parts: readonly Part[], slot: (name: string) => string) =>
  parts.map((part) => (typeof part === 'string' ? part : slot(part.slot))).join('')

export const benchmark: Benchmark = {
  name: 'mail-fill',
  title: 'Filling ten escaped slots of a 12 KB mail',
  unit: 'mails/s',
  better: 'higher',
  promises: [{ against: 'Eta, precompiled', ratio: 0.9 }],
  notes:
    'All write to one reused buffer. Ours also checks every value by its kind. Eta and Handlebars fill the same HTML; react-email renders components; MJML lays the mail out anew.',
  async open() {
    // As it is shipped: compiled, written as JSON, and read from that.
    const compiled = await compileTemplate({ file: 'bench.md', source: SOURCE, layout: LAYOUT })
    const mail = JSON.parse(JSON.stringify(compiled)) as CompiledMail
    const bytes = Buffer.byteLength(renderMail(mail, VALUES).html)
    if (bytes < 11_000 || bytes > 13_500) throw new Error(`the mail has ${bytes} bytes, not 12 KB`)

    const { Eta } = peer<{
      Eta: new () => { compile(text: string): Compiled; render(f: Compiled, it: object): string }
    }>('eta')
    const eta = new Eta()
    const etaTemplate = eta.compile(written(mail.html, (slot) => `<%= it.${slot} %>`))
    const handlebars = peer<{ compile(text: string): (context: object) => string }>('handlebars').compile(
      written(mail.html, (slot) => `{{${slot}}}`),
    )
    const react = peer<typeof ReactLike>('react')
    const parts = peer<Record<string, unknown>>('@react-email/components')
    const { render } = peer<{ render(element: unknown): Promise<string> }>('@react-email/render')
    const h = react.createElement
    const element = () =>
      h(
        parts.Html,
        { lang: 'en' },
        h(parts.Head),
        h(
          parts.Body,
          {},
          h(
            parts.Container,
            {},
            ...SLOTS.map((slot) =>
              h(parts.Text, {}, PARAGRAPH.repeat(3), 'For ', h('strong', {}, VALUES[slot]), '.'),
            ),
          ),
        ),
      )
    const mjml = LAYOUT.replace('{{body}}', `<mj-text>${BODY}</mj-text>`)
    const words = (text: string) => text.replace(/\{\{(\w+)\}\}/g, (_, name: string) => VALUES[name] ?? '')

    const expected = renderMail(mail, VALUES).html
    if (eta.render(etaTemplate, VALUES) !== expected.replaceAll('&#39;', "'"))
      throw new Error('Eta does not fill the same mail')
    const buffer = Buffer.allocUnsafeSlow(64 * 1024)
    const onto = encodedFill((text) => text)
    const ours = () => {
      checkSlots(mail, VALUES)
      const pieces: Piece[] = []
      onto({ source: { compiled: mail, slots: VALUES }, html: '', text: '' }, 'html', pieces)
      return writePieces(pieces, buffer, true)
    }
    if (ours().toString() !== expected) throw new Error('the parts do not make the same mail')
    return {
      contenders: [
        {
          name: 'platformctl',
          role: 'ours',
          measure: () => rateSync(ours),
        },
        {
          name: 'Eta, precompiled',
          role: 'peer',
          measure: () => rateSync(() => buffer.write(eta.render(etaTemplate, VALUES))),
        },
        {
          name: 'Handlebars, precompiled',
          role: 'peer',
          measure: () => rateSync(() => buffer.write(handlebars(VALUES))),
        },
        {
          name: 'react-email',
          role: 'peer',
          measure: () => rate(async () => buffer.write(await render(element())), 5),
        },
        {
          name: 'MJML for each mail',
          role: 'peer',
          measure: () =>
            rate(async () => buffer.write((await mjml2html(words(mjml), { fonts: {} })).html), 5),
        },
      ],
    }
  },
}

type Compiled = (it: object) => string
declare const ReactLike: { createElement(type: unknown, props?: object, ...children: unknown[]): unknown }
