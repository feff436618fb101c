import { parseMailbox } from '../mail/address.ts'
import { secret, secretPair } from '../secret.ts'
import { type Breach, brokenBy } from './breach.ts'
import { RULES, type Rule } from './rules.ts'
import {
  type Environment,
  GROUPS,
  type GroupName,
  type GroupState,
  type Settings,
  type StoreAddress,
} from './settings.ts'
import { ADJUSTS, findVariable, VARIABLES } from './table.ts'
import {
  malformed,
  parseBaseUrl,
  parseHttpUrl,
  parseInteger,
  parseOrigins,
  parseProxies,
  parseStoreAddress,
} from './values.ts'

/** The value as the platform uses it: trimmed, undefined when absent. */
export function rawValue(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim()
  return value === '' ? undefined : value
}

/** As `rawValue`, but a malformed value behaves as absent (CONTRACT §2). */
export function usableValue(env: Environment, name: string): string | undefined {
  const value = rawValue(env, name)
  const variable = findVariable(name)
  return value === undefined || (variable !== undefined && malformed(variable, value) !== undefined)
    ? undefined
    : value
}

/** What the rules make of an environment: the broken ones, with what is present and missing, and each group's state. */
export interface Judgement {
  readonly broken: readonly (Breach & { readonly rule: Rule })[]
  /** Half-configured when one of its rules is broken, configured when a value that switches it on can be used. */
  readonly states: Readonly<Record<GroupName, GroupState>>
  /** The values that are set and well-formed, by name. */
  readonly usable: ReadonlyMap<string, string>
}

/** Applies every rule; each value is parsed once. */
export function judge(env: Environment): Judgement {
  const usable = new Map<string, string>()
  const states = Object.fromEntries(GROUPS.map((group) => [group, 'absent'])) as Record<GroupName, GroupState>
  for (const { name, group } of VARIABLES) {
    const value = usableValue(env, name)
    if (value === undefined) continue
    usable.set(name, value)
    if (!ADJUSTS.has(name)) states[group] = 'configured'
  }
  const broken = RULES.flatMap((rule) => {
    const breach = brokenBy(rule, (name) =>
      rule.kind === 'forbidden-value' ? rawValue(env, name) : usable.get(name),
    )
    return breach ? [{ rule, ...breach }] : []
  })
  for (const { rule } of broken) states[rule.group] = 'half-configured'
  return { broken, states, usable }
}

/** Every group's state. */
export function groupStates(env: Environment): Judgement['states'] {
  return judge(env).states
}

