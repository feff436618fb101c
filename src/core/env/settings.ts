import type { Mailbox } from '../address.ts'
import { MINUTE_MS } from '../durations.ts'
import { type RotatingSecret, rotatingSecret, type Secret, secret, splitList } from '../secret.ts'
import type { ServiceDefinition } from '../service.ts'
import type { Contract } from './contract.ts'
import { type EngineVariable, engineVariables } from './groups.ts'
import { type ParsedVariable, parseValue } from './kinds.ts'
import { brokenBy } from './rule.ts'
import type { StoreAddressOf } from './values.ts'

export type StoreAddress = StoreAddressOf<Secret>

export type ApiProvider = Exclude<(typeof engineVariables.MAILER_PROVIDER.of)[number], 'smtp'>

export type MailRoute =
  | { readonly kind: 'smtp'; readonly url: Secret }
  | { readonly kind: 'api'; readonly url: string; readonly provider?: ApiProvider }

export type TokenVerification =
  | { readonly kind: 'secret'; readonly secret: RotatingSecret }
  | { readonly kind: 'jwks'; readonly url: string }

export interface DkimSettings {
  readonly domain: string
  readonly selector: string
  /** A private RSA key as PEM. */
  readonly key: Secret
}

/** A provider whose feedback is understood; its name is part of the route. */
export type FeedbackProviderName = (typeof engineVariables.MAILER_FEEDBACK_PROVIDER.of)[number]

export type WebhookFormatName = (typeof engineVariables.ALERT_WEBHOOK_FORMAT.of)[number]

export interface MailSettings {
  /** A mail server that asks for no user needs none. */
  readonly key: Secret | undefined
  readonly route: MailRoute
  readonly from: Mailbox
  readonly replyTo: Mailbox | undefined
  /** Bounces come back to it, with a token after a plus sign; SMTP only. */
  readonly bounceAddress?: string | undefined
  readonly dkim?: DkimSettings | undefined
}

export interface Described {
  readonly contract: Contract
  readonly services: readonly ServiceDefinition[]
}

const MB = 1024 * 1024

/** Of the providers that have one address for everybody. */
const API_ADDRESSES: Partial<Record<ApiProvider, string>> = {
  resend: 'https://api.resend.com/emails',
  postmark: 'https://api.postmarkapp.com/email',
}
const PRICE = 'PAYMENTS_PRICE_'

/** The environment as the engine uses it: parsed once into types that cannot be wrong afterwards. */
export type Settings = Readonly<ReturnType<typeof readSettings>>

