import type { Mailbox } from '../address.ts'
import type { FeedbackProviderName } from '../feedback-providers.ts'
import type { Secret, SecretPair } from '../secret.ts'

/** An environment as a program sees it. Unset, empty and whitespace-only mean the same: absent. */
export type Environment = Readonly<Record<string, string | undefined>>

export type GroupState = 'absent' | 'configured' | 'half-configured'

export type StoreAddress =
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'postgres'; readonly url: Secret }

/** Whose API carries mail. */
export type ApiProvider = 'resend' | 'postmark' | 'ses'

export type MailRoute =
  | { readonly kind: 'smtp'; readonly url: Secret }
  | { readonly kind: 'api'; readonly url: string; readonly provider?: ApiProvider }

export type TokenVerification =
  | { readonly kind: 'secret'; readonly secret: SecretPair }
  | { readonly kind: 'jwks'; readonly url: string }

export interface DkimSettings {
  readonly domain: string
  readonly selector: string
  /** A private RSA key as PEM. */
  readonly key: Secret
}

/**
 * The environment parsed once into types that cannot be wrong afterwards. A half-configured group is
 * undefined here and `half-configured` in `groups`; a malformed value behaves as absent.
 */
export interface Settings {
  /** By name. */
  readonly groups: ReadonlyMap<string, GroupState>
  readonly broken: readonly string[]
  /** Groups of which something that is required is not set. */
  readonly lacking: ReadonlySet<string>
  /** A usable value of the contract, for probes of the platform's own. A secret too: never print it. */
  readonly value: (name: string) => string | undefined
  /** Addresses of the services by name, without a trailing slash; a service whose address is not set has none. */
  readonly addresses: ReadonlyMap<string, string>
  readonly site: {
    /** Without a trailing slash; `http://localhost:3000` when absent. */
    readonly siteUrl: string
    readonly buildStamp: string | undefined
    readonly logLevel: 'debug' | 'info' | 'warn' | 'error'
    /** CIDR ranges or addresses of the proxies in front; empty trusts none. */
    readonly trustProxy: readonly string[]
    readonly environment: string | undefined
    /** Undefined: the localhost default. */
    readonly corsOrigins: readonly string[] | undefined
  }
  readonly store: {
    readonly address: StoreAddress | undefined
    readonly poolSize: number
    readonly jobStore: StoreAddress | undefined
  }
  readonly datastore:
    | {
        readonly url: string
        readonly anonKey: Secret
        readonly serviceRoleKey: Secret | undefined
        readonly tokens: TokenVerification | undefined
      }
    | undefined
  readonly payments:
    | {
        readonly secretKey: Secret
        readonly publishableKey: string | undefined
        readonly webhookSecret: SecretPair
        readonly apiUrl: string
        /** The configured ones only, by name: `pro-monthly`. */
        readonly prices: Readonly<Record<string, string>>
      }
    | undefined
  readonly sharedStore: { readonly url: string; readonly token: Secret } | undefined
  readonly mail:
    | {
        /** A mail server that asks for no user needs none. */
        readonly key: Secret | undefined
        readonly route: MailRoute
        readonly from: Mailbox
        readonly replyTo: Mailbox | undefined
        /** Bounces come back to it, with a token after a plus sign; SMTP only. */
        readonly bounceAddress?: string | undefined
        /** Signs mail that goes by SMTP. */
        readonly dkim?: DkimSettings | undefined
      }
    | undefined
  /** Where alerts about incidents go; an undefined channel gets none. */
  readonly alerts: {
    readonly webhook:
      | { readonly url: Secret; readonly secret: Secret | undefined; readonly format: string | undefined }
      | undefined
    /** A second webhook, for incidents that nobody acknowledges within `afterMs`. */
    readonly escalation:
      | { readonly url: Secret; readonly secret: Secret | undefined; readonly afterMs: number }
      | undefined
    readonly mailTo: Mailbox | undefined
  }
  /** An outside watcher, called after each completed hour of the schedule. */
  readonly heartbeatPing: Secret | undefined
  /** The provider whose webhook is accepted, with its secret; undefined: none. */
  readonly feedback: { readonly provider: FeedbackProviderName; readonly secret: SecretPair } | undefined
  /** Messages a second that all dispatchers of a store send together; undefined: as many as the transport carries. */
  readonly mailRate: number | undefined
  readonly dispatch: {
    readonly secret: SecretPair | undefined
    /** 1 to 10,000; 100 when absent. */
    readonly limit: number
  }
  readonly linkSecret: SecretPair | undefined
  readonly errortrack: { readonly dsn: string } | undefined
  readonly analytics: { readonly table: string | undefined }
  readonly health: { readonly deepToken: SecretPair | undefined }
  readonly limits: {
    /** Undefined: the default threshold of each policy. */
    readonly perMinute: number | undefined
  }
  /** Claims that tokens must have besides a valid signature; an undefined claim is not checked. */
  readonly identity: { readonly audience: string | undefined; readonly issuer: string | undefined }
  /** Budgets that all clients share. */
  readonly budgets: {
    readonly analyticsTotalBytes: number
    readonly analyticsDailyBytes: number
    readonly confirmationsPerDay: number
    readonly bodyBytesInFlight: number
  }
}
