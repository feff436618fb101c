import type { Challenge, Identify } from '../core/access/identity.ts'
import type { DispatchResult } from '../core/course/dispatch.ts'
import type { DispatchRequest } from '../core/course/dispatch-request.ts'
import type { Environment } from '../core/env/settings.ts'
import type { Report } from '../core/env/validate.ts'
import type { HealthReport } from '../core/health/probe.ts'
import type { Clock, Log, Random } from '../core/host.ts'
import type { Directory } from '../core/mail/definition.ts'
import type { Transport } from '../core/mail/mailer.ts'
import type { SendEmail, SendsMail } from '../core/mail/send-email.ts'
import type { OnPaymentEvent } from '../core/payments/webhook.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import type { Service } from '../core/service.ts'
import type { History } from '../core/status/history.ts'
import type { OnLost, Store } from '../core/store/store.ts'
import type { DefinedPlatform, PlatformDefinition } from '../platform/definition.ts'
import type { Courses } from './courses.ts'

export interface PlatformOptions {
  /** The environment; nothing is read from the process. */
  readonly env: Environment
  /** The platform that `definePlatform` gives; the default one when left out. */
  readonly platform?: PlatformDefinition | DefinedPlatform
  /** A store of your own. Otherwise STORE_URL, otherwise memory, with a warning. */
  readonly store?: Store
  /** A mail transport of your own, in place of the configured one. */
  readonly mailer?: Transport
  /** Says who sent a request; by default the JWT in Authorization, as DATASTORE_JWT_SECRET or DATASTORE_JWKS_URL verify it. */
  readonly identify?: Identify
  /** Your own records of invites, login requests and exams; by default the tables of the store. */
  readonly directory?: Directory
  /** Called once for each event of the payments provider; a throw asks the provider to deliver it again. */
  readonly onPaymentEvent?: OnPaymentEvent
  /** How a confirmation link confirms: `link` (the default) by being opened in a browser, `button` by a button on its page. */
  readonly confirmation?: 'link' | 'button'
  /** Asked before each subscription; false refuses it. */
  readonly challenge?: Challenge
  readonly clock?: Clock
  readonly random?: Random
  /** By default warnings and errors are warnings of the process, of type `platformctl`, each event once. */
  readonly log?: Log
}

export interface Handler {
  readonly fetch: (request: Request, environment?: unknown) => Promise<Response>
}

/** The services of the default platform that are served by its process. */
export type DefaultServices = 'web' | 'api' | 'agent'

/** A handler for each service, and `mail`, `sendEmail`, `courses`, `dispatch`, `health`, `validate`, `close` (CONTRACT §8). */
export type Platform<Services extends string = DefaultServices, Templates = unknown> = Operations<Templates> &
  Readonly<Record<Services, Handler>>

export interface Operations<Templates = unknown> {
  /** Never throws. */
  readonly sendEmail: SendEmail
  readonly mail: SendsMail<Templates>
  dispatch(request?: DispatchRequest & { readonly signal?: AbortSignal }): Promise<DispatchResult>
  readonly courses: Courses
  health(service: Service, options?: { readonly deep?: boolean }): Promise<HealthReport>
  validate(): Report
  /** Sends queued mails for up to ten seconds, waits for those in flight, then closes everything. A second call waits for the first. */
  close(): Promise<void>
}

/** As `PlatformOptions`, but somebody has decided which platform it is; with what only the daemon has. */
export interface OpenOptions extends Omit<PlatformOptions, 'platform'> {
  readonly platform: ResolvedPlatform
  /** Where this process records its health, for the status page. */
  readonly history?: History
  /** Told when a file of this process was not confirmed by its disk. */
  readonly onLost?: OnLost
  /** Where `env` came from; the environment when left out. */
  readonly sources?: {
    readonly sourceOf: (name: string) => 'file' | 'environment' | 'default'
    /** The name of this process among those that share its store, the same after a restart. */
    readonly replica: string
    /** Absolute paths of env files and of files of secrets. */
    readonly files: readonly string[]
  }
}
