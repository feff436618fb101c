import type { Service } from '../service.ts'
import type { GroupName } from './settings.ts'

/** How a value is read; `values.ts` holds one parser for each. */
export type Kind =
  | 'text'
  | 'secret'
  | 'url'
  | 'dsn'
  | 'store-url'
  | 'smtp-url'
  | 'integer'
  | 'mailbox'
  | 'origins'
  | 'proxies'
  | 'log-level'
  | 'table'
  | 'price'
  | 'path'

export interface Variable {
  readonly name: string
  readonly group: GroupName
  readonly services: readonly Service[]
  readonly kind: Kind
  /** Never shown; a placeholder or a guessable value is warned of. */
  readonly secret: boolean
  readonly summary: string
  readonly example: string
  /** Bounds of an integer, both included. */
  readonly range?: readonly [number, number]
  /** Prefixes that a key of this kind starts with, by the mode it belongs to. */
  readonly prefixes?: { readonly live: readonly string[]; readonly test: readonly string[] }
  /** Takes two values separated by a comma while it is rotated (CONTRACT §9.4). */
  readonly rotates?: true
  /** An address that paths are put behind. */
  readonly base?: true
}

const ALL: readonly Service[] = ['web', 'api', 'agent']
const WEB: readonly Service[] = ['web']
const API: readonly Service[] = ['api']
const WEB_API: readonly Service[] = ['web', 'api']
const WEB_AGENT: readonly Service[] = ['web', 'agent']

type Row = readonly [
  name: string,
  services: readonly Service[],
  kind: Kind,
  example: string,
  summary: string,
  extra?: Partial<Pick<Variable, 'secret' | 'range' | 'prefixes' | 'rotates' | 'base'>>,
]