/** Reads the engine's variables. Never throws: a malformed value is absent, a half-configured group undefined. */
export function readSettings({ contract, services }: Described, env: Environment) {
  const { broken, states: groups, usable, malformed, used } = evaluateGroups(contract, env)
  /** A platform may have dropped a group and given the name of its variable to one of another kind. */
  const own = (name: EngineVariable) =>
    contract.find(name)?.kind === engineVariables[name].kind ? usable.get(name) : undefined
  const text = (name: EngineVariable) => own(name)?.text
  const value = <Name extends EngineVariable>(name: Name) =>
    // The variable is of this kind, so its value is what the kind parses to.
    own(name)?.value as ParsedVariable<(typeof engineVariables)[Name]> | undefined
  const hidden = (name: EngineVariable) => own(name) && secret(text(name) ?? '')
  const rotating = (name: EngineVariable) => rotatingSecret(text(name) ?? '')
  const store = (name: 'STORE_URL' | 'JOB_STORE_URL'): StoreAddress | undefined => {
    const address = value(name)
    return address?.kind === 'postgres' ? { kind: 'postgres', url: secret(address.url) } : address
  }
  /** A group that is half-configured is off as a whole: half an integration is worse than none. */
  const whole = <T>(group: string, read: () => T | undefined): T | undefined =>
    groups.get(group) === 'half-configured' ? undefined : read()
  const link = contract.find('EMAIL_LINK_SECRET')
  const alertTo = value('ALERT_EMAIL_TO')

  return {
    groups,
    broken: broken.map(({ rule }) => rule.id),
    /** Groups of which something that is required is not set. */
    lacking: new Set(broken.flatMap(({ rule }) => (rule.kind === 'required' ? [rule.group] : []))),
    /** A value of the contract, for functions of a definition. A secret too: never print it. */
    value: (name: string) => used(name)?.text,
    /** What no output may hold: the values of all secrets, whole and by their parts. */
    secretValues: contract.variables
      .flatMap(({ name, secret }) => (secret && env[name]) || [])
      .flatMap((value) => [value.trim(), ...splitList(value)]),
    /** Addresses of the services by name, without a trailing slash; a service whose address is not set has none. */
    addresses: new Map(
      services.flatMap(({ name, address = [] }) => {
        const urls = address.filter((variable) => contract.find(variable)?.kind === 'url')
        // One that is set comes before the default of another.
        const [first] = urls
          .flatMap((variable) => usable.get(variable) ?? [])
          .concat(urls.flatMap((variable) => used(variable) ?? []))
        return typeof first?.value === 'string' ? [[name, first.value] as const] : []
      }),
    ),
    site: {
      /** Without a trailing slash. */
      siteUrl: value('NEXT_PUBLIC_SITE_URL') ?? 'http://localhost:3000',
      buildStamp: text('BUILD_STAMP'),
      logLevel: value('LOG_LEVEL') ?? 'info',
      /** CIDR ranges or addresses of the proxies in front; empty trusts none. */
      trustProxy: value('TRUST_PROXY') ?? [],
      environment: text('DEPLOY_ENVIRONMENT'),
      /** Undefined: the localhost default. */
      corsOrigins: whole('site', () => value('CORS_ALLOWED_ORIGINS')),
    },
    store: {
      address: store('STORE_URL'),
      poolSize: value('STORE_POOL_SIZE') ?? 10,
      jobStore: store('JOB_STORE_URL'),
      /** Elsewhere a malformed value behaves as absent; here that would open a store without the subscribers (CONTRACT §9.1). */
      malformed: STORES.filter((name) => contract.find(name)?.kind === 'store-url' && malformed.has(name)),
    },
    datastore: whole('datastore', () => {
      const url = value('NEXT_PUBLIC_DATASTORE_URL')
      const anonKey = hidden('NEXT_PUBLIC_DATASTORE_ANON_KEY')
      const jwt = rotating('DATASTORE_JWT_SECRET')
      const jwks = value('DATASTORE_JWKS_URL')
      const published = jwks ? ({ kind: 'jwks', url: jwks } as const) : undefined
      const tokens: TokenVerification | undefined = jwt ? { kind: 'secret', secret: jwt } : published
      const serviceRoleKey = hidden('DATASTORE_SERVICE_ROLE_KEY')
      const connection = complete({ url, anonKey })
      return connection && { ...connection, serviceRoleKey, tokens }
    }),
    payments: whole('payments', () => {
      const keys = complete({
        secretKey: hidden('PAYMENTS_SECRET_KEY'),
        webhookSecret: rotating('PAYMENTS_WEBHOOK_SECRET'),
      })
      const prices = contract.variables.flatMap(({ name }): [string, string][] => {
        const id = name.startsWith(PRICE) ? usable.get(name)?.text : undefined
        return id === undefined ? [] : [[name.slice(PRICE.length).toLowerCase().replaceAll('_', '-'), id]]
      })
      const publishableKey = text('NEXT_PUBLIC_PAYMENTS_PUBLISHABLE_KEY')
      const apiUrl = value('PAYMENTS_API_URL') ?? 'https://api.stripe.com'
      /** `prices` has the configured ones only, by name: PAYMENTS_PRICE_PRO_MONTHLY is `pro-monthly`. */
      return keys && { ...keys, publishableKey, apiUrl, prices: Object.fromEntries(prices) }
    }),
    sharedStore: whole('sharedstore', () =>
      complete({ url: value('SHAREDSTORE_REST_URL'), token: hidden('SHAREDSTORE_REST_TOKEN') }),
    ),
    mail: whole('mail', (): MailSettings | undefined => {
      const key = hidden('MAILER_API_KEY')
      const from = value('MAILER_FROM')
      const smtp = hidden('MAILER_SMTP_URL')
      const named = value('MAILER_PROVIDER')
      const provider = named === 'smtp' ? undefined : named
      const url = value('MAILER_API_URL') ?? (provider && API_ADDRESSES[provider])
      // A key is missing only beside a mail server that asks for no user: the group would be half-configured.
      const api = url && key && ({ kind: 'api', url, ...(provider && { provider }) } as const)
      const route: MailRoute | '' | undefined = smtp ? { kind: 'smtp', url: smtp } : api
      const [replyTo, bounceAddress] = [value('MAILER_REPLY_TO'), value('MAILER_BOUNCE_ADDRESS')]
      const [domain, selector] = [text('MAILER_DKIM_DOMAIN'), text('MAILER_DKIM_SELECTOR')]
      const dkim = whole('dkim', () => complete({ domain, selector, key: hidden('MAILER_DKIM_KEY') }))
      return from && route ? { key, from, route, replyTo, bounceAddress, dkim } : undefined
    }),
    /** Also for an embedding program's own transport, which needs no more of the group. */
    sender: { from: value('MAILER_FROM'), replyTo: value('MAILER_REPLY_TO') },
    alerts: {
      webhook: whole('alerts', () => {
        const url = hidden('ALERT_WEBHOOK_URL')
        return url && { url, secret: hidden('ALERT_WEBHOOK_SECRET'), format: value('ALERT_WEBHOOK_FORMAT') }
      }),
      /** A second webhook, for incidents that nobody acknowledges within `afterMs`. */
      escalation: whole('alerts', () => {
        const [url, key] = [hidden('ALERT_ESCALATION_URL'), hidden('ALERT_WEBHOOK_SECRET')]
        return url && { url, secret: key, afterMs: value('ALERT_ESCALATION_AFTER') ?? 15 * MINUTE_MS }
      }),
      mailTo: alertTo === undefined ? undefined : { name: undefined, address: alertTo },
    },
    /** An outside watcher, called after each completed hour of the schedule. */
    heartbeatPing: hidden('HEARTBEAT_PING_URL'),
    feedback: whole('feedback', () =>
      complete({ provider: value('MAILER_FEEDBACK_PROVIDER'), secret: rotating('MAILER_FEEDBACK_SECRET') }),
    ),
    /** Messages a second that all dispatchers of a store send together; undefined: as many as the transport carries. */
    mailRate: value('MAILER_RATE'),
    dispatch: { secret: rotating('EMAIL_DISPATCH_SECRET'), limit: value('EMAIL_DISPATCH_LIMIT') ?? 100 },
    /** Each well-formed value, also where the whole is malformed: links in mails that are out need it. */
    linkKeys: splitList(rawValue(env, 'EMAIL_LINK_SECRET') ?? '')
      .filter((one) => link?.kind === 'secret' && parseValue(link, one).ok)
      .map(secret),
    areLinksInDoubt: malformed.has('EMAIL_LINK_SECRET'),
    errortrack: whole('errortrack', () => complete({ dsn: text('NEXT_PUBLIC_ERRORTRACK_DSN') })),
    analytics: { table: whole('analytics', () => text('ANALYTICS_DATASTORE_TABLE')) },
    health: {
      deepToken:
        rotating('HEALTH_DEEP_TOKEN') ??
        // A token is set but malformed: the gate stays shut, and no token opens it.
        (rawValue(env, 'HEALTH_DEEP_TOKEN') ? { current: secret(''), accepted: [] } : undefined),
    },
    /** Undefined: the default threshold of each policy. */
    limits: { perMinute: value('RATE_LIMIT_PER_MINUTE') },
    /** Claims that tokens must have besides a valid signature; an undefined claim is not checked. */
    identity: { audience: text('DATASTORE_JWT_AUDIENCE'), issuer: text('DATASTORE_JWT_ISSUER') },
    budgets: {
      analyticsTotalBytes: (value('ANALYTICS_TOTAL_MB') ?? 4096) * MB,
      analyticsDailyBytes: (value('ANALYTICS_DAILY_MB') ?? 64) * MB,
      confirmationsPerDay: value('EMAIL_CONFIRMATIONS_PER_DAY') ?? 10_000,
      bodyBytesInFlight: (value('BODY_MEMORY_MB') ?? 16) * MB,
    },
  }
}

