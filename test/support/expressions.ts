import { globSync, readFileSync } from 'node:fs'
import { parseSync, Visitor } from 'oxc-parser'
import { timeOf } from './growth.ts'

/** A regular expression of the sources. */
export interface Expression {
  readonly file: string
  readonly pattern: RegExp
}

/** Every regular expression that is written in a file of src. */
export function expressionsIn(glob: string): readonly Expression[] {
  return globSync(glob)
    .sort()
    .flatMap((file) => {
      const found: Expression[] = []
      const { program } = parseSync(file, readFileSync(file, 'utf8'))
      new Visitor({
        Literal(node) {
          if ('regex' in node) found.push({ file, pattern: new RegExp(node.regex.pattern, node.regex.flags) })
        },
      }).visit(program)
      return found
    })
}

/** Whether a match can be of any length: otherwise it takes as long on every text. */
export function isUnbounded({ source }: RegExp): boolean {
  return /[*+]|\{\d+,\}/.test(source)
}

const USUAL = ['a', '0', ' ', '"', '\\', 'é']

/**
 * Texts of one length on which an expression may backtrack: its own characters and the usual ones, alone and in pairs,
 * repeated after one of its own, with an end that fits nothing.
 */
function* hostileTexts({ source }: RegExp, length: number): Generator<string> {
  const literal = source.replace(/\\[a-z]|\\u\{[^}]*\}|\(\?[:=!<]+/gi, '').replace(/[()[\]{}|?*+^$\\]/g, '')
  const own = [...new Set(literal)].slice(0, 8)
  const pumps = [...own, ...USUAL, ...own.flatMap((one) => [`a${one}`, `${one}${own[0]}`])]
  for (const pump of pumps) {
    const pumped = pump.repeat(Math.ceil(length / pump.length))
    for (const start of ['', ...own]) yield `${start}${pumped}\0`
  }
}

/** Milliseconds for 32,000 characters of what is slowest on a thousand: one for what is linear, half a second for what is not. */
export function worstTime(pattern: RegExp): number {
  const screened = [...hostileTexts(pattern, SCREENED)]
    .map((text, index) => {
      // By the clock, because the time of a thread is counted in whole milliseconds. A pause by chance costs a second look.
      const before = performance.now()
      run(pattern, text)
      return { index, ms: performance.now() - before }
    })
    .filter(({ ms }) => ms > FELT_MS)
    .sort((one, other) => other.ms - one.ms)
    .slice(0, 3)
  if (screened.length === 0) return 0
  const long = [...hostileTexts(pattern, 32 * SCREENED)]
  return Math.max(...screened.map(({ index }) => timeOf(() => run(pattern, long[index] ?? ''))))
}

const SCREENED = 1000
/** On a thousand characters, which a linear expression reads in a tenth of this. */
const FELT_MS = 0.15

/** Uses the expression as the sources do: all matches if it is global, else the first. */
function run(pattern: RegExp, text: string): void {
  if (pattern.global) text.replace(pattern, '')
  else {
    pattern.lastIndex = 0
    pattern.exec(text)
  }
}

/** Files with a loop that goes over the characters of a text. */
export function filesWithTextLoops(glob: string): readonly string[] {
  return globSync(glob)
    .sort()
    .filter((file) => {
      const source = readFileSync(file, 'utf8')
      let found = false
      const look = ({ start, end }: { readonly start: number; readonly end: number }) => {
        found ||= STEP.test(source.slice(start, end))
      }
      new Visitor({ WhileStatement: look, ForStatement: look, DoWhileStatement: look }).visit(
        parseSync(file, source).program,
      )
      return found
    })
}

const STEP =
  /\.(?:charCodeAt|codePointAt|charAt|(?:lastI|i)ndexOf|exec|startsWith)\(|\b(?:text|source|line|value)\[\w/
