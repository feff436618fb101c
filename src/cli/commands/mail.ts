import { auditEntry } from '../../core/audit.ts'
import { type Hold, heldTogether, STREAMS, type StreamName } from '../../core/mail/holds.ts'
import type { Store } from '../../core/store/store.ts'
import type { Answer, Define } from '../command.ts'
import { type Context, operatorOf } from '../context.ts'
import { CommandError, EXIT } from '../exit.ts'
import { reason, required, words } from '../inputs.ts'
import { storeCommand } from '../opened.ts'
import { table } from '../output/text.ts'

const BUT_ALERTS = STREAMS.filter((stream) => stream !== 'alert')
const streams = (byDefault: string) =>
  words(`only these streams; repeatable (default: ${byDefault})`, 'stream', STREAMS)

export const define: Define = () => ({
  description:
    'Stop mail in an emergency, resume it, and see what waits. A pause holds on every replica within 10 seconds and survives restarts; messages that were handed over before still arrive.',
  notes:
    'Streams: sign-in, confirmation, alert, notice (of incidents, to visitors), course (lessons), mail (everything else).',
  examples: ['pause --reason "wrong prices in all mails"', 'queue', 'resume'],
  commands: {
    pause: storeCommand({
      summary:
        'hold mail until somebody resumes it; alerts go on unless they are named, and the alert about the pause always leaves',
      examples: [
        '--reason "wrong prices in all mails"',
        '--stream course notice --reason "the provider throttles us"',
      ],
      document: 'mail pause',
      inputs: {
        '--stream <name...>': streams('all but alert'),
        '--reason <text>': required(
          'why: shown in status, health and alerts, and to programs whose mail is not sent',
          reason,
        ),
      },
      async run(context, { stream = BUT_ALERTS, reason: why }, { store: { sending } }) {
        const audit = entryOf(context, 'pause', stream, why)
        const paused = await sending.pause({ streams: stream, reason: why, now: context.clock.now(), audit })
        return {
          json: { paused },
          text: `${holdLines('paused', paused)}Every replica holds them within 10 seconds. What was handed over before still arrives.\nNext: platformctl mail queue shows what waits; platformctl mail resume ends the pause.\n`,
        }
      },
    }),
    resume: storeCommand({
      summary: 'send again what was paused and has not expired',
      examples: ['', '--stream sign-in confirmation'],
      document: 'mail resume',
      inputs: { '--stream <name...>': streams('all that are paused') },
      async run(context, { stream }, { store: { sending } }) {
        const resumed = await resumeStreams(context, sending, stream ?? STREAMS)
        if (resumed.length === 0)
          throw new CommandError(
            EXIT.failed,
            stream === undefined ? 'no mail is paused.' : `not paused: ${stream.join(', ')}.`,
          )
        return { json: { resumed }, text: holdLines('resumed', resumed) }
      },
    }),
    queue: storeCommand({
      summary: 'what is due, waits for another attempt, is held or has failed, by stream',
      examples: ['', '--format json'],
      document: 'mail queue',
      run: (context, _, { store }) => queue(context, store),
    }),
  },
})

const since = (at: number) => new Date(at).toISOString()

/** `paused: course, mail (since TIME: REASON)`, a line for each pause. */
const holdLines = (what: string, holds: readonly Hold[]) =>
  heldTogether(holds)
    .map(({ streams, at, reason: why }) => `${what}: ${streams.join(', ')} (since ${since(at)}: ${why})\n`)
    .join('')

async function queue(context: Context, { sending, incidents }: Store): Promise<Answer<'mail queue'>> {
  const now = context.clock.now()
  const [queued, holds, silence] = [
    await sending.queue(now),
    await sending.holds(),
    await incidents.silenceAt(now),
  ]
  const alerts = (await incidents.queuedAlerts()).filter(({ at, leaves }) => at <= now && !leaves)
  const streams = STREAMS.map((stream) => {
    const found = queued.find((one) => one.stream === stream)
    const { due = 0, waiting = 0, failed = 0, oldestAt, nextAt } = found ?? {}
    const hold = holds.find((one) => one.stream === stream)
    const isHeld = hold !== undefined || (stream === 'alert' && silence !== undefined)
    const held = !isHeld ? 0 : stream === 'alert' ? alerts.length : due
    return {
      ...{ stream, due, held, waiting, failed, oldestAt, nextAt },
      ...(hold && { paused: { at: hold.at, reason: hold.reason } }),
    }
  })
  const time = (at: number | undefined) => (at === undefined ? '–' : since(at))
  const text = table([
    ['stream', 'due', 'held', 'waiting', 'failed', 'oldest due', 'next attempt', ''],
    ...streams.map(({ stream, due, held, waiting, failed, oldestAt, nextAt, paused }) => [
      stream,
      ...[due, held, waiting, failed].map(String),
      time(oldestAt),
      paused ? '–' : time(nextAt),
      paused ? `paused since ${since(paused.at)}: ${paused.reason}` : '',
    ]),
  ])
  return { json: { streams }, text }
}

/** Ends the pauses of streams, and gives those that it ended. */
export async function resumeStreams(
  context: Context,
  sending: Store['sending'],
  streams: readonly StreamName[],
): Promise<readonly Hold[]> {
  const held = (await sending.holds()).filter(({ stream }) => streams.includes(stream))
  const named = held.map(({ stream }) => stream)
  const audit = entryOf(context, 'resume', named, held[0]?.reason)
  return sending.resume({ streams, now: context.clock.now(), audit })
}

const entryOf = (context: Context, action: 'pause' | 'resume', streams: readonly StreamName[], reason = '') =>
  auditEntry({
    ...{ action, now: context.clock.now(), random: context.random },
    operator: operatorOf(context),
    details: `${streams.join(', ')}: ${reason}`,
  })