/** CONTRACT §2, row by row: everything that is made from the contract is made from this table. */
const ROWS: Readonly<Record<GroupName, readonly Row[]>> = {
  site: [
    [
      'NEXT_PUBLIC_SITE_URL',
      WEB,
      'url',
      'https://www.example.com',
      'Address of the web service as visitors see it: absolute links in pages and mails.',
      { base: true },
    ],
    [
      'NEXT_PUBLIC_API_URL',
      WEB,
      'url',
      'https://api.example.com',
      'Address of the API as browsers reach it.',
      { base: true },
    ],
    [
      'NEXT_PUBLIC_AGENT_URL',
      WEB,
      'url',
      'https://agent.example.com',
      'Address of the agent as browsers reach it.',
      { base: true },
    ],
    [
      'API_URL',
      WEB_AGENT,
      'url',
      'http://api.internal:8000',
      'Address of the API as the other services reach it.',
      { base: true },
    ],
    [
      'AGENT_URL',
      WEB,
      'url',
      'http://agent.internal:8100',
      'Address of the agent as the web service reaches it.',
      { base: true },
    ],
    [
      'BUILD_STAMP',
      ALL,
      'text',
      '2026-11-21.4f2c1d9',
      'Names the build in health bodies, logs and error reports.',
    ],
    [
      'LOG_LEVEL',
      ALL,
      'log-level',
      'info',
      'The least severe level that is logged: debug, info, warn or error.',
    ],
    [
      'TRUST_PROXY',
      ALL,
      'proxies',
      '10.0.0.0/8',
      'Addresses or ranges of the proxies in front, separated by commas: whose X-Forwarded-For is believed.',
    ],
    [
      'DEPLOY_ENVIRONMENT',
      ALL,
      'text',
      'production',
      'production, staging, preview or a name of your own: decides which keys look out of place.',
    ],
    [
      'CORS_ALLOWED_ORIGINS',
      ['api', 'agent'],
      'origins',
      'https://www.example.com',
      'Origins that may call from a browser, separated by commas. Never a wildcard.',
    ],
  ],
  store: [
    [
      'STORE_URL',
      ALL,
      'store-url',
      'postgres://platform@db.internal/platform',
      'Where subscriptions live: sqlite:PATH or postgres://….',
      { secret: true },
    ],
    [
      'STORE_POOL_SIZE',
      ALL,
      'integer',
      '10',
      'Connections to a PostgreSQL store that one process holds.',
      { range: [1, 200] },
    ],
    [
      'JOB_STORE_URL',
      API,
      'store-url',
      'postgres://jobs@db.internal/jobs',
      'Where the API keeps its jobs; the store when absent.',
      { secret: true },
    ],
  ],
  datastore: [
    [
      'NEXT_PUBLIC_DATASTORE_URL',
      WEB,
      'url',
      'https://data.example.com',
      'Address of the data store for accounts and saved work.',
    ],
    [
      'NEXT_PUBLIC_DATASTORE_ANON_KEY',
      WEB,
      'text',
      'anon-key-of-the-project',
      'Key of the data store that browsers may hold.',
    ],
    ['DATASTORE_SERVICE_ROLE_KEY', WEB, 'secret', '', 'Key of the data store that only servers may hold.'],
    ['DATASTORE_JWT_SECRET', WEB, 'secret', '', 'Verifies identities signed with HS256.', { rotates: true }],
    [
      'DATASTORE_JWKS_URL',
      WEB,
      'url',
      'https://data.example.com/.well-known/jwks.json',
      'Verifies identities by published keys.',
    ],
  ],
  payments: [
    [
      'PAYMENTS_SECRET_KEY',
      WEB,
      'secret',
      '',
      'Key of the payments API.',
      { prefixes: { live: ['sk_live_', 'rk_live_'], test: ['sk_test_', 'rk_test_'] } },
    ],
    [
      'NEXT_PUBLIC_PAYMENTS_PUBLISHABLE_KEY',
      WEB,
      'text',
      'pk_test_example',
      'Key of the payments API that browsers may hold.',
      { prefixes: { live: ['pk_live_'], test: ['pk_test_'] } },
    ],
    [
      'PAYMENTS_WEBHOOK_SECRET',
      WEB,
      'secret',
      '',
      'Verifies the signature of payment events.',
      { prefixes: { live: ['whsec_'], test: ['whsec_'] }, rotates: true },
    ],
    ['PAYMENTS_PRICE_PRO_MONTHLY', WEB, 'price', 'price_pro_monthly', 'Price id of the monthly pro plan.'],
    ['PAYMENTS_PRICE_PRO_YEARLY', WEB, 'price', 'price_pro_yearly', 'Price id of the yearly pro plan.'],
    ['PAYMENTS_PRICE_TEAM_MONTHLY', WEB, 'price', 'price_team_monthly', 'Price id of the monthly team plan.'],
    ['PAYMENTS_PRICE_TEAM_YEARLY', WEB, 'price', 'price_team_yearly', 'Price id of the yearly team plan.'],
    [
      'PAYMENTS_API_URL',
      WEB,
      'url',
      'https://payments.example.com',
      'Address of the payments API, where it is not the provider’s own.',
    ],
  ],
  models: [
    ['MODEL_A_API_KEY', WEB_AGENT, 'secret', '', 'Key of model provider A.'],
    ['MODEL_A_MODEL', WEB_AGENT, 'text', 'tutor-large', 'Model of provider A.'],
    ['MODEL_B_API_KEY', WEB_AGENT, 'secret', '', 'Key of model provider B.'],
    ['MODEL_B_MODEL', WEB_AGENT, 'text', 'tutor-medium', 'Model of provider B.'],
    ['MODEL_C_API_KEY', WEB_AGENT, 'secret', '', 'Key of model provider C.'],
    ['MODEL_C_MODEL', WEB_AGENT, 'text', 'tutor-small', 'Model of provider C.'],
    ['CLOUDMODEL_API_KEY', WEB_AGENT, 'secret', '', 'Key of the cloud model.'],
    [
      'CLOUDMODEL_API_ENDPOINT',
      WEB_AGENT,
      'url',
      'https://models.example.com',
      'Address of the cloud model.',
    ],
    ['CLOUDMODEL_API_DEPLOYMENT', WEB_AGENT, 'text', 'tutor', 'Deployment of the cloud model.'],
    ['CLOUDMODEL_API_VERSION', WEB_AGENT, 'text', '2026-06-01', 'Version of the cloud model’s API.'],
  ],
  hardware: [
    ['HARDWARE_A_TOKEN', API, 'secret', '', 'Token of hardware provider A.'],
    ['HARDWARE_A_INSTANCE', API, 'text', 'hub/group/project', 'Instance at hardware provider A.'],
    ['CLOUDB_ACCESS_KEY_ID', API, 'text', 'access-key-id', 'Access key of hardware provider B.'],
    ['CLOUDB_SECRET_ACCESS_KEY', API, 'secret', '', 'Secret of that access key.'],
    ['CLOUDB_REGION', API, 'text', 'eu-west-2', 'Region of hardware provider B.'],
    ['CLOUDB_RESULTS_BUCKET', API, 'text', 'quantum-results', 'Bucket for results of hardware provider B.'],
    [
      'CLOUDQPU_SUBSCRIPTION_ID',
      API,
      'text',
      '00000000-0000-0000-0000-000000000000',
      'Subscription of the cloud QPU.',
    ],
    ['CLOUDQPU_RESOURCE_GROUP', API, 'text', 'quantum', 'Resource group of the cloud QPU.'],
    ['CLOUDQPU_WORKSPACE', API, 'text', 'quantum-workspace', 'Workspace of the cloud QPU.'],
    ['CLOUDQPU_LOCATION', API, 'text', 'westeurope', 'Location of the cloud QPU.'],
    ['CLOUDQPU_TENANT_ID', API, 'text', '00000000-0000-0000-0000-000000000000', 'Tenant of the cloud QPU.'],
    ['CLOUDQPU_CLIENT_ID', API, 'text', '00000000-0000-0000-0000-000000000000', 'Client of the cloud QPU.'],
    ['CLOUDQPU_CLIENT_SECRET', API, 'secret', '', 'Secret of that client.'],
  ],
  sharedstore: [
    [
      'SHAREDSTORE_REST_URL',
      WEB_API,
      'url',
      'https://limits.example.com',
      'REST address of the shared rate-limit store.',
    ],
    ['SHAREDSTORE_REST_TOKEN', WEB_API, 'secret', '', 'Token of the shared rate-limit store.'],
  ],
  mail: [
    [
      'MAILER_API_KEY',
      WEB,
      'secret',
      '',
      'Key of the mail provider; the password when the SMTP address names a user without one.',
    ],
    [
      'MAILER_API_URL',
      WEB,
      'url',
      'https://mail.example.com/emails',
      'Address of the provider’s HTTP API. Either this or the SMTP address.',
    ],
    [
      'MAILER_SMTP_URL',
      WEB,
      'smtp-url',
      'smtps://apikey@smtp.example.com:465',
      'Address of the provider’s SMTP server. Either this or the API address.',
      { secret: true },
    ],
    ['MAILER_FROM', WEB, 'mailbox', 'Quantum Course <course@example.com>', 'The sender of every mail.'],
    ['MAILER_REPLY_TO', WEB, 'mailbox', 'help@example.com', 'Where answers go.'],
    [
      'EMAIL_DISPATCH_SECRET',
      WEB,
      'secret',
      '',
      'Bearer secret of the dispatch endpoint; without it nothing can call it.',
      { rotates: true },
    ],
    [
      'EMAIL_DISPATCH_LIMIT',
      WEB,
      'integer',
      '100',
      'How many lessons one dispatch call sends at most.',
      { range: [1, 10_000] },
    ],
    [
      'EMAIL_LINK_SECRET',
      WEB,
      'secret',
      '',
      'Signs unsubscribe links; a key made once and kept in the store when absent.',
      { rotates: true },
    ],
  ],
  errortrack: [
    [
      'NEXT_PUBLIC_ERRORTRACK_DSN',
      ALL,
      'dsn',
      'https://key@errors.example.com/1',
      'Where error reports go. Without it the SDK is never loaded.',
    ],
    ['ERRORTRACK_AUTH_TOKEN', ALL, 'secret', '', 'Uploads source maps at build time.'],
  ],
  analytics: [
    [
      'NEXT_PUBLIC_ANALYTICS_ENDPOINT',
      WEB,
      'url',
      'https://www.example.com/api/analytics',
      'Where browsers send aggregate events. Without it events stay on the device.',
    ],
    [
      'ANALYTICS_DATASTORE_TABLE',
      WEB,
      'table',
      'analytics_events',
      'Table that ingest writes to; needs a persistent store.',
    ],
  ],
  health: [
    [
      'HEALTH_DEEP_TOKEN',
      WEB,
      'secret',
      '',
      'Bearer token that gates deep health checks.',
      { rotates: true },
    ],
  ],
  agent: [['COURSE_INDEX_PATH', ['agent'], 'path', './course-index.json', 'Course index of your own.']],
  limits: [
    [
      'RATE_LIMIT_PER_MINUTE',
      WEB_API,
      'integer',
      '60',
      'Requests that one client may make in a minute.',
      { range: [1, 1_000_000] },
    ],
  ],
  identity: [
    [
      'DATASTORE_JWT_AUDIENCE',
      WEB,
      'text',
      'authenticated',
      'The audience (aud) that a token must name; any is accepted when absent.',
    ],
    [
      'DATASTORE_JWT_ISSUER',
      WEB,
      'text',
      'https://data.example.com/auth/v1',
      'The issuer (iss) that a token must name; any is accepted when absent.',
    ],
  ],
  budgets: [
    [
      'ANALYTICS_TOTAL_MB',
      WEB,
      'integer',
      '4096',
      'Megabytes of events that are kept; when they are used up, no more are stored until old ones expire.',
      { range: [1, 1_000_000] },
    ],
    [
      'ANALYTICS_DAILY_MB',
      WEB,
      'integer',
      '64',
      'Megabytes of events that are stored in a day (UTC); one client gets an eighth of them.',
      { range: [1, 1_000_000] },
    ],
    [
      'EMAIL_CONFIRMATIONS_PER_DAY',
      WEB,
      'integer',
      '10000',
      'Confirmations that the whole platform mails within 24 hours.',
      { range: [1, 10_000_000] },
    ],
    [
      'BODY_MEMORY_MB',
      ALL,
      'integer',
      '16',
      'Megabytes of request bodies that a process holds at once; one client gets an eighth of them.',
      { range: [4, 10_000] },
    ],
  ],
}

