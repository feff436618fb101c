import { PATHS } from '../../core/paths.ts'
import { minute } from '../../core/sentences.ts'
import {
  alertChannelsOf,
  alertTester,
  auditOf,
  command,
  type Define,
  storeCommand,
  withStore,
} from '../command.ts'
import { type Context, EXIT, failure, listColumns, operatorOf, wrongUsage } from '../context.ts'
import type { DocumentOf } from '../documents/documents.ts'
import { loadEnvironment } from '../environment.ts'
import { duration, ENV_FILE, reason, required, STORE, type Values, value } from '../inputs.ts'
import { beside, compact, iso } from '../output/text.ts'

const SHOWN = 200
const INCIDENT = { '<incident>': 'its id, as alert list and the alert itself show it' } as const

export const define: Define = () => ({
  examples: ['test --env-file .env', 'list --all', 'silence 15m --reason "deploy of 4.3"'],
  commands: {
    list: storeCommand({
      summary: 'open incidents, with the alerts that were sent, are due or are held back',
      examples: ['', '--all', '--format json'],
      document: 'alert list',
      inputs: { '--all': 'closed incidents too' },
      async run(context, { all }, { store: { incidents: store, sending }, env }) {
        const now = context.clock.now()
        const channels = await alertChannelsOf(context, env)
        const incidents = await store.list(SHOWN)
        const messages = await store.messages(incidents.map(({ id }) => id))
        const silence = await store.silenceAt(now)
        const pause = (await sending.holds()).find(({ stream }) => stream === 'alert')
        const isQuiet = (silence ?? pause) !== undefined
        const queued = await store.queuedAlerts()
        const found: AlertList = {
          channels: channels.map(({ name }) => name),
          silence,
          ...(pause && { pause: { at: pause.at, reason: pause.reason } }),
          incidents: incidents
            .filter(({ closedAt }) => all || closedAt === undefined)
            .map((incident) => {
              const own = queued.filter((one) => one.incident === incident.id)
              const due = (isHeld: boolean) =>
                own.flatMap(({ kind, channel, at, leaves }) =>
                  at <= now && (isQuiet && !leaves) === isHeld ? { kind, channel } : [],
                )
              return {
                ...incident,
                messages: messages.filter((one) => one.incident === incident.id).toReversed(),
                due: due(false),
                held: due(true),
                escalatesAt: own.find(
                  ({ kind, channel, at }) => kind === 'opened' && channel === 'escalation' && at > now,
                )?.at,
              }
            }),
        }
        return { json: found, text: alertsText(found, listColumns(context.stdout)) }
      },
    }),
    ack: storeCommand({
      summary: 'acknowledge an incident, which ends its reminders and escalation',
      examples: ['INCIDENT'],
      inputs: INCIDENT,
      async run(context, { incident: id }, { store }) {
        const by = operatorOf(context).name
        assertOpen(await store.incidents.acknowledge({ id, now: context.clock.now(), by }), id, 'acknowledge')
        return `acknowledged ${id} by ${by}\n`
      },
    }),
    resolve: storeCommand({
      summary: 'close an incident by hand; it opens again if its cause fails for two more rounds',
      examples: ['INCIDENT --reason "the probe was removed"'],
      inputs: {
        ...INCIDENT,
        '--reason <text>': required('why, as the alerts and db audit show it', reason),
      },
      async run(context, { incident: id, reason: why }, { store }) {
        const now = context.clock.now()
        const by = operatorOf(context).name
        const audit = auditOf(context, { action: 'resolve-incident', subject: id, details: why })
        assertOpen(await store.incidents.resolve({ id, now, by, reason: why, audit }), id, 'resolve')
        return `resolved ${id} by ${by}\n`
      },
    }),
    silence: command({
      summary: 'hold back every alert, as during a deploy; what still fails afterwards is sent then',
      examples: [
        '15m --reason "deploy of 4.3"',
        '0 --reason "deploy is done"     ends a silence',
        '15m --reason "deploy of 4.3" --url https://www.example.com',
      ],
      inputs: {
        ...STORE,
        '<duration>': value('how long: 90s, 15m, at most 24h; 0 ends a silence', (text) =>
          /^0[smh]?$/.test(text) ? 0 : duration(text),
        ),
        '--reason <text>': required('why, as alert list shows it', reason),
        '--url <url>': 'through the web service, as from CI; the secret is EMAIL_DISPATCH_SECRET',
      },
      async run(context, { duration: length, reason: why, url, ...place }) {
        const by = operatorOf(context).name
        const from = context.clock.now()
        const until =
          url === undefined
            ? await withStore(context, place, async ({ store: { incidents } }) =>
                iso(await incidents.silence({ from, until: from + length, reason: why, by })),
              )
            : await silenceByWeb(context, url, place, { duration: asked(length), reason: why, by })
        return length === 0 ? 'no silence any more\n' : `silent until ${until}\n`
      },
    }),
    test: command({
      summary: 'send a test alert on every channel that is configured',
      description:
        'Send a test alert on every channel that is configured. Needs no store; the message says that nothing is wrong.',
      exits: '0 each channel took it, 1 no channel is configured, 3 one did not take it.',
      examples: ['--env-file .env'],
      inputs: ENV_FILE,
      async run(context, { envFile }) {
        const { env } = await loadEnvironment(context, envFile)
        const channels = await alertChannelsOf(context, env)
        if (channels.length === 0)
          throw failure(
            'there is no channel for alerts: set ALERT_WEBHOOK_URL, or ALERT_EMAIL_TO and the mail group.',
          )
        const tell = alertTester(context, env)
        const told = await Promise.all(channels.map(async ({ name }) => ({ name, ...(await tell(name)) })))
        for (const one of told)
          context.stdout.write(
            one.kind === 'sent' ? `sent by ${one.name}\n` : `not sent by ${one.name}: ${one.reason}\n`,
          )
        return told.every(({ kind }) => kind === 'sent') ? EXIT.passed : EXIT.remote
      },
    }),
  },
})

