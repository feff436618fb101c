import type { ProbeResult } from './probe.ts'

/** The four results of a probe. `reason` is shown to the public: no host, no address, no internal text. */
export const ok = (checked: boolean): ProbeResult => ({ state: 'ok', checked })
export const skipped = (reason: string): ProbeResult => ({ state: 'skipped', checked: false, reason })
export const degraded = (reason: string, checked = false): ProbeResult => ({
  state: 'degraded',
  checked,
  reason,
})
export const failing = (reason: string): ProbeResult => ({ state: 'failing', checked: true, reason })
