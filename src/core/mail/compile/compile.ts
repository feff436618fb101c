import path from 'node:path'
import { marked } from 'marked'
import mjml2html from 'mjml'
import type { Messages } from '../../messages/en.ts'
import { directionOf, messagesOf } from '../../messages/messages.ts'
import { LESSON_SLOTS } from '../definition.ts'
import {
  type CompiledMail,
  type CompiledMails,
  escapeHtml,
  isBrandSlot,
  type MailBrand,
  type Part,
  type Slot,
  type SlotContext,
  withBrand,
} from '../template.ts'
import { LAYOUT, readTemplateFiles, TemplateError, type TemplateFiles, type Templates } from './files.ts'
import { markdownOfMjml, plainText, wrapText } from './plain-text.ts'
import { lineOf, readTemplate, type TemplateSource } from './source.ts'

/** Compiles every mail of a set. Rejects with a TemplateError that names the whole path of the file. */
export async function compileFolders(set: Templates): Promise<CompiledMails> {
  const compiled = await Promise.all(
    set.definitions.map(async (definition) => {
      const files = await readTemplateFiles(set, definition).catch(inFolder)
      return [definition.name, await compileFile(files).catch((error) => inFolder(error, files))] as const
    }),
  )
  return Object.fromEntries(compiled)
}

function inFolder(error: unknown, files?: TemplateFiles): never {
  if (!(error instanceof TemplateError)) throw error
  const { file, line, sentence } = error
  const folder = error.folder ?? (file === LAYOUT ? files?.layoutFolder : files?.folder) ?? ''
  throw new TemplateError(path.join(folder, file), line, sentence)
}

export async function compileFile(files: TemplateFiles): Promise<CompiledMail> {
  const compiled = await compileTemplate({ ...files, slots: files.definition.slots })
  return files.brand === undefined ? compiled : withBrand(compiled, files.brand)
}

const SLOT = /\{\{([^{}]*)\}\}/g
/** Stands for a slot while Markdown and MJML work on the text: letters and digits, which both leave alone. */
const token = (name: string, line: number) => `slotx${Buffer.from(name).toString('hex')}x${line}x`
const TOKEN = /slotx([0-9a-f]+)x([0-9]+)x/g
/**
 * Markup that a mail client fetches when the mail is opened, which would tell the sender that it was opened.
 */
