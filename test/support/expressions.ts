import { globSync, readFileSync } from 'node:fs'
import { parseSync, Visitor } from 'oxc-parser'
import { check } from 'recheck'
import { timeOf } from './growth.ts'

/** A regular expression of the sources. */
export interface Expression {
  readonly file: string
  readonly pattern: RegExp
}

/** Every regular expression that is written as a literal. */
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

/** Files that put expressions together from texts. */
export function filesWithBuiltExpressions(glob: string): readonly string[] {
  return globSync(glob)
    .sort()
    .filter((file) => /\bRegExp\(/.test(readFileSync(file, 'utf8')))
}

/** Whether a match can be of any length: otherwise it takes as long on every text. */
export function isUnbounded({ source }: RegExp): boolean {
  return /[*+]|\{\d+,\}/.test(source)
}

/**
 * The exponent with which an expression's time grows on the text that is worst for it, which an analysis of the
 * expression finds: 1 if nothing makes it backtrack.
 */
export async function worstGrowth(pattern: RegExp): Promise<number> {
  const found = await check(pattern.source, pattern.flags.replace('v', 'u'), ANALYSIS)
  if (found.status === 'safe') return 1
  if (found.status === 'unknown') throw new Error(`${pattern} cannot be analyzed: ${found.error.kind}`)
  const { pumps, suffix } = found.attack
  const cost = (size: number) => {
    const pumped = pumps.map(({ prefix, pump }) => prefix + pump.repeat(size / pumps.length / pump.length))
    const text = pumped.join('') + suffix
    return Math.min(...[1, 2, 3].map(() => timeOf(() => run(pattern, text))))
  }
  let before = 0
  for (let size = 1000; size <= 1_000_000; size *= 2) {
    const now = cost(size)
    if (now > FELT_MS) return Math.log2(now / before)
    before = now
  }
  return 1
}

/** Without a limit in time, so that a slow machine leaves nothing undecided. */
const ANALYSIS = { maxNFASize: 3000, timeout: null }
/** The time of a thread is counted in whole milliseconds: below this, a rate says nothing. */
const FELT_MS = 40

/** Uses the expression as the sources do: all matches if it is global, else the first. */
function run(pattern: RegExp, text: string): void {
  if (pattern.global) text.replace(pattern, '')
  else {
    pattern.lastIndex = 0
    pattern.exec(text)
  }
}

/** Files with a loop that looks at a text again and again. */
export function filesWithTextLoops(glob: string): readonly string[] {
  return globSync(glob)
    .sort()
    .filter((file) => {
      const source = readFileSync(file, 'utf8')
      let found = false
      const look = ({ start, end }: { readonly start: number; readonly end: number }) => {
        found ||= STEP.test(source.slice(start, end))
      }
      new Visitor({
        WhileStatement: look,
        ForStatement: look,
        ForOfStatement: look,
        DoWhileStatement: look,
      }).visit(parseSync(file, source).program)
      return found
    })
}

const STEP =
  /\.(?:charCodeAt|codePointAt|charAt|(?:lastI|i)ndexOf|exec|startsWith|matchAll|split|replace|replaceAll)\(|\b(?:text|source|line|value)\[\w/
