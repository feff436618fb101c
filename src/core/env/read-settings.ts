import { MINUTE_MS } from '../durations.ts'
import { FEEDBACK_PROVIDER_NAMES } from '../feedback-providers.ts'
import { secret, secretPair } from '../secret.ts'
import type { ServiceDefinition } from '../service.ts'
import type { Contract } from './contract.ts'
import { type Kind, type ParsedValue, parseValue } from './kinds.ts'
import { type Breach, brokenBy, type Rule } from './rule.ts'
import type { ApiProvider, Environment, GroupState, Settings, StoreAddress } from './settings.ts'
import { parseStoreAddress } from './values.ts'

/** The value as the platform uses it: trimmed, undefined when absent. */
export function rawValue(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim()
  return value === '' ? undefined : value
}

/**
 * The result of applying the rules to an environment: the broken ones, with what is present and missing, and
 * the state of each group.
 */
export interface Evaluation {
  readonly broken: readonly (Breach & { readonly rule: Rule })[]
  /**
   * Half-configured when one of its rules is broken or a malformed value is an error, configured when a value that
   * switches it on can be used, or always. While nothing of a group is set, what it requires leaves it absent.
   */
  readonly states: ReadonlyMap<string, GroupState>
  /** The values that are set and well-formed, by name. */
  readonly usable: ReadonlyMap<string, { readonly text: string; readonly value: unknown }>
  /** What each malformed value should be, by name. */
  readonly malformed: ReadonlyMap<string, string>
}

/** Parses each value once and applies every rule. */
export function evaluateGroups(contract: Contract, env: Environment): Evaluation {
  const usable = new Map<string, { readonly text: string; readonly value: unknown }>()
  const malformed = new Map<string, string>()
  const touched = new Set<string>()
  const states = new Map<string, GroupState>(
    contract.groups.map(({ name, always }) => [name, always ? 'configured' : 'absent']),
  )
  for (const variable of contract.variables) {
    const { name, group, adjusts } = variable
    const text = rawValue(env, name)
    if (text === undefined) continue
    touched.add(group)
    const parsed = parseValue(variable, text)
    if (!parsed.ok) {
      malformed.set(name, parsed.expected)
      continue
    }
    usable.set(name, parsed)
    if (!adjusts) states.set(group, 'configured')
  }
  const broken = contract.rules.flatMap((rule) => {
    const breach = brokenBy(rule, (name) =>
      rule.kind === 'forbidden-value' ? rawValue(env, name) : usable.get(name)?.text,
    )
    return breach ? [{ rule, ...breach }] : []
  })
  for (const { rule } of broken)
    if (rule.kind !== 'required' || touched.has(rule.group)) states.set(rule.group, 'half-configured')
  for (const name of malformed.keys()) {
    const variable = contract.find(name)
    if (variable?.malformed === 'error') states.set(variable.group, 'half-configured')
  }
  return { broken, states, usable, malformed }
}

/** Parts of a platform that reading an environment needs. */
export interface Described {
  readonly contract: Contract
  readonly services: readonly ServiceDefinition[]
}

/**
 * Parses an environment into settings. Never throws; what cannot be used is absent and marked in `groups`.
 */
