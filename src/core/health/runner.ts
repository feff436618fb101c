import { trailing } from '../calls.ts'
import { codeOf } from '../errors.ts'
import type { Clock, Log } from '../host.ts'
import { CAUSES, isCauseCode } from '../network/causes.ts'
import { type Service, WEB } from '../service.ts'
import { failing, fold, type HealthReport, type Probe, type ProbeResult } from './probe.ts'

/** Computes a service's health afresh for every request (CONTRACT §3). */
export interface Health {
  check(options: { readonly deep: boolean }): Promise<HealthReport>
}

/** The probe of a process that is stopping; there is none otherwise. */
const LIFECYCLE = 'lifecycle'

const DEADLINE_MS = 4000
/** If a timer fires this late, the event loop was blocked: no dependency is to blame. */
const BLOCKED_MS = 250
const HELD_UP = 'no answer in time: this process was itself held up'

/**
 * All probes start at once under one deadline; one that hangs is named, and the others are kept. Each has its own
 * single flight, so that a slow dependency does not delay callers that wait for a quick one. A budget is at most half
 * the deadline: a caller that waits for one run and then starts its own still meets the deadline.
 */
export function createHealth(input: {
  readonly service: Service
  readonly probes: readonly Probe[]
  readonly clock: Clock
  readonly build: string | undefined
  /** UTC milliseconds. */
  readonly startedAt: number
  /** One limit for the whole answer: less than an orchestrator's own. */
  readonly deadlineMs?: number
  /** True once the process was asked to stop: the service is then failing, so that load balancers drain it. */
  readonly stopping?: () => boolean
}): Health {
  const { service, probes, clock, build, startedAt, deadlineMs = DEADLINE_MS, stopping } = input
  const flights = probes.map((probe) => {
    const budgetMs = Math.min(probe.deadlineMs ?? deadlineMs / 2, deadlineMs / 2)
    const run = (deep: boolean) => trailing(() => runProbe(probe, deep, clock, budgetMs))
    const shallow = run(false)
    // What has no deep check shares the run of a shallow request.
    return { name: probe.name, shallow, deep: service === WEB || probe.hasDeep ? run(true) : shallow }
  })
  return {
    async check({ deep }) {
      const began = clock.monotonic()
      const results = await Promise.all(
        flights.map(async (one) => [one.name, await (deep ? one.deep() : one.shallow())] as const),
      )
      if (stopping?.()) results.push([LIFECYCLE, failing('the daemon stops')])
      return {
        service,
        state: fold(results.map(([, result]) => result)),
        build: build ?? null,
        startedAt: new Date(startedAt).toISOString(),
        time: new Date(clock.now()).toISOString(),
        latencyMs: since(clock, began),
        probes: Object.fromEntries(results),
      }
    },
  }
}

async function runProbe(probe: Probe, deep: boolean, clock: Clock, budgetMs: number): Promise<ProbeResult> {
  const began = clock.monotonic()
  const controller = new AbortController()
  let reason = 'no answer in time'
  // Raced, not only aborted: name resolution and others do not listen to a signal.
  const late = Promise.withResolvers<ProbeResult>()
  const end = () => {
    const lateMs = clock.monotonic() - began - budgetMs
    if (lateMs > BLOCKED_MS && reason !== HELD_UP) {
      // What the loop took from the probe is given back once: a store that blocks it makes no other fail.
      reason = HELD_UP
      timer = setTimeout(end, Math.min(lateMs, budgetMs))
      return
    }
    controller.abort(new Error(reason))
    // One more turn of the event loop, for a probe that says how far it came, and an answer that arrived while blocked.
    setImmediate(() => late.resolve(failing(reason)))
  }
  let timer = setTimeout(end, budgetMs)
  const answer = Promise.resolve()
    .then(() => probe.run({ deep, signal: controller.signal }))
    .catch((error: unknown) => failing(controller.signal.aborted ? reason : reasonOf(error)))
  const result = await Promise.race([answer, late.promise])
  clearTimeout(timer)
  const state = probe.optional && result.state === 'failing' ? 'degraded' : result.state
  return { ...result, state, ...(result.checked && { latencyMs: since(clock, began) }) }
}

/** A probe's own error text can hold a host or a credential: the public sees the cause alone. */
function reasonOf(error: unknown): string {
  const code = codeOf(error)
  return isCauseCode(code) ? `cannot be reached: ${CAUSES[code].meaning}` : 'the check failed'
}

const since = (clock: Clock, began: number) => Math.round((clock.monotonic() - began) * 10) / 10

/** Logs each change of a state with the probes to blame, deep and shallow apart; a poll a second fills no log. */
export function logChanges(health: Health, log: Log): Health {
  const before = { deep: 'ok', shallow: 'ok' }
  return {
    async check(options) {
      const report = await health.check(options)
      // A stopping daemon logs that by itself, and no probe is at fault.
      if (Object.hasOwn(report.probes, LIFECYCLE)) return report
      const depth = options.deep ? 'deep' : 'shallow'
      if (report.state !== before[depth]) announce(report, depth, before[depth], log)
      before[depth] = report.state
      return report
    },
  }
}

const WORDS = {
  ok: ['info', 'the service is well again'],
  degraded: ['warn', 'the service works with limits'],
  failing: ['error', 'the service is failing'],
} as const

function announce(report: HealthReport, depth: string, from: string, log: Log): void {
  const { service, state } = report
  const [level, sentence] = WORDS[state]
  const bad = Object.entries(report.probes).filter(([, probe]) => probe.state === state && state !== 'ok')
  const probes = bad.map(([name, { reason }]) => `${name}: ${reason ?? state}`).join('; ')
  log[level]('health_changed', sentence, { service, depth, from, to: state, ...(probes && { probes }) })
}