/** Parses an environment into settings. Total: never throws; what cannot be used is absent and marked in `groups`. */
export function readSettings(env: Environment): Settings {
  const groups = groupStates(env)
  const text = (name: string) => usableValue(env, name)
  const hidden = (name: string) => {
    const value = text(name)
    return value === undefined ? undefined : secret(value)
  }
  const rotating = (name: string) => secretPair(text(name) ?? '')
  const url = (name: string) => {
    const value = text(name)
    return value === undefined
      ? undefined
      : findVariable(name)?.base
        ? parseBaseUrl(value)
        : parseHttpUrl(value)
  }
  const integer = (name: string) => {
    const value = text(name)
    const [low, high] = findVariable(name)?.range ?? [0, Number.MAX_SAFE_INTEGER]
    return value === undefined ? undefined : parseInteger(value, low, high)
  }
  const store = (name: string): StoreAddress | undefined => {
    const parsed = parseStoreAddress(text(name) ?? '')
    return parsed?.kind === 'postgres' ? { kind: 'postgres', url: secret(parsed.url) } : parsed
  }
  const mailbox = (name: string) => {
    const parsed = parseMailbox(text(name) ?? '')
    return parsed.ok ? parsed.mailbox : undefined
  }
  /** A group that is half-configured is off as a whole: half an integration is worse than none. */
  const whole = <T>(group: GroupName, read: () => T | undefined): T | undefined =>
    groups[group] === 'half-configured' ? undefined : read()
  const model = (letter: string) => {
    const key = hidden(`MODEL_${letter}_API_KEY`)
    return key && { key, model: text(`MODEL_${letter}_MODEL`) }
  }

  return {
    groups,
    site: {
      siteUrl: url('NEXT_PUBLIC_SITE_URL') ?? 'http://localhost:3000',
      apiUrl: url('API_URL') ?? url('NEXT_PUBLIC_API_URL') ?? 'http://127.0.0.1:8000',
      agentUrl: url('AGENT_URL') ?? url('NEXT_PUBLIC_AGENT_URL') ?? 'http://127.0.0.1:8100',
      buildStamp: text('BUILD_STAMP'),
      logLevel: logLevel(text('LOG_LEVEL')),
      trustProxy: parseProxies(text('TRUST_PROXY') ?? '') ?? [],
      environment: text('DEPLOY_ENVIRONMENT'),
      corsOrigins:
        groups.site === 'half-configured' ? undefined : parseOrigins(text('CORS_ALLOWED_ORIGINS') ?? ''),
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
      const prices = {
        'pro-monthly': text('PAYMENTS_PRICE_PRO_MONTHLY'),
        'pro-yearly': text('PAYMENTS_PRICE_PRO_YEARLY'),
        'team-monthly': text('PAYMENTS_PRICE_TEAM_MONTHLY'),
        'team-yearly': text('PAYMENTS_PRICE_TEAM_YEARLY'),
      }
      return (
        secretKey &&
        webhookSecret && {
          secretKey,
          webhookSecret,
          publishableKey: text('NEXT_PUBLIC_PAYMENTS_PUBLISHABLE_KEY'),
          apiUrl: url('PAYMENTS_API_URL') ?? 'https://api.stripe.com',
          prices: Object.fromEntries(Object.entries(prices).filter(([, id]) => id !== undefined)),
        }
      )
    }),
    models: {
      a: model('A'),
      b: model('B'),
      c: model('C'),
      cloudmodel: (() => {
        const [key, endpoint, deployment] = [
          hidden('CLOUDMODEL_API_KEY'),
          url('CLOUDMODEL_API_ENDPOINT'),
          text('CLOUDMODEL_API_DEPLOYMENT'),
        ]
        return key && endpoint && deployment
          ? { key, endpoint, deployment, version: text('CLOUDMODEL_API_VERSION') }
          : undefined
      })(),
    },
    hardware: {
      a: (() => {
        const [token, instance] = [hidden('HARDWARE_A_TOKEN'), text('HARDWARE_A_INSTANCE')]
        return token && instance ? { token, instance } : undefined
      })(),
      cloudb: (() => {
        const [accessKeyId, secretAccessKey, region] = [
          text('CLOUDB_ACCESS_KEY_ID'),
          hidden('CLOUDB_SECRET_ACCESS_KEY'),
          text('CLOUDB_REGION'),
        ]
        return accessKeyId && secretAccessKey && region
          ? { accessKeyId, secretAccessKey, region, resultsBucket: text('CLOUDB_RESULTS_BUCKET') }
          : undefined
      })(),
      cloudqpu: (() => {
        const [subscriptionId, resourceGroup, workspace] = [
          text('CLOUDQPU_SUBSCRIPTION_ID'),
          text('CLOUDQPU_RESOURCE_GROUP'),
          text('CLOUDQPU_WORKSPACE'),
        ]
        const [location, tenantId, clientId] = [
          text('CLOUDQPU_LOCATION'),
          text('CLOUDQPU_TENANT_ID'),
          text('CLOUDQPU_CLIENT_ID'),
        ]
        const clientSecret = hidden('CLOUDQPU_CLIENT_SECRET')
        return subscriptionId &&
          resourceGroup &&
          workspace &&
          location &&
          tenantId &&
          clientId &&
          clientSecret
          ? { subscriptionId, resourceGroup, workspace, location, tenantId, clientId, clientSecret }
          : undefined
      })(),
    },
    sharedStore: whole('sharedstore', () => {
      const [address, token] = [url('SHAREDSTORE_REST_URL'), hidden('SHAREDSTORE_REST_TOKEN')]
      return address !== undefined && token ? { url: address, token } : undefined
    }),
    mail: whole('mail', () => {
      const [key, from, api, smtp] = [
        hidden('MAILER_API_KEY'),
        mailbox('MAILER_FROM'),
        url('MAILER_API_URL'),
        hidden('MAILER_SMTP_URL'),
      ]
      const route = smtp
        ? ({ kind: 'smtp', url: smtp } as const)
        : api
          ? ({ kind: 'api', url: api } as const)
          : undefined
      return key && from && route && { key, from, route, replyTo: mailbox('MAILER_REPLY_TO') }
    }),
    dispatch: { secret: rotating('EMAIL_DISPATCH_SECRET'), limit: integer('EMAIL_DISPATCH_LIMIT') ?? 100 },
    linkSecret: hidden('EMAIL_LINK_SECRET'),
    errortrack: whole('errortrack', () => {
      const dsn = text('NEXT_PUBLIC_ERRORTRACK_DSN')
      return dsn === undefined ? undefined : { dsn, authToken: hidden('ERRORTRACK_AUTH_TOKEN') }
    }),
    analytics: {
      endpoint: url('NEXT_PUBLIC_ANALYTICS_ENDPOINT'),
      table: whole('analytics', () => text('ANALYTICS_DATASTORE_TABLE')),
    },
    health: { deepToken: rotating('HEALTH_DEEP_TOKEN') },
    agent: { courseIndexPath: text('COURSE_INDEX_PATH') },
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

function logLevel(value: string | undefined): Settings['site']['logLevel'] {
  const level = value?.toLowerCase()
  return level === 'debug' || level === 'warn' || level === 'error' ? level : 'info'
}
