/** The few things that the docs check reads of a Markdown file. */

/** Headings as GitHub turns them into anchors; a repeated one gets a number. */
export function anchorsOf(text: string): ReadonlySet<string> {
  const anchors = new Set<string>()
  for (const { line, fenced } of lines(text)) {
    const heading = fenced ? undefined : /^#{1,6}\s+(.*?)\s*#*$/.exec(line)?.[1]
    if (heading === undefined) continue
    const base = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-')
    let anchor = base
    for (let count = 1; anchors.has(anchor); count += 1) anchor = `${base}-${count}`
    anchors.add(anchor)
  }
  return anchors
}

/** Targets of links and images, outside of code. */
export function linksOf(text: string): { target: string; line: number }[] {
  return lines(text).flatMap(({ line, fenced, number }) =>
    fenced
      ? []
      : [...line.replace(/`[^`]*`/g, '').matchAll(/\]\(([^)\s]+)(?:\s+"[^"]*")?\)/g)].map(([, target]) => ({
          target: target ?? '',
          line: number,
        })),
  )
}

/** Code that an operator would type: lines of sh, console and powershell blocks (those with a prompt, where there is one), and code spans. */
export function codeOf(text: string): { code: string; line: number }[] {
  return lines(text).flatMap(({ line, fenced, language, number }) => {
    if (!fenced)
      return [...line.matchAll(/`([^`]+)`/g)].map(([, code]) => ({ code: code ?? '', line: number }))
    if (language === 'console') return line.startsWith('$ ') ? [{ code: line.slice(2), line: number }] : []
    return ['sh', 'powershell', 'bash'].includes(language) ? [{ code: line, line: number }] : []
  })
}

/** The command lines of platformctl and npm in a line of code, as words. */
export function commandLines(code: string): string[][] {
  return code
    .replace(/(^|\s)#.*$/, '')
    .split(/\|\||&&|[|;(){}]|`|<\(|\$\(/)
    .map((part) => part.trim().split(/\s+/))
    .map((words) => words.slice(Math.max(0, startOf(words))))
    .map(([first = '', ...rest]) => [first.endsWith('/platformctl.js') ? 'platformctl' : first, ...rest])
    .filter(([first, second]) => (first === 'platformctl' || first === 'npm') && second !== undefined)
    .map((words) => words.map((word) => word.replace(/^["']|["',.]+$/g, '')))
    .map((words) => words.filter((word) => word !== '' && word !== '…' && word !== '\\'))
}

/** The position of the program's name: first, after variables and `npx`, or as the file that a container starts. */
function startOf(words: readonly string[]): number {
  const name = words.findIndex(
    (word) => word === 'platformctl' || word === 'npm' || word.endsWith('/platformctl.js'),
  )
  if (words[name]?.endsWith('.js')) return name
  const led = words.slice(0, Math.max(0, name)).every((word) => /^(?:\w+=.*|npx|exec|sudo|--yes)$/.test(word))
  return led ? name : -1
}

interface Line {
  readonly line: string
  readonly number: number
  readonly fenced: boolean
  readonly language: string
}

function lines(text: string): Line[] {
  let language: string | undefined
  return text.split('\n').map((line, index) => {
    const fence = /^\s*```(\S*)/.exec(line)
    const was = language
    if (fence) language = was === undefined ? (fence[1] ?? '') : undefined
    return {
      line,
      number: index + 1,
      fenced: was !== undefined || fence !== null,
      language: fence ? '' : (was ?? ''),
    }
  })
}
