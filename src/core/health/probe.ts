import type { Settings } from '../env/settings.ts'
import type { HeartbeatRecord } from '../heartbeats.ts'
import type { Host } from '../host.ts'
import type { Hold } from '../mail/holds.ts'
import type { Network } from '../network/get.ts'
import type { Service } from '../service.ts'

/** `skipped` counts as ok and is never red (CONTRACT §3). */
export type ProbeState = 'ok' | 'degraded' | 'failing' | 'skipped'

export interface ProbeResult {
  readonly state: ProbeState
  /** False: nothing live was tried (provider readiness, configuration only). */
  readonly checked: boolean
  /** Free of hosts, addresses, credentials and internal error texts: it is shown to the public. */
  readonly reason?: string
  readonly latencyMs?: number
}

export interface ProbeContext {
  /** Reachability too, not configuration alone. */
  readonly deep: boolean
  /** Aborted at the probe's own limit or the request's deadline, whichever comes first. */
  readonly signal: AbortSignal
}

/** The health body (CONTRACT §3). `build` is null without a build stamp; times are ISO 8601 in UTC. */
export interface HealthReport {
  readonly service: Service
  readonly state: Exclude<ProbeState, 'skipped'>
  readonly build: string | null
  readonly startedAt: string
  readonly time: string
  readonly latencyMs: number
  readonly probes: Readonly<Record<string, ProbeResult>>
}

const STATUS: Readonly<Record<ProbeState, 'pass' | 'warn' | 'fail'>> = {
  ok: 'pass',
  skipped: 'pass',
  degraded: 'warn',
  failing: 'fail',
}

/** The report as `application/health+json` (draft-inadarei-api-health-check-06), with our own keys (§4.11). */
export function toHealthJson(report: HealthReport): Record<string, unknown> {
  const { state: whole, build, service, startedAt, time, latencyMs, probes } = report
  const checks = Object.entries(probes).map(([name, probe]) => {
    const { state, checked } = probe
    const status = STATUS[state]
    const check = {
      componentId: name,
      componentType: 'component',
      status,
      state,
      checked,
      time,
      ...(probe.latencyMs !== undefined && { observedValue: probe.latencyMs, observedUnit: 'ms' }),
      ...(probe.reason !== undefined && { [status === 'pass' ? 'reason' : 'output']: probe.reason }),
    }
    return [name, [check]]
  })
  return {
    status: STATUS[whole],
    ...(build !== null && { releaseId: build }),
    serviceId: service,
    description: `health of ${service}`,
    startedAt,
    time,
    latencyMs,
    checks: Object.fromEntries(checks),
  }
}

export const ok = (checked: boolean): ProbeResult => ({ state: 'ok', checked })
export const skipped = (reason: string): ProbeResult => ({ state: 'skipped', checked: false, reason })
export const degraded = (reason: string, checked = false): ProbeResult => ({
  state: 'degraded',
  checked,
  reason,
})
export const failing = (reason: string): ProbeResult => ({ state: 'failing', checked: true, reason })

export const RANK: Readonly<Record<ProbeState, number>> = { skipped: 0, ok: 0, degraded: 1, failing: 2 }

/** A service is the worst of its probes; skipped counts as ok (CONTRACT §3). */
export function fold(probes: Iterable<Pick<ProbeResult, 'state'>>): HealthReport['state'] {
  let worst = 0
  for (const { state } of probes) worst = Math.max(worst, RANK[state])
  return worst === 2 ? 'failing' : worst === 1 ? 'degraded' : 'ok'
}

/** 503 when failing, else 200: a degraded service still serves. */
export const httpStatus = (state: HealthReport['state']): 200 | 503 => (state === 'failing' ? 503 : 200)

export interface StoreProbe {
  readonly kind: () => Promise<'memory' | 'sqlite' | 'postgres'>
  /** A real write and a real read, and with `pages` a look at every page. */
  readonly ping: (options: { readonly pages: boolean }) => Promise<void>
}

