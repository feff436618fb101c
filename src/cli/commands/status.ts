import { InvalidArgumentError } from 'commander'
import { isLanguage } from '../../core/course/definition.ts'
import { DAY_MS, instantOf } from '../../core/durations.ts'
import { INCIDENTS_KEPT, UPDATE_STATES } from '../../core/incidents/incident.ts'
import { command, type Define, storeCommand } from '../command.ts'
import { CommandError, EXIT, operatorOf, whichPlatform, writeRefusal, wrongUsage } from '../context.ts'
import { loadEnvironment } from '../environment.ts'
import { isAddress } from '../health/targets.ts'
import { choice, durationUpTo, ENV_FILE, STATUS_TARGET, STORE, text, value } from '../inputs.ts'
import { iso } from '../output/text.ts'

const LONGEST_TEXT = 500
const LONGEST_POSTMORTEM = 20_000
const sayUpTo = (longest: number) => `Say something, in at most ${longest} characters.`
const textUpTo = (longest: number, more = '') =>
  value(
    `what to say, as plain text of at most ${LONGEST_TEXT} characters${more}`,
    text(longest, sayUpTo(longest), { lines: true }),
  )

const announce = storeCommand({
  summary: 'post an announcement on the status page and in /status.json',
  examples: [
    '"Search is slow while we move it" --for 2h',
    '"Search is slow" --translation "de=Die Suche ist langsam"',
    '"Maintenance: no sign-in for ten minutes" --from 2027-01-10T22:00Z --for 10m',
  ],
  inputs: {
    '<text>': textUpTo(LONGEST_TEXT),
    '--for <duration>': value(
      'how long it lasts, from --from on: 30m, 2h, 1d (default: until it is withdrawn)',
      durationUpTo(90 * DAY_MS, 'A duration such as 30m, 2h or 1d is needed, of at most 90d.'),
    ),
    '--from <time>': value('when it begins, such as 2027-01-10T22:00Z (default: now); shown at once', moment),
    '--translation <language=text>': {
      help: 'the text in another language, such as "de=Die Suche ist langsam"; repeatable',
      parse: translation,
    },
  },
  async run(context, { text, for: forMs, from: begin, translation: translations }, { store: { incidents } }) {
    const now = context.clock.now()
    const from = begin ?? now
    const until = forMs === undefined ? undefined : from + forMs
    if (until !== undefined && until <= now)
      throw wrongUsage(
        `the announcement would have ended already, at ${iso(until)}: choose a later --from or a longer --for.`,
      )
    const id = Buffer.from(context.random.bytes(4)).toString('hex')
    await incidents.announce({ id, text, translations, from, until, by: operatorOf(context).name }, now)
    return `announced as ${id}, ${from > now ? `from ${iso(from)} ` : ''}${until === undefined ? 'until it is withdrawn' : `until ${iso(until)}`}\n`
  },
})

const update = storeCommand({
  summary: 'add to the timeline of an incident or an announcement, for visitors to read',
  examples: [
    '4f1c2a90 "The disk is being replaced" --state identified',
    '4f1c2a90 "$(cat post-mortem.txt)" --state postmortem',
  ],
  inputs: {
    '<id>': 'of an incident, as alert list shows it, or of an announcement',
    '<text>': textUpTo(LONGEST_POSTMORTEM, `, or ${LONGEST_POSTMORTEM} of a post-mortem`),
    '--state <state>': choice('where you are with it', UPDATE_STATES, { kind: 'state' }),
  },
  async run(context, { id: subject, text, state }, { store: { incidents } }) {
    if (text.length > LONGEST_TEXT && state !== 'postmortem')
      throw wrongUsage(
        `the text has ${text.length} characters: say it in ${LONGEST_TEXT}, or add --state postmortem.`,
      )
    const { probes, services } = context.platform
    const incident = (await incidents.list(INCIDENTS_KEPT.most)).find(({ id }) => id === subject)
    if (incident && ![...probes, ...services].some(({ name }) => name === incident.cause))
      throw wrongUsage(
        `visitors do not see ${subject} (${incident.cause}): tell them with platformctl status announce.`,
      )
    const id = Buffer.from(context.random.bytes(4)).toString('hex')
    const by = operatorOf(context).name
    if (!(await incidents.update({ id, subject, at: context.clock.now(), text, state, by })))
      throw wrongUsage(
        `no incident ${subject}, and no announcement that is current or planned: platformctl alert list --all and /status.json list them.`,
      )
    return `updated ${subject}${state === undefined ? '' : `: ${state}`}\n`
  },
})

