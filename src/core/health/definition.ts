import type { Clock } from '../clock.ts'
import type { Settings } from '../env/settings.ts'
import type { HeartbeatRecord } from '../heartbeats.ts'
import type { Hold } from '../mail/holds.ts'
import type { Network } from '../network/get.ts'
import type { Random } from '../random.ts'
import type { Probe, ProbeContext, ProbeResult } from './probe.ts'

export interface StoreProbe {
  readonly kind: () => Promise<'memory' | 'sqlite' | 'postgres'>
  /** A real write and a real read, and with `pages` a look at every page. */
  readonly ping: (options: { readonly pages: boolean }) => Promise<void>
}

/** Ports through which probes use the process they run in, so that a test can replace them. */
export interface ProbeParts {
  readonly settings: Settings
  readonly random: Random
  readonly clock: Clock
  /** Where rate limits are counted now. Known without asking: health makes no call to the shared store. */
  readonly counting: () => 'local' | 'shared' | 'fallback'
  readonly store: StoreProbe
  /** The store of jobs: JOB_STORE_URL where that is set, else the store. */
  readonly jobStore: StoreProbe
  /** Reads from the analytics table, if one is named. */
  readonly pingAnalytics: () => Promise<void>
  /** Why events are not being stored, as last seen; undefined while they are. */
  readonly analyticsFull?: () => string | undefined
  /** Whether the daily budget of confirmations was found used up within the last hour. */
  readonly confirmationsExhausted?: () => boolean
  /** The streams of mail that are paused; none while no store is open. */
  readonly mailHolds?: () => Promise<readonly Hold[]>
  /** Whether a proxy that TRUST_PROXY does not name was seen within the last hour. */
  readonly untrustedProxy?: () => boolean
  /** The record of a heartbeat; absent where there is no store to ask. */
  readonly heartbeat?: (input: { readonly name: string; readonly now: number }) => Promise<HeartbeatRecord>
  readonly verifyMail: (signal: AbortSignal) => Promise<void>
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
  /** The longest it may take; never more than half the deadline of the whole answer, which is also the default. */
  readonly deadlineMs?: number
  /** Consequence of a failure for visitors and operators; default: the group's `absent`. */
  readonly meaning?: string
  /** Names of the probes and services that it needs: while one of them fails, it is listed there and raises no alert. */
  readonly dependsOn?: (settings: Settings) => readonly string[]
  /** Where it looks, for operators; shown without path and credentials. */
  readonly target?: (settings: Settings) => string | undefined
  /** Makes the check of one process. It may reject: that is `failing`. */
  readonly open: (parts: ProbeParts) => (context: ProbeContext) => Promise<ProbeResult>
}

/** The probes of one service, ready to run. */
export function openProbes(
  definitions: readonly ProbeDefinition[],
  service: string,
  parts: ProbeParts,
): readonly Probe[] {
  return definitions.flatMap(({ open, name, deadlineMs, optional, applies, service: of }) =>
    of === service && applies?.(parts.settings) !== false
      ? {
          name,
          ...(deadlineMs === undefined ? {} : { deadlineMs }),
          ...(optional === undefined ? {} : { optional }),
          run: open(parts),
        }
      : [],
  )
}
