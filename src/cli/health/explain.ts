import { CAUSES, type CauseCode, isCauseCode } from '../../core/health/causes.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'

/** `platformctl health explain [CODE]`: one cause code, or all of them. */
export function explainCause(context: Context, code: string | undefined): ExitCode {
  if (code !== undefined && !isCauseCode(code))
    throw new CommandError(
      EXIT.usage,
      `${code} is not a cause code; platformctl health explain without a code lists them.`,
    )
  const codes = code === undefined ? (Object.keys(CAUSES) as CauseCode[]) : [code]
  const texts = codes.map((name) => `${name}\n  ${sentence(CAUSES[name].meaning)}\n  ${CAUSES[name].fix}\n`)
  context.stdout.write(texts.join('\n'))
  return EXIT.passed
}

function sentence(clause: string): string {
  return `${clause.charAt(0).toUpperCase()}${clause.slice(1)}.`
}