export const VARIABLES: readonly Variable[] = Object.entries(ROWS).flatMap(([group, rows]) =>
  rows.map(([name, services, kind, example, summary, extra]) => ({
    name,
    // Object.entries widens the key; ROWS is keyed by GroupName.
    group: group as GroupName,
    services,
    kind,
    secret: kind === 'secret',
    example,
    summary,
    ...extra,
  })),
)

const BY_NAME = new Map(VARIABLES.map((variable) => [variable.name, variable]))

export function findVariable(name: string): Variable | undefined {
  return BY_NAME.get(name)
}

/**
 * Variables that only adjust what another of their group switches on: set alone, the group is still absent, and its
 * absence means what it says.
 */
export const ADJUSTS: ReadonlySet<string> = new Set([
  'BUILD_STAMP',
  'LOG_LEVEL',
  'TRUST_PROXY',
  'DEPLOY_ENVIRONMENT',
  'STORE_POOL_SIZE',
  'JOB_STORE_URL',
  'PAYMENTS_API_URL',
  'EMAIL_DISPATCH_SECRET',
  'EMAIL_DISPATCH_LIMIT',
  'EMAIL_LINK_SECRET',
])

/** What a group unlocks, and what its absence means (CONTRACT §2). */
export const GROUP_MEANING: Readonly<
  Record<GroupName, { readonly unlocks: string; readonly absent: string }>
