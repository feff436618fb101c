import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { CommandNode } from '../src/cli/command.ts'
import { anchorsOf, codeOf, commandLines, linksOf } from './markdown.ts'

/** The headings that every runbook must have, in this order. Others may come between them. */
const FORM = ['What you see', 'Do', 'How to know that it worked', 'How to go back']

/** How many words may be in the pages that match. */
const LIMITS = [
  { name: 'README.md', matches: /^README\.md$/, words: 557 },
  {
    name: 'docs and runbooks',
    matches: /^(?:docs\/(?!reference\/(?!definition|limits|mail-api))|runbooks\/).+\.md$/,
    words: 27_300,
  },
  {
    name: 'docs/reference',
    matches: /^docs\/reference\/.+\.md$/,
    words: 25_000,
  },
] as const

/**
 * Dead links and anchors, paths, commands and options that do not exist, scripts that package.json does not have, runbooks of
 * another form than the rest, and more words than the limits allow: a sentence each. `files` are relative to `root`, with slashes, and
 * `packed` are those of the package: a page of it may link only to others of it.
 */
export function docFaults(input: {
  readonly root: string
  readonly files: readonly string[]
  readonly packed?: readonly string[]
  readonly commands: readonly CommandNode[]
  readonly scripts: Readonly<Record<string, string>>
}): readonly string[] {
  const { root, scripts, packed = [] } = input
  const commands = new Map(input.commands.map((command) => [command.path.join(' '), command]))
  const files = input.files.filter((file) => existsSync(path.join(root, file)))
  const faults: string[] = []
  for (const file of files.filter((name) => name.endsWith('.md') && !name.startsWith('templates/'))) {
    const text = readFileSync(path.join(root, file), 'utf8')
    for (const { target, line } of linksOf(text)) checkLink(file, line, target)
    for (const { code, line } of codeOf(text)) {
      checkCommands(file, line, code)
      if (file === 'docs/why/architecture.md') checkPath(file, line, code)
    }
    if (/^runbooks\/(?!README)/.test(file)) checkForm(file, text)
  }
  for (const file of files.filter((name) => /^deploy\/.*\.(?:service|yml)$/.test(name))) {
    const lines = readFileSync(path.join(root, file), 'utf8').split('\n')
    for (const [index, code] of lines.entries())
      checkCommands(file, index + 1, code.replace(/^Exec\w+=\/usr\/bin\//, ''))
  }

  for (const { name, matches, words } of LIMITS) {
    const found = files
      .filter((file) => matches.test(file))
      .reduce((sum, file) => sum + wordsIn(readFileSync(path.join(root, file), 'utf8')), 0)
    if (found > words)
      faults.push(
        `${name}: ${found} words (runs without white space that hold a letter or a digit), and at most ${words} are allowed: say the same in ${found - words} fewer. Most of docs/reference is made of texts in src.`,
      )
  }

  function checkForm(file: string, text: string): void {
    const found = [...text.matchAll(/^## (.+)$/gm)].map(([, heading = '']) => heading)
    if (found.filter((heading) => FORM.includes(heading)).join() !== FORM.join())
      faults.push(
        `${file} has not the headings of a runbook, each once and in this order: ${FORM.join(', ')}`,
      )
    if (!/^# .+\n\n\*\*When:\*\* /.test(text))
      faults.push(`${file}:3 does not begin with when it is for: **When:** …`)
  }

  function checkLink(file: string, line: number, target: string): void {
    if (/^[a-z]+:/.test(target)) return
    const [name = '', anchor] = target.split('#')
    const full = name === '' ? file : path.posix.join(path.posix.dirname(file), decodeURI(name))
    const isIn = (list: readonly string[]) =>
      list.includes(full) || list.some((one) => one.startsWith(`${full.replace(/\/$/, '')}/`))
    if (packed.includes(file) && !isIn(packed))
      faults.push(`${file}:${line} links to ${target}, which is not in the package`)
    if (!isIn(files)) faults.push(`${file}:${line} links to ${target}, which does not exist`)
    else if (
      anchor &&
      full.endsWith('.md') &&
      !anchorsOf(readFileSync(path.join(root, full), 'utf8')).has(anchor)
    )
      faults.push(`${file}:${line} links to ${target}: there is no such heading`)
  }

  /** Pages name a file or folder by the end of its path. */
  function checkPath(file: string, line: number, code: string): void {
    if (!/^[\w./-]+$/.test(code) || !/\w\/|\.ts$/.test(code)) return
    if (!files.some((one) => `/${one}`.endsWith(`/${code}`) || `/${one}`.includes(`/${code}/`)))
      faults.push(`${file}:${line} names ${code}, which does not exist`)
  }

  function checkCommands(file: string, line: number, code: string): void {
    for (const words of commandLines(code)) {
      const fault = words[0] === 'npm' ? scriptFault(words) : commandFault(words.slice(1))
      if (fault !== undefined) faults.push(`${file}:${line} ${fault}: ${words.join(' ')}`)
    }
  }

  function scriptFault(words: readonly string[]): string | undefined {
    const script = words[1] === 'run' ? words.slice(2).find((word) => !word.startsWith('-')) : undefined
    return script !== undefined && !(script in scripts) ? `names a script that does not exist` : undefined
  }

  /** Walks down the tree as the program would. */
  function commandFault(words: readonly string[]): string | undefined {
    let at: CommandNode | undefined = commands.get('')
    let index = 0
    for (; index < words.length; index += 1) {
      const next = commands.get([...(at?.path ?? []), words[index]].join(' '))
      if (next === undefined) break
      at = next
    }
    if (at === undefined) return undefined
    const rest = words.slice(index)
    const first = rest[0]
    if (at.commands.length > 0 && first !== undefined && /^[a-z][a-z-]*$/.test(first) && first !== 'help')
      return `names a command that does not exist`
    for (const word of rest) {
      const option = /^(--[a-z][a-z-]*)(?:=.*)?$/.exec(word)?.[1]
      if (option === undefined || ['--help', '--version', '--no-color', '--color'].includes(option)) continue
      if (!at.options.some(({ name }) => name === option))
        return `names an option that does not exist (${option})`
    }
    return undefined
  }
  return faults
}

/** The bars and rules of tables, and signs that stand alone, are no words. */
function wordsIn(text: string): number {
  return text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length
}
