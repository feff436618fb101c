import { auditEntry } from '../core/audit.ts'
import type { Hold, StreamName } from '../core/mail/holds.ts'
import type { OpenedPlatform } from '../daemon/platform.ts'
import { type Context, operatorOf } from './context.ts'

/** Pauses streams of mail, and gives their holds; one that was paused before keeps its reason. */
export async function pauseStreams(
  context: Context,
  platform: OpenedPlatform,
  streams: readonly StreamName[],
  reason: string,
): Promise<readonly Hold[]> {
  const { sending } = await platform.store()
  const now = context.clock.now()
  return sending.pause({ streams, reason, now, audit: entryOf(context, 'pause', streams, reason) })
}

/** Ends the pauses of streams, and gives those that it ended. */
export async function resumeStreams(
  context: Context,
  platform: OpenedPlatform,
  streams: readonly StreamName[],
): Promise<readonly Hold[]> {
  const { sending } = await platform.store()
  const held = (await sending.holds()).filter(({ stream }) => streams.includes(stream))
  const [reason] = held.map((one) => one.reason)
  const named = held.map(({ stream }) => stream)
  const audit = entryOf(context, 'resume', named, reason)
  return sending.resume({ streams, now: context.clock.now(), audit })
}

const entryOf = (context: Context, action: 'pause' | 'resume', streams: readonly StreamName[], reason = '') =>
  auditEntry({
    action,
    operator: operatorOf(context),
    now: context.clock.now(),
    random: context.random,
    details: `${streams.join(', ')}: ${reason}`,
  })