> = {
  site: {
    unlocks: 'absolute links, reachability checks, cross-origin callers',
    absent: 'localhost addresses; CORS stays at localhost',
  },
  store: {
    unlocks: 'a store that several machines share',
    absent: 'the daemon uses an SQLite file; an embedding program keeps subscriptions in memory',
  },
  datastore: {
    unlocks: 'accounts, cloud-saved circuits, organisations, exams, quotas',
    absent: 'everything stays in browser local storage',
  },
  payments: {
    unlocks: 'checkout, customer portal, subscriptions',
    absent: 'pricing renders; checkout says it is not configured',
  },
  models: { unlocks: 'live tutor tiers', absent: 'offline FAQ tier' },
  hardware: {
    unlocks: 'real quantum hardware',
    absent: 'devices are listed as unavailable, with the reason',
  },
  sharedstore: { unlocks: 'a shared rate-limit store', absent: 'rate limits count in this process only' },
  mail: {
    unlocks: 'transactional mail, the seven-day course',
    absent: 'mail is a no-op that reports sent: false',
  },
  errortrack: { unlocks: 'error reporting', absent: 'the reporting SDK is never loaded' },
  analytics: { unlocks: 'aggregate analytics', absent: 'events stay on the device' },
  health: { unlocks: 'a gate on deep checks', absent: 'deep checks are not gated' },
  agent: { unlocks: 'a course index of the agent’s own', absent: 'the bundled index' },
  limits: { unlocks: 'a threshold of your own', absent: 'the default thresholds' },
  identity: {
    unlocks: 'tokens held to one audience and one issuer',
    absent: 'tokens of any audience and issuer are accepted',
  },
  budgets: { unlocks: 'budgets of your own', absent: 'the default budgets' },
}
