import type { Messages } from '../messages/en.ts'
import { messagesOf } from '../messages/messages.ts'
import type { ServiceDefinition } from '../service.ts'

/** How services and probes are called on pages, and the other words that pages use. */
export interface Labels {
  readonly messages: Messages
  readonly isService: (name: string) => boolean
  readonly service: (name: string) => string
  readonly probe: (name: string) => string
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
