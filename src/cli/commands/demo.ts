import { command, type Define } from '../command.ts'
import { addressOf, seconds, value } from '../inputs.ts'

export const define: Define = ({ platform: { services, courses } }) => {
  const served = services.flatMap(({ name, port }) => (port === undefined ? [] : [name])).join(', ')
  const course = courses.length === 0 ? '' : ', and its course on a clock that passes a day in a few seconds'
  return command({
    description: `Run the whole platform on this machine: its services (${served}), an SQLite file in a temporary folder, a mail inbox${course}. Nothing leaves this machine but what your own probes ask; Ctrl-C leaves nothing behind.`,
    examples: ['', '--day 1 --exit'],
    inputs: {
      '--address <address>': value(
        'the address to subscribe; nothing is really mailed',
        String,
        'you@example.com',
      ),
      '--day <seconds>': value('how long a day of the course takes', seconds(0.05, 3600), 5),
      '--exit': 'end after the last lesson instead of staying up',
    },
    async run(context, { address, day, exit }) {
      addressOf(address, '--address: ')
      const { runDemo } = await import('../demo/run.ts')
      return runDemo(context, { address, dayMs: day * 1000, exit: exit === true })
    },
  })
}
