import type { Environment } from '../../core/env/environment.ts'
import type { StoredIncident } from '../../core/incidents/incident.ts'
import type { Store } from '../../core/store/store.ts'
import { type Configure, type Context, listColumns, operatorOf } from '../context.ts'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import {
  alertChannelsOf,
  duration,
  envFileOption,
  formatOption,
  reason,
  type StoreOptions,
  storeSubcommand,
  withIncidents,
} from '../options.ts'
import type { AlertList } from '../output/alerts-text.ts'
import { printJson, printText } from '../print.ts'

interface Options extends StoreOptions {
  readonly all?: true
}

interface SilenceOptions extends Options {
  readonly reason: string
  readonly url?: string
}

const SHOWN = 200

export const configure: Configure = (command, context, settle) => {
  command
    .description(
      'Alerts about incidents: list what was sent, try the channels, end reminders, close by hand, and keep quiet during a deploy.',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  platformctl alert test --env-file .env\n  platformctl alert list --all\n  platformctl alert silence 15m --reason "deploy of 4.3"',
    )
  const onStore = (name: string, summary: string, examples: readonly string[]) =>
    storeSubcommand(command, { name, summary, examples })
  onStore('list', 'open incidents, with the alerts that were sent and those that are due', [
    '',
    ' --all',
    ' --format json',
  ])
    .option('--all', 'closed incidents too, and what a silence holds back')
    .addOption(formatOption(['text', 'json']))
    .action(async (options: Options) =>
      settle(await withIncidents(context, options, (_, env, store) => list(context, store, env, options))),
    )
  onStore('ack', 'acknowledge an incident, which ends its reminders', [' INCIDENT'])
    .argument('<incident>', 'its id, as alert list and the alert itself show it')
    .action(async (id: string, options: Options) =>
      settle(
        await withIncidents(context, options, async (incidents) => {
          const by = operatorOf(context).name
          if (!(await incidents.acknowledge({ id, now: context.clock.now(), by })))
            throw new CommandError(
              EXIT.usage,
              `no open incident ${id} to acknowledge: run platformctl alert list to see them.`,
            )
          return printText(context, `acknowledged ${id} by ${by}\n`)
        }),
      ),
    )
  onStore('resolve', 'close an incident by hand; it opens again if its cause fails for two more rounds', [
    ' INCIDENT --reason "the probe was removed"',
  ])
    .argument('<incident>', 'its id, as alert list and the alert itself show it')
    .requiredOption('--reason <text>', 'why, as the alerts and db audit show it', reason)
    .action(async (id: string, options: Options & { readonly reason: string }) =>
      settle(
        await withIncidents(context, options, async (incidents) => {
          const { auditEntry } = await import('../../core/audit.ts')
          const { clock, random } = context
          const operator = operatorOf(context)
          const [now, why] = [clock.now(), options.reason]
          const audit = auditEntry({
            action: 'resolve-incident',
            operator,
            now,
            random,
            subject: id,
            details: why,
          })
          if (!(await incidents.resolve({ id, now, by: operator.name, reason: why, audit })))
            throw new CommandError(
              EXIT.usage,
              `no open incident ${id} to resolve: run platformctl alert list to see them.`,
            )
          return printText(context, `resolved ${id} by ${operator.name}\n`)
        }),
      ),
    )
  onStore('silence', 'send no alerts for a while, for a deploy; what still fails afterwards is sent then', [
    ' 15m --reason "deploy of 4.3"',
    ' 0 --reason "deploy is done"     ends a silence',
    ' 15m --reason "deploy of 4.3" --url https://www.example.com',
  ])
    .argument('<duration>', 'how long: 90s, 15m, 2h; 0 ends a silence', (text) =>
      /^0[smh]?$/.test(text) ? 0 : duration(text),
    )
    .requiredOption('--reason <text>', 'why, as alert list shows it', reason)
    .option('--url <url>', 'through the web service, as from CI; the secret is EMAIL_DISPATCH_SECRET')
    .action(async (length: number, options: SilenceOptions) =>
      settle(
        options.url !== undefined
          ? await silenceByWeb(context, length, options)
          : await withIncidents(context, options, async (incidents) => {
              const now = context.clock.now()
              await incidents.silence({
                from: now,
                until: now + length,
                reason: options.reason,
                by: operatorOf(context).name,
              })
              return printText(context, silenceText(length, new Date(now + length).toISOString()))
            }),
      ),
    )
  command
    .command('test')
    .summary('send a test alert on every channel that is configured')
    .description(
      'Send a test alert on every channel that is configured. Needs no store; the message says that nothing is wrong.',
    )
    .addOption(envFileOption())
    .addHelpText(
      'after',
      '\nExit codes: 0 each channel took it, 1 no channel is configured, 3 one did not take it.\n\nExamples:\n  platformctl alert test --env-file .env',
    )
    .action(async (options: Options) => settle(await test(context, options)))
}

