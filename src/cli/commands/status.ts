import type { Configure } from '../configure.ts'
import { EXIT } from '../exit.ts'
import { envFileOption, formatOption } from '../options.ts'

interface Options {
  readonly data?: string
  readonly envFile: readonly string[]
  readonly format: 'text' | 'json'
}

export const configure: Configure = (command, context, settle) => {
  command
    .description(
      'Show the daemon of a data folder at once: its services, store, schedule, backlog and problems, and who is told of trouble. Settings come from the env files that the daemon recorded, unless others are named.',
    )
    .option('--data <folder>', 'the daemon’s data folder (default: .platformctl)')
    .addOption(envFileOption())
    .addOption(formatOption(['text', 'json']))
    .addHelpText(
      'after',
      `
Exit codes: 0 running and well (degraded allowed), 1 stopped, failing, not reached, or deliveries wait for a decision, 2 no daemon has run with this folder.

Examples:
  platformctl status --data /var/lib/platformctl
  platformctl status --data /var/lib/platformctl --format json`,
    )
    .action(async (options: Options) => {
      const { gatherStatus } = await import('../status/gather.ts')
      const status = await gatherStatus(context, options)
      if (options.format === 'json')
        context.stdout.write((await import('../output/json.ts')).jsonText({ version: 1, ...status }))
      else {
        const { statusText } = await import('../status/text.ts')
        context.stdout.write(statusText(status, context.clock.now()))
      }
      const { daemon, services, store } = status
      const well =
        daemon.running &&
        services.every(({ state }) => state === 'ok' || state === 'degraded') &&
        !('fault' in store) &&
        store.counts.parked + store.counts.unknown === 0
      settle(well ? EXIT.passed : EXIT.failed)
    })
}