/** Ports through which probes use the process they run in, so that a test can replace them. */
export interface ProbeParts extends Pick<Host, 'random' | 'clock'> {
  readonly settings: Settings
  /** Where rate limits are counted now. Known without asking: health makes no call to the shared store. */
  readonly counting: () => 'local' | 'shared' | 'fallback'
  readonly store: StoreProbe
  /** Why requests got no connection of the store lately; undefined: they did. */
  readonly storeBusy?: () => string | undefined
  /** The store of jobs: JOB_STORE_URL where that is set, else the store. */
  readonly jobStore: StoreProbe
  readonly pingAnalytics: () => Promise<void>
  /** Why events are not being stored, as last seen; undefined while they are. */
  readonly analyticsFull?: () => string | undefined
  /** Whether the daily budget of confirmations was found used up within the last hour. */
  readonly confirmationsExhausted?: () => boolean
  /** The streams of mail that are paused; none while no store is open. */
  readonly mailHolds?: () => Promise<readonly Hold[]>
  /** Whether the provider refuses the sender, or everybody. */
  readonly mailRefused?: () => Promise<boolean>
  /** Whether a proxy that TRUST_PROXY does not name was seen within the last hour. */
  readonly untrustedProxy?: () => boolean
  /** Whether the keys that tokens are verified with could not be had when a token last asked for them. */
  readonly keysMissing?: () => boolean
  /** The record of a heartbeat; absent where there is no store to ask. */
  readonly heartbeat?: (input: { readonly name: string; readonly now: number }) => Promise<HeartbeatRecord>
  readonly verifyMail: (signal: AbortSignal) => Promise<void>
  /** The embedding program's own, which sends whatever the group of mail lacks. */
  readonly hasOwnMailer?: boolean
  /** Whether another replica of the store runs with another configuration. */
  readonly isConfiguredApart?: () => Promise<boolean>
  readonly hasPackage: (name: string) => boolean
  readonly network?: Network
  /** Called with the build that another service reports; null is unstamped. */
  readonly noteBuild?: (service: string, build: string | null) => void
}

/** One thing a service depends on, with everything that the platform knows about it. */
export interface ProbeDefinition {
  readonly name: string
  readonly service: string
  /** The group that configures it: its absence skips the probe, and its texts say what that means. */
  readonly group?: string
  /** For people; made from the name when left out. */
  readonly label?: string
  /** Whether a process with these settings has it; every process when left out. */
  readonly applies?: (settings: Settings) => boolean
  /** Never failing: reported as degraded instead. */
  readonly optional?: boolean
  /** Whether a deep request checks more, as those of web may; other services answer no such request over HTTP. */
  readonly hasDeep?: boolean
  /** The longest it may take; never more than half the deadline of the whole answer, which is also the default. */
  readonly deadlineMs?: number
  /** Consequence of a failure for visitors and operators; default: the group's `absent`. */
  readonly meaning?: string
  /** Names of the probes and services that it needs: while one of them fails, it is listed there and raises no alert. */
  readonly dependsOn?: (settings: Settings) => readonly string[]
  /** Where it looks, for operators; shown without path and credentials. */
  readonly target?: (settings: Settings) => string | undefined
  /** The variable that holds `target`, where it is the definition's own; empty: the definition itself does. */
  readonly variable?: string
  /** Makes the check of one process. It may reject: that is `failing`. */
  readonly open: (parts: ProbeParts) => (context: ProbeContext) => Promise<ProbeResult>
}

/** A probe of one process, ready to run. `run` may reject: the runner turns that into `failing`. */
export interface Probe extends Pick<ProbeDefinition, 'name' | 'deadlineMs' | 'optional' | 'hasDeep'> {
  readonly run: (context: ProbeContext) => Promise<ProbeResult>
}

export function openProbes(definitions: readonly ProbeDefinition[], service: string, parts: ProbeParts) {
  return definitions
    .filter(({ service: of, applies }) => of === service && applies?.(parts.settings) !== false)
    .map((definition) => ({ ...definition, run: definition.open(parts) }))
}
