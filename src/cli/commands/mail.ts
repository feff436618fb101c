import type { Environment } from '../../core/env/environment.ts'
import type { IncidentStore } from '../../core/incidents/incident.ts'
import { type Hold, heldTogether, STREAMS, type StreamName } from '../../core/mail/holds.ts'
import type { Configure, Context } from '../context.ts'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import {
  alertChannelsOf,
  formatOption,
  reason,
  type StoreOptions,
  storeSubcommand,
  withPlatform,
  wordsOption,
} from '../options.ts'
import { printJson, printText, table } from '../print.ts'

interface Options extends StoreOptions {
  readonly stream?: readonly StreamName[]
}

export const configure: Configure = (command, context, settle) => {
  command
    .description(
      'Stop mail in an emergency, resume it, and see what waits. A pause is in the store, so that it outlives restarts, and holds on every replica within 10 seconds; messages that were handed over still arrive.',
    )
    .addHelpText(
      'after',
      `
Streams: sign-in, confirmation, alert, notice (of incidents, to visitors), course (lessons), mail (everything else).

Examples:
  platformctl mail pause --reason "wrong prices in all mails"
  platformctl mail queue
  platformctl mail resume`,
    )
  const add = (name: string, summary: string, ...examples: string[]) =>
    storeSubcommand(command, { name, summary, examples }).addOption(formatOption(['text', 'json']))
  const streams = (byDefault: string) =>
    wordsOption('--stream <name...>', `only these streams; repeatable (default: ${byDefault})`, {
      kind: 'stream',
      known: STREAMS,
    })
  add(
    'pause',
    'hold mail until somebody resumes it; alerts go on unless they are named, and the alert about the pause always leaves',
    ' --reason "wrong prices in all mails"',
    ' --stream course notice --reason "the provider throttles us"',
  )
    .addOption(streams('all but alert'))
    .requiredOption(
      '--reason <text>',
      'why: shown in status, health and alerts, and to programs whose mail is not sent',
      reason,
    )
    .action(async (options: Options & { readonly reason: string }) => settle(await pause(context, options)))
  add('resume', 'send again what was paused and has not expired', '', ' --stream sign-in confirmation')
    .addOption(streams('all that are paused'))
    .action(async (options: Options) => settle(await resume(context, options)))
  add(
    'queue',
    'what is due, waits for another attempt, is held or has failed, by stream',
    '',
    ' --format json',
  ).action(async (options: Options) => settle(await queue(context, options)))
}

const BUT_ALERTS = STREAMS.filter((stream) => stream !== 'alert')
const since = (at: number) => new Date(at).toISOString()

function pause(
  context: Context,
  { stream: streams = BUT_ALERTS, ...options }: Options & { readonly reason: string },
): Promise<ExitCode> {
  return withPlatform(context, options, async (platform) => {
    const { pauseStreams } = await import('../mail-holds.ts')
    const paused = await pauseStreams(context, platform, streams, options.reason)
    if (options.format === 'json') return printJson(context, 'mail pause', { paused })
    return printText(
      context,
      `${holdLines('paused', paused)}Every replica holds them within 10 seconds. What was handed over before still arrives.\nNext: platformctl mail queue shows what waits; platformctl mail resume ends the pause.\n`,
    )
  })
}

function resume(context: Context, { stream: streams = STREAMS, ...options }: Options): Promise<ExitCode> {
  return withPlatform(context, options, async (platform) => {
    const { resumeStreams } = await import('../mail-holds.ts')
    const resumed = await resumeStreams(context, platform, streams)
    if (resumed.length === 0)
      throw new CommandError(
        EXIT.failed,
        streams === STREAMS ? 'no mail is paused.' : `not paused: ${streams.join(', ')}.`,
      )
    if (options.format === 'json') return printJson(context, 'mail resume', { resumed })
    return printText(context, holdLines('resumed', resumed))
  })
}

/** `paused: course, mail (since TIME: REASON)`, a line for each pause. */
const holdLines = (what: string, holds: readonly Hold[]) =>
  heldTogether(holds)
    .map(({ streams, at, reason: why }) => `${what}: ${streams.join(', ')} (since ${since(at)}: ${why})\n`)
    .join('')

function queue(context: Context, options: Options): Promise<ExitCode> {
  return withPlatform(context, options, async (platform, env) => {
    const { sending, incidents } = await platform.store()
    const now = context.clock.now()
    const [queued, holds] = [await sending.queue(now), await sending.holds()]
    const silence = await incidents.silenceAt(now)
    const alerts = await untriedAlerts(context, incidents, env, {
      isQuiet: silence !== undefined || holds.some(({ stream }) => stream === 'alert'),
      now,
    })
    const streams = STREAMS.map((stream) => {
      const tried = queued.find((one) => one.stream === stream)
      const hold = holds.find((one) => one.stream === stream)
      const untried = stream === 'alert' ? alerts : []
      const { due = 0, waiting = 0, failed = 0, nextAt } = tried ?? {}
      const isHeld = hold !== undefined || (stream === 'alert' && silence !== undefined)
      const since = [tried?.oldestAt ?? [], untried.map(({ incident }) => incident.openedAt)].flat()
      return {
        stream,
        due: due + untried.length,
        held: (isHeld ? due : 0) + untried.filter(({ held }) => held).length,
        ...{ waiting, failed, oldestAt: since.length === 0 ? undefined : Math.min(...since), nextAt },
        ...(hold && { paused: { at: hold.at, reason: hold.reason } }),
      }
    })
    if (options.format === 'json') return printJson(context, 'mail queue', { streams })
    const time = (at: number | undefined) => (at === undefined ? '–' : since(at))
    return printText(
      context,
      table([
        ['stream', 'due', 'held', 'waiting', 'failed', 'oldest due', 'next attempt', ''],
        ...streams.map(({ stream, due, held, waiting, failed, oldestAt, nextAt, paused }) => [
          stream,
          ...[due, held, waiting, failed].map(String),
          time(oldestAt),
          paused ? '–' : time(nextAt),
          paused ? `paused since ${since(paused.at)}: ${paused.reason}` : '',
        ]),
      ]),
    )
  })
}

/** Alerts that are due and were never tried: a message has a row only from its first attempt. */
async function untriedAlerts(
  context: Context,
  store: IncidentStore,
  env: Environment,
  { isQuiet, now }: { readonly isQuiet: boolean; readonly now: number },
) {
  const { dueAlerts } = await import('../../core/incidents/due.ts')
  const { unfinishedIn } = await import('../../core/incidents/teller.ts')
  const channels = await alertChannelsOf(context, env)
  const known = await unfinishedIn(store, channels, now)
  return dueAlerts({ ...known, channels, isQuiet, now }).filter(
    ({ incident: { id }, kind, channel }) =>
      !known.messages.some((one) => one.incident === id && one.kind === kind && one.channel === channel),
  )
}
