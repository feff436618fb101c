import type { Challenge } from '../core/access/identity.ts'
import type { InsightsSection } from '../core/analytics/insights.ts'
import type { GroupDefinition, Readers, VariableDefinition } from '../core/env/definition.ts'
import type { Kind } from '../core/env/kinds.ts'
import type { ProbeContext, ProbeResult } from '../core/health/probe.ts'
import type { ExpectedAnswer } from '../core/health/reach.ts'
import type { MailContext, ResolvedMail } from '../core/mail/definition.ts'
import type { SecurityContact } from '../core/platform.ts'
import type { HealthFormat } from '../core/service.ts'

/** One variable of the environment. A malformed value behaves as absent, and is an error. */
export interface VariableInput extends Omit<VariableDefinition, 'kind' | 'malformed' | 'bearer' | 'base'> {
  /** How the value is read; `text` when there is a `schema`. */
  readonly kind?: Kind
  /** `warn`: a malformed value is a warning. */
  readonly malformed?: 'warn'
}

/** The variables that one integration needs. */
export interface GroupInput extends Omit<GroupDefinition, 'services' | 'variables'> {
  /** The services that read its variables; all of them when left out. */
  readonly services?: Readers
  readonly variables: Readonly<Record<string, VariableInput>>
}

/** A service: one that this process serves on `port`, or another program at `address`. */
export interface ServiceInput {
  /** The variable that holds its address, or several: the first that is set wins. */
  readonly address?: string | readonly string[]
  readonly health?: string
  /** How another program's health answer is read. */
  readonly format?: HealthFormat
  /** Where this process serves it. */
  readonly port?: number
  readonly label?: string
  /** The heading that it is listed under on the status page, which has headings from twelve services on. */
  readonly group?: string
  /** Names of the probes and services that it needs: while one of them fails, it is listed there and raises no alert. */
  readonly dependsOn?: readonly string[]
}

/** Parts that `check` may use. */
export interface CheckContext extends ProbeContext {
  /** The value of a variable; undefined when it is absent or malformed. */
  readonly value: (name: string) => string | undefined
}

export type CheckResult = Pick<ProbeResult, 'state' | 'reason'>

/** A check of something that a service depends on: one target, or `check` in code. */
export interface ProbeInput extends Pick<ServiceInput, 'label' | 'dependsOn'> {
  readonly service: string
  /** The group that configures it: its absence skips the probe. */
  readonly group?: string
  /** An address, or the name of a variable that holds one. */
  readonly http?: string
  /** What the answer to `http` must be. */
  readonly expect?: ExpectedAnswer
  /** `host:port`, or the name of a variable. */
  readonly tcp?: string
  /** `host:port`, or the name of a variable: the certificate is verified. */
  readonly tls?: string
  /** A host name, or the name of a variable. */
  readonly dns?: string
  /** An smtp:// or smtps:// address, or the name of a variable. */
  readonly smtp?: string
  /** The name of a variable that holds a postgres:// address. */
  readonly postgres?: string
  /** The name of a variable that holds a redis:// address. */
  readonly redis?: string
  readonly check?: (context: CheckContext) => CheckResult | Promise<CheckResult>
  /** The longest it may take: `500ms`. A longer one than `2s` counts as that. */
  readonly deadline?: string
  /** Never red: degraded where it would be failing. */
  readonly optional?: boolean
  /** The consequence of a failure: one sentence. */
  readonly meaning?: string
}

/** True for a target that names a variable: every other target has a dot or a colon. */
export const isVariableName = (target: string) => /^[A-Za-z_]\w*$/.test(target)

/** The kinds of probe that need no code. */
export const PROBE_TARGETS = ['http', 'tcp', 'tls', 'dns', 'smtp', 'postgres', 'redis'] as const

/** A mail of your own: what is filled in, and who may ask for it over HTTP. */
export interface TemplateInput {
  /** Values to fill in: the slots of the file's front matter. */
  readonly slots?: Readonly<Record<string, 'text' | 'url'>>
  /** The callers that may ask over HTTP; nobody if left out. */
  readonly by?: 'person' | 'service'
  /** Names that the request has to give, each a string. */
  readonly inputs?: readonly string[]
  /** The recipient and the slots, from the server's own records; undefined when there is no such record. */
  readonly resolve?: Resolve<Readonly<Record<string, string>>>
}

