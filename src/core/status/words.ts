import type { Messages } from '../messages/en.ts'
import { messagesOf } from '../messages/messages.ts'
import type { ServiceDefinition } from '../service.ts'
import type { RootIncident } from './history.ts'

/** How services and probes are called on pages, and the other words that pages use. */
export interface Labels {
  readonly messages: Messages
  readonly isService: (name: string) => boolean
  readonly service: (name: string) => string
  readonly probe: (name: string) => string
  /** The heading above a service; undefined for none. */
  readonly groupOf: (service: string) => string | undefined
}

export function createLabels({
  services,
  probes,
  language,
}: {
  readonly language: string
  readonly services: readonly ServiceDefinition[]
  readonly probes: readonly { readonly name: string; readonly label?: string }[]
}): Labels {
  const ofServices = new Map(services.map(({ name, label }) => [name, label ?? titled(name)]))
  const ofProbes = new Map(probes.flatMap(({ name, label }) => (label === undefined ? [] : [[name, label]])))
  const messages = messagesOf(language)
  return {
    messages,
    isService: (name) => ofServices.has(name),
    groupOf: (service) => services.find(({ name }) => name === service)?.group,
    service: (name) => ofServices.get(name) ?? titled(name),
    probe: (name) =>
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

/** The incident that a key names. */
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
