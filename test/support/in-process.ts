import { choosePlatform, takeConfigWords } from '../../src/cli/choose-platform.ts'
import { complain } from '../../src/cli/output/text.ts'
import { reportFault, runProgram } from '../../src/cli/program.ts'
import { bare, type Finished, type Run } from './cli.ts'
import { testContext } from './context.ts'

/**
 * Runs a command line in this process, as `main.ts` does in one of its own: far cheaper, for tests of what a command
 * says. Node keeps each definition that it has loaded, so one that changes needs `platformctl`; and the console and
 * warnings are the process's, so commands with a definition run one after the other.
 */
export async function command(
  args: readonly string[],
  { cwd, env = {}, ...more }: Pick<Run, 'cwd' | 'env'> & { readonly signal?: AbortSignal },
): Promise<Finished> {
  const given = bare(env, cwd)
  const { context, stdout, stderr } = testContext({ cwd, env: given, ...more })
  const words = takeConfigWords(args)
  const say = (sentence: string) => complain(context, sentence)
  const exitCode = await choosePlatform(words, { cwd, env: given, say }).then(
    (choice) => runProgram(words.rest, { ...context, ...choice }),
    (error: unknown) => reportFault(error, context),
  )
  // As execa gives them.
  return { exitCode, stdout: stdout().replace(/\n$/, ''), stderr: stderr().replace(/\n$/, '') }
}
