import { auditEntry } from '../core/audit.ts'
import type { Hold, StreamName } from '../core/mail/holds.ts'
import type { Store } from '../core/store/store.ts'
import { type Context, operatorOf } from './context.ts'

type Sending = Store['sending']

/** Pauses streams of mail, and gives their holds; one that was paused before keeps its reason. */
export function pauseStreams(
  context: Context,
  sending: Sending,
  streams: readonly StreamName[],
  reason: string,
): Promise<readonly Hold[]> {
  const audit = entryOf(context, 'pause', streams, reason)
  return sending.pause({ streams, reason, now: context.clock.now(), audit })
}

/** Ends the pauses of streams, and gives those that it ended. */
export async function resumeStreams(
  context: Context,
  sending: Sending,
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
