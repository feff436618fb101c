import { type Command, InvalidArgumentError } from 'commander'
import { DAY_MS } from '../../core/durations.ts'
import { parseDuration } from '../../core/env/values.ts'
import { INCIDENTS_KEPT, type StatusUpdate, UPDATE_STATES } from '../../core/incidents/incident.ts'
import { type Configure, type Context, operatorOf } from '../context.ts'
import { EXIT, type ExitCode, wrongUsage } from '../exit.ts'
import {
  choiceOption,
  envFileOption,
  formatOption,
  type StoreOptions,
  storeSubcommand,
  withIncidents,
} from '../options.ts'
import { printJson, printText } from '../print.ts'

export const configure: Configure = (command, context, settle) => {
  command
    .description(
      'Show the daemon of a data folder on one screen: its services as health --deep sees them, store, schedule, backlog, pauses, last mail and problems, and where alerts go. Settings come from the env files that the daemon recorded, unless others are named.',
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
  platformctl status --data /var/lib/platformctl --format json
  platformctl status announce "Search is slow while we move it" --for 2h`,
    )
    .action(async (options: StoreOptions) => {
      const { gatherStatus } = await import('../status/gather.ts')
      const status = await gatherStatus(context, options)
      if (options.format === 'json') printJson(context, 'status', status)
      else {
        const { statusText } = await import('../status/text.ts')
        const { whichPlatform } = await import('../context.ts')
        context.stdout.write(
          statusText(status, { now: context.clock.now(), platform: whichPlatform(context) }),
        )
      }
      const { daemon, state, store } = status
      const well =
        daemon.running &&
        (state === 'ok' || state === 'degraded') &&
        !('fault' in store) &&
        store.counts.parked + store.counts.unknown === 0
      settle(well ? EXIT.passed : EXIT.failed)
    })
  const onStore = (name: string, summary: string, examples: readonly string[]) =>
    storeSubcommand(command, { name, summary, examples: examples.map((example) => ` ${example}`) })
  // `status` has options of the same names, and takes those that are given here: hence the global ones.
  onStore('announce', 'post an announcement on the status page and in /status.json', [
    '"Search is slow while we move it" --for 2h',
    '"Maintenance: no sign-in for ten minutes" --from 2027-01-10T22:00Z --for 10m',
  ])
    .argument('<text>', `what to say, as plain text of at most ${LONGEST_TEXT} characters`, announcementText)
    .option('--for <duration>', 'how long it is shown: 30m, 2h, 1d (default: until it is withdrawn)', length)
    .option('--from <time>', 'when it begins, such as 2027-01-10T22:00Z (default: now)', moment)
    .action(async (text: string, _, self: Command) =>
      settle(await announce(context, text, self.optsWithGlobals<Announcing>())),
    )
  onStore('update', 'add to the timeline of an incident or an announcement, for visitors to read', [
    '4f1c2a90 "The disk is being replaced" --state identified',
  ])
    .argument('<id>', 'of an incident, as alert list shows it, or of an announcement')
    .argument('<text>', `what to say, as plain text of at most ${LONGEST_TEXT} characters`, announcementText)
    .addOption(
      choiceOption('--state <state>', 'where you are with it', { kind: 'state', choices: UPDATE_STATES }),
    )
    .action(async (id: string, text: string, _, self: Command) =>
      settle(await update(context, { id, text }, self.optsWithGlobals<Updating>())),
    )
  onStore('withdraw', 'end an announcement early', ['4f1c2a90'])
    .argument('<id>', 'the id that announce printed; /status.json shows it too')
    .action(async (id: string, _, self: Command) =>
      settle(await withdraw(context, id, self.optsWithGlobals<StoreOptions>())),
    )
}

interface Updating extends StoreOptions {
  readonly state?: StatusUpdate['state']
}

interface Announcing extends StoreOptions {
  readonly for?: number
  readonly from?: number
}

const LONGEST_TEXT = 500
const LONGEST_MS = 90 * DAY_MS

function announcementText(text: string): string {
  const said = text.trim()
  if (said === '' || said.length > LONGEST_TEXT)
    throw new InvalidArgumentError(`Say something, in at most ${LONGEST_TEXT} characters.`)
  return said
}

function length(text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined || ms === 0 || ms > LONGEST_MS)
    throw new InvalidArgumentError('A duration such as 30m, 2h or 1d is needed, of at most 90d.')
  return ms
}

function moment(text: string): number {
  const isComplete = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})$/.test(text)
  const ms = isComplete ? Date.parse(text) : Number.NaN
  if (Number.isNaN(ms))
    throw new InvalidArgumentError(
      'A time with its offset is needed, such as 2027-01-10T22:00Z or 2027-01-10T23:00+01:00.',
    )
  return ms
}

function announce(context: Context, text: string, options: Announcing): Promise<ExitCode> {
  return withIncidents(context, options, async (incidents) => {
    const now = context.clock.now()
    const from = options.from ?? now
    const until = options.for === undefined ? undefined : from + options.for
    if (until !== undefined && until <= now)
      throw wrongUsage(
        `the announcement would have ended already, at ${iso(until)}: choose a later --from or a longer --for.`,
      )
    const id = Buffer.from(context.random.bytes(4)).toString('hex')
    await incidents.announce({ id, text, from, until, by: operatorOf(context).name })
    return printText(
      context,
      `announced as ${id}, ${from > now ? `from ${iso(from)} ` : ''}${until === undefined ? 'until it is withdrawn' : `until ${iso(until)}`}\n`,
    )
  })
}

function update(
  context: Context,
  { id: subject, text }: { readonly id: string; readonly text: string },
  options: Updating,
): Promise<ExitCode> {
  return withIncidents(context, options, async (incidents) => {
    const { probes, services } = context.platform
    const incident = (await incidents.list(INCIDENTS_KEPT.most)).find(({ id }) => id === subject)
    if (incident && ![...probes, ...services].some(({ name }) => name === incident.cause))
      throw wrongUsage(
        `visitors do not see ${subject} (${incident.cause}): tell them with platformctl status announce.`,
      )
    const id = Buffer.from(context.random.bytes(4)).toString('hex')
    const { state } = options
    const by = operatorOf(context).name
    if (!(await incidents.update({ id, subject, at: context.clock.now(), text, state, by })))
      throw wrongUsage(
        `no incident ${subject}, and no announcement that is current or planned: platformctl alert list --all and /status.json list them.`,
      )
    return printText(context, `updated ${subject}${state === undefined ? '' : `: ${state}`}\n`)
  })
}

function withdraw(context: Context, id: string, options: StoreOptions): Promise<ExitCode> {
  return withIncidents(context, options, async (incidents) => {
    if (!(await incidents.withdraw({ id, now: context.clock.now() })))
      throw wrongUsage(`no announcement ${id} is current or planned: /status.json lists them.`)
    return printText(context, `withdrawn ${id}\n`)
  })
}

const iso = (ms: number) => new Date(ms).toISOString()