/** The fields if each has a value. */
function complete<Fields extends object>(fields: Fields) {
  type Complete = { readonly [Name in keyof Fields]: NonNullable<Fields[Name]> }
  return Object.values(fields).includes(undefined) ? undefined : (fields as Complete)
}

const STORES = ['STORE_URL', 'JOB_STORE_URL'] as const

export type StoreVariable = (typeof STORES)[number]

/** Error text for a malformed store address, with the fix; never the value, which may hold a password. */
export function malformedStoreSentence(name: StoreVariable): string {
  const without = {
    STORE_URL: 'to use the SQLite file of the data folder',
    JOB_STORE_URL: 'to keep jobs in the store of STORE_URL',
  }[name]
  return `${name} is not the address of a store, and no other store is opened in its place. Write sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE (a # of the password as %23), or unset it ${without}.`
}

/** An environment as a program sees it. Unset, empty and whitespace-only mean the same: absent. */
export type Environment = Readonly<Record<string, string | undefined>>

export type GroupState = 'absent' | 'configured' | 'half-configured'

/** The value as the platform uses it: trimmed, undefined when absent. */
export function rawValue(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim()
  return value === '' ? undefined : value
}

/** Parses each value once and applies every rule. */
export function evaluateGroups(contract: Contract, env: Environment) {
  /** The values that are set and well-formed, by name. */
  const usable = new Map<string, { readonly text: string; readonly value: unknown }>()
  /** What each malformed value should be, by name. */
  const malformed = new Map<string, string>()
  const touched = new Set<string>()
  /** Half-configured if a rule is broken or a malformed value is an error. With nothing set, a group stays absent. */
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
  /** What is set and well-formed, or else the default. */
  const used = (name: string) => {
    const variable = contract.find(name)
    const unset = variable?.default === undefined ? undefined : parseValue(variable, variable.default)
    return usable.get(name) ?? (unset?.ok ? unset : undefined)
  }
  return { broken, states, usable, malformed, used }
}
