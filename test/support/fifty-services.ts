import { DAYS_KEPT, WHOLE_SERVICE } from '../../src/core/status/history.ts'
import { frameOf } from '../../src/daemon/pages/layout.ts'
import { statusPage } from '../../src/daemon/pages/status/page.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { LABELS } from './learning.ts'

/** The status page of fifty services; one of them is failing. */
export function fiftyServices(now: number): string {
  const names = Array.from({ length: 50 }, (_, index) => `service-${index}`)
  const line = (service: string, probe: string) => {
    const state = service === 'service-31' ? ('failing' as const) : ('ok' as const)
    const empty = { ms: { ok: 0, degraded: 0, failing: 0 }, noDataMs: 0, uptime: 1, latency: undefined }
    const days = Array.from({ length: DAYS_KEPT }, () => state)
    return {
      service,
      probe,
      state,
      reason: undefined,
      checkedAt: now,
      days,
      trouble: [],
      hours: [],
      lastDay: empty,
      allDays: empty,
    }
  }
  return statusPage({
    frame: frameOf(learning, ''),
    labels: LABELS,
    home: '',
    invitation: undefined,
    signUp: undefined,
    signUpForNotices: undefined,
    summary: {
      now: now,
      state: 'failing',
      checkedAt: now,
      since: now,
      services: names.map((service) => ({
        service,
        seenFrom: undefined,
        whole: line(service, WHOLE_SERVICE),
        probes: [line(service, 'store'), line(service, 'mail')],
        build: undefined,
        buildSince: undefined,
      })),
      incidents: [],
      announcements: [],
      prerequisites: new Map(),
      skew: false,
    },
    recorded: 'file',
    sampleUntil: undefined,
    off: [],
    notConfigured: [],
    details: undefined,
    detailsLink: undefined,
    script: undefined,
  }).html
}
