import type { GroupName } from './settings.ts'

/** A rule over which variables of a group are present (CONTRACT §2, errors). */
export type Rule = {
  /** Stable id, explained by `platformctl env explain ID`. */
  readonly id: string
  readonly group: GroupName
  readonly cause: string
  readonly fix: string
} & (
  | { readonly kind: 'all-or-none'; readonly variables: readonly string[] }
  /** When all (or any) of `when` are present, every one of `needs` must be. */
  | {
      readonly kind: 'requires'
      readonly when: readonly string[]
      readonly match: 'any' | 'all'
      readonly needs: readonly string[]
    }
  | { readonly kind: 'at-least-one'; readonly when: readonly string[]; readonly of: readonly string[] }
  | { readonly kind: 'exclusive'; readonly variables: readonly string[] }
  | {
      readonly kind: 'forbidden-value'
      readonly variable: string
      readonly forbids: (value: string) => boolean
    }
)

const PRICES = [
  'PAYMENTS_PRICE_PRO_MONTHLY',
  'PAYMENTS_PRICE_PRO_YEARLY',
  'PAYMENTS_PRICE_TEAM_MONTHLY',
  'PAYMENTS_PRICE_TEAM_YEARLY',
]
const CLOUDQPU = [
  'SUBSCRIPTION_ID',
  'RESOURCE_GROUP',
  'WORKSPACE',
  'LOCATION',
  'TENANT_ID',
  'CLIENT_ID',
  'CLIENT_SECRET',
].map((part) => `CLOUDQPU_${part}`)

