import { dkimPrivateKey, KEY_RULES } from '../webhook-key.ts'
import type { GroupDefinition, RuleCondition, VariableDefinition } from './definition.ts'
import type { StandardSchema } from './kinds.ts'

const privateRsaKey: StandardSchema = {
  '~standard': {
    version: 1,
    vendor: 'platformctl',
    validate: (value) =>
      dkimPrivateKey(String(value)) === undefined
        ? { issues: [{ message: 'is not a private RSA key of at least 1024 bits, as PEM' }] }
        : { value },
  },
}

export const text = (example: string, summary: string) => ({ kind: 'text', example, summary }) as const
export const url = (example: string, summary: string) => ({ kind: 'url', example, summary }) as const
/** The address is a secret itself. */
const secretUrl = (example: string, summary: string) => ({ ...url(example, summary), secret: true }) as const
export const secret = (summary: string) => ({ kind: 'secret', summary }) as const
const bearer = (summary: string) => ({ ...secret(summary), bearer: true }) as const
/** A secret that operators make and rotate themselves. */
const chosen = (summary: string) => ({ ...secret(summary), chosen: true, rotates: true }) as const
const integer = (range: readonly [number, number], example: string, summary: string) =>
  ({ kind: 'integer', range, example, summary }) as const
const price = (plan: string, each: string) =>
  ({
    kind: 'price',
    example: `price_${plan}_${each}`,
    summary: `Price id of the ${each} ${plan} plan.`,
  }) as const
const prices = {
  PAYMENTS_PRICE_PRO_MONTHLY: price('pro', 'monthly'),
  PAYMENTS_PRICE_PRO_YEARLY: price('pro', 'yearly'),
  PAYMENTS_PRICE_TEAM_MONTHLY: price('team', 'monthly'),
  PAYMENTS_PRICE_TEAM_YEARLY: price('team', 'yearly'),
}

