import type { Advice } from './text.ts'

/** The command and the runbook to start with, for probes that have their own. */
const OWN: Readonly<Record<string, Pick<Advice, 'command' | 'runbook'>>> = {
  store: { command: 'platformctl db status', runbook: 'runbooks/store.md' },
  job_store: { command: 'platformctl db status', runbook: 'runbooks/store.md' },
  mail: { command: 'platformctl preflight --deep', runbook: 'runbooks/dispatch-stalled.md' },
  payments: { command: 'platformctl billing smoke', runbook: 'runbooks/billing.md' },
  sharedstore: { command: 'platformctl health --deep', runbook: 'runbooks/limiter-degraded.md' },
}
const ANY = { command: 'platformctl health --deep', runbook: 'runbooks/probe-failing.md' }

/** What operators need for a cause. */
export function adviceFor(cause: string, named: Pick<Advice, 'label' | 'means'>): Advice {
  return { ...named, ...(OWN[cause] ?? ANY) }
}