const withdraw = storeCommand({
  summary: 'end an announcement early',
  examples: ['4f1c2a90'],
  inputs: { '<id>': 'the id that announce printed; /status.json shows it too' },
  async run(context, { id }, { store: { incidents } }) {
    if (!(await incidents.withdraw({ id, now: context.clock.now() })))
      throw wrongUsage(`no announcement ${id} is current or planned: /status.json lists them.`)
    return `withdrawn ${id}\n`
  },
})

const exportStatus = command({
  summary: 'write the status page as files, for a bucket or a second host to serve',
  notes: `Writes the page, one for each incident, the Atom feed, the calendar, the badge and status.json. Files that have not changed are left alone, and none is deleted. Run it every few minutes: a page that is older than that says so.`,
  examples: ['/var/www/status --data /var/lib/platformctl', 'https://s3.eu-central-1.amazonaws.com/status'],
  inputs: { '<target>': STATUS_TARGET, ...STORE },
  async run(context, { target, envFile, data }) {
    const { env } = await loadEnvironment(context, envFile)
    const { openPublisher, openRecord } = await import('../status/publish.ts')
    const publish = openPublisher(context, env, target)
    const { platform, close } = await openRecord(context, env, data)
    const snapshot = await platform.keptStatus().finally(close)
    await publish({ snapshot, confirmedAt: context.clock.now(), isOutage: false }).catch((cause: unknown) => {
      const reason = cause instanceof Error ? cause.message : 'it takes no files'
      const [exit, why] = isAddress(target)
        ? [EXIT.remote, `${reason}.`]
        : [EXIT.failed, `${writeRefusal(cause)}, then try again.`]
      throw new CommandError(exit, `${target} cannot be written: ${why}`)
    })
    return `written to ${target}\n`
  },
})

export const define: Define = () =>
  command({
    description:
      'Show the daemon of a data folder on one screen: its services as health --deep sees them, store, schedule, backlog, pauses, last mail and problems, and where alerts go. Settings come from the env files that the daemon recorded, unless others are named.',
    exits:
      '0 running and well (degraded allowed), 1 stopped, failing, not reached, or deliveries wait for a decision, 2 no daemon has run with this folder.',
    examples: [
      '--data /var/lib/platformctl',
      '--data /var/lib/platformctl --format json',
      'announce "Search is slow while we move it" --for 2h',
    ],
    document: 'status',
    inputs: { '--data <folder>': 'the daemon’s data folder (default: .platformctl)', ...ENV_FILE },
    async run(context, values) {
      const { gatherStatus, statusText } = await import('../status/status.ts')
      const status = await gatherStatus(context, values)
      const { daemon, state, store } = status
      const isWell =
        daemon.running &&
        (state === 'ok' || state === 'degraded') &&
        !('fault' in store) &&
        store.counts.parked + store.counts.unknown === 0
      return {
        json: status,
        text: statusText(status, { now: context.clock.now(), platform: whichPlatform(context) }),
        exit: isWell ? EXIT.passed : EXIT.failed,
      }
    },
    commands: { announce, update, withdraw, export: exportStatus },
  })

/** Adds `de=Die Suche ist langsam` to the texts given before it. */
function translation(given: string, before: Readonly<Record<string, string>> = {}) {
  const [, tag = '', said = ''] = /^([^=]*)=(.*)$/s.exec(given) ?? []
  if (!isLanguage(tag) || Object.hasOwn(before, tag.toLowerCase()))
    throw new InvalidArgumentError(
      'A language tag, = and the text are needed, once for a language, such as "de=Die Suche ist langsam".',
    )
  return { ...before, [tag.toLowerCase()]: text(LONGEST_TEXT, sayUpTo(LONGEST_TEXT), { lines: true })(said) }
}

function moment(text: string): number {
  const isComplete = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})$/.test(text)
  const ms = isComplete ? instantOf(text) : Number.NaN
  if (!Number.isNaN(ms)) return ms
  throw new InvalidArgumentError(
    'A time with its offset is needed, such as 2027-01-10T22:00Z or 2027-01-10T23:00+01:00.',
  )
}
