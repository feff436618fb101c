import { DAYS_KEPT, type RootIncident, WHOLE_SERVICE } from '../../src/core/status/history.ts'
import { frameOf, type Page } from '../../src/daemon/pages/layout.ts'
import { incidentsPage, type StatusPageInput, statusPage } from '../../src/daemon/pages/status/page.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { LABELS } from './learning.ts'

const HOUR = 60 * 60 * 1000

interface Many {
  readonly services?: number
  /** All are over, but the newest. */
  readonly incidents?: number
  /** What people wrote and named, in place of short words. */
  readonly word?: string
  readonly script?: string
}

/** The status pages of a platform with much of everything; one of its services is failing. */
export function manyServices(
  now: number,
  { services = 50, incidents = 0, word, script }: Many = {},
): {
  readonly page: Page
  readonly all: Page
} {
  /** As long as the word, and each its own. */
  const long = (name: string) => `${word?.slice(0, -name.length)}${name}`
  const names = Array.from({ length: services }, (_, index) => `service-${index}`)
  const failing = `service-${Math.min(31, services - 1)}`
  const line = (service: string, probe: string) => {
    const state = service === failing ? ('failing' as const) : ('ok' as const)
    const empty = { ms: { ok: 0, degraded: 0, failing: 0 }, noDataMs: 0, uptime: 1, latency: undefined }
    const days = Array.from({ length: DAYS_KEPT }, () => state)
    const rest = { reason: undefined, checkedAt: now, days, trouble: [], hours: [] }
    return { service, probe, state, ...rest, lastDay: empty, allDays: empty }
  }
  const said = [
    { id: 'u', subject: 'a', at: now - HOUR, by: 'o', state: 'identified' as const, text: word ?? 'x' },
  ]
  const incident = (index: number): RootIncident => ({
    service: failing,
    probe: 'store',
    state: index % 2 === 0 ? 'failing' : 'degraded',
    reason: undefined,
    beganAt: now - (index + 1) * 2 * HOUR,
    endedAt: index === 0 ? undefined : now - (index + 1) * 2 * HOUR + HOUR,
    lengthMs: HOUR,
    feltBy: ['service-0', 'mail'],
    updates: word === undefined ? [] : said,
  })
  const from = now - HOUR
  const input: StatusPageInput = {
    frame: { ...frameOf(learning, ''), ...(word && { name: word }) },
    labels: word === undefined ? LABELS : { ...LABELS, service: long, probe: long },
    home: '',
    invitation: undefined,
    signUp: undefined,
    signUpForNotices: undefined,
    summary: {
      now,
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
      incidents: Array.from({ length: incidents }, (_, index) => incident(index)),
      announcements: word ? [{ id: 'a', text: word, from, until: undefined, by: 'o', updates: said }] : [],
      prerequisites: new Map(),
      skew: false,
    },
    recorded: 'file',
    sampleUntil: undefined,
    off: word === undefined ? [] : [word],
    notConfigured: [],
    details: undefined,
    detailsLink: undefined,
    script,
  }
  return { page: statusPage(input), all: incidentsPage(input) }
}
