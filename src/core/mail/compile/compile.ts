import path from 'node:path'
import { DomUtils, parseDocument } from 'htmlparser2'
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
import { markdownOfMjml, plainText, withoutComments, wrapText } from './plain-text.ts'
import { lineOf, readTemplate, type TemplateSource } from './source.ts'

/** Compiles every mail of a set. Rejects with a TemplateError that names the whole path of the file. */
export async function compileFolders(set: Templates): Promise<CompiledMails> {
  const compiled = set.definitions.map(async (definition) => {
    const files = await readTemplateFiles(set, definition).catch(inFolder)
    return [definition.name, await compileFile(files).catch((error) => inFolder(error, files))] as const
  })
  return Object.fromEntries(await Promise.all(compiled))
}

function inFolder(error: unknown, files?: TemplateFiles): never {
  if (!(error instanceof TemplateError)) throw error
  const { file, line, sentence } = error
  throw new TemplateError(path.join(error.folderIn(files) ?? '', file), line, sentence)
}

export async function compileFile(files: TemplateFiles): Promise<CompiledMail> {
  const compiled = await compileTemplate({ ...files, slots: files.definition.slots })
  return files.brand === undefined ? compiled : withBrand(compiled, files.brand)
}

const SLOT = /\{\{([^{}]*)\}\}/g
/** Stands for a slot while Markdown and MJML work on the text: letters and digits, which both leave alone. */
const token = (name: string, line: number) => `slotx${Buffer.from(name).toString('hex')}x${line}x`
const TOKEN = /slotx([0-9a-f]+)x([0-9]+)x/g
/** Attributes whose address a mail client fetches when the mail is opened, which would tell the sender so. */
const FETCHED = /^(?:src|background|poster|data)$/
/** A link of these is fetched too. */
const FETCHED_LINK = /^(?:image|use|feImage)$/i
/** Written where a style is. */
const STYLED = /^(?:style|fill|stroke|filter|mask|clip-path)$/
const REMOTE = /^\s*(?:https?:)?\/\//i
const REMOTE_CANDIDATE = /(?:^|\s|\d[wx],)(?:https?:)?\/\//i
/** A picture in the style itself names the languages that it is written in. */
const OWN_DATA = /"data:[^"]*"|'data:[^']*'/gi
const REMOTE_STYLE = /@import|(?:url\(\s*|["'])(?:https?:)?\/\//i
/** What Outlook alone reads is a comment for others. */
const CONDITION = /<!--(?:\[if[^\]<]{0,99}\]>(?:<!-->)?|<!\[endif\]-->)|<!\[endif\]-->/g
const MARKDOWN_IMAGE = /!\[[^\]]*\]\(\s*<?(?:https?:)?\/\//i
/** Gmail clips at 102 KB (field measure); a mail of ours stays far below, and a larger one fails the build. */
const LARGEST_HTML_BYTES = 100_000
const UNSUBSCRIBE: keyof typeof LESSON_SLOTS = 'unsubscribeUrl'
const LESSON: keyof typeof LESSON_SLOTS = 'lessonUrl'
/** A layout's button, which a mail without an action leaves out. */
const BUTTON = /<mj-button\b[^>]*\{\{\s*actionUrl\s*\}\}[\s\S]*?<\/mj-button>/g
/** Stand for the brand's colors until MJML is done, which accepts only colors there. No layout uses these values itself. */
const STAND_INS = Object.entries({
  accent: '#0acce1',
  onAccent: '#0acce2',
  accentInDark: '#0acce3',
} satisfies Partial<Record<keyof MailBrand, string>>)

export interface CompileInput extends Pick<TemplateFiles, 'file' | 'source' | 'layout' | 'language'> {
  /** Slots that the platform fills in: the template must have exactly these. Undefined: any. */
  readonly slots?: Readonly<Record<string, Slot['type']>> | undefined
}

/** Evaluates none of the template's code. An unknown, missing, misplaced or unused slot is a TemplateError. */
export const compileTemplate = (input: CompileInput): Promise<CompiledMail> =>
  compiled(input).catch((error: unknown) => {
    // What reads Markdown calls itself for each level.
    throw error instanceof RangeError ? new TemplateError(input.file, 1, 'it is nested too deeply') : error
  })

async function compiled(input: CompileInput): Promise<CompiledMail> {
  const lines = input.source.split(/\r?\n/)
  const { language = 'en' } = input
  const read = readTemplate(input.file, input.source)
  checkDeclared(read, lines, input.slots)
  const template = withDefaults(read, messagesOf(language).mail, input.slots)
  checkUsed(template, lines, input.slots === undefined)
  const tokens = (text: string) => withTokens(text, lines)
  const direction = directionOf(language)
  const [start, end] = direction === 'ltr' ? ['left', 'right'] : ['right', 'left']
  const markdown = template.language === 'mjml' ? markdownOfMjml(template.body) : template.body
  const parsed = withoutComments(await marked.parse(tokens(markdown)))
  // Browsers center the head of a column that says nothing of its alignment.
  const page = parsed.replaceAll('<th>', `<th align="${start}">`)
  const footer = `<p>${escapeHtml(tokens(template.because))}</p>${template.slots[UNSUBSCRIBE] ? `<p><a href="${token(UNSUBSCRIBE, 1)}">${escapeHtml(tokens(template.unsubscribe))}</a></p>` : ''}`
  const layout = template.action ? input.layout : input.layout.replace(BUTTON, '')
  const inMjml = template.language === 'mjml'
  const html = await layOut(
    { ...input, layout },
    {
      subject: escapeHtml(tokens(template.subject)),
      preheader: escapeHtml(tokens(template.preheader)),
      body: inMjml ? tokens(template.body) : `<mj-text mj-class="body">${page.trimEnd()}</mj-text>`,
      actionUrl: tokens(template.action?.url ?? ''),
      actionLabel: escapeHtml(tokens(template.action?.label ?? '')),
      platformName: token('platformName', 1),
      footer,
      language,
      direction,
      start,
      end,
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
    if (value !== undefined) return value
    const known = Object.keys(filled).join(', ')
    const line = input.layout.slice(0, at).split('\n').length
    throw new TemplateError(LAYOUT, line, `there is no ${name}; the layout has ${known}`)
  })
  const { html, errors } = await mjml2html(mjml, { validationLevel: 'soft', keepComments: false, fonts: {} })
  if (errors[0]) {
    // MJML counts the lines of layout and body together: the line is found by its text.
    const text = mjml.split('\n')[errors[0].line - 1]?.trim()
    throw faultAt(input, errors[0].message, (line) => line.trim() === text)
  }
  if (isLoading(html)) {
    const sentence = 'a mail loads nothing from elsewhere, and this one does'
    const isAtFault = (line: string) => [REMOTE_STYLE, MARKDOWN_IMAGE].some((one) => one.test(line))
    // A tag may go on from the line before.
    throw faultAt(input, sentence, (line) => isAtFault(line) || isLoading(line) || isLoading(`<i ${line}`))
  }
  const size = Buffer.byteLength(html)
  const tooLarge = `the HTML is ${size} bytes, and mail clients clip at ${LARGEST_HTML_BYTES}`
  if (size > LARGEST_HTML_BYTES) throw new TemplateError(input.file, 1, tooLarge)
  return STAND_INS.reduce((text, [name, color]) => text.replaceAll(color, token(name, 1)), html)
}

const isRemoteStyle = (style: string) => REMOTE_STYLE.test(style.replace(OWN_DATA, ''))

const isLoading = (html: string): boolean =>
  DomUtils.existsOne(
    (element) => {
      const { name, attribs } = element
      if (name === 'link' || (name === 'style' && isRemoteStyle(DomUtils.textContent(element)))) return true
      return Object.entries(attribs).some(([attribute, value]) => {
        if (STYLED.test(attribute)) return isRemoteStyle(value)
        if (attribute === 'srcdoc') return isLoading(value)
        if (attribute === 'srcset') return REMOTE_CANDIDATE.test(value)
        const isLink = FETCHED_LINK.test(name) && /^(?:xlink:)?href$/.test(attribute)
        return (isLink || FETCHED.test(attribute)) && REMOTE.test(value)
      })
    },
    parseDocument(html.replace(CONDITION, '')).children,
  )

/** The error for a fault at the first such line of the template, else of the layout. */
function faultAt(
  { file, source, layout }: CompileInput,
  sentence: string,
  isAtFault: (line: string) => boolean,
): TemplateError {
  const [inSource, inLayout] = [source, layout].map((text) => text.split(/\r?\n/).findIndex(isAtFault) + 1)
  return inLayout && !inSource
    ? new TemplateError(LAYOUT, inLayout, sentence)
    : new TemplateError(file, inSource || 1, sentence)
}

function textPart(template: ReturnType<typeof withDefaults>, markdown: string): string {
  const unsubscribe = template.slots[UNSUBSCRIBE] ? `\n\n${template.unsubscribe}: {{${UNSUBSCRIBE}}}` : ''
  const action = template.action ? `\n\n${template.action.label}: ${template.action.url}` : ''
  return `${template.text ?? plainText(markdown)}${action}\n\n--\n${wrapText(template.because)}${unsubscribe}\n`
}

/** The template with everything that the platform fills in, so that its author need not declare it. */
function withDefaults(template: TemplateSource, says: Messages['mail'], wanted: CompileInput['slots'] = {}) {
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

function checkDeclared(
  { file, slots }: TemplateSource,
  lines: readonly string[],
  wanted: CompileInput['slots'],
): void {
  if (wanted === undefined) return
  const names = Object.keys(wanted).join(', ')
  const fail = (slot: string, sentence: string) => {
    throw new TemplateError(file, lineOf(lines, slot), sentence)
  }
  for (const [name, type] of Object.entries(wanted))
    if ((slots[name]?.type ?? type) !== type) fail(name, `the slot ${name} has the type ${type}`)
  for (const name of Object.keys(slots))
    if (!Object.hasOwn(wanted, name))
      fail(name, `nothing fills the slot ${name}: the platform fills ${names}`)
}

/** `declares`: the template says itself which slots there are. */
function checkUsed({ file, slots }: TemplateSource, lines: readonly string[], declares: boolean): void {
  const names = Object.keys(slots)
  const fix = declares ? 'Correct this line, or declare the slot under slots in the front matter.' : undefined
  // These need not be used: the footer adds the unsubscribe link, and a lesson may link elsewhere than to its page.
  const used = new Set<string>([UNSUBSCRIBE, LESSON])
  for (const [index, line] of lines.entries())
    for (const [, inside = ''] of line.matchAll(SLOT)) {
      const name = inside.trim()
      const unknown = `there is no slot ${name || '(empty)'}; this template has ${names.join(', ') || 'none'}`
      if (!Object.hasOwn(slots, name)) throw new TemplateError(file, index + 1, unknown, undefined, fix)
      used.add(name)
    }
  const unused = names.find((name) => !used.has(name))
  const sentence = `the slot ${unused} is never used; write {{${unused}}} where it belongs`
  if (unused !== undefined) throw new TemplateError(file, lineOf(lines, unused), sentence)
}

/** A slot carries its line number through Markdown and MJML, so that a later fault can name the line. */
function withTokens(text: string, lines: readonly string[]): string {
  return text.replace(SLOT, (written: string, inside: string, at: number) => {
    const [around = ''] = text.slice(text.lastIndexOf('\n', at) + 1).split('\n', 1)
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
    const sentence = `the slot ${name} is inside a tag; slots go into text, and a url slot alone into a link’s address`
    throw new TemplateError(template.file, line, sentence)
  }
}

type Context = (place: { before: string; after: string; name: string; line: number }) => SlotContext

function parts(text: string, context: Context): Part[] {
  const result: Part[] = []
  let from = 0
  for (const match of text.matchAll(TOKEN)) {
    const name = Buffer.from(match[1] ?? '', 'hex').toString()
    const end = match.index + match[0].length
    const place = { before: text.slice(0, match.index), after: text.slice(end), name, line: Number(match[2]) }
    result.push(text.slice(from, match.index), { slot: name, as: context(place) })
    from = end
  }
  return [...result, text.slice(from)].filter((part) => part !== '')
}

/** Drops the white space that begins lines, but in programs: MJML indents deeply, and mail is paid for by the byte. */
const tidy = (html: string): string =>
  `${html.replace(/<pre\b[\s\S]*?(?:<\/pre>|$)|\n\s*/gi, (found) => (found[0] === '<' ? found : '\n')).trim()}\n`
