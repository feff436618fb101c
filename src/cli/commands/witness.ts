import path from 'node:path'
import { readSettings } from '../../core/env/settings.ts'
import { ALERT, mailChannel, webhookChannel } from '../../core/incidents/channels.ts'
import type { MessageKind, StoredIncident } from '../../core/incidents/incident.ts'
import { untilAborted } from '../../core/wait.ts'

import type { Configure, Context } from '../context.ts'
import { CommandError, EXIT } from '../exit.ts'
import { ADDRESS, isAddress } from '../health/targets.ts'
import { collect, envFileOption, port } from '../options.ts'

interface Options {
  readonly platform: string
  readonly name?: string
  readonly peer: readonly string[]
  readonly port: number
  readonly host: string
  readonly data: string
  readonly envFile: readonly string[]
}

export const configure: Configure = (command, context, settle) => {
  command
    .description(
      'Watch the platform from another machine: serve its status page when it cannot, and alert when the majority of witnesses cannot reach it.',
    )
    .requiredOption('--platform <url>', 'address of the web service')
    .option('--name <name>', 'the name of this witness in the platform’s WITNESS_SECRET')
    .option('--peer <url...>', 'address of another witness; repeatable', collect, [])
    .option('--port <port>', 'where it listens; 0 takes a free port', port, 3100)
    .option('--host <host>', 'the address to listen on', '127.0.0.1')
    .option('--data <folder>', 'where it keeps the last status and its alerts', '.platformctl-witness')
    .addOption(envFileOption())
    .addHelpText(
      'after',
      `
WITNESS_SECRET is the secret of this witness; the platform lists those of all (NAME:SECRET, separated by commas).
ALERT_WEBHOOK_URL, or ALERT_EMAIL_TO with the mail variables, is where alerts go. Give each witness its own.

Exit codes: 0 stopped cleanly, 2 wrong usage or port taken.

Examples:
  platformctl witness --platform https://www.example.com
  platformctl witness --platform https://www.example.com --name vienna --host 0.0.0.0 \\
    --peer https://frankfurt.example.net --peer https://graz.example.net`,
    )
    .action(async (options: Options) => {
      await run(context, options)
      settle(EXIT.passed)
    })
}

async function run(context: Context, options: Options): Promise<void> {
  const { loadEnvironment } = await import('../environment.ts')
  const { createLog } = await import('../../daemon/log.ts')
  const { parseWitnessSecrets, WITNESS_NAME } = await import('../../core/witness.ts')
  const { startWitness } = await import('../../witness/witness.ts')
  const { serveWitness } = await import('../../witness/serve.ts')
  const { outageText } = await import('../../witness/outages.ts')
  const { clock, random } = context
  const { env } = await loadEnvironment(context, options.envFile)
  const settings = readSettings(context.platform, env)
  const [found, ...others] = parseWitnessSecrets(env.WITNESS_SECRET?.trim() ?? '') ?? []
  if (found === undefined || others.length > 0)
    throw new CommandError(
      EXIT.usage,
      'WITNESS_SECRET must hold the one secret of this witness, of 24 characters or more: make one with openssl rand -base64 32, and list it on the platform.',
    )
  const own = { ...found, name: options.name ?? found.name }
  if (!WITNESS_NAME.test(own.name))
    throw new CommandError(EXIT.usage, '--name needs 1 to 32 of a-z, 0-9 and -, as WITNESS_SECRET lists it.')
  for (const [option, url] of [
    ['--platform', options.platform],
    ...options.peer.map((one) => ['--peer', one]),
  ])
    if (!isAddress(url ?? '')) throw new CommandError(EXIT.usage, `${option} needs ${ADDRESS}.`)
  const log = createLog({
    write: await (await import('./daemon.ts')).logOutput(context),
    level: settings.site.logLevel,
    build: settings.site.buildStamp,
  })
  const textOf = (incident: StoredIncident, kind: MessageKind) =>
    outageText(incident, kind, new URL(options.platform).host)
  const { alerts, mail } = settings
  const { openMailer } = await import('../../core/mail/open.ts')
  const channels = [
    ...(alerts.webhook === undefined ? [] : [webhookChannel({ ...alerts.webhook, textOf, clock })]),
    ...(alerts.mailTo === undefined || mail === undefined
      ? []
      : [
          mailChannel({
            open: (compiled) => openMailer({ mail, compiled: async () => ({ [ALERT]: compiled }) }),
            to: alerts.mailTo,
            textOf,
          }),
        ]),
  ]
  if (channels.length === 0)
    log.warn('no_alert_channel', 'nobody is alerted: set ALERT_WEBHOOK_URL or ALERT_EMAIL_TO on this machine')
  const witness = await startWitness({
    own,
    platform: options.platform,
    peers: options.peer,
    dataFolder: path.resolve(context.cwd, options.data),
    channels,
    clock,
    random,
    log,
  })
  try {
    const server = await serveWitness({ witness, name: own.name, ...options, clock }).catch(
      (cause: unknown) => {
        throw new CommandError(
          EXIT.usage,
          `the witness cannot listen on port ${options.port} of ${JSON.stringify(options.host)}: choose another --port or --host.`,
          { cause },
        )
      },
    )
    log.info('listening', 'the witness listens', { witness: `http://${options.host}:${server.port}` })
    const { releaseWhenIdle } = await import('../release-memory.ts')
    const memory = releaseWhenIdle()
    await untilAborted(context.signal)
    memory.stop()
    await server.close()
  } finally {
    await witness.stop()
    log.flush()
  }
}
