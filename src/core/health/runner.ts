import type { Clock } from '../clock.ts'
import type { Service } from '../service.ts'
import { fold } from './fold.ts'
import type { HealthReport, Probe, ProbeResult } from './probe.ts'
import { trailing } from './trailing.ts'

export interface HealthOptions {
  readonly service: Service
  readonly probes: readonly Probe[]
  readonly clock: Clock
  readonly build: string | undefined
  /** UTC milliseconds. */
  readonly startedAt: number
  /** One limit for the whole answer: less than an orchestrator's own. */
  readonly deadlineMs?: number
}

/** Computes a service's health afresh for every request (CONTRACT §3). */
export interface Health {
  check(options: { readonly deep: boolean }): Promise<HealthReport>
}

const DEADLINE_MS = 4000

/** All probes start at once under one deadline; one that hangs is named, and the others are kept. */
export function createHealth({
  service,
  probes,
  clock,
  build,
  startedAt,
  deadlineMs = DEADLINE_MS,
}: HealthOptions): Health {
  const run = async (deep: boolean): Promise<HealthReport> => {
    const began = clock.monotonic()
    const results = await Promise.all(
      probes.map(async (probe) => [probe.name, await runProbe(probe, deep, clock, deadlineMs)] as const),
    )
    return {
      service,
      state: fold(results.map(([, result]) => result)),
      build: build ?? null,
      startedAt: new Date(startedAt).toISOString(),
      time: new Date(clock.now()).toISOString(),
      latencyMs: since(clock, began),
      probes: Object.fromEntries(results),
    }
  }
  const shallow = trailing(() => run(false))
  const deep = trailing(() => run(true))
  return { check: (options) => (options.deep ? deep() : shallow()) }
}

async function runProbe(probe: Probe, deep: boolean, clock: Clock, deadlineMs: number): Promise<ProbeResult> {
  const began = clock.monotonic()
  const controller = new AbortController()
  // Raced, not only aborted: name resolution and others do not listen to a signal.
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<ProbeResult>((resolve) => {
    timer = setTimeout(() => {
      resolve({ state: 'failing', checked: true, reason: 'no answer in time' })
      controller.abort(new Error('no answer in time'))
    }, deadlineMs)
  })
  // A probe's own error text can hold a host or a credential: the public is told only that it failed.
  const answer = Promise.resolve()
    .then(() => probe.run({ deep, signal: controller.signal }))
    .catch((): ProbeResult => ({ state: 'failing', checked: true, reason: 'the check failed' }))
  const result = await Promise.race([answer, late])
  clearTimeout(timer)
  return result.checked ? { ...result, latencyMs: since(clock, began) } : result
}

function since(clock: Clock, began: number): number {
  return Math.round((clock.monotonic() - began) * 10) / 10
}