async function silenceByWeb(
  context: Context,
  length: number,
  { url, data, reason, envFile }: SilenceOptions,
): Promise<ExitCode> {
  if (data !== undefined) throw new CommandError(EXIT.usage, 'choose one of --data and --url.')
  const { loadEnvironment } = await import('../environment.ts')
  const { postToWeb, webEndpoint } = await import('../dispatch/web-endpoint.ts')
  const { PATHS } = await import('../../core/paths.ts')
  const { env } = await loadEnvironment(context, envFile)
  const by = operatorOf(context).name.slice(0, 100)
  const body = { duration: durationText(length), reason, by }
  const { until } = await postToWeb(context, {
    ...webEndpoint(env, url, PATHS.silence, context.daemon),
    body,
  })
  return printText(context, silenceText(length, String(until)))
}

/** As the endpoint reads it: a few digits and a unit, rounded up. */
function durationText(ms: number): string {
  const seconds = Math.ceil(ms / 1000)
  if (seconds === 0) return '0'
  if (seconds < 10_000) return `${seconds}s`
  return seconds < 60_000 ? `${Math.ceil(seconds / 60)}m` : `${Math.ceil(seconds / 3600)}h`
}

function silenceText(length: number, until: string): string {
  return length === 0 ? 'no silence any more\n' : `silent until ${until}\n`
}

async function list(
  context: Context,
  { incidents: store, sending }: Store,
  env: Environment,
  options: Options,
): Promise<ExitCode> {
  const { dueAlerts } = await import('../../core/incidents/due.ts')
  const now = context.clock.now()
  const channels = await alertChannelsOf(context, env)
  const incidents = await store.list(SHOWN)
  const messages = await store.messages(incidents.map(({ id }) => id))
  const silence = await store.silenceAt(now)
  const pause = (await sending.holds()).find(({ stream }) => stream === 'alert')
  const due = dueAlerts({ channels, incidents, messages, isQuiet: (silence ?? pause) !== undefined, now })
  const { afterMs } = channels.find((one) => one.afterMs !== undefined) ?? {}
  const escalation = ({ openedAt, closedAt, acknowledgedAt }: StoredIncident) =>
    afterMs !== undefined && now < openedAt + afterMs && (closedAt ?? acknowledgedAt) === undefined
      ? openedAt + afterMs
      : undefined
  const found: AlertList = {
    channels: channels.map(({ name }) => name),
    silence,
    ...(pause && { pause: { at: pause.at, reason: pause.reason } }),
    incidents: incidents
      .filter(({ closedAt }) => options.all || closedAt === undefined)
      .map((incident) => {
        const own = (isHeld: boolean) =>
          due.flatMap(({ incident: { id }, kind, channel, held }) =>
            id === incident.id && held === isHeld ? [{ kind, channel }] : [],
          )
        return {
          ...incident,
          messages: messages.filter((one) => one.incident === incident.id).toReversed(),
          due: own(false),
          held: own(true),
          escalatesAt: escalation(incident),
        }
      }),
  }
  if (options.format === 'json') printJson(context, 'alert list', found)
  else
    context.stdout.write(
      (await import('../output/alerts-text.ts')).alertsText(found, listColumns(context.stdout)),
    )
  return EXIT.passed
}

async function test(context: Context, options: Options): Promise<ExitCode> {
  const { loadEnvironment } = await import('../environment.ts')
  const { alertMessageId } = await import('../../core/incidents/teller.ts')
  const { env } = await loadEnvironment(context, options.envFile)
  const channels = await alertChannelsOf(context, env)
  if (channels.length === 0)
    throw new CommandError(
      EXIT.failed,
      'there is no channel for alerts: set ALERT_WEBHOOK_URL, or ALERT_EMAIL_TO and the mail group.',
    )
  const now = context.clock.now()
  const incident: StoredIncident = {
    id: Buffer.from(context.random.bytes(9)).toString('base64url'),
    cause: 'test',
    service: 'web',
    reason: undefined,
    affected: [],
    openedAt: now,
    seenAt: now,
    closedAt: undefined,
    acknowledgedAt: undefined,
    acknowledgedBy: undefined,
  }
  const outcomes = await Promise.all(
    channels.map(async (channel) => ({
      name: channel.name,
      outcome: await channel.tell({ id: alertMessageId(incident.id, 'test'), kind: 'test', incident }),
    })),
  )
  for (const { name, outcome } of outcomes)
    context.stdout.write(
      outcome.kind === 'sent' ? `sent by ${name}\n` : `not sent by ${name}: ${outcome.reason}\n`,
    )
  return outcomes.every(({ outcome }) => outcome.kind === 'sent') ? EXIT.passed : EXIT.remote
}
