import type { Advice } from './text.ts'

/** What is known of probes of the engine; the others take what stands below. */
const OWN: Readonly<Record<string, Pick<Advice, 'means' | 'command' | 'runbook'>>> = {
  store: {
    means: 'nothing can be read or stored: subscribing fails, and lessons wait',
    command: 'platformctl db status',
    runbook: 'runbooks/store.md',
  },
  job_store: {
    means: 'jobs can be neither read nor stored',
    command: 'platformctl db status',
    runbook: 'runbooks/store.md',
  },
  mail: {
    means: 'no messages are sent; lessons wait and go out later',
    command: 'platformctl preflight --deep',
    runbook: 'runbooks/dispatch-stalled.md',
  },
  payments: {
    means: 'nobody can pay',
    command: 'platformctl billing smoke',
    runbook: 'runbooks/billing.md',
  },
  sharedstore: {
    means: 'rate limits count in each process for itself',
    command: 'platformctl health --deep',
    runbook: 'runbooks/limiter-degraded.md',
  },
}

/** What operators need for a cause. */
export function adviceFor(
  cause: string,
  {
    label,
    isService,
    absent,
  }: {
    readonly label: string
    /** The cause is another service of the platform. */
    readonly isService: boolean
    /** What its absence means. */
    readonly absent: string
  },
): Advice {
  const means = isService
    ? `nothing that asks ${label} works`
    : `it is as if it were not configured: ${absent}`
  const any = { means, command: 'platformctl health --deep', runbook: 'runbooks/probe-failing.md' }
  return { label, ...(OWN[cause] ?? any) }
}
