import { DomUtils, parseDocument } from 'htmlparser2'
import { lexer, type Token, type Tokens } from 'marked'

const WIDTH = 72

/** The plain-text part of a mail from its Markdown: what a person would type, wrapped at 72 columns. */
export const plainText = (markdown: string): string => blocks(lexer(markdown), WIDTH).join('\n\n')

const blocks = (tokens: readonly Token[], width: number) =>
  tokens.flatMap((token) => block(token, width) || [])

/** Empty for what nobody sees. */
function block(token: Token, width: number): string {
  if (token.type === 'heading') {
    const text = inline((token as Tokens.Heading).tokens)
    // How long a filled slot is, nobody knows yet.
    if (text.includes('{{')) return `${'#'.repeat(token.depth)} ${text}`
    return `${text}\n${(token.depth === 1 ? '=' : '-').repeat(Math.min(text.length, width))}`
  }
  if (token.type === 'paragraph') return wrapText(inline(token.tokens ?? []), width)
  if (token.type === 'list') {
    const { items, ordered, start } = token as Tokens.List
    const lines = items.map(({ tokens }, index) => {
      const mark = ordered ? `${(start === '' ? 1 : start) + index}. ` : '- '
      const [first, ...rest] = tokens
      const box = first?.type === 'checkbox' ? first.raw : ''
      const text = blocks(box === '' ? tokens : rest, width - mark.length - box.length).join('\n')
      return mark + (box + text).replaceAll('\n', `\n${' '.repeat(mark.length)}`)
    })
    return lines.join('\n')
  }
  if (token.type === 'blockquote')
    return blocks(token.tokens ?? [], width - 2)
      .join('\n\n')
      .replace(/^/gm, '> ')
  if (token.type === 'table') return table(token as Tokens.Table, width)
  if (token.type === 'code') return (token as Tokens.Code).text.replace(/^/gm, '    ')
  if (token.type === 'html') {
    const said = markdownOfMjml(token.raw)
    // What still begins a tag has no end, and is text.
    return said === token.raw.trim() ? wrapText(said, width) : blocks(lexer(said), width).join('\n\n')
  }
  return token.type === 'space' || token.type === 'def' ? '' : wrapText(inline([token]), width)
}

/** Columns side by side, or one line for each cell where they are too wide for a line. */
function table({ header, rows }: Tokens.Table, width: number): string {
  const [head = [], ...body] = [header, ...rows].map((row) => row.map((cell) => inline(cell.tokens)))
  const widths = head.map((_, column) => Math.max(...[head, ...body].map((row) => row[column]?.length ?? 0)))
  if (widths.reduce((sum, each) => sum + each + 2, -2) > width)
    return body
      .map((row) => row.map((cell, column) => wrapText(`${head[column]}: ${cell}`, width)).join('\n'))
      .join('\n\n')
  const padded = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0))
  const line = (row: readonly string[]) => padded(row).join('  ').trimEnd()
  return [line(head), line(widths.map((each) => '-'.repeat(each))), ...body.map(line)].join('\n')
}

function inline(tokens: readonly Token[]): string {
  let href: string | undefined
  return tokens
    .map((token) => {
      if (token.type === 'link') {
        const label = inline(token.tokens ?? [])
        const href = decode((token as Tokens.Link).href)
        return label === href || `mailto:${label}` === href ? label : `${label} (${href})`
      }
      if (token.type === 'br') return '\n'
      if (token.type === 'html') {
        // `<a href="…">here</a>` is three tokens.
        if (/^<a\b/i.test(token.raw)) href = decode(/\shref="([^"]*)"/i.exec(token.raw)?.[1] ?? '')
        return /^<\/a\b/i.test(token.raw) && href ? ` (${href})` : /^<br\b/i.test(token.raw) ? '\n' : ''
      }
      if ('tokens' in token && token.tokens) return inline(token.tokens)
      return decode('text' in token ? String(token.text) : token.raw)
    })
    .join('')
    .replaceAll(/\s+/g, ' ')
}

/** Every entity of HTML, as CommonMark section 2.5 has them. */
const decode = (text: string) =>
  text.replace(/&(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z][a-z\d]{1,31});/gi, (entity) =>
    DomUtils.textContent(parseDocument(entity)),
  )

export function wrapText(text: string, width: number = WIDTH): string {
  const [first = '', ...words] = text.split(/\s+/).filter(Boolean)
  const lines = [first]
  for (const word of words) {
    const line = `${lines.at(-1)} ${word}`
    if (line.length > width) lines.push(word)
    else lines[lines.length - 1] = line
  }
  return lines.join('\n')
}

export const withoutComments = (html: string): string => html.replace(/<!--[\s\S]*?(?:-->|$)/g, '')

/** What a body in MJML or HTML says, in Markdown, for the plain text and the lesson's page: texts, buttons and images. */
export function markdownOfMjml(mjml: string): string {
  return withoutComments(mjml)
    .replace(/<(mj-button|a)\b[^>]*\shref="([^"]*)"[^>]*>\s*([\s\S]*?)\s*<\/\1>/g, '[$3]($2)')
    .replace(/<(?:mj-image|img)\b[^>]*\salt="([^"]*)"[^>]*\/?>/g, '\n\n$1\n\n')
    .replace(/<h([1-6])\b[^>]*>/g, (_, level) => `\n\n${'#'.repeat(Number(level))} `)
    .replace(/<li\b[^>]*>/g, '\n- ')
    .replace(/<br\s*\/?>/g, '\n')
    .replace(/<\/?(?:p|ul|ol|h[1-6]|div|table|tr|blockquote|mj-[a-z-]+)\b[^>]*\/?>/g, '\n\n')
    .replace(/<\/?(?:strong|b)\b[^>]*>/g, '**')
    .replace(/<[^>]+>/g, '')
    .replace(/^[ \t]+|[ \t]+$/gm, '')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}
