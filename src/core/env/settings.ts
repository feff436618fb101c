import type { Mailbox } from '../mail/address.ts'
import type { Secret, SecretPair } from '../secret.ts'

/** An environment as a program sees it. Unset, empty and whitespace-only mean the same: absent. */
export type Environment = Readonly<Record<string, string | undefined>>

export type GroupState = 'absent' | 'configured' | 'half-configured'

/** The groups of CONTRACT §2, then those that were added since (§9.8), in the order in which they are shown. */
export const GROUPS = [
  'site',
  'store',
  'datastore',
  'payments',
  'models',
  'hardware',
  'sharedstore',
  'mail',
  'errortrack',
  'analytics',
  'health',
  'agent',
  'limits',
  'identity',
  'budgets',
] as const

export type GroupName = (typeof GROUPS)[number]

export type StoreAddress =
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'postgres'; readonly url: Secret }

export type MailRoute =
  | { readonly kind: 'smtp'; readonly url: Secret }
  | { readonly kind: 'api'; readonly url: string }

export type TokenVerification =
  | { readonly kind: 'secret'; readonly secret: SecretPair }
  | { readonly kind: 'jwks'; readonly url: string }

export interface ModelSettings {
  readonly key: Secret
  readonly model: string | undefined
}

/**
 * The environment parsed once into types that cannot be wrong afterwards. A half-configured group is
 * undefined here and `half-configured` in `groups`; a malformed value behaves as absent.
 */
export interface Settings {
  readonly groups: Readonly<Record<GroupName, GroupState>>
  readonly site: {
    /** Without a trailing slash; `http://localhost:3000` when absent. */
    readonly siteUrl: string
    readonly apiUrl: string
    readonly agentUrl: string
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
        /** The configured ones only. */
        readonly prices: Readonly<
          Partial<Record<'pro-monthly' | 'pro-yearly' | 'team-monthly' | 'team-yearly', string>>
        >
      }
    | undefined
  readonly models: {
    readonly a: ModelSettings | undefined
    readonly b: ModelSettings | undefined
    readonly c: ModelSettings | undefined
    readonly cloudmodel:
      | {
          readonly key: Secret
          readonly endpoint: string
          readonly deployment: string
          readonly version: string | undefined
        }
      | undefined
  }
  readonly hardware: {
    readonly a: { readonly token: Secret; readonly instance: string } | undefined
    readonly cloudb:
      | {
          readonly accessKeyId: string
          readonly secretAccessKey: Secret
          readonly region: string
          readonly resultsBucket: string | undefined
        }
      | undefined
    readonly cloudqpu:
      | {
          readonly subscriptionId: string
          readonly resourceGroup: string
          readonly workspace: string
          readonly location: string
          readonly tenantId: string
          readonly clientId: string
          readonly clientSecret: Secret
        }
      | undefined
  }
  readonly sharedStore: { readonly url: string; readonly token: Secret } | undefined
  readonly mail:
    | {
        readonly key: Secret
        readonly route: MailRoute
        readonly from: Mailbox
        readonly replyTo: Mailbox | undefined
      }
    | undefined
  readonly dispatch: {
    readonly secret: SecretPair | undefined /** 1 to 10,000; 100 when absent. */
    readonly limit: number
  }
  readonly linkSecret: Secret | undefined
  readonly errortrack: { readonly dsn: string; readonly authToken: Secret | undefined } | undefined
  readonly analytics: { readonly endpoint: string | undefined; readonly table: string | undefined }
  readonly health: { readonly deepToken: SecretPair | undefined }
  readonly agent: { readonly courseIndexPath: string | undefined }
  readonly limits: {
    /** Undefined: the default threshold of each policy. */ readonly perMinute: number | undefined
  }
  /** What tokens must say beyond their signature; undefined: not looked at. */
  readonly identity: { readonly audience: string | undefined; readonly issuer: string | undefined }
  /** What all clients together may use up. */
  readonly budgets: {
    readonly analyticsTotalBytes: number
    readonly analyticsDailyBytes: number
    readonly confirmationsPerDay: number
    readonly bodyBytesInFlight: number
  }
}
