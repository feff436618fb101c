import { type Hold, heldTogether, STREAMS, type StreamName } from '../../core/mail/holds.ts'
import type { Store } from '../../core/store/store.ts'
import { auditOf, type Define, storeCommand } from '../command.ts'
import { type Context, failure } from '../context.ts'
import { reason, required, words } from '../inputs.ts'
import { iso, table } from '../output/text.ts'

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
        'hold mail until somebody resumes it; alerts go on unless they are named, and the alert about the pause is always sent',
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
        const audit = auditOf(context, { action: 'pause', details: `${stream.join(', ')}: ${why}` })
        const paused = await sending.pause({ streams: stream, reason: why, now: context.clock.now(), audit })
        return {
          json: { paused },
          text: `${holdLines('paused', paused)}Every replica holds them within 10 seconds. What was handed over before still arrives.\nNext: platformctl mail queue shows what waits; platformctl mail resume ends the pause.\n`,
        }
      },
    }),
    resume: storeCommand({
      summary: 'end a pause: mail that waited is sent, unless it has expired',
      examples: ['', '--stream sign-in confirmation'],
      document: 'mail resume',
      inputs: { '--stream <name...>': streams('all that are paused') },
      async run(context, { stream }, { store: { sending } }) {
        const resumed = await resumeStreams(context, sending, stream ?? STREAMS)
        if (resumed.length === 0)
          throw failure(stream === undefined ? 'no mail is paused.' : `not paused: ${stream.join(', ')}.`)
        return { json: { resumed }, text: holdLines('resumed', resumed) }
      },
    }),
    queue: storeCommand({
      summary: 'what is due, waits for another attempt, is held or has failed, by stream',
      examples: ['', '--format json'],
      document: 'mail queue',
      async run(context, _, { store: { sending, incidents } }) {
        const now = context.clock.now()
        const queued = await sending.queue(now)
        const holds = await sending.holds()
        const silence = await incidents.silenceAt(now)
        const alerts = (await incidents.queuedAlerts()).filter(({ at, leaves }) => at <= now && !leaves)
        const streams = STREAMS.map((stream) => {
          const found = queued.find((one) => one.stream === stream)
          const { due = 0, waiting = 0, failed = 0, oldestAt, nextAt } = found ?? {}
          const hold = holds.find((one) => one.stream === stream)
          const isHeld = hold !== undefined || (stream === 'alert' && silence !== undefined)
          const held = !isHeld ? 0 : stream === 'alert' ? alerts.length : due
          const paused = hold && { paused: { at: hold.at, reason: hold.reason } }
          return { stream, due, held, waiting, failed, oldestAt, nextAt, ...paused }
        })
        const time = (at: number | undefined) => (at === undefined ? '–' : iso(at))
        const text = table([
          ['stream', 'due', 'held', 'waiting', 'failed', 'oldest due', 'next attempt', ''],
          ...streams.map(({ stream, due, held, waiting, failed, oldestAt, nextAt, paused }) => [
            stream,
            ...[due, held, waiting, failed].map(String),
            time(oldestAt),
            paused ? '–' : time(nextAt),
            paused ? `paused since ${iso(paused.at)}: ${paused.reason}` : '',
          ]),
        ])
        return { json: { streams }, text }
      },
    }),
  },
})

/** `paused: course, mail (since TIME: REASON)`, a line for each pause. */
const holdLines = (what: string, holds: readonly Hold[]) =>
  heldTogether(holds)
    .map(({ streams, at, reason: why }) => `${what}: ${streams.join(', ')} (since ${iso(at)}: ${why})\n`)
    .join('')

export async function resumeStreams(
  context: Context,
  sending: Store['sending'],
  streams: readonly StreamName[],
): Promise<readonly Hold[]> {
  const held = (await sending.holds()).filter(({ stream }) => streams.includes(stream))
  const details = `${held.map(({ stream }) => stream).join(', ')}: ${held[0]?.reason ?? ''}`
  const audit = auditOf(context, { action: 'resume', details })
  return sending.resume({ streams, now: context.clock.now(), audit })
}
