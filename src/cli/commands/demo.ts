import { InvalidArgumentError } from 'commander'
import type { Configure } from '../context.ts'
import { wrongUsage } from '../exit.ts'

export const configure: Configure = (command, context, settle) => {
  const { services, courses } = context.platform
  const served = services.flatMap(({ name, port }) => (port === undefined ? [] : [name])).join(', ')
  const course = courses.length === 0 ? '' : ', and its course on a clock that passes a day in a few seconds'
  command
    .description(
      `Run the whole platform on this machine: its services (${served}), an SQLite file in a temporary folder, a mail inbox${course}. Nothing leaves this machine; Ctrl-C leaves nothing behind.`,
    )
    .option('--address <address>', 'the address to subscribe; nothing is really mailed', 'you@example.com')
    .option('--day <seconds>', 'how long a day of the course takes', seconds, 5)
    .option('--exit', 'end after the last lesson instead of staying up')
    .addHelpText('after', '\nExamples:\n  platformctl demo\n  platformctl demo --day 1 --exit')
    .action(async (options: { address: string; day: number; exit?: true }) => {
      const { parseAddress } = await import('../../core/address.ts')
      const parsed = parseAddress(options.address)
      if (!parsed.ok) throw wrongUsage(`--address: ${parsed.reason}.`)
      const { runDemo } = await import('../demo/run.ts')
      settle(
        await runDemo(context, {
          address: options.address,
          dayMs: options.day * 1000,
          exit: options.exit === true,
        }),
      )
    })
}

function seconds(text: string): number {
  const value = Number(text)
  if (!(value >= 0.05 && value <= 3600))
    throw new InvalidArgumentError('A number of seconds from 0.05 to 3600 is needed.')
  return value
}