export const RULES: readonly Rule[] = [
  {
    id: 'datastore-pair',
    group: 'datastore',
    kind: 'all-or-none',
    variables: ['NEXT_PUBLIC_DATASTORE_URL', 'NEXT_PUBLIC_DATASTORE_ANON_KEY'],
    cause: 'The data store’s address and its anon key work only together.',
    fix: 'Set both, or neither to keep everything in browser local storage.',
  },
  {
    id: 'datastore-without-url',
    group: 'datastore',
    kind: 'requires',
    when: ['DATASTORE_SERVICE_ROLE_KEY', 'DATASTORE_JWT_SECRET', 'DATASTORE_JWKS_URL'],
    match: 'any',
    needs: ['NEXT_PUBLIC_DATASTORE_URL'],
    cause: 'A credential of the data store is set, but not its address.',
    fix: 'Set NEXT_PUBLIC_DATASTORE_URL, or remove the credentials.',
  },
  {
    id: 'datastore-two-verifiers',
    group: 'datastore',
    kind: 'exclusive',
    variables: ['DATASTORE_JWT_SECRET', 'DATASTORE_JWKS_URL'],
    cause: 'Identities can be verified by a shared secret or by published keys, and both are set.',
    fix: 'Keep the one that your data store signs with, and remove the other.',
  },
  {
    id: 'payments-without-price',
    group: 'payments',
    kind: 'at-least-one',
    when: ['PAYMENTS_SECRET_KEY'],
    of: PRICES,
    cause: 'Payments have a secret key, but nothing to sell.',
    fix: 'Set at least one price id, or remove the key.',
  },
  {
    id: 'payments-without-webhook',
    group: 'payments',
    kind: 'requires',
    when: ['PAYMENTS_SECRET_KEY'],
    match: 'any',
    needs: ['PAYMENTS_WEBHOOK_SECRET'],
    cause: 'Payments have a secret key, but their events could not be verified.',
    fix: 'Set PAYMENTS_WEBHOOK_SECRET from the provider’s webhook settings.',
  },
  {
    id: 'payments-without-key',
    group: 'payments',
    kind: 'requires',
    when: [...PRICES, 'PAYMENTS_WEBHOOK_SECRET', 'NEXT_PUBLIC_PAYMENTS_PUBLISHABLE_KEY'],
    match: 'any',
    needs: ['PAYMENTS_SECRET_KEY'],
    cause: 'Payments are partly set up, but without their secret key checkout cannot work.',
    fix: 'Set PAYMENTS_SECRET_KEY, or remove the rest.',
  },
  {
    id: 'cloudmodel-trio',
    group: 'models',
    kind: 'all-or-none',
    variables: ['CLOUDMODEL_API_KEY', 'CLOUDMODEL_API_ENDPOINT', 'CLOUDMODEL_API_DEPLOYMENT'],
    cause: 'The cloud model needs its key, endpoint and deployment together.',
    fix: 'Set all three, or none.',
  },
  {
    id: 'cloudmodel-version-without-key',
    group: 'models',
    kind: 'requires',
    when: ['CLOUDMODEL_API_VERSION'],
    match: 'any',
    needs: ['CLOUDMODEL_API_KEY'],
    cause: 'A version of the cloud model’s API is set, but not its key.',
    fix: 'Set CLOUDMODEL_API_KEY, or remove the version.',
  },
  ...(['A', 'B', 'C'] as const).map(
    (letter): Rule => ({
      id: `model-${letter.toLowerCase()}-without-key`,
      group: 'models',
      kind: 'requires',
      when: [`MODEL_${letter}_MODEL`],
      match: 'any',
      needs: [`MODEL_${letter}_API_KEY`],
      cause: `Model ${letter} is named, but its key is not set.`,
      fix: `Set MODEL_${letter}_API_KEY, or remove MODEL_${letter}_MODEL.`,
    }),
  ),
  {
    id: 'hardware-a-pair',
    group: 'hardware',
    kind: 'all-or-none',
    variables: ['HARDWARE_A_TOKEN', 'HARDWARE_A_INSTANCE'],
    cause: 'Hardware provider A needs its token and its instance together.',
    fix: 'Set both, or neither to list its devices as unavailable.',
  },
  {
    id: 'cloudb-pair',
    group: 'hardware',
    kind: 'all-or-none',
    variables: ['CLOUDB_ACCESS_KEY_ID', 'CLOUDB_SECRET_ACCESS_KEY'],
    cause: 'An access key of hardware provider B works only with its secret.',
    fix: 'Set both, or neither.',
  },
  {
    id: 'cloudb-without-credentials',
    group: 'hardware',
    kind: 'requires',
    when: ['CLOUDB_REGION', 'CLOUDB_RESULTS_BUCKET'],
    match: 'any',
    needs: ['CLOUDB_ACCESS_KEY_ID', 'CLOUDB_SECRET_ACCESS_KEY'],
    cause: 'A region or bucket of hardware provider B is set, but not its access key and secret.',
    fix: 'Set CLOUDB_ACCESS_KEY_ID and CLOUDB_SECRET_ACCESS_KEY, or remove the region and bucket.',
  },
  {
    id: 'cloudb-without-region',
    group: 'hardware',
    kind: 'requires',
    when: ['CLOUDB_ACCESS_KEY_ID', 'CLOUDB_SECRET_ACCESS_KEY'],
    match: 'all',
    needs: ['CLOUDB_REGION'],
    cause: 'Hardware provider B has credentials, but no region.',
    fix: 'Set CLOUDB_REGION.',
  },
  {
    id: 'cloudqpu-all',
    group: 'hardware',
    kind: 'all-or-none',
    variables: CLOUDQPU,
    cause: 'The cloud QPU needs all seven of its variables together.',
    fix: 'Set the missing ones, or remove the others.',
  },
  {
    id: 'sharedstore-pair',
    group: 'sharedstore',
    kind: 'all-or-none',
    variables: ['SHAREDSTORE_REST_URL', 'SHAREDSTORE_REST_TOKEN'],
    cause: 'The shared rate-limit store needs its address and its token together.',
    fix: 'Set both, or neither to count in this process only.',
  },
  {
    id: 'mail-without-sender',
    group: 'mail',
    kind: 'requires',
    when: ['MAILER_API_KEY'],
    match: 'any',
    needs: ['MAILER_FROM'],
    cause: 'Mail has a key, but no sender address.',
    fix: 'Set MAILER_FROM to an address that your provider lets you send from.',
  },
  {
    id: 'mail-without-route',
    group: 'mail',
    kind: 'at-least-one',
    when: ['MAILER_API_KEY'],
    of: ['MAILER_API_URL', 'MAILER_SMTP_URL'],
    cause: 'Mail has a key, but neither an API nor an SMTP address to send through.',
    fix: 'Set MAILER_API_URL or MAILER_SMTP_URL.',
  },
  {
    id: 'mail-without-key',
    group: 'mail',
    kind: 'requires',
    when: ['MAILER_FROM', 'MAILER_REPLY_TO', 'MAILER_API_URL', 'MAILER_SMTP_URL'],
    match: 'any',
    needs: ['MAILER_API_KEY'],
    cause: 'Mail is partly set up, but without its key nothing is sent.',
    fix: 'Set MAILER_API_KEY, or remove the rest.',
  },
  {
    id: 'mail-two-routes',
    group: 'mail',
    kind: 'exclusive',
    variables: ['MAILER_API_URL', 'MAILER_SMTP_URL'],
    cause: 'Mail goes through an API or through SMTP, and both addresses are set.',
    fix: 'Keep one of the two.',
  },
  {
    id: 'errortrack-without-dsn',
    group: 'errortrack',
    kind: 'requires',
    when: ['ERRORTRACK_AUTH_TOKEN'],
    match: 'any',
    needs: ['NEXT_PUBLIC_ERRORTRACK_DSN'],
    cause: 'Error reporting has an auth token, but no DSN to report to.',
    fix: 'Set NEXT_PUBLIC_ERRORTRACK_DSN, or remove the token.',
  },
  {
    id: 'analytics-without-store',
    group: 'analytics',
    kind: 'requires',
    when: ['ANALYTICS_DATASTORE_TABLE'],
    match: 'any',
    needs: ['STORE_URL'],
    cause: 'Analytics name a table, but there is no persistent store to hold it.',
    fix: 'Set STORE_URL (sqlite:PATH or postgres://…), or remove ANALYTICS_DATASTORE_TABLE.',
  },
  ...(['AUDIENCE', 'ISSUER'] as const).map(
    (claim): Rule => ({
      id: `identity-${claim.toLowerCase()}-without-verifier`,
      group: 'identity',
      kind: 'at-least-one',
      when: [`DATASTORE_JWT_${claim}`],
      of: ['DATASTORE_JWT_SECRET', 'DATASTORE_JWKS_URL'],
      cause: `Tokens are held to an ${claim.toLowerCase()}, but nothing verifies them.`,
      fix: `Set DATASTORE_JWT_SECRET or DATASTORE_JWKS_URL, or remove DATASTORE_JWT_${claim}.`,
    }),
  ),
  {
    id: 'cors-wildcard',
    group: 'site',
    kind: 'forbidden-value',
    variable: 'CORS_ALLOWED_ORIGINS',
    forbids: (value) => value.includes('*'),
    cause: 'CORS_ALLOWED_ORIGINS holds a wildcard, which would let any site call with a visitor’s identity.',
    fix: 'List the origins one by one, separated by commas.',
  },
]
