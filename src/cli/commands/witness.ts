import path from 'node:path'
import { readSettings } from '../../core/env/settings.ts'
import { validate } from '../../core/env/validate.ts'
import { systemClock, untilAborted } from '../../core/host.ts'
import { openChannels } from '../../core/incidents/channels.ts'
import type { MessageKind, StoredIncident } from '../../core/incidents/incident.ts'
import { WEB } from '../../core/service.ts'
import { command, type Define } from '../command.ts'
import { type Context, EXIT, type ExitCode, failure, wrongUsage } from '../context.ts'
import { loadEnvironment } from '../environment.ts'
import { ADDRESS, isAddress } from '../health/targets.ts'
import { ENV_FILE, port, repeatable, required, STATUS_TARGET, type Values, value } from '../inputs.ts'

const INPUTS = {
  '--platform <url>': required('address of the web service'),
  '--name <name>': 'the name of this witness in the platform’s WITNESS_SECRET',
  '--peer <url...>': repeatable('address of another witness; repeatable'),
  '--port <port>': value('where it listens; 0 takes a free port', port, 3100),
  '--host <host>': value('the address to listen on', String, '127.0.0.1'),
  '--out <target>': `keep the status page as files, too: ${STATUS_TARGET}`,
  '--data <folder>': value('where it keeps the last status and its alerts', String, '.platformctl-witness'),
  ...ENV_FILE,
} as const

export const define: Define = () =>
  command({
    description:
      'Watch the platform from another machine: serve its status page when it cannot, and alert when the majority of witnesses cannot reach it.',
    notes: `WITNESS_SECRET is the secret of this witness; the platform lists those of all (NAME:SECRET, separated by commas).
Alerts go to ALERT_WEBHOOK_URL, or to ALERT_EMAIL_TO with the mail variables. Give each witness its own.`,
    exits: '0 stopped cleanly, 1 the data folder cannot be used, 2 wrong usage or port taken.',
    examples: [
      '--platform https://www.example.com',
      `--platform https://www.example.com --name vienna --host 0.0.0.0 \\
    --peer https://frankfurt.example.net --peer https://graz.example.net`,
    ],
    inputs: INPUTS,
    run,
  })

/** The groups of the platform's that a witness reads. */
const OWN_GROUPS: readonly string[] = ['alerts', 'mail', 'mailer', 'dkim']

async function run(context: Context, options: Values<typeof INPUTS>): Promise<ExitCode> {
  const { parseWitnessSecrets, WITNESS_NAME } = await import('../../core/witness.ts')
  const { otherPlatform, startWitness } = await import('../../witness/witness.ts')
  const { serveWitness } = await import('../../witness/serve.ts')
  const { outageText } = await import('../../witness/outages.ts')
  const { openPublisher } = await import('../status/publish.ts')
  const { openLog, releaseWhenIdle } = await import('./daemon.ts')
  const { clock, random } = context
  const { env, origin } = await loadEnvironment(context, options.envFile)
  const settings = readSettings(context.platform, env)
  const [found, ...others] = parseWitnessSecrets(env.WITNESS_SECRET?.trim() ?? '') ?? []
  if (found === undefined || others.length > 0)
    throw wrongUsage(
      'WITNESS_SECRET must hold the one secret of this witness, of 24 characters or more: make one with openssl rand -base64 32, and list it on the platform.',
    )
  const own = { ...found, name: options.name ?? found.name }
  if (!WITNESS_NAME.test(own.name))
    throw wrongUsage('--name needs 1 to 32 of a-z, 0-9 and -, as WITNESS_SECRET lists it.')
  if (!isAddress(options.platform)) throw wrongUsage(`--platform needs ${ADDRESS}.`)
  if (!options.peer.every(isAddress)) throw wrongUsage(`--peer needs ${ADDRESS}.`)
  const dataFolder = path.resolve(context.cwd, options.data)
  const other = otherPlatform(dataFolder, options.platform)
  if (other !== undefined)
    throw wrongUsage(
      `the data folder ${dataFolder} is of a witness of ${other}: give each its own --data. If the platform has moved, remove witness.json from it.`,
    )
  const log = await openLog(context, settings)
  for (const { severity, group, id, cause, fix } of validate(context.platform.contract, env, [WEB], origin)
    .findings)
    if (severity !== 'notice' && (OWN_GROUPS.includes(group) || id === 'unknown-name'))
      log.warn('environment_warning', cause, { id, fix })
  const textOf = (incident: StoredIncident, kind: MessageKind) =>
    outageText(incident, kind, new URL(options.platform).host)
  const { alerts, mail } = settings
  // Nobody acknowledges an outage here.
  const channels = openChannels(clock, { alerts: { ...alerts, escalation: undefined }, mail }, textOf)
  if (channels.length === 0)
    log.warn('no_alert_channel', 'nobody is alerted: set ALERT_WEBHOOK_URL or ALERT_EMAIL_TO on this machine')
  const host = { clock, timer: systemClock, random, log }
  const witness = await startWitness(host, {
    own,
    platform: options.platform,
    peers: options.peer,
    dataFolder,
    channels,
    publish: options.out === undefined ? undefined : openPublisher(context, env, options.out),
  }).catch(() => {
    throw failure(
      `the data folder ${dataFolder} cannot be used: let this user write it, make room on its disk, or move a damaged witness.sqlite out of it.`,
    )
  })
  try {
    const server = await serveWitness(host, witness, own.name, options).catch(() => {
      throw wrongUsage(
        `the witness cannot listen on port ${options.port} of ${JSON.stringify(options.host)}: choose another --port or --host.`,
      )
    })
    log.info('listening', 'the witness listens', { witness: `http://${options.host}:${server.port}` })
    const memory = releaseWhenIdle()
    await untilAborted(context.signal)
    memory.stop()
    await server.close()
    return EXIT.passed
  } finally {
    await witness.stop()
    log.flush()
  }
}
