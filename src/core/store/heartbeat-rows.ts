import type { HeartbeatRecord } from '../heartbeats.ts'

/** The table `heartbeat` as every SQL store has it. */
export interface HeartbeatRow {
  readonly name: string
  readonly since: number
  readonly beat_at: number | null
  readonly failed_at: number | null
  readonly exit_code: number | null
}

export function heartbeatOf(row: HeartbeatRow): HeartbeatRecord {
  return {
    name: row.name,
    since: row.since,
    beatAt: row.beat_at ?? undefined,
    failedAt: row.failed_at ?? undefined,
    exitCode: row.exit_code ?? undefined,
  }
}
