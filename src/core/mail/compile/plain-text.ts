import { lexer, type Token, type Tokens } from 'marked'

const WIDTH = 72

/** The plain-text part of a mail from its Markdown: what a person would type, wrapped at 72 columns. */
export function plainText(markdown: string): string {
  return lexer(markdown)
    .flatMap((token) => block(token) ?? [])
    .join('\n\n')
}

function block(token: Token): string | undefined {
  switch (token.type) {
    case 'heading': {
      const text = inline((token as Tokens.Heading).tokens)
      return `${text}\n${(token.depth === 1 ? '=' : '-').repeat(Math.min(text.length, WIDTH))}`
    }
    case 'paragraph':
      return wrapText(inline(token.tokens ?? []))
    case 'list': {
      const list = token as Tokens.List
      return list.items
        .map((item, index) => {
          const mark = list.ordered ? `${(list.start === '' ? 1 : list.start) + index}. ` : '- '
          return (
            mark +
            wrapText(inline(item.tokens), WIDTH - mark.length).replaceAll(
              '\n',
              `\n${' '.repeat(mark.length)}`,
            )
          )
        })
        .join('\n')
    }
    case 'code':
      return (token as Tokens.Code).text.replace(/^/gm, '    ')
    case 'space':
      return undefined
    default:
      return wrapText(inline([token]))
  }
}

function inline(tokens: readonly Token[]): string {
  return tokens
    .map((token) => {
      if (token.type === 'link') return `${inline(token.tokens ?? [])} (${(token as Tokens.Link).href})`
      if (token.type === 'br') return '\n'
      if ('tokens' in token && token.tokens) return inline(token.tokens)
      return decode('text' in token ? String(token.text) : token.raw)
    })
    .join('')
    .replaceAll(/\s*\n\s*/g, ' ')
}

function decode(text: string): string {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
}

export function wrapText(text: string, width: number = WIDTH): string {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/\s+/).filter(Boolean)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line].join('\n')
}