const REMOTE =
  /<link\b|@import|\b(?:src|background)\s*=\s*["']?(?:https?:)?\/\/|url\(\s*["']?(?:https?:)?\/\//i
const MARKDOWN_IMAGE = /!\[[^\]]*\]\(\s*<?(?:https?:)?\/\//i
/** Gmail clips at 102 KB (field measure); a mail of ours stays far below, and a larger one fails the build. */
const LARGEST_HTML_BYTES = 100_000
const UNSUBSCRIBE: keyof typeof LESSON_SLOTS = 'unsubscribeUrl'
const LESSON: keyof typeof LESSON_SLOTS = 'lessonUrl'
/** A layout's button, which a mail without an action leaves out. */
const BUTTON = /<mj-button\b[^>]*\{\{\s*actionUrl\s*\}\}[\s\S]*?<\/mj-button>/g
/**
 * Stand for the brand's colors until MJML is done, because it accepts only a color where a color belongs. No
 * layout uses these values itself.
 */
const STAND_INS = Object.entries({
  accent: '#0acce1',
  onAccent: '#0acce2',
  accentInDark: '#0acce3',
} satisfies Partial<Record<keyof MailBrand, string>>)

export interface CompileInput extends Pick<TemplateFiles, 'file' | 'source' | 'layout' | 'language'> {
  /** Slots that the platform fills in: the template must have exactly these. Undefined: any. */
  readonly slots?: Readonly<Record<string, Slot['type']>> | undefined
}

/**
 * Compiles one template with its layout into static parts and slots. No code of the template is evaluated. An
 * unknown, missing, misplaced or unused slot is a TemplateError with file and line.
 */
export async function compileTemplate(input: CompileInput): Promise<CompiledMail> {
  const lines = input.source.split(/\r?\n/)
  const { language = 'en' } = input
  const read = readTemplate(input.file, input.source)
  checkDeclared(read, lines, input.slots)
  const template = withDefaults(read, input.slots, messagesOf(language).mail)
  checkUsed(template, lines)
  const tokens = (text: string) => withTokens(text, lines)
  const direction = directionOf(language)
  const [start, end] = direction === 'ltr' ? ['left', 'right'] : ['right', 'left']
  const markdown = template.language === 'mjml' ? markdownOfMjml(template.body) : template.body
  // Browsers center the head of a column that says nothing of its alignment.
  const page = (await marked.parse(tokens(markdown))).replaceAll('<th>', `<th align="${start}">`)
  const footer = `<p>${escapeHtml(tokens(template.because))}</p>${template.slots[UNSUBSCRIBE] ? `<p><a href="${token(UNSUBSCRIBE, 1)}">${escapeHtml(tokens(template.unsubscribe))}</a></p>` : ''}`
  const layout = template.action ? input.layout : input.layout.replace(BUTTON, '')
  const html = await layOut(
    { ...input, layout },
    {
      subject: escapeHtml(tokens(template.subject)),
      preheader: escapeHtml(tokens(template.preheader)),
      body:
        template.language === 'mjml'
          ? tokens(template.body)
          : `<mj-text mj-class="body">${page.trimEnd()}</mj-text>`,
      actionUrl: tokens(template.action?.url ?? ''),
      actionLabel: escapeHtml(tokens(template.action?.label ?? '')),
      footer,
      language,
      direction,
      start,
      end,
      platformName: token('platformName', 1),
      ...Object.fromEntries(STAND_INS),
    },
  )
  const inHtml = htmlContext(template)
  return {
    slots: template.slots,
    subject: parts(tokens(template.subject), () => 'plain'),
    html: parts(tidy(html), inHtml),
    text: parts(tokens(textPart(template, markdown)), () => 'plain'),
    body: parts(page, inHtml),
  }
}

async function layOut(input: CompileInput, filled: Readonly<Record<string, string>>): Promise<string> {
  const mjml = input.layout.replace(SLOT, (_, inside: string, at: number) => {
    const name = inside.trim()
    const value = filled[name]
    if (value === undefined)
      throw new TemplateError(
        LAYOUT,
        input.layout.slice(0, at).split('\n').length,
        `there is no ${name}; the layout has ${Object.keys(filled).join(', ')}`,
      )
    return value
  })
  const { html, errors } = await mjml2html(mjml, { validationLevel: 'soft', keepComments: false, fonts: {} })
  if (errors[0]) throw placed(input, mjml, errors[0])
  if (REMOTE.test(html)) throw remote(input)
  const size = Buffer.byteLength(html)
  if (size > LARGEST_HTML_BYTES)
    throw new TemplateError(
      input.file,
      1,
      `the HTML is ${size} bytes, and mail clients clip at ${LARGEST_HTML_BYTES}`,
    )
  return STAND_INS.reduce((text, [name, color]) => text.replaceAll(color, token(name, 1)), html)
}

/** The error for a mail that loads something from elsewhere, at the line of the template or the layout that says so. */
function remote({ file, source, layout }: CompileInput): TemplateError {
  const find = (text: string) =>
    text.split(/\r?\n/).findIndex((line) => REMOTE.test(line) || MARKDOWN_IMAGE.test(line)) + 1
  const [inSource, inLayout] = [find(source), find(layout)]
  const sentence = 'a mail loads nothing from elsewhere, and this one does'
  return inSource === 0 && inLayout > 0
    ? new TemplateError(LAYOUT, inLayout, sentence)
    : new TemplateError(file, inSource || 1, sentence)
}

/**
 * The error for a fault that MJML found, with the file and line at fault. MJML counts the lines of layout and
 * body together, so the line is looked up by its text.
 */
function placed(
  { file, source, layout }: CompileInput,
  mjml: string,
  fault: { line: number; message: string },
): TemplateError {
  const text = mjml.split('\n')[fault.line - 1]?.trim() ?? ''
  const find = (lines: readonly string[]) => lines.findIndex((line) => line.trim() === text) + 1
  const inBody = file.endsWith('.mjml') ? find(source.split(/\r?\n/)) : 0
  return inBody > 0
    ? new TemplateError(file, inBody, fault.message)
    : new TemplateError(LAYOUT, find(layout.split(/\r?\n/)) || 1, fault.message)
}

function textPart(template: Complete, markdown: string): string {
  const unsubscribe = template.slots[UNSUBSCRIBE] ? `\n\n${template.unsubscribe}: {{${UNSUBSCRIBE}}}` : ''
  const action = template.action ? `\n\n${template.action.label}: ${template.action.url}` : ''
  return `${template.text ?? plainText(markdown)}${action}\n\n--\n${wrapText(template.because)}${unsubscribe}\n`
}

/** The template with everything that the platform fills in, so that its author need not declare it. */
function withDefaults(
  template: TemplateSource,
  wanted: CompileInput['slots'] = {},
  says: Messages['mail'],
): Complete {
  const slots = { ...template.slots }
  for (const [name, type] of Object.entries(wanted))
    slots[name] ??= { type, sample: type === 'url' ? 'https://www.example.com/sample' : name }
  const isLesson =
    Object.hasOwn(wanted, UNSUBSCRIBE) &&
    Object.keys(wanted).every((name) => Object.hasOwn(LESSON_SLOTS, name))
  const hasPage = isLesson && Object.hasOwn(wanted, LESSON)
  return {
    ...template,
    slots,
    because: template.because ?? (isLesson ? says.becauseLesson : says.because),
    unsubscribe: template.unsubscribe ?? says.unsubscribe,
    action: template.action ?? (hasPage ? { label: says.readLesson, url: `{{${LESSON}}}` } : undefined),
  }
}

type Complete = TemplateSource & { readonly because: string; readonly unsubscribe: string }

function checkDeclared(
  { file, slots }: TemplateSource,
  lines: readonly string[],
  wanted: CompileInput['slots'],
): void {
  if (wanted === undefined) return
  const names = Object.keys(wanted).join(', ')
  for (const [name, type] of Object.entries(wanted)) {
    const slot = slots[name]
    if (slot !== undefined && slot.type !== type)
      throw new TemplateError(file, lineOf(lines, name), `the slot ${name} has the type ${type}`)
  }
  const unknown = Object.keys(slots).find((name) => !Object.hasOwn(wanted, name))
  if (unknown !== undefined)
    throw new TemplateError(
      file,
      lineOf(lines, unknown),
      `nothing fills the slot ${unknown}: the platform fills ${names}`,
    )
}

function checkUsed(template: TemplateSource, lines: readonly string[]): void {
  const used = new Set<string>()
  for (const [index, line] of lines.entries()) {
    for (const [, inside = ''] of line.matchAll(SLOT)) {
      const name = inside.trim()
      if (!Object.hasOwn(template.slots, name)) {
        throw new TemplateError(
          template.file,
          index + 1,
          `there is no slot ${name || '(empty)'}; this template has ${Object.keys(template.slots).join(', ')}`,
        )
      }
      used.add(name)
    }
  }
  // These need not be used: the footer adds the unsubscribe link, and a lesson may link elsewhere than to its
  // page.
  used.add(UNSUBSCRIBE).add(LESSON)
  const unused = Object.keys(template.slots).find((name) => !used.has(name))
  if (unused !== undefined)
    throw new TemplateError(
      template.file,
      lineOf(lines, unused),
      `the slot ${unused} is never used; write {{${unused}}} where it belongs`,
    )
}

/** A slot carries its line number through Markdown and MJML, so that a later fault can name the line. */
function withTokens(text: string, lines: readonly string[]): string {
  return text.replace(SLOT, (written: string, inside: string, at: number) => {
    const start = text.lastIndexOf('\n', at) + 1
    const end = text.indexOf('\n', at)
    const around = text.slice(start, end === -1 ? undefined : end)
    const line = lines.findIndex((one) => one.includes(around)) + 1
    return token(inside.trim(), line || lines.findIndex((one) => one.includes(written)) + 1 || 1)
  })
}

/** A slot may be in text, or be a whole href: anywhere else its value could become markup. */
function htmlContext(template: TemplateSource): Context {
  return ({ before, after, name, line }) => {
    if (isBrandSlot(name)) return 'html'
    const inTag = before.lastIndexOf('<') > before.lastIndexOf('>')
    if (template.slots[name]?.type === 'url' && /\shref="$/.test(before) && after.startsWith('"'))
      return 'url'
    // MJML repeats the title as the label of the mail's landmark; quotes are escaped, so it stays text.
    if (!inTag || /\saria-label="[^"<>]*$/.test(before)) return 'html'
    throw new TemplateError(
      template.file,
      line,
      `the slot ${name} is inside a tag; slots go into text, and a url slot alone into a link’s address`,
    )
  }
}

type Context = (place: { before: string; after: string; name: string; line: number }) => SlotContext

function parts(text: string, context: Context): Part[] {
  const result: Part[] = []
  let from = 0
  for (const match of text.matchAll(TOKEN)) {
    const name = Buffer.from(match[1] ?? '', 'hex').toString()
    const end = match.index + match[0].length
    if (match.index > from) result.push(text.slice(from, match.index))
    const place = { before: text.slice(0, match.index), after: text.slice(end), name, line: Number(match[2]) }
    result.push({ slot: name, as: context(place) })
    from = end
  }
  return from < text.length ? [...result, text.slice(from)] : result
}

/** Drops the white space between tags on lines of their own: MJML indents deeply, and mail is paid for by the byte. */
function tidy(html: string): string {
  return `${html.replace(/\n\s*/g, '\n').trim()}\n`
}
