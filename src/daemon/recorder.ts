import { faultName } from '../core/errors.ts'
import type { HealthReport } from '../core/health/probe.ts'
import type { Health } from '../core/health/runner.ts'
import type { Host } from '../core/host.ts'
import type { Service } from '../core/service.ts'
import type { History } from '../core/status/history.ts'
import { createRounds } from '../core/status/rounds.ts'

const EVERY_MS = 60_000
/** After the machine wakes from sleep, or its clock steps, the next check comes within this time. */
const NOTICE_MS = 1000
/** A new fault is checked again after this time, so that it is confirmed before the next minute. */
const AGAIN_MS = 15_000
const NOT_RECORDED = 'the health history cannot be written; the status page shows a gap'

/** Looks at every probe once a minute, live, and records it; however many visitors come, nothing is asked more often. */
export function startRecorder(
  { clock, log }: Pick<Host, 'clock' | 'log'>,
  parts: {
    readonly health: readonly Health[]
    /** Builds of services in other processes, from their health answers. */
    readonly neighbours: Map<Service, string | null>
    readonly history: History
    readonly onRecorded: () => void
    /** Given every look, and how long it took to write it; true asks for another one soon. */
    readonly follow?: (reports: readonly HealthReport[], writeMs: number | undefined) => Promise<boolean>
  },
) {
  const { health, neighbours, history, onRecorded, follow } = parts
  const stopping = new AbortController()
  const nextRound = createRounds()
  let failed = false
  let writing: Promise<void> | undefined

  async function look(): Promise<boolean> {
    // Forget the old builds, because a neighbour that no longer answers has none.
    neighbours.clear()
    const reports = await Promise.all(health.map((one) => one.check({ deep: true })))
    const round = nextRound({ reports, neighbours, now: clock.now(), monotonic: clock.monotonic() })
    if (stopping.signal.aborted) return false
    const began = clock.monotonic()
    let writeMs: number | undefined
    try {
      writing = history.record(round)
      await writing
      writeMs = clock.monotonic() - began
      onRecorded()
      if (failed) log.info('history_recorded_again', 'the health history can be written again')
      failed = false
    } catch (error) {
      // Once, not every minute: the page shows the gap, and the metrics its age.
      if (!failed) log.error('history_not_recorded', NOT_RECORDED, { fault: faultName(error) })
      failed = true
    }
    return (await follow?.(reports, writeMs)) ?? false
  }

  const ahead = () => clock.now() - clock.monotonic()

  async function untilDue(due: number, before: number): Promise<void> {
    while (Math.abs(ahead() - before) < EVERY_MS && !stopping.signal.aborted) {
      // Read once: a second look at the clock may be past the due time.
      const left = due - clock.monotonic()
      if (left <= 0) return
      await clock.sleep(Math.min(left, NOTICE_MS), stopping.signal).catch(() => {})
    }
  }

  async function run(): Promise<void> {
    let due = clock.monotonic()
    while (!stopping.signal.aborted) {
      // The clock may step while it looks.
      const before = ahead()
      const again = await look()
      // Count from the due time, so that a slow check does not delay all later ones.
      due = Math.max(due + (again ? AGAIN_MS : EVERY_MS), clock.monotonic())
      await untilDue(due, before)
      due = Math.min(due, clock.monotonic())
    }
  }
  void run()
  return {
    /** Stops without waiting for a check in progress or recording it, whose result would describe a daemon that is stopping. */
    async stop(): Promise<void> {
      stopping.abort(new Error('the daemon stops'))
      await writing?.catch(() => {})
    },
  }
}