export function readSettings({ contract, services }: Described, env: Environment): Settings {
  const { broken, states: groups, usable } = evaluateGroups(contract, env)
  // A name that is in no group is absent, whatever the environment holds.
  const text = (name: string) => usable.get(name)?.text
  const hidden = (name: string) => {
    const value = text(name)
    return value === undefined ? undefined : secret(value)
  }
  const rotating = (name: string) => secretPair(text(name) ?? '')
  const value = <Name extends Kind>(kind: Name, name: string): ParsedValue<Name> | undefined => {
    const variable = contract.find(name)
    return variable?.kind === kind && variable.schema === undefined
      ? // The variable is of this kind, so its value is what the kind parses to.
        (usable.get(name)?.value as ParsedValue<Name> | undefined)
      : undefined
  }
  const url = (name: string) => value('url', name)
  const integer = (name: string) => value('integer', name)
  const store = (name: string): StoreAddress | undefined => {
    const address = value('store-url', name)
    return address?.kind === 'postgres' ? { kind: 'postgres', url: secret(address.url) } : address
  }
  const dkim = () => {
    const [domain, selector, key] = [
      text('MAILER_DKIM_DOMAIN'),
      text('MAILER_DKIM_SELECTOR'),
      hidden('MAILER_DKIM_KEY'),
    ]
    return domain !== undefined && selector !== undefined && key ? { domain, selector, key } : undefined
  }
  /** A group that is half-configured is off as a whole: half an integration is worse than none. */
  const whole = <T>(group: string, read: () => T | undefined): T | undefined =>
    groups.get(group) === 'half-configured' ? undefined : read()
  const alertTo = value('email', 'ALERT_EMAIL_TO')
  return {
    groups,
    broken: broken.map(({ rule }) => rule.id),
    lacking: new Set(broken.flatMap(({ rule }) => (rule.kind === 'required' ? [rule.group] : []))),
    value: text,
    addresses: new Map(
      services.flatMap(({ name, address = [] }) => {
        const set = address.map(url).find((one) => one !== undefined)
        return set === undefined ? [] : [[name, set]]
      }),
    ),
    site: {
      siteUrl: url('NEXT_PUBLIC_SITE_URL') ?? 'http://localhost:3000',
      buildStamp: text('BUILD_STAMP'),
      logLevel: value('log-level', 'LOG_LEVEL') ?? 'info',
      trustProxy: value('proxies', 'TRUST_PROXY') ?? [],
      environment: text('DEPLOY_ENVIRONMENT'),
      corsOrigins: whole('site', () => value('origins', 'CORS_ALLOWED_ORIGINS')),
    },
    store: {
      address: store('STORE_URL'),
      poolSize: integer('STORE_POOL_SIZE') ?? 10,
      jobStore: store('JOB_STORE_URL'),
    },
    datastore: whole('datastore', () => {
      const [address, anonKey] = [url('NEXT_PUBLIC_DATASTORE_URL'), hidden('NEXT_PUBLIC_DATASTORE_ANON_KEY')]
      const [jwt, jwks] = [rotating('DATASTORE_JWT_SECRET'), url('DATASTORE_JWKS_URL')]
      if (address === undefined || anonKey === undefined) return undefined
      const tokens = jwt
        ? ({ kind: 'secret', secret: jwt } as const)
        : jwks
          ? ({ kind: 'jwks', url: jwks } as const)
          : undefined
      return { url: address, anonKey, serviceRoleKey: hidden('DATASTORE_SERVICE_ROLE_KEY'), tokens }
    }),
    payments: whole('payments', () => {
      const [secretKey, webhookSecret] = [hidden('PAYMENTS_SECRET_KEY'), rotating('PAYMENTS_WEBHOOK_SECRET')]
      return (
        secretKey &&
        webhookSecret && {
          secretKey,
          webhookSecret,
          publishableKey: text('NEXT_PUBLIC_PAYMENTS_PUBLISHABLE_KEY'),
          apiUrl: url('PAYMENTS_API_URL') ?? 'https://api.stripe.com',
          prices: pricesIn(contract, text),
        }
      )
    }),
    sharedStore: whole('sharedstore', () => {
      const [address, token] = [url('SHAREDSTORE_REST_URL'), hidden('SHAREDSTORE_REST_TOKEN')]
      return address !== undefined && token ? { url: address, token } : undefined
    }),
    mail: whole('mail', () => {
      const [key, from, api, smtp] = [
        hidden('MAILER_API_KEY'),
        value('mailbox', 'MAILER_FROM'),
        url('MAILER_API_URL'),
        hidden('MAILER_SMTP_URL'),
      ]
      const provider = API_PROVIDERS.find((name) => name === text('MAILER_PROVIDER'))
      const address = api ?? (provider && API_ADDRESSES[provider])
      // A key is missing only beside a mail server that asks for no user: the group would be half-configured.
      const route = smtp
        ? ({ kind: 'smtp', url: smtp } as const)
        : address !== undefined && key
          ? ({ kind: 'api', url: address, ...(provider && { provider }) } as const)
          : undefined
      return (
        from &&
        route && {
          key,
          from,
          route,
          replyTo: value('mailbox', 'MAILER_REPLY_TO'),
          bounceAddress: value('email', 'MAILER_BOUNCE_ADDRESS'),
          dkim: whole('dkim', dkim),
        }
      )
    }),
    alerts: {
      webhook: whole('alerts', () => {
        const address = hidden('ALERT_WEBHOOK_URL')
        const [key, format] = [hidden('ALERT_WEBHOOK_SECRET'), text('ALERT_WEBHOOK_FORMAT')]
        return address && { url: address, secret: key, format }
      }),
      escalation: whole('alerts', () => {
        const address = hidden('ALERT_ESCALATION_URL')
        const afterMs = value('duration', 'ALERT_ESCALATION_AFTER') ?? 15 * MINUTE_MS
        return address && { url: address, secret: hidden('ALERT_WEBHOOK_SECRET'), afterMs }
      }),
      mailTo: alertTo === undefined ? undefined : { name: undefined, address: alertTo },
    },
    heartbeatPing: hidden('HEARTBEAT_PING_URL'),
    feedback: whole('feedback', () => {
      const name = text('MAILER_FEEDBACK_PROVIDER')
      const provider = FEEDBACK_PROVIDER_NAMES.find((one) => one === name)
      const key = rotating('MAILER_FEEDBACK_SECRET')
      return provider && key && { provider, secret: key }
    }),
    mailRate: value('number', 'MAILER_RATE'),
    dispatch: { secret: rotating('EMAIL_DISPATCH_SECRET'), limit: integer('EMAIL_DISPATCH_LIMIT') ?? 100 },
    linkSecret: rotating('EMAIL_LINK_SECRET'),
    errortrack: whole('errortrack', () => {
      const dsn = text('NEXT_PUBLIC_ERRORTRACK_DSN')
      return dsn === undefined ? undefined : { dsn }
    }),
    analytics: {
      table: whole('analytics', () => text('ANALYTICS_DATASTORE_TABLE')),
    },
    health: {
      deepToken:
        rotating('HEALTH_DEEP_TOKEN') ??
        // A token is set but malformed: the gate stays shut, and no token opens it.
        (rawValue(env, 'HEALTH_DEEP_TOKEN') === undefined
          ? undefined
          : { current: secret(''), accepted: [] }),
    },
    limits: { perMinute: integer('RATE_LIMIT_PER_MINUTE') },
    identity: { audience: text('DATASTORE_JWT_AUDIENCE'), issuer: text('DATASTORE_JWT_ISSUER') },
    budgets: {
      analyticsTotalBytes: (integer('ANALYTICS_TOTAL_MB') ?? 4096) * MB,
      analyticsDailyBytes: (integer('ANALYTICS_DAILY_MB') ?? 64) * MB,
      confirmationsPerDay: integer('EMAIL_CONFIRMATIONS_PER_DAY') ?? 10_000,
      bodyBytesInFlight: (integer('BODY_MEMORY_MB') ?? 16) * MB,
    },
  }
}

