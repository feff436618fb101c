import { createTask } from 'node-cron'
import { oneByOne } from '../core/calls.ts'
import { UNCONFIRMED_KEPT_MS } from '../core/course/due.ts'
import { createHours, createWakes, type HoursOptions } from '../core/course/hours.ts'
import { MINUTE_MS } from '../core/durations.ts'
import { faultName } from '../core/errors.ts'
import { type Host, systemClock, type Timer } from '../core/host.ts'
import { STALLED_MS } from '../core/incidents/conditions.ts'
import { INCIDENTS_KEPT } from '../core/incidents/incident.ts'
import { COUNTED_MINUTES_KEPT_MS } from '../core/mail/feedback/sending.ts'
import { FEEDBACK_EVENTS_KEPT_MS } from '../core/mail/feedback/store.ts'
import { proxiedFetch } from '../core/network/proxy.ts'
import { PAYMENT_EVENTS_KEPT_MS } from '../core/payments/webhook.ts'
import { reportError } from '../core/reporting/facade.ts'
import type { Secret } from '../core/secret.ts'
import type { Store } from '../core/store/store.ts'
import type { OpenedPlatform } from './platform.ts'

/** The beginnings of minutes. It is never started: a task of node-cron stops or spins when the clock is set. */
const MINUTES = createTask('* * * * *', () => {}, { timezone: 'UTC' })

/** Machines without a clock of their own start years behind, and are set right once the network is there. */
const CLOCK_SETTLES_MS = 10 * MINUTE_MS

/** Sends lessons when they are due, and forgets what is old each hour; `ping` is called after each hour. */
export function startDispatching(host: Host, platform: OpenedPlatform, store: Store, ping?: () => void) {
  const { clock, log, timer } = host
  const { course, mailService } = platform
  const startedAt = timer.monotonic()
  const wakes = createWakes({
    async dispatch(asked) {
      const result = await (await course()).dispatch({ ...asked, onProgress: schedule.progressed })
      schedule.progressed()
      return result
    },
    isDue: async () =>
      (await mailService.held('course')) === undefined && (await store.course.isDue(clock.now())),
    clock,
  })
  const schedule = startSchedule({
    timer,
    ...(ping && { onDone: ping }),
    store,
    clock,
    log,
    run: async (signal) => {
      await wakes.hour(signal)
      if (signal.aborted) return 'stopped'
      await forgetOld(platform, store, host)
      return 'done'
    },
    minute: wakes.minute,
    isClockSure: () => timer.monotonic() - startedAt >= CLOCK_SETTLES_MS,
    onSetBack: async () => (await course()).redate(),
  })
  return schedule
}

/** Looks each minute, and waits no longer than one, so that no sleep or clock step of the machine holds it up longer. */
export function startSchedule({
  timer = systemClock,
  ...options
}: Omit<HoursOptions, 'onFault'> & { readonly timer?: Pick<Timer, 'sleep' | 'monotonic'> }) {
  const startedAt = timer.monotonic()
  let progressAt: number | undefined
  let hasFailed = false
  /** An hour whose work fails is begun again each minute: that is no progress. */
  const progressed = () => {
    if (!hasFailed) progressAt = timer.monotonic()
  }
  const hours = createHours({
    ...options,
    onDone(hour) {
      hasFailed = false
      options.onDone?.(hour)
    },
    // Called once the hour is done, by this process or another.
    async minute(signal) {
      hasFailed = false
      await options.minute?.(signal)
    },
    onFault(error, hour) {
      hasFailed = true
      reportError(error, { hour })
    },
  })
  const stopping = new AbortController()
  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      void hours.tick().then(progressed)
      const [next] = MINUTES.getNextRuns(1)
      const wait = (next?.getTime() ?? 0) - Date.now()
      await timer.sleep(Math.min(MINUTE_MS, Math.max(1, wait)), stopping.signal).catch(() => {})
    }
  }
  void run()
  return {
    tick: hours.tick,
    progressed,
    /** For how long nothing was done, although the schedule looks each minute; undefined while it has only begun. */
    stalledMs() {
      const ms = timer.monotonic() - (progressAt ?? startedAt)
      return progressAt === undefined && ms < STALLED_MS ? undefined : ms
    },
    async stop() {
      stopping.abort(new Error('the daemon stops'))
      await hours.stop()
    },
  }
}

export async function forgetOld(
  { ingest, course }: Pick<OpenedPlatform, 'ingest' | 'course'>,
  store: Store,
  { clock: { now }, log }: Pick<Host, 'clock' | 'log'>,
): Promise<void> {
  // Visitors' events are optional: what holds them up is no fault of the hour.
  const notPruned = (error: unknown) =>
    log.warn('analytics_not_pruned', 'visitors’ events that are too old could not be deleted', {
      fault: faultName(error),
    })
  await oneByOne([
    () => ingest.prune().catch(notPruned),
    () => store.paymentEvents.prune(now() - PAYMENT_EVENTS_KEPT_MS),
    () => store.sending.prune(now() - COUNTED_MINUTES_KEPT_MS),
    () => store.feedback.prune(now() - FEEDBACK_EVENTS_KEPT_MS),
    () => store.incidents.prune({ before: now() - INCIDENTS_KEPT.ms, keep: INCIDENTS_KEPT.most }),
    async () => (await course()).prunePlans(),
    () => store.course.pruneUnconfirmed(now() - UNCONFIRMED_KEPT_MS),
  ])
}

const ANSWER_MS = 10_000
const PAUSES_MS = [5000, 30_000]

/** Pings an external dead man's switch, which alerts people when the pings stop. */
export function createPing({ clock, log }: Pick<Host, 'clock' | 'log'>, url: Secret, send = proxiedFetch) {
  const stopping = new AbortController()
  let pinging: Promise<void> | undefined

  async function ping(): Promise<void> {
    let reason = ''
    for (const pause of [...PAUSES_MS, undefined]) {
      try {
        const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(ANSWER_MS)])
        const answer = await send(url.reveal(), { redirect: 'follow', signal })
        await answer.body?.cancel()
        if (answer.ok) return
        reason = `it answered ${answer.status}`
      } catch {
        // The fault's own text could quote the address, which is a secret.
        reason = 'it did not answer'
      }
      if (stopping.signal.aborted) return
      if (pause !== undefined) await clock.sleep(pause, stopping.signal).catch(() => {})
    }
    log.warn('heartbeat_ping_failed', 'the address in HEARTBEAT_PING_URL could not be called', { reason })
  }
  return {
    ping(): void {
      pinging ??= ping().finally(() => {
        pinging = undefined
      })
    },
    async stop(): Promise<void> {
      stopping.abort(new Error('the daemon stops'))
      await pinging
    },
  }
}
