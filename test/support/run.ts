import type { Context } from '../../src/cli/context.ts'
import { runProgram } from '../../src/cli/program.ts'
import { testContext } from './context.ts'

/** What may differ from a bare terminal: any part of the context, and how wide standard output is. */
export type Parts = Partial<Context> & { readonly columns?: number }

/** Runs a command line in this process, of the default platform unless `parts` names another. */
export async function run(args: readonly string[], { columns, ...parts }: Parts = {}) {
  const { context, stdout, stderr } = testContext(parts)
  if (columns !== undefined) Object.assign(context.stdout, { columns })
  const code = await runProgram(args, context)
  return { code, stdout: stdout(), stderr: stderr() }
}
