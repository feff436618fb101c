import { CAUSES } from '../network/causes.ts'
import { get, type Network } from '../network/get.ts'
import type { Service, ServiceDefinition } from '../service.ts'
import type { ProbeContext, ProbeResult } from './probe.ts'
import { degraded, failing, ok } from './probe.ts'
import { probeRemote } from './prober.ts'

export interface ReachOptions {
  readonly url: string
  readonly clock: { readonly now: () => number; readonly monotonic: () => number }
  readonly network?: Network | undefined
  /** Called with the build that a service reports; null is unstamped. */
  readonly noteBuild?: (service: Service, build: string | null) => void
}

/** Longer than any budget: the probe's own limit arrives as its signal. */
const LONG_MS = 60_000
/** Another server writes this text, so it is cut before it is kept. */
const LONGEST_BUILD = 100

/** Checks that a server answers, and not with an error of its own. The head of its answer is enough. */
export async function reachable(options: ReachOptions, { signal }: ProbeContext): Promise<ProbeResult> {
  const outcome = await get({
    url: new URL(options.url),
    timeoutMs: LONG_MS,
    signal,
    largestBytes: 0,
    wantsBody: () => false,
    monotonic: options.clock.monotonic,
    network: options.network,
  })
  if (!outcome.answered) return failing(`cannot be reached: ${CAUSES[outcome.cause].meaning}`)
  return outcome.status >= 500 ? failing('answers with an error of its own') : ok(true)
}

/** Another service of the platform, asked for its shallow health: reachable and not failing. */
export async function serviceState(
  { name: service, health: path, format }: Pick<ServiceDefinition, 'name' | 'health' | 'format'>,
  options: ReachOptions,
  { signal }: ProbeContext,
): Promise<ProbeResult> {
  const health = await probeRemote({
    ...options,
    service,
    health: path,
    format,
    deep: false,
    token: undefined,
    timeoutMs: LONG_MS,
    signal,
  })
  if (!health.reached) return failing(`no health to be had: ${health.reason}`)
  const { state, build } = health.report
  if (!health.foreign)
    options.noteBuild?.(service, typeof build === 'string' ? build.slice(0, LONGEST_BUILD) : null)
  return state === 'failing'
    ? failing('is failing')
    : state === 'degraded'
      ? degraded('is degraded', true)
      : ok(true)
}
