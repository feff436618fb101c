import { dependsOn } from '../incidents/prerequisites.ts'
import { messagesOf } from '../messages/messages.ts'
import type { ResolvedPlatform } from '../platform.ts'
import type { RootIncident } from './history.ts'
import type { Line, Summary } from './summary.ts'

/** How services and probes are called on pages, and the other words that pages use. */
export type Labels = Readonly<ReturnType<typeof createLabels>>

export function createLabels(
  platform: Pick<ResolvedPlatform, 'language' | 'services'> & {
    readonly probes: readonly { readonly name: string; readonly label?: string }[]
  },
) {
  const { services, probes, language } = platform
  const ofServices = new Map(services.map(({ name, label }) => [name, label ?? titled(name)]))
  const ofProbes = new Map(probes.flatMap(({ name, label }) => (label === undefined ? [] : [[name, label]])))
  const messages = messagesOf(language)
  return {
    messages,
    isService: (name: string) => ofServices.has(name),
    /** The heading above a service; undefined for none. */
    groupOf: (service: string) => services.find(({ name }) => name === service)?.group,
    service: (name: string) => ofServices.get(name) ?? titled(name),
    probe: (name: string) =>
      ofServices.get(name) ?? messages.status.probes[name] ?? ofProbes.get(name) ?? titled(name),
  }
}

/** `job_store` is "Job store", `region_b` "Region B". */
function titled(name: string): string {
  const words = name.replaceAll(/[_-]/g, ' ')
  return words.slice(0, 1).toUpperCase() + words.slice(1).replace(/ [a-z]$/, (end) => end.toUpperCase())
}

/** Names an incident in links: the same on every page, in every mail and on every machine. */
export function incidentKey(incident: Pick<RootIncident, 'service' | 'probe' | 'beganAt'>): string {
  return `${incident.service}-${incident.probe}-${incident.beganAt / 1000}`
}

/** Machines can disagree about the minute in which an incident began. */
const NEAR_MS = 5 * 60 * 1000

export function incidentOf(key: string, incidents: readonly RootIncident[]): RootIncident | undefined {
  const exact = incidents.find((one) => incidentKey(one) === key)
  const [, name = '', seconds] = /^(.+)-(\d+(?:\.\d+)?)$/.exec(key) ?? []
  const at = Number(seconds) * 1000
  return (
    exact ??
    incidents.find(
      ({ probe, beganAt, endedAt = at }) =>
        name.endsWith(`-${probe}`) && beganAt - NEAR_MS <= at && at <= endedAt,
    )
  )
}

const LONGEST_HEADLINE = 80

/** The first sentence of what operators wrote, for a title or a subject. */
export function headline(text: string): string {
  const line = text.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim()
  const [sentence = line] = /^.*?[^.]{3}[.!?](?= |$)/.exec(line) ?? []
  const short = sentence.replace(/\.$/, '')
  if (short.length <= LONGEST_HEADLINE) return short
  const cut = short.slice(0, LONGEST_HEADLINE).replace(/[\uD800-\uDBFF]$/, '')
  return `${cut.includes(' ') ? cut.replace(/ \S*$/, '') : cut}…`
}

/** The state of everything in one sentence, with what matters most. */
export function verdict(summary: Summary, labels: Labels): string {
  const { services, state, now, checkedAt } = summary
  const T = labels.messages.status
  if (checkedAt === undefined) return T.noHistory
  const silent = services.filter(({ whole }) => whole.state === 'unknown')
  if (silent.length === services.length) return T.silentFor(now - checkedAt)
  const named = (one: Line) =>
    one.probe === ''
      ? labels.service(one.service)
      : `${labels.probe(one.probe)} (${labels.service(one.service)})`
  const troubled = (wanted: 'degraded' | 'failing') =>
    services.flatMap((service): Line[] => {
      const causes = service.probes.filter(
        (probe) => probe.state === wanted && !follows(probe, summary, labels),
      )
      if (causes.length > 0) return causes
      return service.probes.length === 0 && service.whole.state === wanted ? [service.whole] : []
    })
  if (state === 'failing') return T.areFailing(short(troubled('failing').map(named), T.more))
  if (silent.length > 0) return T.unknown(silent.map(({ service }) => labels.service(service)))
  if (state === 'degraded') return T.areDegraded(short(troubled('degraded').map(named), T.more))
  return T.works
}

const NAMED = 5

const short = (names: readonly string[], more: (count: number) => string): string[] =>
  names.length <= NAMED + 1 ? [...names] : [...names.slice(0, NAMED), more(names.length - NAMED)]

/** Whether a probe only follows something else in trouble, whose own lines give the cause. */
function follows(probe: Line, summary: Summary, labels: Labels, before: readonly Line[] = []): boolean {
  const lines = summary.services.flatMap((service) => service.probes)
  if (lines.some((one) => one.state === 'failing' && dependsOn(summary.prerequisites, probe, one)))
    return true
  const neighbour = summary.services.find(({ service }) => service === probe.probe)
  if (neighbour?.seenFrom !== undefined) return neighbour.whole.state === probe.state
  return (neighbour?.probes ?? []).some(
    (one) =>
      one.state === probe.state &&
      // Services that ask each other would explain each other for ever.
      !before.includes(one) &&
      (!labels.isService(one.probe) || follows(one, summary, labels, [...before, probe])),
  )
}