/** An SMTP address that names a user, or none: without a user, a relay takes mail without a key. */
const NO_OPEN_RELAY = /^\s*$|^smtps?:\/\/(?!:)[^/?#]+@/i

const WITHOUT_CHAT = /^(?!.*[?&]chat_id=[-@\w])/
const TELEGRAM_WITHOUT_CHAT = new RegExp(`${WITHOUT_CHAT.source}https?://api\\.telegram\\.org(?:[/:?]|$)`)
const PAGERDUTY_WITHOUT_KEY = /^(?!.*[?&]routing_key=\w)https?:\/\/events\.(?:eu\.)?pagerduty\.com(?:[/:?]|$)/
/** Refuses an address of Telegram without a chat. */
const noChat = (id: string, forbidden: string, value: RegExp, where?: RuleCondition) => ({
  id,
  forbidden,
  value,
  ...(where && { where }),
  cause: 'Telegram needs a chat: the address names none, so no alert would arrive.',
  fix: 'Set the address to https://api.telegram.org/botTOKEN/sendMessage?chat_id=CHAT.',
})
/** Refuses PagerDuty while ALERT_WEBHOOK_SECRET is one of these, or absent. */
const noRoutingKey = (
  id: string,
  forbidden: string,
  value: string | RegExp,
  of: RuleCondition['of'] = [''],
) => ({
  id,
  forbidden,
  value,
  where: { variable: 'ALERT_WEBHOOK_SECRET', of },
  cause: 'PagerDuty needs the routing key of a service, so no alert would arrive.',
  fix: 'Set ALERT_WEBHOOK_SECRET to the integration key of an Events API v2 integration, or add routing_key=KEY to the address.',
})

/** Refuses a claim while nothing verifies tokens. */
const noVerifier = (variable: string, claim: string) => ({
  id: `identity-${claim}-without-verifier`,
  atLeastOne: ['DATASTORE_JWT_SECRET', 'DATASTORE_JWKS_URL'],
  when: [variable],
  cause: `Tokens are held to an ${claim}, but nothing verifies them.`,
})

/**
 * Secrets of 24 characters or more: a single one needs no name, and several need one each, no two the same. The form
 * comes first, because comparing names takes long.
 */
const WITNESSES =
  /[!-+\--9;-~]{24,200}|(?=[a-z0-9-]{1,32}:[!-+\--9;-~]{24,200}(?:,\s*[a-z0-9-]{1,32}:[!-+\--9;-~]{24,200})*\s*$)(?!(?:.*,\s*)?([a-z0-9-]+:).*,\s*\1).*/

export const baseGroups = {
  site: {
    services: ['web'],
    unlocks: 'absolute links, reachability checks, cross-origin callers',
    absent: 'localhost addresses; CORS stays at localhost',
    variables: {
      NEXT_PUBLIC_SITE_URL: {
        kind: 'url',
        base: true,
        summary: 'Address of the web service as visitors see it: absolute links in pages and mails.',
      },
      BUILD_STAMP: {
        ...text('2026-11-21.4f2c1d9', 'Names the build in health bodies, logs and error reports.'),
        services: 'all',
        adjusts: true,
        perReplica: true,
      },
      LOG_LEVEL: {
        kind: 'log-level',
        services: 'all',
        adjusts: true,
        summary: 'The least severe level that is logged: debug, info, warn or error.',
      },
      TRUST_PROXY: {
        kind: 'proxies',
        services: 'all',
        adjusts: true,
        summary:
          'Addresses or ranges of the proxies in front, separated by commas: whose X-Forwarded-For is believed.',
      },
      DEPLOY_ENVIRONMENT: {
        kind: 'text',
        services: 'all',
        adjusts: true,
        example: 'production',
        summary: 'production, staging or another name: a key of the wrong mode (test, live) is a warning.',
      },
      CORS_ALLOWED_ORIGINS: {
        kind: 'origins',
        services: 'all',
        summary:
          'Origins that may call from a browser, at web to subscribe and to send events; separated by commas. Never a wildcard.',
      },
    },
    rules: [
      {
        id: 'cors-wildcard',
        forbidden: 'CORS_ALLOWED_ORIGINS',
        value: /\*/,
        cause:
          'CORS_ALLOWED_ORIGINS holds a wildcard, which would let any site call with a visitor’s identity.',
        fix: 'List the origins one by one, separated by commas.',
      },
    ],
  },
  store: {
    services: 'all',
    unlocks: 'a store that several machines share',
    absent: 'the daemon uses an SQLite file; an embedding program keeps subscriptions in memory',
    variables: {
      STORE_URL: {
        kind: 'store-url',
        example: 'postgres://platform@db.internal/platform',
        summary: 'Where subscriptions live: sqlite:PATH or postgres://….',
      },
      STORE_POOL_SIZE: {
        ...integer([1, 200], '10', 'Connections to a PostgreSQL store that one process holds.'),
        adjusts: true,
      },
    },
  },
  datastore: {
    services: ['web'],
    unlocks: 'accounts: a request says who sent it',
    absent: 'nobody can sign in',
    visitors: 'Accounts are off: nobody can sign in.',
    variables: {
      NEXT_PUBLIC_DATASTORE_URL: url(
        'https://data.example.com',
        'Address of the data store for accounts and saved work.',
      ),
      NEXT_PUBLIC_DATASTORE_ANON_KEY: text(
        'anon-key-of-the-project',
        'Key of the data store that browsers may hold.',
      ),
      DATASTORE_SERVICE_ROLE_KEY: bearer('Key of the data store that only servers may hold.'),
      DATASTORE_JWT_SECRET: chosen('Verifies identities signed with HS256.'),
      DATASTORE_JWKS_URL: url(
        'https://data.example.com/.well-known/jwks.json',
        'Verifies identities by published keys.',
      ),
    },
    rules: [
      {
        id: 'datastore-pair',
        allOrNone: ['NEXT_PUBLIC_DATASTORE_URL', 'NEXT_PUBLIC_DATASTORE_ANON_KEY'],
        cause: 'The data store’s address and its anon key work only together.',
      },
      {
        id: 'datastore-without-url',
        requires: ['NEXT_PUBLIC_DATASTORE_URL'],
        when: ['DATASTORE_SERVICE_ROLE_KEY', 'DATASTORE_JWT_SECRET', 'DATASTORE_JWKS_URL'],
        cause: 'A credential of the data store is set, but not its address.',
        fix: 'Set NEXT_PUBLIC_DATASTORE_URL, or remove the credentials.',
      },
      {
        id: 'datastore-two-verifiers',
        exclusive: ['DATASTORE_JWT_SECRET', 'DATASTORE_JWKS_URL'],
        cause: 'Identities can be verified by a shared secret or by published keys, and both are set.',
        fix: 'Keep the one that your data store signs with, and remove the other.',
      },
    ],
  },
  payments: {
    services: ['web'],
    unlocks: 'checkout, customer portal, subscriptions',
    absent: 'pricing renders; checkout says it is not configured',
    visitors: 'Payments are off: nothing can be bought.',
    variables: {
      PAYMENTS_SECRET_KEY: {
        ...bearer('Key of the payments API.'),
        prefixes: { live: ['sk_live_', 'rk_live_'], test: ['sk_test_', 'rk_test_'] },
      },
      NEXT_PUBLIC_PAYMENTS_PUBLISHABLE_KEY: {
        ...text('pk_test_example', 'Key of the payments API that browsers may hold.'),
        prefixes: { live: ['pk_live_'], test: ['pk_test_'] },
      },
      PAYMENTS_WEBHOOK_SECRET: {
        ...secret('Verifies the signature of payment events.'),
        rotates: true,
        prefixes: { live: ['whsec_'], test: ['whsec_'] },
      },
      ...prices,
      PAYMENTS_API_URL: {
        kind: 'url',
        adjusts: true,
        example: 'https://payments.example.com',
        summary: 'Address of the payments API, where it is not the provider’s own.',
      },
    },
    rules: [
      {
        id: 'payments-without-price',
        atLeastOne: Object.keys(prices),
        when: ['PAYMENTS_SECRET_KEY'],
        cause: 'Payments have a secret key, but nothing to sell.',
        fix: 'Set at least one price id, or remove the key.',
      },
      {
        id: 'payments-without-webhook',
        requires: ['PAYMENTS_WEBHOOK_SECRET'],
        when: ['PAYMENTS_SECRET_KEY'],
        cause: 'Payments have a secret key, but their events could not be verified.',
        fix: 'Set PAYMENTS_WEBHOOK_SECRET from the provider’s webhook settings.',
      },
      {
        id: 'payments-without-key',
        requires: ['PAYMENTS_SECRET_KEY'],
        when: [...Object.keys(prices), 'PAYMENTS_WEBHOOK_SECRET', 'NEXT_PUBLIC_PAYMENTS_PUBLISHABLE_KEY'],
        cause: 'Payments are partly set up, but without their secret key checkout cannot work.',
        fix: 'Set PAYMENTS_SECRET_KEY, or remove the rest.',
      },
    ],
  },
  sharedstore: {
    services: 'all',
    unlocks: 'a shared rate-limit store',
    absent: 'rate limits count in this process only',
    variables: {
      SHAREDSTORE_REST_URL: url(
        'https://limits.example.com',
        'Address of a Redis with an HTTP API, such as Upstash’s: processes then count together.',
      ),
      SHAREDSTORE_REST_TOKEN: bearer('Its token.'),
    },
    rules: [
      {
        id: 'sharedstore-pair',
        allOrNone: ['SHAREDSTORE_REST_URL', 'SHAREDSTORE_REST_TOKEN'],
        cause: 'The shared rate-limit store needs its address and its token together.',
        fix: 'Set both, or neither to count in this process only.',
      },
    ],
  },
  mail: {
    services: ['web'],
    unlocks: 'transactional mail, courses by mail',
    absent: 'no mail is sent; programs get sent: false and the reason',
    visitors: 'Mail is off: no messages are sent.',
    variables: {
      MAILER_API_KEY: secret(
        'Key of the mail provider; the password when the SMTP address names a user without one; ID:SECRET of an access key for SES.',
      ),
      MAILER_API_URL: url(
        'https://mail.example.com/emails',
        'Address of the provider’s HTTP API. Either this or the SMTP address.',
      ),
      MAILER_SMTP_URL: {
        kind: 'smtp-url',
        example: 'smtps://apikey@smtp.example.com:465',
        summary: 'Address of the provider’s SMTP server. Either this or the API address.',
      },
      MAILER_FROM: { kind: 'mailbox', example: 'Team <team@example.com>', summary: 'Sender of every mail.' },
      MAILER_REPLY_TO: { kind: 'mailbox', example: 'help@example.com', summary: 'Where answers go.' },
      EMAIL_DISPATCH_SECRET: {
        ...chosen('Bearer secret of the dispatch endpoint; without it nothing can call it.'),
        adjusts: true,
        bearer: true,
      },
      EMAIL_DISPATCH_LIMIT: {
        kind: 'integer',
        adjusts: true,
        range: [1, 10000],
        example: '100',
        summary:
          'How many lessons one dispatch call sends at most. The daemon itself sends all that are due.',
      },
      EMAIL_LINK_SECRET: {
        ...chosen('Signs unsubscribe links. Default: a key made once and kept in the store.'),
        adjusts: true,
      },
    },
    rules: [
      {
        id: 'mail-without-sender',
        requires: ['MAILER_FROM'],
        when: ['MAILER_API_KEY', 'MAILER_SMTP_URL'],
        fix: 'Set MAILER_FROM to an address that your provider lets you send from.',
        cause: 'Mail has a key or a mail server, but no sender address.',
      },
      {
        id: 'mail-without-route',
        atLeastOne: ['MAILER_API_URL', 'MAILER_SMTP_URL', 'MAILER_PROVIDER'],
        when: ['MAILER_API_KEY'],
        cause: 'Mail has a key, but neither an API nor an SMTP address to send through.',
      },
      {
        id: 'mail-without-key',
        requires: ['MAILER_API_KEY'],
        when: ['MAILER_FROM', 'MAILER_REPLY_TO', 'MAILER_API_URL', 'MAILER_SMTP_URL', 'MAILER_PROVIDER'],
        where: { variable: 'MAILER_SMTP_URL', of: NO_OPEN_RELAY },
        cause: 'Mail is partly set up, but without its key nothing is sent.',
        fix: 'Set MAILER_API_KEY (over SMTP, the user’s password), use a MAILER_SMTP_URL without a user, or remove the rest.',
      },
      {
        id: 'mail-provider-without-server',
        requires: ['MAILER_SMTP_URL'],
        when: ['MAILER_PROVIDER'],
        where: { variable: 'MAILER_PROVIDER', of: ['smtp'] },
        cause: 'MAILER_PROVIDER is smtp, and no mail server is set.',
      },
      {
        id: 'mail-provider-without-region',
        requires: ['MAILER_API_URL'],
        when: ['MAILER_PROVIDER'],
        where: { variable: 'MAILER_PROVIDER', of: ['ses'] },
        cause: 'MAILER_PROVIDER is ses, and no address says which region to send from.',
        fix: 'Set MAILER_API_URL, as in https://email.eu-central-1.amazonaws.com.',
      },
      {
        id: 'mail-provider-other-server',
        forbidden: 'MAILER_SMTP_URL',
        value: /./,
        where: { variable: 'MAILER_PROVIDER', of: ['resend', 'postmark', 'ses'] },
        cause: 'MAILER_PROVIDER names an API, and MAILER_SMTP_URL a mail server.',
        fix: 'Set MAILER_PROVIDER to smtp, or remove MAILER_SMTP_URL.',
      },
      {
        id: 'mail-ses-key',
        forbidden: 'MAILER_API_KEY',
        value: /^(?![^\s:]+:[^\s:]+$)/,
        where: { variable: 'MAILER_PROVIDER', of: ['ses'] },
        cause: 'MAILER_API_KEY is not the access key of Amazon’s API: every message would be refused.',
        fix: 'Set it to ID:SECRET, the access key’s id and secret with a colon between them.',
      },
      {
        id: 'mail-two-routes',
        exclusive: ['MAILER_API_URL', 'MAILER_SMTP_URL'],
        cause: 'Mail goes through an API or through SMTP, and both addresses are set.',
      },
    ],
  },
  mailer: {
    services: ['web'],
    unlocks: 'mail through the API of Postmark or Amazon SES',
    absent: 'the addresses decide: SMTP, or an API that takes Resend’s requests',
    variables: {
      MAILER_PROVIDER: {
        kind: 'enum',
        of: ['smtp', 'resend', 'postmark', 'ses'],
        example: 'postmark',
        summary:
          'Who carries mail. resend and postmark need MAILER_API_URL only for another address than their own, ses for its region.',
      },
    },
  },
  errortrack: {
    services: 'all',
    unlocks: 'error reporting',
    absent: 'the reporting SDK is never loaded',
    variables: {
      NEXT_PUBLIC_ERRORTRACK_DSN: {
        kind: 'dsn',
        summary: 'Where error reports go. Without it the SDK is never loaded.',
      },
      ERRORTRACK_AUTH_TOKEN: secret('Uploads source maps at build time.'),
    },
    rules: [
      {
        id: 'errortrack-without-dsn',
        requires: ['NEXT_PUBLIC_ERRORTRACK_DSN'],
        when: ['ERRORTRACK_AUTH_TOKEN'],
        cause: 'Error reporting has an auth token, but no DSN to report to.',
      },
    ],
  },
  analytics: {
    services: ['web'],
    unlocks: 'aggregate analytics',
    absent: 'events stay on the device',
    visitors: 'Analytics is off: your activity stays on your device.',
    variables: {
      NEXT_PUBLIC_ANALYTICS_ENDPOINT: url(
        'https://www.example.com/api/analytics',
        'Where browsers send aggregate events. Without it events stay on the device.',
      ),
      ANALYTICS_DATASTORE_TABLE: {
        kind: 'table',
        example: 'analytics_events',
        summary: 'Table that ingest writes to; needs a persistent store.',
      },
    },
    rules: [
      {
        id: 'analytics-without-store',
        requires: ['STORE_URL'],
        when: ['ANALYTICS_DATASTORE_TABLE'],
        cause: 'Analytics name a table, but there is no persistent store to hold it.',
        fix: 'Set STORE_URL (sqlite:PATH or postgres://…), or remove ANALYTICS_DATASTORE_TABLE.',
      },
    ],
  },
  health: {
    services: ['web'],
    unlocks: 'a token for deep checks',
    absent: 'anybody can run deep checks',
    variables: {
      HEALTH_DEEP_TOKEN: { ...chosen('Bearer token that gates deep health checks.'), bearer: true },
    },
  },
  limits: {
    services: 'all',
    unlocks: 'your own thresholds',
    absent: 'the default thresholds',
    variables: {
      RATE_LIMIT_PER_MINUTE: integer([1, 1000000], '60', 'Requests that one client may make in a minute.'),
    },
  },
  identity: {
    services: ['web'],
    unlocks: 'a check of the audience and issuer of tokens',
    absent: 'tokens of any audience and issuer are accepted',
    variables: {
      DATASTORE_JWT_AUDIENCE: text(
        'authenticated',
        'The audience (aud) that a token must name; any is accepted when absent.',
      ),
      DATASTORE_JWT_ISSUER: text(
        'https://data.example.com/auth/v1',
        'The issuer (iss) that a token must name; any is accepted when absent.',
      ),
    },
    rules: [noVerifier('DATASTORE_JWT_AUDIENCE', 'audience'), noVerifier('DATASTORE_JWT_ISSUER', 'issuer')],
  },
  budgets: {
    services: ['web'],
    unlocks: 'your own budgets',
    absent: 'the default budgets',
    variables: {
      ANALYTICS_TOTAL_MB: integer(
        [1, 1_000_000],
        '4096',
        'Megabytes of events that are kept; when they are used up, no more are stored until old ones expire.',
      ),
      ANALYTICS_DAILY_MB: integer(
        [1, 1_000_000],
        '64',
        'Megabytes of events that are stored in a day (UTC); one client gets an eighth of them.',
      ),
      EMAIL_CONFIRMATIONS_PER_DAY: integer(
        [1, 10_000_000],
        '10000',
        'Confirmations that the whole platform mails within 24 hours.',
      ),
      BODY_MEMORY_MB: {
        kind: 'integer',
        services: 'all',
        example: '16',
        range: [4, 10_000],
        summary:
          'Megabytes of request bodies that a process holds at once; one client gets an eighth of them.',
      },
    },
  },
  feedback: {
    services: ['web'],
    unlocks: 'an automatic end of subscriptions after bounces and complaints',
    absent: 'bounces and complaints are ignored, unless platformctl email feedback reads them from a pipe',
    variables: {
      MAILER_FEEDBACK_PROVIDER: {
        kind: 'enum',
        of: ['ses', 'postmark', 'sendgrid', 'mailgun', 'resend', 'standard'],
        example: 'postmark',
        summary: 'Whose webhook calls POST /api/email/feedback/PROVIDER with bounces and complaints.',
      },
      MAILER_RATE: {
        kind: 'number',
        range: [0.2, 10_000],
        adjusts: true,
        example: '14',
        summary:
          'How many lessons and incident mails all dispatchers of one store send in a second. Other mail counts too, but does not wait.',
      },
      MAILER_BOUNCE_ADDRESS: {
        kind: 'email',
        adjusts: true,
        pattern: '[^@]{1,37}@.+',
        example: 'bounce@example.com',
        summary:
          'Envelope sender of mail sent by SMTP, with a token added after a plus sign. Pipe what comes back into platformctl email feedback.',
      },
      MAILER_FEEDBACK_SECRET: {
        kind: 'secret',
        rotates: true,
        summary:
          'What the webhook is verified with: for standard and resend the base64 of at least 24 bytes, with or without whsec_; for sendgrid the public key in base64, for mailgun the signing key, for postmark the password in the webhook’s URL, for ses the ARN of the topic.',
      },
    },
    rules: [
      {
        id: 'feedback-pair',
        allOrNone: ['MAILER_FEEDBACK_PROVIDER', 'MAILER_FEEDBACK_SECRET'],
        cause: 'Feedback of the mail provider needs its name and its secret together.',
        fix: 'Set both, or neither to ignore the provider’s reports.',
      },
      {
        ...KEY_RULES.signing,
        forbidden: 'MAILER_FEEDBACK_SECRET',
        where: { variable: 'MAILER_FEEDBACK_PROVIDER', of: ['standard', 'resend'] },
        cause:
          'MAILER_FEEDBACK_SECRET is not a key that webhooks can be verified with: anybody could forge them.',
        fix: 'Set it to base64 of at least 24 bytes, with or without whsec_ before it: the provider’s signing secret, or one of your own from openssl rand -base64 32.',
      },
      {
        ...KEY_RULES.public,
        forbidden: 'MAILER_FEEDBACK_SECRET',
        where: { variable: 'MAILER_FEEDBACK_PROVIDER', of: ['sendgrid'] },
        cause: 'MAILER_FEEDBACK_SECRET is not a public key, so every webhook of SendGrid would be refused.',
        fix: 'Set it to the verification key, in base64, that the settings of the signed event webhook show.',
      },
    ],
  },
  dkim: {
    services: ['web'],
    unlocks: 'DKIM signatures on mail that goes by SMTP',
    absent: 'the mail server signs, or nobody does',
    variables: {
      MAILER_DKIM_DOMAIN: {
        kind: 'host',
        example: 'example.com',
        summary: 'The domain to sign for: that of MAILER_FROM, or one above it.',
      },
      MAILER_DKIM_SELECTOR: {
        ...text('s2026', 'The name of the key: its DNS record is at SELECTOR._domainkey.DOMAIN.'),
        pattern: '[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?',
      },
      MAILER_DKIM_KEY: {
        ...secret('The private RSA key as PEM; on one line, write its line ends as \\n.'),
        schema: privateRsaKey,
      },
    },
    rules: [
      {
        id: 'dkim-all',
        allOrNone: ['MAILER_DKIM_DOMAIN', 'MAILER_DKIM_SELECTOR', 'MAILER_DKIM_KEY'],
        cause: 'DKIM needs its domain, its selector and its key together.',
        fix: 'Set all three, or none to leave signing to the mail server.',
      },
    ],
  },
  alerts: {
    services: 'all',
    unlocks: 'messages to you when something fails',
    absent: 'no alerts are sent; incidents show on the status page',
    variables: {
      ALERT_WEBHOOK_URL: secretUrl(
        'https://hooks.slack.com/services/T000/B000/XXXX',
        'Where alerts are posted. The address of Slack, Discord, Teams, Telegram (with chat_id), ntfy or PagerDuty decides the format; any other gets Standard Webhooks.',
      ),
      ALERT_WEBHOOK_FORMAT: {
        kind: 'enum',
        of: ['json', 'slack', 'discord', 'teams', 'telegram', 'ntfy', 'pagerduty'],
        adjusts: true,
        example: 'slack',
        summary: 'The format of alerts, if the address does not tell; json is Standard Webhooks.',
      },
      ALERT_WEBHOOK_SECRET: {
        kind: 'secret',
        chosen: true,
        summary:
          'Signs alerts as Standard Webhooks: whsec_ and the base64 of at least 24 bytes, or any text. For PagerDuty, the routing key.',
      },
      ALERT_ESCALATION_URL: secretUrl(
        'https://events.pagerduty.com/v2/enqueue',
        'A second webhook, for incidents that nobody acknowledges. Its address decides the format; ALERT_WEBHOOK_SECRET signs for it too, or routing_key in the address is the key of PagerDuty.',
      ),
      ALERT_ESCALATION_AFTER: {
        kind: 'duration',
        range: [1000, 86_400_000],
        adjusts: true,
        example: '15m',
        summary:
          'How long an incident waits for somebody to acknowledge it before it escalates; 15m if unset.',
      },
      ALERT_EMAIL_TO: {
        kind: 'email',
        example: 'ops@example.com',
        summary: 'Who gets alerts by mail, through the platform’s own mailer.',
      },
    },
    rules: [
      {
        id: 'alerts-secret-without-webhook',
        when: ['ALERT_WEBHOOK_SECRET'],
        atLeastOne: ['ALERT_WEBHOOK_URL', 'ALERT_ESCALATION_URL'],
        cause: 'Alerts have a signing secret, but no webhook to sign for.',
        fix: 'Set ALERT_WEBHOOK_URL, or remove ALERT_WEBHOOK_SECRET.',
      },
      {
        id: 'alerts-escalation-alone',
        when: ['ALERT_ESCALATION_URL'],
        atLeastOne: ['ALERT_WEBHOOK_URL', 'ALERT_EMAIL_TO'],
        cause: 'Alerts would escalate, but there is no first place to send them.',
      },
      {
        id: 'alerts-escalation-after-alone',
        requires: ['ALERT_ESCALATION_URL'],
        when: ['ALERT_ESCALATION_AFTER'],
      },
      noChat('alerts-escalation-chat', 'ALERT_ESCALATION_URL', TELEGRAM_WITHOUT_CHAT),
      // A signing key of the first webhook is no routing key.
      noRoutingKey('alerts-escalation-key', 'ALERT_ESCALATION_URL', PAGERDUTY_WITHOUT_KEY, /^$|^whsec_/),
      {
        id: 'alerts-format-without-webhook',
        requires: ['ALERT_WEBHOOK_URL'],
        when: ['ALERT_WEBHOOK_FORMAT'],
        cause: 'Alerts have a format, but no webhook to send them to.',
      },
      noChat('alerts-telegram-chat', 'ALERT_WEBHOOK_URL', TELEGRAM_WITHOUT_CHAT),
      noChat('alerts-telegram-format-chat', 'ALERT_WEBHOOK_URL', WITHOUT_CHAT, {
        variable: 'ALERT_WEBHOOK_FORMAT',
        of: ['telegram'],
      }),
      noRoutingKey('alerts-pagerduty-key', 'ALERT_WEBHOOK_URL', PAGERDUTY_WITHOUT_KEY),
      noRoutingKey('alerts-pagerduty-format-key', 'ALERT_WEBHOOK_FORMAT', 'pagerduty'),
      {
        ...KEY_RULES.alerts,
        forbidden: 'ALERT_WEBHOOK_SECRET',
        cause: 'ALERT_WEBHOOK_SECRET starts with whsec_, but no key follows: anybody could forge alerts.',
        fix: 'Set it to whsec_ and the base64 of at least 24 bytes, for example from openssl rand -base64 32, or to a text without whsec_.',
      },
    ],
  },
  heartbeats: {
    services: ['web'],
    unlocks: 'watchers outside: a ping after each hour of the schedule, and witnesses',
    absent: 'nobody outside notices when the whole machine goes silent',
    variables: {
      HEARTBEAT_PING_URL: secretUrl(
        'https://hc-ping.com/4a1f6a9e-0000-0000-0000-000000000000',
        'Called with GET after each completed hour of the schedule, so that a watcher outside notices silence. Not for the definition’s heartbeats.',
      ),
      WITNESS_SECRET: {
        kind: 'secret',
        chosen: true,
        pattern: WITNESSES,
        summary:
          'Lets witnesses fetch the signed status: NAME:SECRET for each, separated by commas. On a witness its own secret.',
      },
    },
  },
} as const satisfies Readonly<Record<string, GroupDefinition>>

/** The store of a service's jobs. The engine opens it for platforms that have the variable; `base` has no such service. */
export const JOB_STORE_URL = {
  kind: 'store-url',
  adjusts: true,
  example: 'postgres://jobs@db.internal/jobs',
  summary: 'Where the API keeps its jobs; the store when absent.',
} as const satisfies VariableDefinition

type Groups = typeof baseGroups
type VariablesOf<Name extends keyof Groups> = Name extends unknown
  ? (variables: Groups[Name]['variables']) => void
  : never
/** The variables that the engine reads: those of every group, as one object. */
export type EngineVariables = (VariablesOf<keyof Groups> extends (variables: infer All) => void
  ? All
  : never) & { readonly JOB_STORE_URL: typeof JOB_STORE_URL }

export const engineVariables: EngineVariables = Object.assign(
  { JOB_STORE_URL },
  ...Object.values(baseGroups).map(({ variables }) => variables),
)

export type EngineVariable = keyof EngineVariables
