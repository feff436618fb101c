import { CAUSES, type CauseCode, isCauseCode } from '../../core/network/causes.ts'
import type { Context } from '../context.ts'
import type { ExitCode } from '../exit.ts'
import { beside } from '../output/wrap.ts'
import { printText } from '../print.ts'
import { unknownName } from '../suggest.ts'

/** `platformctl health explain [CODE]`: one cause code, or all of them. */
export function explainCause(context: Context, code: string | undefined): ExitCode {
  if (code !== undefined && !isCauseCode(code))
    throw unknownName({
      kind: 'cause code',
      name: code,
      known: Object.keys(CAUSES),
      otherwise: 'Run platformctl health explain to list them.',
    })
  const codes = code === undefined ? (Object.keys(CAUSES) as CauseCode[]) : [code]
  // Off a terminal a sentence stays on one line, so that it can be searched.
  const columns = context.stdout.columns ?? Number.POSITIVE_INFINITY
  const texts = codes.map((name) => {
    const sentences = [sentence(CAUSES[name].meaning), CAUSES[name].fix]
    return `${[name, ...sentences.map((one) => beside('  ', one, columns))].join('\n')}\n`
  })
  return printText(context, texts.join('\n'))
}

function sentence(clause: string): string {
  return `${clause.charAt(0).toUpperCase()}${clause.slice(1)}.`
}
