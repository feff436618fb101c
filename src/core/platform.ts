import type { Challenge } from './access/identity.ts'
import type { EventDefinition } from './analytics/events.ts'
import type { InsightsDefinition } from './analytics/insights.ts'
import type { CourseDefinition } from './course/definition.ts'
import type { Contract } from './env/contract.ts'
import type { ProbeDefinition } from './health/probe.ts'
import type { HeartbeatDefinition } from './heartbeats.ts'
import type { MailSet } from './mail/definition.ts'
import type { ServiceDefinition } from './service.ts'

export function recordedPlatform({ name, definition }: Pick<ResolvedPlatform, 'name' | 'definition'>) {
  return { name, definition: definition?.file ?? null, fingerprint: definition?.fingerprint() ?? null }
}

/** Content of `/.well-known/security.txt`. */
export interface SecurityContact {
  readonly contact: readonly string[]
  /** An RFC 3339 time; 90 days from the day of the request when left out. */
  readonly expires?: string
  readonly encryption?: string
  readonly policy?: string
  /** Address of the page that thanks those who reported. */
  readonly acknowledgments?: string
  /** Language tags; the platform’s language when left out. */
  readonly languages?: readonly string[]
}

/** A platform: checked, complete, and passed down as a value. Nothing in core knows one by name. */
export interface ResolvedPlatform {
  readonly name: string
  /** Absent for the default platform, and for one that a program gives as a value. */
  readonly definition?: {
    /** Absolute. */
    readonly file: string
    /** A short name for its content and that of its mails and lessons. Reads them when first called. */
    readonly fingerprint: () => string
    /** The same for its mails and lessons alone. */
    readonly lessons: () => string
    /** Absolute: the folders of its mails and lessons, and its logo. */
    readonly assets: readonly string[]
  }
  /** With a color and a logo, pages and mails show the platform's name. `logo` is a data URL. */
  readonly brand: { readonly color?: string; readonly logo?: string } | undefined
  /** A language tag, as `en` or `de`. */
  readonly language: string
  readonly contract: Contract
  /** In the order in which they are always shown; `web` serves the routes. */
  readonly services: readonly ServiceDefinition[]
  /** In the order of the health body: the engine's own and the platform's. */
  readonly probes: readonly ProbeDefinition[]
  readonly mails: MailSet
  readonly courses: readonly CourseDefinition[]
  readonly events: readonly EventDefinition[]
  readonly insights: InsightsDefinition
  readonly heartbeats: readonly HeartbeatDefinition[]
  /** Sentences on pages that only this platform can say. `invitation`: above the subscribe form, what the course is, in HTML. */
  readonly texts: { readonly invitation?: string }
  /** `link` when left out. */
  readonly confirmation?: 'link' | 'button'
  /** `link` when left out. */
  readonly unsubscription?: 'link' | 'button'
  readonly challenge?: Challenge
  readonly security?: SecurityContact
}