const MB = 1024 * 1024

const API_PROVIDERS = ['resend', 'postmark', 'ses'] as const
/** Of the providers that have one address for everybody. */
const API_ADDRESSES: Partial<Record<ApiProvider, string>> = {
  resend: 'https://api.resend.com/emails',
  postmark: 'https://api.postmarkapp.com/email',
}
const PRICE = 'PAYMENTS_PRICE_'

/** `PAYMENTS_PRICE_PRO_MONTHLY` is the price `pro-monthly`. */
function pricesIn(contract: Contract, text: (name: string) => string | undefined): Record<string, string> {
  return Object.fromEntries(
    contract.variables.flatMap(({ name }) => {
      const id = name.startsWith(PRICE) ? text(name) : undefined
      return id === undefined ? [] : [[name.slice(PRICE.length).toLowerCase().replaceAll('_', '-'), id]]
    }),
  )
}

const STORES = ['STORE_URL', 'JOB_STORE_URL'] as const

export type StoreVariable = (typeof STORES)[number]

/**
 * The store variables that are set but malformed. Elsewhere a malformed value behaves as absent; here that
 * would open another store, which knows none of the subscribers (CONTRACT §9.1).
 */
export function malformedStores(env: Environment): readonly StoreVariable[] {
  return STORES.filter((name) => {
    const value = rawValue(env, name)
    return value !== undefined && parseStoreAddress(value) === undefined
  })
}

/** Error text for a malformed store address, with the fix; never the value, which may hold a password. */
export function malformedStoreSentence(name: StoreVariable): string {
  const without = {
    STORE_URL: 'to use the SQLite file of the data folder',
    JOB_STORE_URL: 'to keep jobs in the store of STORE_URL',
  }[name]
  return `${name} is not the address of a store, and no other store is opened in its place. Write sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE (a # of the password as %23), or unset it ${without}.`
}
