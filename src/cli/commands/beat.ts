import type { BeatOptions } from '../beat/report.ts'
import type { Configure } from '../configure.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import { envFileOption } from '../options.ts'
import { printText } from '../print.ts'

export const configure: Configure = (command, context, settle) => {
  command
    .description(
      'Report that a job ran, or run a command and report how it ended. The definition names the heartbeats; a late or failed one raises an alert.',
    )
    .argument('<name>', 'the heartbeat')
    .argument('[command...]', 'after --: what to run; its output, signals and exit code pass through')
    .option('--url <url>', 'address of the web service (default: NEXT_PUBLIC_SITE_URL)')
    .option('--local', 'write into this machine’s store, without the web service')
    .option(
      '--data <folder>',
      'with --local: the data folder, when STORE_URL is not set (default: .platformctl)',
    )
    .addOption(envFileOption())
    .addHelpText(
      'after',
      `
The secret is EMAIL_DISPATCH_SECRET. With a command, the exit code is the command's own, even if the
service cannot be reached: a line on standard error says so, and the heartbeat becomes late.

Exit codes without a command: 0 recorded, 2 wrong usage, 3 not reached or refused.

Examples:
  platformctl beat backup --url https://www.example.com -- ./backup.sh
  platformctl beat backup --local --data /var/lib/platformctl`,
    )
    .action(async (name: string, words: readonly string[], options: BeatOptions) =>
      settle(await beat(context, name, words, options)),
    )
}

async function beat(
  context: Context,
  name: string,
  words: readonly string[],
  options: BeatOptions,
): Promise<ExitCode> {
  const { reportBeat } = await import('../beat/report.ts')
  if (words.length === 0) {
    if (options.local && options.url !== undefined)
      throw new CommandError(EXIT.usage, 'choose one of --local and --url.')
    const { nextBy } = await reportBeat(context, { ...options, name, exitCode: 0 })
    return printText(context, `recorded ${name}; the next one is due by ${nextBy}\n`)
  }
  const { runWrapped } = await import('../beat/wrapped.ts')
  const { exitCode, interrupted } = await runWrapped(context, words)
  // Exit with the command's own code, even if the report fails.
  const reporting = Object.create(context, { signal: { value: interrupted } }) as Context
  await reportBeat(reporting, { ...options, name, exitCode }).catch((error: unknown) =>
    context.stderr.write(
      `platformctl: the heartbeat ${name} was not recorded: ${error instanceof CommandError ? error.message : 'internal fault.'}\n`,
    ),
  )
  // Another program's exit code can be any number.
  return exitCode as ExitCode
}
