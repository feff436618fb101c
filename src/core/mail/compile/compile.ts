import { marked } from 'marked'
import mjml2html from 'mjml'
import { escapeHtml } from '../render.ts'
import type { CompiledMail, Part, SlotContext } from '../template.ts'
import { plainText, wrapText } from './plain-text.ts'
import { readTemplate, TemplateError, type TemplateSource } from './source.ts'

const SLOT = /\{\{\s*([^{}]*?)\s*\}\}/g
/** Stands for a slot while Markdown and MJML work on the text: letters and digits, which both leave alone. */
const token = (name: string) => `slotx${Buffer.from(name).toString('hex')}x`
const TOKEN = /slotx([0-9a-f]+)x/g
/** Whatever a mail client would fetch when the mail is opened: it would tell the sender that it was. */
const REMOTE =
  /<link\b|@import|\b(?:src|background)\s*=\s*["']?(?:https?:)?\/\/|url\(\s*["']?(?:https?:)?\/\//i
/** Gmail clips at 102 KB (field measure); a mail of ours stays far below, and a larger one fails the build. */
const LARGEST_HTML_BYTES = 100_000

/**
 * Compiles one template with its layout into static parts and slots. No code of the template is evaluated. An
 * unknown, misplaced or unused slot is a TemplateError with file and line.
 */
export async function compileTemplate(input: {
  readonly file: string
  readonly source: string
  readonly layout: string
}): Promise<CompiledMail> {
  const template = readTemplate(input.file, input.source)
  checkSlots(template, input.source)
  const tokens = (text: string) => text.replace(SLOT, (_, name: string) => token(name))
  const body = await marked.parse(tokens(template.markdown))
  const footer = `<p>${escapeHtml(template.because)}</p>${template.slots.unsubscribeUrl ? `<p><a href="${token('unsubscribeUrl')}">Unsubscribe</a></p>` : ''}`
  const filled: Record<string, string> = {
    subject: escapeHtml(tokens(template.subject)),
    preheader: escapeHtml(template.preheader),
    body,
    actionUrl: tokens(template.action.url),
    actionLabel: escapeHtml(template.action.label),
    footer,
  }
  const mjml = input.layout.replace(SLOT, (_, name: string) => {
    const value = filled[name]
    if (value === undefined)
      throw new TemplateError(
        `layout.mjml: there is no ${name}; the layout has ${Object.keys(filled).join(', ')}`,
      )
    return value
  })
  const { html, errors } = await mjml2html(mjml, { validationLevel: 'soft', keepComments: false, fonts: {} })
  if (errors[0]) throw new TemplateError(`layout.mjml:${errors[0].line}: ${errors[0].message}`)
  if (REMOTE.test(html))
    throw new TemplateError(`${input.file}:1: a mail loads nothing from elsewhere, and this one does`)
  const size = Buffer.byteLength(html)
  if (size > LARGEST_HTML_BYTES)
    throw new TemplateError(
      `${input.file}:1: the HTML is ${size} bytes, and mail clients clip at ${LARGEST_HTML_BYTES}`,
    )
  return {
    slots: template.slots,
    subject: parts(tokens(template.subject), () => 'plain'),
    html: parts(tidy(html), htmlContext(template)),
    text: parts(tokens(textPart(template)), () => 'plain'),
    body: parts(body, htmlContext(template)),
  }
}

function textPart(template: TemplateSource): string {
  const unsubscribe = template.slots.unsubscribeUrl ? '\n\nUnsubscribe: {{unsubscribeUrl}}' : ''
  return `${template.text ?? plainText(template.markdown)}\n\n${template.action.label}: ${template.action.url}\n\n--\n${wrapText(template.because)}${unsubscribe}\n`
}

function checkSlots(template: TemplateSource, source: string): void {
  const used = new Set<string>()
  for (const [index, line] of source.split(/\r?\n/).entries()) {
    for (const [, name = ''] of line.matchAll(SLOT)) {
      if (!Object.hasOwn(template.slots, name)) {
        throw new TemplateError(
          `${template.file}:${index + 1}: there is no slot ${name || '(empty)'}; this template has ${Object.keys(template.slots).join(', ')}`,
        )
      }
      used.add(name)
    }
  }
  // The footer puts this one in by itself.
  used.add('unsubscribeUrl')
  const unused = Object.keys(template.slots).find((name) => !used.has(name))
  if (unused !== undefined)
    throw new TemplateError(`${template.file}:1: the slot ${unused} is declared and never used`)
}

/** A slot may stand in text, or be the whole of an href: anywhere else its value could become markup. */
function htmlContext(template: TemplateSource): (before: string, after: string, name: string) => SlotContext {
  return (before, after, name) => {
    const inTag = before.lastIndexOf('<') > before.lastIndexOf('>')
    if (template.slots[name]?.type === 'url' && /\shref="$/.test(before) && after.startsWith('"'))
      return 'url'
    // MJML repeats the title as the label of the mail's landmark; quotes are escaped, so it stays text.
    if (!inTag || /\saria-label="[^"<>]*$/.test(before)) return 'html'
    throw new TemplateError(
      `${template.file}:${template.bodyLine}: the slot ${name} stands inside a tag; it may stand in text, or a url slot alone in a link’s address`,
    )
  }
}

function parts(text: string, context: (before: string, after: string, name: string) => SlotContext): Part[] {
  const result: Part[] = []
  let from = 0
  for (const match of text.matchAll(TOKEN)) {
    const name = Buffer.from(match[1] ?? '', 'hex').toString()
    const end = match.index + match[0].length
    if (match.index > from) result.push(text.slice(from, match.index))
    result.push({ slot: name, as: context(text.slice(0, match.index), text.slice(end), name) })
    from = end
  }
  return from < text.length ? [...result, text.slice(from)] : result
}

/** MJML indents deeply; mail is paid by the byte. White space between tags on lines of their own is dropped. */
function tidy(html: string): string {
  return `${html.replace(/\n\s*/g, '\n').replace(/\n+/g, '\n').trim()}\n`
}
