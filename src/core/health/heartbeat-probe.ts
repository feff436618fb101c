import {
  type HeartbeatDefinition,
  type HeartbeatRecord,
  heartbeatProbeName,
  heartbeatState,
} from '../heartbeats.ts'
import { WEB } from '../service.ts'
import type { ProbeDefinition } from './definition.ts'
import { failing, ok, skipped } from './verdicts.ts'

/**
 * A probe that fails while a job's heartbeat is late or the job failed. It looks only on deep requests,
 * because a late backup must not take the web service out of rotation.
 */
export function heartbeatProbe(definition: HeartbeatDefinition): ProbeDefinition {
  const { name, label } = definition
  return {
    name: heartbeatProbeName(name),
    service: WEB,
    label: label ?? `Heartbeat ${name}`,
    meaning: 'a job of yours did not run, or failed',
    open:
      ({ clock, heartbeat }) =>
      async ({ deep }) => {
        if (!deep || heartbeat === undefined) return ok(false)
        const now = clock.now()
        const record = await heartbeat({ name, now }).catch(() => undefined)
        // If the store cannot be read, its own probe says so.
        if (record === undefined) return skipped('the store cannot be read')
        const { state } = heartbeatState(definition, record, now)
        if (state === 'ok') return ok(true)
        return failing(state === 'failed' ? failedReason(record) : lateReason(record))
      },
  }
}

const failedReason = ({ exitCode, failedAt = 0 }: HeartbeatRecord) =>
  `it reported a failure${exitCode === undefined ? '' : ` (exit code ${exitCode})`} at ${minute(failedAt)}`

const lateReason = ({ beatAt, since }: HeartbeatRecord) =>
  beatAt === undefined
    ? `it has never reported, and is expected since ${minute(since)}`
    : `it last reported at ${minute(beatAt)}`

const minute = (ms: number) => `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`
