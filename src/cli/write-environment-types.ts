import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { environmentTypes, MADE_BY } from '../platform/env-types.ts'
import type { Context } from './context.ts'
import { CommandError, EXIT, type ExitCode } from './exit.ts'
import { printText } from './print.ts'

/** Writes the types of the platform's environment; a file that somebody else wrote is never replaced. */
export async function writeEnvironmentTypes(context: Context, out: string | undefined): Promise<ExitCode> {
  const text = environmentTypes(context.platform.contract)
  if (out === undefined) {
    return printText(context, text)
  }
  const file = path.resolve(context.cwd, out)
  const fail = (why: string, cause?: unknown) =>
    new CommandError(EXIT.usage, `cannot write ${out}: ${why}`, { cause })
  try {
    if (existsSync(file) && !readFileSync(file, 'utf8').startsWith(MADE_BY))
      throw fail('it holds something else; name another file.')
    writeFileSync(file, text)
  } catch (error) {
    throw error instanceof CommandError ? error : fail('check the path and who owns the folder.', error)
  }
  context.stderr.write(`Wrote ${out}.\n`)
  return EXIT.passed
}