function assertOpen(wasOpen: boolean, id: string, action: string): void {
  if (!wasOpen) throw wrongUsage(`no incident ${id} is left to ${action}: run platformctl alert list.`)
}

type Silence = Readonly<Record<'duration' | 'reason' | 'by', string>>

async function silenceByWeb(context: Context, url: string, place: Values<typeof STORE>, body: Silence) {
  const { data, envFile } = place
  if (data !== undefined) throw wrongUsage('choose one of --data and --url.')
  const { postToWeb, webEndpoint } = await import('../web-endpoint.ts')
  const { env } = await loadEnvironment(context, envFile)
  const endpoint = webEndpoint(context, env, url, PATHS.silence)
  return postToWeb(context, { ...endpoint, body: { ...body, by: body.by.slice(0, 100) } }, 'until')
}

/** As the endpoint takes it: a few digits and a unit, rounded up. */
function asked(ms: number): string {
  const seconds = Math.ceil(ms / 1000)
  if (seconds < 10_000) return seconds === 0 ? '0' : `${seconds}s`
  return seconds <= 59_940 ? `${Math.ceil(seconds / 60)}m` : `${Math.ceil(seconds / 3600)}h`
}

export type AlertList = Omit<DocumentOf<'alert list'>, 'version'>

export function alertsText({ incidents, channels, silence, pause }: AlertList, columns: number): string {
  const channelText =
    channels.length === 0
      ? 'none in this environment; ALERT_WEBHOOK_URL and ALERT_EMAIL_TO belong in the daemon’s --env-file'
      : channels
          .map((name) => `by ${name}${name === 'escalation' ? ' if nobody acknowledges' : ''}`)
          .join(' and ')
  const head = (name: string, text: string) => beside(name.padEnd(10), text, columns)
  const row = (name: string, text: string) => beside(`  ${name.padEnd(8)}`, text, columns)
  const lines = compact(
    head('alerts', channelText),
    silence && head('silence', `until ${minute(silence.until)}, by ${silence.by}: ${silence.reason}`),
    pause && head('pause', `alerts are paused since ${minute(pause.at)}: ${pause.reason}`),
    ...(incidents.length === 0 ? ['', 'no open incidents'] : []),
  )
  for (const { id, cause, service, affected, reason, openedAt, ...incident } of incidents)
    lines.push(
      '',
      beside(`${id}  `, `${cause} (${[service, ...affected].join(', ')}), ${stateText(incident)}`, columns),
      row('since', minute(openedAt)),
      ...(reason === undefined ? [] : [row('cause', reason)]),
      ...incident.messages.map(({ kind, channel, outcome, at, attempts, reason: why }) => {
        const attempt = attempts > 1 ? `, attempt ${attempts}` : ''
        const text = `${kind} by ${channel}, ${minute(at)}${attempt}${why === undefined ? '' : `${outcome === 'sent' ? '; before' : ''}: ${why}`}`
        return row(outcome === 'pending' ? 'tried' : outcome, text)
      }),
      ...incident.due.map(({ kind, channel }) => row('due', `${kind} by ${channel}`)),
      ...(incident.escalatesAt === undefined
        ? []
        : [row('later', `opened by escalation, ${minute(incident.escalatesAt)}, unless acknowledged`)]),
      ...incident.held.map(({ kind, channel }) =>
        row('held', `${kind} by ${channel}, by the ${silence ? 'silence' : 'pause'}`),
      ),
    )
  return `${lines.join('\n')}\n`
}

function stateText(incident: Partial<AlertList['incidents'][number]>): string {
  const { closedAt, acknowledgedBy, resolvedBy, resolvedReason } = incident
  if (closedAt === undefined) return acknowledgedBy ? `open, acknowledged by ${acknowledgedBy}` : 'open'
  const by = resolvedBy === undefined ? '' : ` by ${resolvedBy}`
  return `closed ${minute(closedAt)}${by}${resolvedReason === undefined ? '' : `: ${resolvedReason}`}`
}
