/** A job that has to report in, as a definition describes it. */
export interface HeartbeatDefinition {
  readonly name: string
  readonly everyMs: number
  readonly graceMs: number
  readonly label?: string
}

/** Stored state of a heartbeat. Times are UTC milliseconds. */
export interface HeartbeatRecord {
  readonly name: string
  /** When it was first expected: one that never came is late by this. */
  readonly since: number
  readonly beatAt: number | undefined
  /** The last failure; undefined once a success followed. */
  readonly failedAt: number | undefined
  readonly exitCode: number | undefined
}

export interface Beat {
  readonly name: string
  readonly now: number
  /** Undefined: it succeeded. */
  readonly failed: { readonly exitCode: number | undefined } | undefined
}

/** Whether a heartbeat is on time. `dueBy` is when the next one must arrive, including the grace period. */
export function heartbeatState(
  { everyMs, graceMs }: Pick<HeartbeatDefinition, 'everyMs' | 'graceMs'>,
  record: HeartbeatRecord,
  now: number,
): { readonly state: 'ok' | 'late' | 'failed'; readonly dueBy: number } {
  const dueBy = Math.max(record.since, record.beatAt ?? 0) + everyMs + graceMs
  return { state: record.failedAt !== undefined ? 'failed' : now > dueBy ? 'late' : 'ok', dueBy }
}

export const heartbeatProbeName = (name: string) => `heartbeat-${name}`