/** Makes a mail out of the inputs of a request. It never takes a recipient or an address from them. */
export type Resolve<Slots> = (
  inputs: Readonly<Record<string, string>>,
  context: Pick<MailContext, 'asker' | 'now' | 'absolute' | 'value'>,
) => ResolvedMail<Slots> | undefined | Promise<ResolvedMail<Slots> | undefined>

export const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const

/** A course of lessons by mail, one at a time. */
export interface CourseInput {
  /** Folder of lessons, in the order of their names. */
  readonly lessons: string
  readonly title?: string
  /** Time between two lessons, 15 minutes to 90 days: `2d`. The first is due at confirmation. */
  readonly every?: string
  /** A local hour in place of `every`: `09:00`. */
  readonly at?: string
  /** The IANA time zone of `at`, or `subscriber`. */
  readonly zone?: string
  readonly on?: readonly (typeof WEEKDAYS)[number][]
  /** The least time between two lessons to one subscriber. */
  readonly spacing?: string
  /** `latest`: people already enrolled get changed lessons too. */
  readonly follow?: 'latest'
  /** Who can read its lessons as pages: everybody (the default), people with the link of a mail, or nobody. */
  readonly pages?: 'public' | 'link' | false
}

export interface HeartbeatInput {
  /** How often it is due: `1d`. */
  readonly every: string
  readonly grace?: string
  readonly label?: string
}

/** Where a weakness is reported; served as `/.well-known/security.txt` (RFC 9116). */
export interface SecurityInput extends Omit<SecurityContact, 'contact'> {
  /** `mailto:`, `https:` or `tel:` addresses, the preferred one first. */
  readonly contact: string | readonly string[]
}

/** Marks what `definePlatform` gives: its faults are compile errors there, and not again wherever it is used. */
export interface DefinedPlatform {
  readonly '~defined'?: true
}

/** A platform, as its owners describe it in `platform.config.ts`. */
export interface PlatformDefinition {
  /** The preset to start from: `base`, the engine's own groups, or `learning`. */
  readonly preset?: 'base' | 'learning'
  /** Its name, on pages and in mails. */
  readonly name?: string
  readonly brand?: {
    /** `#9a3412` */
    readonly color?: string
    /** An image file: PNG, SVG, JPEG or WebP. */
    readonly logo?: string
    /** A language tag: `de`. */
    readonly language?: string
  }
  /** Groups of the preset to leave out, with their probes, routes and texts. */
  readonly without?: readonly string[]
  /** In the order in which they are shown; those of the preset when left out. */
  readonly services?: Readonly<Record<string, ServiceInput>>
  readonly groups?: Readonly<Record<string, GroupInput>>
  readonly probes?: Readonly<Record<string, ProbeInput>>
  /** Folder of your mails. */
  readonly mails?: string
  /** Your mails by template name. */
  readonly templates?: Readonly<Record<string, TemplateInput>>
  readonly courses?: Readonly<Record<string, CourseInput>>
  /** Event kinds and the properties they keep; all others are dropped. */
  readonly events?: Readonly<Record<string, Readonly<Record<string, 'string' | 'number' | 'boolean'>>>>
  /** Labels and tables of the insights page for your events. */
  readonly insights?: {
    readonly labels?: Readonly<Record<string, string>>
    readonly sections?: readonly InsightsSection[]
  }
  readonly heartbeats?: Readonly<Record<string, HeartbeatInput>>
  /** How a confirmation link confirms: `link` (the default) by being opened in a browser, `button` by a button on its page. */
  readonly confirmation?: 'link' | 'button'
  /** How opening an unsubscribe link works: `link` (the default) unsubscribes, `button` shows a page with a button. */
  readonly unsubscription?: 'link' | 'button'
  /** Asked before each subscription; false refuses it. */
  readonly challenge?: Challenge
  readonly security?: SecurityInput
  /** Where relative paths start; the folder of the file, or the working directory when there is no file. */
  readonly folder?: string
}
