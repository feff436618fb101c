import { parseDocument, YAMLError } from 'yaml'
import { isRecord } from '../../is-record.ts'
import { isOfType, type Slot } from '../template.ts'
import { TemplateError } from './files.ts'

/** A template file, read: front matter checked, body still Markdown or MJML. */
export interface TemplateSource {
  readonly file: string
  readonly subject: string
  readonly preheader: string
  readonly slots: Readonly<Record<string, Slot>>
  readonly action: { readonly label: string; readonly url: string } | undefined
  /** Why the reader gets this mail; undefined for the engine's own sentence. */
  readonly because: string | undefined
  /** Text of a lesson's unsubscribe link; undefined for the engine's own. */
  readonly unsubscribe: string | undefined
  /** Markdown, or the content of one `mj-column` when the file's name ends in `.mjml`. */
  readonly body: string
  readonly language: 'markdown' | 'mjml'
  /** Overrides the plain text that is made from the body. */
  readonly text: string | undefined
}

export function readTemplate(file: string, source: string): TemplateSource {
  const lines = source.replaceAll('\r\n', '\n').split('\n')
  const isFence = (line: string) => line.trimEnd() === '---'
  const end = lines.findIndex((line, index) => index > 0 && isFence(line))
  if (!isFence(lines[0] ?? '') || end === -1)
    throw new TemplateError(file, 1, 'a template begins with front matter between two lines of ---')
  const fail = (line: number, sentence: string): never => {
    throw new TemplateError(file, line, sentence)
  }
  let parsed: unknown
  try {
    const document = parseDocument(lines.slice(1, end).join('\n'))
    for (const fault of [...document.errors, ...document.warnings]) throw fault
    parsed = document.toJS()
  } catch (error) {
    const { line, sentence } = yamlFault(error)
    fail(line + 1, `the front matter is not YAML: ${sentence}`)
  }
  const front = parsed
  if (!isRecord(front)) return fail(2, 'the front matter is empty')
  const known = ['subject', 'preheader', 'slots', 'action', 'because', 'unsubscribe', 'text']
  for (const key of Object.keys(front))
    if (!known.includes(key))
      fail(lineOf(lines, key), `${key} is not a key of front matter; those are ${known.join(', ')}`)
  const text = (key: string, from: Record<string, unknown> = front, fromLine?: number): string => {
    const value = from[key]
    if (typeof value === 'string' && value.trim() !== '') return value
    const fix = typeof value === 'number' ? `: put ${value} in quotes` : ''
    return fail(lineOf(lines, key, fromLine), `${key} is needed, as text${fix}`)
  }
  const optional = (key: string) => (front[key] === undefined ? undefined : text(key))
  const slots: Record<string, Slot> = {}
  const declared = front.slots ?? {}
  const slotsHold = 'slots holds a name with { type: text or url, sample: … } for each slot'
  if (!isRecord(declared)) return fail(lineOf(lines, 'slots'), slotsHold)
  for (const [name, slot] of Object.entries(declared)) {
    if (!/^[a-z][A-Za-z0-9]*$/.test(name))
      fail(lineOf(lines, name), `a slot is named in camelCase, and ${name} is not`)
    if (!isRecord(slot) || (slot.type !== 'text' && slot.type !== 'url'))
      return fail(lineOf(lines, name), `the slot ${name} has the type text or url`)
    const sample = text('sample', slot, lineOf(lines, name))
    if (!isOfType(slot.type, sample))
      fail(
        lineOf(lines, name),
        `the sample of the slot ${name} is not ${slot.type === 'url' ? A_URL : A_TEXT}`,
      )
    slots[name] = { type: slot.type, sample }
  }
  const { action } = front
  if (action !== undefined && !isRecord(action))
    return fail(lineOf(lines, 'action'), 'action is { label: …, url: … }')
  return {
    file,
    // A header field: a folded text of YAML ends with a line break.
    subject: text('subject')
      .replace(/[\s\p{Cc}]+/gu, ' ')
      .trim(),
    preheader: optional('preheader') ?? '',
    slots,
    action: action && {
      label: text('label', action, lineOf(lines, 'action')),
      url: text('url', action, lineOf(lines, 'action')),
    },
    because: optional('because'),
    unsubscribe: optional('unsubscribe'),
    text: optional('text'),
    body: lines
      .slice(end + 1)
      .join('\n')
      .trim(),
    language: file.endsWith('.mjml') ? 'mjml' : 'markdown',
  }
}

const A_URL = 'a whole address, as https://www.example.com/'
const A_TEXT = 'one line of at most 500 characters'

/** The first line that begins with a key. */
export const lineOf = (lines: readonly string[], key: string, otherwise = 1): number =>
  lines.findIndex((line) => line.trimStart().startsWith(`${key}:`)) + 1 || otherwise

function yamlFault(error: unknown): { readonly line: number; readonly sentence: string } {
  if (!(error instanceof YAMLError)) return { line: 1, sentence: 'unreadable' }
  // A quote that is never closed is missed at the end of the text, which says nothing of where it was opened.
  const line = error.code === 'MISSING_CHAR' ? 1 : (error.linePos?.[0].line ?? 1)
  const isTag = error.code === 'TAG_RESOLVE_FAILED'
  // The most common of all faults, as in "subject: Kilns: a start".
  if (isTag || error.code === 'BLOCK_AS_IMPLICIT_KEY')
    return { line, sentence: `put a text that ${isTag ? 'begins with !' : 'has a colon'} in quotes` }
  const [first = ''] = error.message.split('\n')
  return { line, sentence: first.replace(/ at line \d+, column \d+:?$/, '') }
}
